//! Several partitions as one list, in the order of places.

use std::collections::VecDeque;

use futures::future::try_join_all;
use storybus_core::ports::StoreError;

use crate::clients::Aws;
use crate::item::{Attributes as _, Item, s};
use crate::keys;

/// Items of one page at most, of one partition. DynamoDB ends a page at 1 MB, whatever it is asked for: eight of them are what a merge
/// holds at most.
const MOST: usize = 1000;
/// The fewest that are worth a request.
const FEWEST: usize = 8;

/// Which of a partition's items, both bounds included, and what of them.
#[derive(Clone)]
pub(super) struct Between {
    pub(super) first: String,
    pub(super) last: String,
    pub(super) forward: bool,
    pub(super) bodies: bool,
}

impl Between {
    fn projection(&self) -> &'static str {
        if self.bodies {
            "sk, h, s, c, b"
        } else {
            "sk, h, s, c"
        }
    }
}

/// One partition.
struct Run {
    pk: String,
    read: VecDeque<(String, Item)>,
    next: Option<Item>,
    begun: bool,
    page: usize,
}

impl Run {
    fn is_dry(&self) -> bool {
        self.read.is_empty() && (self.next.is_some() || !self.begun)
    }

    /// Reads on until there is something, or nothing more.
    async fn fill(&mut self, aws: &Aws, between: &Between) -> Result<(), StoreError> {
        while self.is_dry() {
            let call = || async {
                let request = aws.dynamodb.query();
                let request = request
                    .table_name(&aws.config.archive_table)
                    .consistent_read(true)
                    .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
                    .expression_attribute_values(":pk", s(&self.pk))
                    .expression_attribute_values(":first", s(&between.first))
                    .expression_attribute_values(":last", s(&between.last))
                    .projection_expression(between.projection())
                    .scan_index_forward(between.forward)
                    .limit(i32::try_from(self.page).unwrap_or(i32::MAX))
                    .set_exclusive_start_key(self.next.clone());
                Ok(request.send().await?)
            };
            let page = aws.caller.read(call).await?;
            (self.begun, self.next) = (true, page.last_evaluated_key);
            for item in page.items.unwrap_or_default() {
                self.read.push_back((item.need_text("sk")?.to_owned(), item));
            }
            // whoever comes again wants much
            self.page = (self.page * 2).min(MOST);
        }
        Ok(())
    }
}

/// Some partitions of a workspace, read side by side.
pub(super) struct Merge<'a> {
    aws: &'a Aws,
    between: &'a Between,
    runs: Vec<Run>,
}

impl<'a> Merge<'a> {
    /// Of these partitions, of which about so many items are wanted together.
    pub(super) fn new(
        aws: &'a Aws,
        workspace: &str,
        partitions: &[(i64, u8)],
        between: &'a Between,
        wanted: usize,
    ) -> Self {
        let page = (wanted / partitions.len().max(1))
            .saturating_add(1)
            .clamp(FEWEST, MOST);
        let run = |(hour, shard): &(i64, u8)| Run {
            pk: keys::archive_partition(workspace, *hour, *shard),
            read: VecDeque::new(),
            next: None,
            begun: false,
            page,
        };
        Self {
            aws,
            between,
            runs: partitions.iter().map(run).collect(),
        }
    }

    /// The next item. Places are unique over all partitions.
    pub(super) async fn next(&mut self) -> Result<Option<Item>, StoreError> {
        let (aws, between) = (self.aws, self.between);
        if self.runs.iter().any(Run::is_dry) {
            try_join_all(self.runs.iter_mut().map(|run| run.fill(aws, between))).await?;
        }
        let fronts = self.runs.iter().enumerate();
        let fronts = fronts.filter_map(|(n, run)| Some((&run.read.front()?.0, n)));
        let next = if between.forward {
            fronts.min()
        } else {
            fronts.max()
        };
        let next = next.map(|(_, n)| n);
        let run = next.and_then(|n| self.runs.get_mut(n));
        Ok(run.and_then(|run| run.read.pop_front()).map(|(_, item)| item))
    }
}
