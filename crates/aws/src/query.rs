//! Reading the bus's table: one item, a range of a partition, many items at once. Every read sees all writes that were answered.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, WriteRequest};
use storybus_core::ports::StoreError;

use crate::Aws;
use crate::call::{Failed, Outcome};
use crate::item::{Attributes as _, Item, s, unreadable};

/// The most keys of one `BatchGetItem`. <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
const MOST_KEYS: usize = 100;
/// The most items of one `BatchWriteItem`. <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html>
const MOST_WRITES: usize = 25;
/// How often what a batch left undone is asked for again.
const MOST_ROUNDS: usize = 10;

/// A part of a partition, in the order of the sort key.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pk: String,
    /// A condition on `sk` with `:sk`.
    bound: Option<(&'static str, String)>,
    backwards: bool,
    limit: usize,
}

impl Range {
    /// The whole partition, forwards.
    pub(crate) fn of(pk: impl Into<String>) -> Self {
        Self {
            pk: pk.into(),
            bound: None,
            backwards: false,
            limit: usize::MAX,
        }
    }

    /// What comes behind a sort key, known or not.
    pub(crate) fn after(mut self, sk: Option<impl Into<String>>) -> Self {
        self.bound = sk.map(|sk| ("sk > :sk", sk.into()));
        self
    }

    /// What comes before a sort key, known or not, the last first.
    pub(crate) fn backwards(mut self, before: Option<impl Into<String>>) -> Self {
        self.bound = before.map(|sk| ("sk < :sk", sk.into()));
        self.backwards = true;
        self
    }

    /// Not more than so many.
    pub(crate) fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Aws {
    /// One item of the bus's table.
    pub(crate) async fn item(&self, key: Item) -> Result<Option<Item>, StoreError> {
        self.caller
            .read(async || {
                let get = self.dynamodb.get_item().table_name(&self.config.table);
                let got = get.set_key(Some(key.clone())).consistent_read(true).send().await;
                got.map(|got| got.item).map_err(Failed::from)
            })
            .await
    }

    /// The items of a range of the bus's table, through as many pages as it takes.
    pub(crate) async fn range(&self, range: Range) -> Result<Vec<Item>, StoreError> {
        let mut all = Vec::new();
        let mut start: Option<Item> = None;
        while all.len() < range.limit {
            let left = i32::try_from(range.limit - all.len()).unwrap_or(i32::MAX);
            let page = self
                .caller
                .read(async || {
                    let mut condition = "pk = :pk".to_owned();
                    let mut query = self
                        .dynamodb
                        .query()
                        .table_name(&self.config.table)
                        .expression_attribute_values(":pk", s(&range.pk));
                    if let Some((bound, sk)) = &range.bound {
                        condition = format!("{condition} AND {bound}");
                        query = query.expression_attribute_values(":sk", s(sk));
                    }
                    query
                        .key_condition_expression(condition)
                        .scan_index_forward(!range.backwards)
                        .set_limit((range.limit != usize::MAX).then_some(left))
                        .set_exclusive_start_key(start.clone())
                        .consistent_read(true)
                        .send()
                        .await
                        .map_err(Failed::from)
                })
                .await?;
            all.extend(page.items.unwrap_or_default());
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        all.truncate(range.limit);
        Ok(all)
    }

    /// Many items of the bus's table by keys that differ in `pk`, in the order of the keys; what is not there is left out.
    pub(crate) async fn items(&self, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let mut found: HashMap<String, Item> = HashMap::new();
        for chunk in keys.chunks(MOST_KEYS) {
            let mut wanted = chunk.to_vec();
            for round in 0.. {
                let (items, left) = self.batch(wanted).await?;
                for item in items {
                    found.insert(item.need_text("pk")?.to_owned(), item);
                }
                wanted = left;
                if wanted.is_empty() {
                    break;
                }
                crowded(round).await?;
            }
        }
        Ok(keys
            .iter()
            .filter_map(|key| found.remove(key.text("pk")?))
            .collect())
    }

    async fn batch(&self, keys: Vec<Item>) -> Result<(Vec<Item>, Vec<Item>), StoreError> {
        let table = &self.config.table;
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(true)
            .build()
            .map_err(unreadable)?;
        let got = self
            .caller
            .read(async || {
                let get = self
                    .dynamodb
                    .batch_get_item()
                    .request_items(table, wanted.clone());
                get.send().await.map_err(Failed::from)
            })
            .await?;
        let items = got.responses.and_then(|mut tables| tables.remove(table));
        let left = got.unprocessed_keys.and_then(|mut tables| tables.remove(table));
        Ok((
            items.unwrap_or_default(),
            left.map(|left| left.keys).unwrap_or_default(),
        ))
    }

    /// Puts or deletes many items of the bus's table, each by itself, whatever is there. May be called again with the same ones.
    pub(crate) async fn write_each(&self, requests: Vec<WriteRequest>) -> Result<(), StoreError> {
        let table = &self.config.table;
        for chunk in requests.chunks(MOST_WRITES) {
            let mut wanted = chunk.to_vec();
            for round in 0.. {
                let written = self
                    .caller
                    .write(async || {
                        let write = self
                            .dynamodb
                            .batch_write_item()
                            .request_items(table, wanted.clone());
                        write.send().await.map_err(Failed::from)
                    })
                    .await?;
                wanted = written
                    .unprocessed_items
                    .and_then(|mut tables| tables.remove(table))
                    .unwrap_or_default();
                if wanted.is_empty() {
                    break;
                }
                crowded(round).await?;
            }
        }
        Ok(())
    }
}

/// Waits until a batch may be asked for what it left undone; not for ever.
async fn crowded(round: usize) -> Result<(), StoreError> {
    if round >= MOST_ROUNDS {
        let failed = Failed::new(Outcome::Throttled, "a batch was left undone");
        return Err(StoreError::Unavailable {
            reason: failed.to_string(),
        });
    }
    crate::pace::rest(std::time::Duration::from_millis(25) * u32::try_from(round + 1).unwrap_or(1)).await;
    Ok(())
}

/// A number attribute of one.
pub(crate) fn one() -> AttributeValue {
    AttributeValue::N("1".to_owned())
}
