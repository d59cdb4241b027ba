//! Messages by their id, by their story, by their correlation id.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::KeysAndAttributes;
use bytes::Bytes;
use storybus_core::domain::archived::{Archived, Head};
use storybus_core::ports::StoreError;
use storybus_protocol::id::{CorrelationId, MessageId, WorkspaceId};

use super::place::{Place, behind, sixteen, time};
use super::{CORRELATION, DynamoArchive, MESSAGE, STORY, item_body, item_head, item_place};
use crate::call::{Failed, Outcome};
use crate::item::{Item, key, s};
use crate::keys;

/// Keys of one request.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
const BATCH: usize = 100;
/// No message id has so many publications, by guarantee F.
const MANY: usize = 1000;

impl DynamoArchive {
    fn key(workspace: &WorkspaceId, place: &Place) -> Item {
        let partition = keys::archive_partition(workspace.as_str(), place.hour(), place.shard);
        key(partition, place.text())
    }

    /// Every publication of a message, oldest first.
    pub(super) async fn publications(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
    ) -> Result<Vec<Head>, StoreError> {
        let places = self.places_of(workspace, message_id).await?;
        self.heads(workspace, &places).await
    }

    /// Where they lie.
    pub(super) async fn places_of(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
    ) -> Result<Vec<Place>, StoreError> {
        let value = keys::archive_index(workspace.as_str(), &sixteen(message_id.as_bytes()));
        self.index(("by_message", MESSAGE), &value, &time(self.begin()), MANY)
            .await
    }

    /// Messages of a story or of a correlation id, oldest first.
    pub(super) async fn story(
        &self,
        workspace: &WorkspaceId,
        story: &[u8; 16],
        correlation: Option<CorrelationId>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Head>, StoreError> {
        let begin = self.begin();
        let first = match after {
            Some(after) if after.at >= begin => behind(&after),
            _ => time(begin),
        };
        let of_story = keys::archive_index(workspace.as_str(), &sixteen(story));
        let by_story = self.index(("by_story", STORY), &of_story, &first, limit);
        let by_correlation = async {
            let Some(id) = correlation else {
                return Ok(Vec::new());
            };
            let of_it = keys::archive_index(workspace.as_str(), &sixteen(id.as_bytes()));
            self.index(("by_correlation", CORRELATION), &of_it, &first, limit)
                .await
        };
        let (one, two) = futures::try_join!(by_story, by_correlation)?;
        let places: BTreeSet<Place> = one.into_iter().chain(two).collect();
        let places: Vec<Place> = places.into_iter().take(limit).collect();
        self.heads(workspace, &places).await
    }

    /// Up to `limit` places of an index, from a text on.
    async fn index(
        &self,
        (index, attribute): (&str, &str),
        value: &str,
        first: &str,
        limit: usize,
    ) -> Result<Vec<Place>, StoreError> {
        let mut places = Vec::new();
        let mut next = None;
        while places.len() < limit {
            let call = || async {
                let request = self.aws.dynamodb.query();
                let request = request
                    .table_name(&self.aws.config.archive_table)
                    .index_name(index)
                    .key_condition_expression("#of = :of AND sk >= :first")
                    .expression_attribute_names("#of", attribute)
                    .expression_attribute_values(":of", s(value))
                    .expression_attribute_values(":first", s(first))
                    .projection_expression("sk")
                    .limit(i32::try_from(limit - places.len()).unwrap_or(i32::MAX))
                    .set_exclusive_start_key(next.clone());
                Ok(request.send().await?)
            };
            let page = self.aws.caller.read(call).await?;
            for item in page.items() {
                places.push(item_place(item)?);
            }
            next = page.last_evaluated_key;
            if next.is_none() {
                break;
            }
        }
        Ok(places)
    }

    /// The heads at these places, in their order; what is gone meanwhile is left out.
    async fn heads(&self, workspace: &WorkspaceId, places: &[Place]) -> Result<Vec<Head>, StoreError> {
        let mut found = HashMap::new();
        for places in places.chunks(BATCH) {
            let keys = places.iter().map(|place| Self::key(workspace, place));
            let mut wanted: Vec<Item> = keys.collect();
            while !wanted.is_empty() {
                let (items, rest) = self.batch(&wanted).await?;
                for item in items {
                    let head = item_head(&item)?;
                    found.insert(head.position.clone(), head);
                }
                wanted = rest;
            }
        }
        Ok(places
            .iter()
            .filter_map(|place| found.remove(&place.position()))
            .collect())
    }

    /// Some of these items, without their bodies, and the keys of the others.
    async fn batch(&self, wanted: &[Item]) -> Result<(Vec<Item>, Vec<Item>), StoreError> {
        let table = &self.aws.config.archive_table;
        let call = || async {
            let keys = KeysAndAttributes::builder()
                .set_keys(Some(wanted.to_vec()))
                .projection_expression("sk, h, s, c")
                .consistent_read(true)
                .build();
            let keys = keys.map_err(|error| Failed::new(Outcome::NotSent, error.to_string()))?;
            let request = self.aws.dynamodb.batch_get_item().request_items(table, keys);
            let mut answer = request.send().await?;
            let items = answer.responses.as_mut().and_then(|all| all.remove(table));
            let rest = answer.unprocessed_keys.as_mut().and_then(|all| all.remove(table));
            let (items, rest) = (
                items.unwrap_or_default(),
                rest.map(|rest| rest.keys).unwrap_or_default(),
            );
            if items.is_empty() && !rest.is_empty() {
                return Err(Failed::new(Outcome::Throttled, "none of the keys was read"));
            }
            Ok((items, rest))
        };
        self.aws.caller.read(call).await
    }

    /// The message at a place.
    pub(super) async fn at(
        &self,
        workspace: &WorkspaceId,
        place: &Place,
    ) -> Result<Option<Archived>, StoreError> {
        if place.at < self.begin() {
            return Ok(None);
        }
        let call = || async {
            let request = self
                .aws
                .dynamodb
                .get_item()
                .table_name(&self.aws.config.archive_table);
            let key = Self::key(workspace, place);
            Ok(request.set_key(Some(key)).consistent_read(true).send().await?)
        };
        let Some(item) = self.aws.caller.read(call).await?.item else {
            return Ok(None);
        };
        Ok(Some(Archived {
            head: item_head(&item)?,
            body: Bytes::from(item_body(&item)?),
        }))
    }
}
