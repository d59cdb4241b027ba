//! The stories, to be looked at.
//!
//! The list is the sparse index `by_list`, which is eventually consistent: a story that has just begun may be missing for a moment.
//! What it lists is read from the table itself.

use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use storybus_core::domain::archived::Position;
use storybus_core::domain::record::StoryKey;
use storybus_core::domain::time::Millis;
use storybus_core::ports::stories::NamedStory;
use storybus_core::ports::{StoreError, Stories};
use storybus_protocol::id::WorkspaceId;

use crate::Aws;
use crate::call::{Failed, Outcome};
use crate::item::{Attributes, Item, s, unreadable};
use crate::keys;
use crate::ledger::story;

/// How many items one request reads at most.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
const BATCH: usize = 100;

/// [`Stories`] on DynamoDB. A story's place is its `list_sk`.
#[derive(Clone)]
pub struct DynamoStories {
    aws: Aws,
}

impl Aws {
    /// The stories, to be looked at.
    #[must_use]
    pub fn stories(&self) -> DynamoStories {
        DynamoStories { aws: self.clone() }
    }
}

#[async_trait]
impl Stories for DynamoStories {
    async fn list(
        &self,
        workspace: &WorkspaceId,
        after: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<NamedStory>, StoreError> {
        if after.is_some_and(|position| !self.is_position(position)) {
            return Ok(Vec::new());
        }
        let mut after = after.map(|position| position.0.clone());
        let mut stories = Vec::new();
        // A story that went meanwhile is missing in its page: only an empty page is the end.
        while stories.len() < limit {
            let count = (limit - stories.len()).min(BATCH);
            let page = self.page(workspace, after.as_deref(), count).await?;
            let Some(last) = page.last() else {
                break;
            };
            after = Some(last.need_text("list_sk")?.to_owned());
            let mut found = self.get_all(&page).await?;
            for listed in &page {
                let place = listed.need_text("list_sk")?;
                if let Some(item) = found.remove(listed.need_text("pk")?)
                    // begun again meanwhile: it has another place
                    && item.text("list_sk") == Some(place)
                {
                    stories.push(named(&item, Position(place.to_owned()))?);
                }
            }
        }
        Ok(stories)
    }

    async fn get(&self, key: &StoryKey) -> Result<Option<NamedStory>, StoreError> {
        let item = self
            .aws
            .caller
            .read(|| async {
                let request = self
                    .aws
                    .dynamodb
                    .get_item()
                    .table_name(&self.aws.config.table)
                    .set_key(Some(keys::story(key)))
                    .consistent_read(true);
                Ok(request.send().await?.item)
            })
            .await?;
        item.map(|item| {
            let place = item.need_text("list_sk")?.to_owned();
            named(&item, Position(place))
        })
        .transpose()
    }

    fn is_position(&self, position: &Position) -> bool {
        keys::is_place_of_story(&position.0)
    }
}

impl DynamoStories {
    /// Up to `count` entries of the list behind this place.
    async fn page(
        &self,
        workspace: &WorkspaceId,
        after: Option<&str>,
        count: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let limit = i32::try_from(count).unwrap_or(i32::MAX);
        self.aws
            .caller
            .read(|| async {
                let mut request = self
                    .aws
                    .dynamodb
                    .query()
                    .table_name(&self.aws.config.table)
                    .index_name("by_list")
                    .scan_index_forward(false)
                    .limit(limit)
                    .expression_attribute_values(":list", s(keys::stories(workspace)));
                request = match after {
                    None => request.key_condition_expression("list_pk = :list"),
                    Some(place) => request
                        .key_condition_expression("list_pk = :list AND list_sk < :place")
                        .expression_attribute_values(":place", s(place)),
                };
                // Keys of 100 entries are far below the 1 MB at which an answer is cut.
                Ok(request.send().await?.items.unwrap_or_default())
            })
            .await
    }

    /// The items that a page lists, by their partition key.
    async fn get_all(&self, page: &[Item]) -> Result<HashMap<String, Item>, StoreError> {
        let table = &self.aws.config.table;
        let mut wanted: Vec<HashMap<String, AttributeValue>> = page
            .iter()
            .map(|listed| Ok(crate::item::key(listed.need_text("pk")?, listed.need_text("sk")?)))
            .collect::<Result<_, StoreError>>()?;
        let mut found = HashMap::new();
        while !wanted.is_empty() {
            let before = wanted.len();
            let of_table = KeysAndAttributes::builder()
                .set_keys(Some(wanted))
                .consistent_read(true)
                .build()
                .map_err(unreadable)?;
            let answer = self
                .aws
                .caller
                .read(|| async {
                    let request = self
                        .aws
                        .dynamodb
                        .batch_get_item()
                        .request_items(table, of_table.clone());
                    let answer = request.send().await?;
                    let left = answer
                        .unprocessed_keys
                        .and_then(|mut left| left.remove(table))
                        .map_or_else(Vec::new, |left| left.keys);
                    let items = answer.responses.and_then(|mut found| found.remove(table));
                    // nothing at all: throttled, though the answer is one of success
                    if left.len() == before {
                        return Err(Failed::new(Outcome::Throttled, "no key was processed"));
                    }
                    Ok((items.unwrap_or_default(), left))
                })
                .await?;
            for item in answer.0 {
                found.insert(item.need_text("pk")?.to_owned(), item);
            }
            wanted = answer.1;
        }
        Ok(found)
    }
}

fn named(item: &Item, position: Position) -> Result<NamedStory, StoreError> {
    Ok(NamedStory {
        position,
        story_id: item.text("story_id").map(str::to_owned),
        begun_at: item.number("begun_at").map(Millis),
        story: story::read(item)?,
    })
}
