//! A workspace's partitions, hour by hour.

use std::collections::VecDeque;

use storybus_core::ports::StoreError;

use crate::clients::Aws;
use crate::item::{Attributes as _, Item, s, unreadable};
use crate::keys;

/// Entries of one look: some eight busy hours, or days of a quiet workspace.
const PAGE: i32 = 64;

/// The list of partitions, read as far as it is needed.
pub(super) struct Buckets<'a> {
    aws: &'a Aws,
    workspace: &'a str,
    /// The first hour and the last.
    hours: (i64, i64),
    forward: bool,
    read: VecDeque<(i64, u8)>,
    next: Option<Item>,
    begun: bool,
}

impl<'a> Buckets<'a> {
    /// Between two hours, both included.
    pub(super) fn new(aws: &'a Aws, workspace: &'a str, hours: (i64, i64), forward: bool) -> Self {
        Self {
            aws,
            workspace,
            hours,
            forward,
            read: VecDeque::new(),
            next: None,
            begun: hours.0 > hours.1, // nothing to read
        }
    }

    /// Partitions of the next hours that have any: of so many hours that there are about as many partitions as one busy hour has.
    /// Empty at the end.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<(i64, u8)>, StoreError> {
        let mut taken = Vec::new();
        while let Some(hour) = self.front().await? {
            let of_hour = self.read.iter().take_while(|(of, _)| *of == hour).count();
            if !taken.is_empty() && taken.len() + of_hour > most {
                break;
            }
            taken.extend(self.read.drain(..of_hour));
        }
        Ok(taken)
    }

    /// The next hour, once all of its entries are read.
    async fn front(&mut self) -> Result<Option<i64>, StoreError> {
        loop {
            let first = self.read.front().map(|(hour, _)| *hour);
            let whole = self.read.back().map(|(hour, _)| *hour) != first;
            if (first.is_some() && whole) || (self.begun && self.next.is_none()) {
                return Ok(first);
            }
            self.page().await?;
        }
    }

    async fn page(&mut self) -> Result<(), StoreError> {
        let call = || async {
            let request = self.aws.dynamodb.query();
            let request = request
                .table_name(&self.aws.config.archive_table)
                .consistent_read(true)
                .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
                .expression_attribute_values(":pk", s(keys::archive_directory(self.workspace)))
                .expression_attribute_values(":first", s(keys::archive_entry(self.hours.0, 0)))
                .expression_attribute_values(":last", s(keys::archive_entry(self.hours.1, 9)))
                .projection_expression("sk")
                .scan_index_forward(self.forward)
                .limit(PAGE)
                .set_exclusive_start_key(self.next.clone());
            Ok(request.send().await?)
        };
        let page = self.aws.caller.read(call).await?;
        for item in page.items() {
            let entry = item.need_text("sk")?.split_once('#');
            let entry = entry.and_then(|(hour, shard)| Some((hour.parse().ok()?, shard.parse().ok()?)));
            self.read.push_back(entry.ok_or_else(|| unreadable("sk"))?);
        }
        (self.begun, self.next) = (true, page.last_evaluated_key);
        Ok(())
    }
}
