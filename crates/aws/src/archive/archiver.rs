//! What the topics send goes into the archive.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use storybus_core::domain::message::About;
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_json::Document;
use storybus_protocol::id::{CorrelationId, WorkspaceId};
use storybus_som::Family;

use super::place::{Place, behind, end_of, hour, shard, sixteen, time};
use super::{BODY, CORRELATION, HEAD, MESSAGE, STORY, item_place, pack, sixteen_of};
use crate::arrived::Arrived;
use crate::clients::Aws;
use crate::item::{Item, b, key, n, s, unreadable};
use crate::keys;

/// How far the clocks of the queue's hosts may be apart, so that of two messages of a group the later bears the earlier time.
const SKEW: Duration = Duration::from_secs(2);
/// Partitions that are remembered as listed: more than a process meets in an hour.
const REMEMBERED: usize = 10_000;
/// A list entry outlives what it leads to.
const SPARE: Duration = Duration::from_secs(24 * 3600);

/// Stores what comes out of the archive's queue. To do so again changes nothing: a publication has one place.
pub struct Archiver {
    aws: Aws,
    /// Partitions that this process has listed.
    listed: Mutex<HashSet<String>>,
}

/// A message that can be stored.
struct Ready {
    workspace: WorkspaceId,
    place: Place,
    item: Item,
}

impl Archiver {
    pub(super) fn new(aws: Aws) -> Self {
        Self {
            aws,
            listed: Mutex::default(),
        }
    }

    /// Stores a batch; says which of it is to come again, by SQS's ids: of each group the first that could not be stored, and
    /// everything behind it.
    pub async fn archive(&self, batch: &[Arrived]) -> Vec<String> {
        let mut groups: Vec<Vec<&Arrived>> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for message in batch {
            let next = groups.len();
            let at = *known.entry(&message.group).or_insert(next);
            match groups.get_mut(at) {
                Some(group) => group.push(message),
                None => groups.push(vec![message]),
            }
        }
        let stored = join_all(groups.iter().map(|group| self.group(group))).await;
        let again = groups.iter().zip(stored);
        let again = again.flat_map(|(group, stored)| group.iter().skip(stored));
        again.map(|message| message.sqs_message_id.clone()).collect()
    }

    /// Stores messages of one group; says how many, from the first on.
    async fn group(&self, group: &[&Arrived]) -> usize {
        let mut ready: Vec<Ready> = Vec::with_capacity(group.len());
        for message in group {
            match self.ready(message, ready.last()).await {
                Ok(one) => ready.push(one),
                Err(error) => {
                    tell(message, &error);
                    break;
                }
            }
        }
        // One may be stored before another that comes first: it is the place that counts, and what failed keeps the watermark.
        let stored = join_all(ready.iter().map(|one| self.store(one))).await;
        let failed = stored.into_iter().zip(group).position(|(result, message)| {
            let failed = result.err();
            failed.iter().for_each(|error| tell(message, error));
            failed.is_some()
        });
        failed.unwrap_or(ready.len())
    }

    async fn ready(&self, message: &Arrived, before: Option<&Ready>) -> Result<Ready, StoreError> {
        let attributes = message.message_attributes()?;
        let correlation = message.correlation_id()?;
        let workspace: WorkspaceId = message
            .workspace()
            .parse()
            .map_err(|_| unreadable("MessageGroupId"))?;
        let about = about(message, attributes.family.as_deref());
        let mut place = Place {
            at: message.sent_at,
            shard: shard(&correlation),
            sequence: message.sequence_number.parse().map_err(unreadable)?,
            message_id: message.message_id()?,
        };
        place.at = match before {
            Some(before) => place.at.max(before.place.at),
            None => self.not_before(&workspace, correlation, &place).await?,
        };
        let mut item = key(
            keys::archive_partition(workspace.as_str(), place.hour(), place.shard),
            place.text(),
        );
        let index =
            |sixteen_bytes: &[u8; 16]| s(keys::archive_index(workspace.as_str(), &sixteen(sixteen_bytes)));
        let gone = place.at.plus(self.aws.config.archive_retention);
        item.insert(MESSAGE.to_owned(), index(place.message_id.as_bytes()));
        item.insert(CORRELATION.to_owned(), index(correlation.as_bytes()));
        if let Some(story) = &about.story {
            item.insert(STORY.to_owned(), index(story));
        }
        item.insert(
            HEAD.to_owned(),
            b(pack::pack_head(&attributes, &about, correlation)?),
        );
        item.insert(BODY.to_owned(), b(pack::pack(message.body.as_bytes())?));
        item.insert("expires_at".to_owned(), n(seconds(gone)));
        Ok(Ready {
            workspace,
            place,
            item,
        })
    }

    /// The time of a message, not before that of any message of its correlation id that the queue numbered before it. SQS promises
    /// order by number, not by time; those before it are stored, as the queue gives a group's messages one after another.
    async fn not_before(
        &self,
        workspace: &WorkspaceId,
        correlation: CorrelationId,
        place: &Place,
    ) -> Result<Millis, StoreError> {
        let last = place.at.plus(SKEW);
        let mut at = place.at;
        for hour in place.hour()..=hour(last) {
            let partition = keys::archive_partition(workspace.as_str(), hour, place.shard);
            let mut next = None;
            loop {
                let call = || async {
                    let request = self.aws.dynamodb.query();
                    let request = request
                        .table_name(&self.aws.config.archive_table)
                        .consistent_read(true)
                        .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
                        .expression_attribute_values(":pk", s(&partition))
                        .expression_attribute_values(":first", s(behind(place)))
                        .expression_attribute_values(":last", s(time(last)))
                        .projection_expression("sk, c")
                        .set_exclusive_start_key(next.clone());
                    Ok(request.send().await?)
                };
                let page = self.aws.caller.read(call).await?;
                for item in page.items() {
                    let other = item_place(item)?;
                    let of_group = sixteen_of(item, CORRELATION)? == Some(*correlation.as_bytes());
                    if of_group && other.sequence < place.sequence {
                        at = at.max(other.at);
                    }
                }
                next = page.last_evaluated_key;
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(at)
    }

    async fn store(&self, ready: &Ready) -> Result<(), StoreError> {
        self.list(ready).await?;
        self.put(&ready.item).await
    }

    /// Lists a message's partition, before the first message is in it: no reader misses one.
    async fn list(&self, ready: &Ready) -> Result<(), StoreError> {
        let (hour, shard) = (ready.place.hour(), ready.place.shard);
        let partition = keys::archive_partition(ready.workspace.as_str(), hour, shard);
        if self.listed().contains(&partition) {
            return Ok(());
        }
        let mut item = key(
            keys::archive_directory(ready.workspace.as_str()),
            keys::archive_entry(hour, shard),
        );
        let gone = end_of(hour).plus(self.aws.config.archive_retention).plus(SPARE);
        item.insert("expires_at".to_owned(), n(seconds(gone)));
        self.put(&item).await?;
        let mut listed = self.listed();
        if listed.len() >= REMEMBERED {
            listed.clear();
        }
        listed.insert(partition);
        Ok(())
    }

    fn listed(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(&self, item: &Item) -> Result<(), StoreError> {
        let call = || async {
            let request = self
                .aws
                .dynamodb
                .put_item()
                .table_name(&self.aws.config.archive_table);
            Ok(request.set_item(Some(item.clone())).send().await?)
        };
        self.aws.caller.write(call).await.map(drop)
    }
}

/// What a message is about, read again from its body: the topic carries only what consumers see.
fn about(message: &Arrived, family: Option<&str>) -> About {
    let snapshot = family == Some(Family::StoryContext.name());
    let document = Document::parse(message.body.as_bytes()).ok();
    let payload = document
        .as_ref()
        .and_then(|document| document.root().get("payload"));
    payload
        .map(|payload| About::of(payload, snapshot))
        .unwrap_or_default()
}

/// The second in which that time has surely passed.
fn seconds(at: Millis) -> i64 {
    at.0.saturating_add(999).div_euclid(1000)
}

fn tell(message: &Arrived, error: &StoreError) {
    let (id, count) = (&message.deduplication_id, message.receive_count);
    tracing::error!(message = %id, receive_count = count, %error, "a message was not archived and comes again");
}
