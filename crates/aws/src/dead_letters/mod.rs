//! The consumers' dead letters in the table: [`DeadLetters`], and how they come there.
//!
//! A FIFO queue can neither be looked at nor picked from, so a queue of dead letters is only the way in: [`Mover`] takes what SQS
//! moved there, a rejection writes its dead letter itself. Either way a message of a queue becomes one dead letter at most: beside
//! each lies a mark with SQS's id of the message, written in the same transaction.
//!
//! The position is the time of death (13 digits, ms), SQS's sequence number and a part of its message id: letters are listed in the
//! order in which they died, and those of one instant in that of their arrival. (A FIFO queue of dead letters does not tell when a
//! message came into the queue it died in.)
//!
//! What a job holds has no `expires_at`: the job has still to deliver it.

mod item;
mod mover;
mod take;

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::Select;
use storybus_core::domain::archived::Position;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::domain::time::Millis;
use storybus_core::ports::dead_letters::{DeadLetterLimits, Wanted};
use storybus_core::ports::{Clock, DeadLetters, StoreError};
use storybus_protocol::id::{ConnectionId, JobId, MessageId, WorkspaceId};

use crate::Aws;
use crate::call::Failed;
use crate::item::{Attributes as _, Item, key, n, s};
use crate::keys;
use crate::writes::{Action, client_token};
pub(crate) use item::Letter;
pub use mover::{Moved, Mover};
use take::Batch;

/// The consumers' dead letters.
#[derive(Clone)]
pub struct DynamoDeadLetters {
    aws: Aws,
    clock: Arc<dyn Clock>,
}

impl Aws {
    /// The consumers' dead letters.
    #[must_use]
    pub fn dead_letters(&self, clock: Arc<dyn Clock>) -> DynamoDeadLetters {
        DynamoDeadLetters {
            aws: self.clone(),
            clock,
        }
    }
}

/// A page of a consumer's dead letters, and where to go on.
struct Page {
    items: Vec<Item>,
    next: Option<String>,
}

impl DynamoDeadLetters {
    fn table(&self) -> &str {
        &self.aws.config().table
    }

    /// Adds a letter, unless its message has become one already.
    pub(crate) async fn put(&self, queue: &QueueKey, letter: &Letter) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut mark = keys::died(&queue.consumer, &letter.sqs_message_id);
        mark.insert("expires_at".to_owned(), n(item::kept_until(now)));
        // another reason is another transaction
        let cause = serde_json::to_vec(&letter.cause).map_err(crate::item::unreadable)?;
        let token = client_token(
            self.table(),
            &[
                queue.consumer.as_str().as_bytes(),
                letter.sqs_message_id.as_bytes(),
                &now.0.to_be_bytes(),
                &letter.receive_count.to_be_bytes(),
                &cause,
            ],
        );
        let actions = vec![
            Action::put(mark).when("attribute_not_exists(pk)"),
            Action::put(letter.item(queue, now)?),
        ];
        // a condition that fails: it is there
        self.aws
            .write_together(self.table(), token, actions)
            .await
            .map(|_| ())
    }

    /// Whether a message of a consumer's queue has become a dead letter, redriven since or not.
    pub(crate) async fn has_died(
        &self,
        consumer: &ConnectionId,
        sqs_message_id: &str,
    ) -> Result<bool, StoreError> {
        let mark = keys::died(consumer, sqs_message_id);
        self.aws
            .caller
            .read(|| async {
                let get = self.aws.dynamodb.get_item().table_name(self.table());
                let get = get.set_key(Some(mark.clone())).consistent_read(true);
                Ok(get.send().await.map_err(Failed::from)?.item.is_some())
            })
            .await
    }

    /// How many a consumer has.
    pub(crate) async fn count(&self, consumer: &ConnectionId) -> Result<u64, StoreError> {
        let (pk, now) = (keys::dead_letters(consumer), self.now_seconds());
        let (mut count, mut start) = (0, None);
        loop {
            let page = self
                .aws
                .caller
                .read(|| async {
                    let query = self.aws.dynamodb.query().table_name(self.table());
                    query
                        .consistent_read(true)
                        .select(Select::Count)
                        .key_condition_expression("pk = :pk")
                        .filter_expression("attribute_not_exists(expires_at) OR expires_at > :now")
                        .expression_attribute_values(":pk", s(&pk))
                        .expression_attribute_values(":now", n(now))
                        .set_exclusive_start_key(start.clone())
                        .send()
                        .await
                        .map_err(Failed::from)
                })
                .await?;
            count += u64::try_from(page.count()).unwrap_or(0);
            match page.last_evaluated_key {
                Some(last) => start = Some(last),
                None => return Ok(count),
            }
        }
    }

    /// The dead letters of a message, each with its consumer. What has come within a second may be missing: it is asked of the
    /// index.
    pub(crate) async fn of_message(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
    ) -> Result<Vec<(ConnectionId, DeadLetter)>, StoreError> {
        let list = keys::dead_letters_of_message(workspace, message_id);
        let (mut found, mut start) = (Vec::new(), None);
        loop {
            let page = self
                .aws
                .caller
                .read(|| async {
                    let query = self.aws.dynamodb.query().table_name(self.table());
                    query
                        .index_name("by_list")
                        .key_condition_expression("list_pk = :list")
                        .expression_attribute_values(":list", s(&list))
                        .set_exclusive_start_key(start.clone())
                        .send()
                        .await
                        .map_err(Failed::from)
                })
                .await?;
            for known in page.items.unwrap_or_default() {
                let (pk, sk) = (known.need_text("pk")?, known.need_text("sk")?);
                let consumer = pk.strip_prefix("DEAD#").and_then(|id| id.parse().ok());
                let consumer: ConnectionId = consumer.ok_or_else(|| crate::item::unreadable("pk"))?;
                if let Some(letter) = self.get(&key(pk, sk)).await? {
                    found.push((consumer, letter));
                }
            }
            match page.last_evaluated_key {
                Some(last) => start = Some(last),
                None => return Ok(found),
            }
        }
    }

    async fn get(&self, key: &Item) -> Result<Option<DeadLetter>, StoreError> {
        let item = self
            .aws
            .caller
            .read(|| async {
                let get = self.aws.dynamodb.get_item().table_name(self.table());
                let get = get.set_key(Some(key.clone())).consistent_read(true);
                Ok(get.send().await.map_err(Failed::from)?.item)
            })
            .await?;
        let item = item.filter(|item| !item::is_over(item, self.now_seconds()));
        item.as_ref().map(item::letter).transpose()
    }

    /// Items behind a position, expired ones left out.
    async fn page(&self, consumer: &ConnectionId, after: Option<&str>) -> Result<Page, StoreError> {
        let pk = keys::dead_letters(consumer);
        let answer = self
            .aws
            .caller
            .read(|| async {
                let query = self
                    .aws
                    .dynamodb
                    .query()
                    .table_name(self.table())
                    .consistent_read(true);
                let query = query.expression_attribute_values(":pk", s(&pk));
                let query = match after {
                    Some(after) => query
                        .key_condition_expression("pk = :pk AND sk > :after")
                        .expression_attribute_values(":after", s(after)),
                    None => query.key_condition_expression("pk = :pk"),
                };
                query.send().await.map_err(Failed::from)
            })
            .await?;
        let now = self.now_seconds();
        let next = answer.last_evaluated_key.as_ref();
        Ok(Page {
            next: next
                .map(|key| key.need_text("sk").map(str::to_owned))
                .transpose()?,
            items: answer
                .items
                .unwrap_or_default()
                .into_iter()
                .filter(|item| !item::is_over(item, now))
                .collect(),
        })
    }

    fn now_seconds(&self) -> i64 {
        self.clock.now().0.div_euclid(1000)
    }
}

#[async_trait]
impl DeadLetters for DynamoDeadLetters {
    async fn list(
        &self,
        queue: &QueueKey,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<(Vec<DeadLetter>, bool), StoreError> {
        let mut after = after.map(|position| position.0.clone());
        let mut batch = Batch::new(limits);
        loop {
            let page = self.page(&queue.consumer, after.as_deref()).await?;
            for item in &page.items {
                if !batch.add(item::letter(item)?) {
                    return Ok((batch.letters, true));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok((batch.letters, false)),
            }
        }
    }

    async fn take(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        wanted: Wanted<'_>,
        after: Option<&Position>,
        limits: DeadLetterLimits,
    ) -> Result<Option<Vec<DeadLetter>>, StoreError> {
        self.take_for(queue, turn, wanted, after, limits).await
    }

    async fn remove(&self, queue: &QueueKey, job: &JobId, positions: &[Position]) -> Result<(), StoreError> {
        self.remove_of(queue, job, positions).await
    }

    async fn release(&self, queue: &QueueKey, job: &JobId) -> Result<(), StoreError> {
        self.release_of(queue, job).await
    }

    fn is_position(&self, position: &Position) -> bool {
        item::is_position(&position.0)
    }
}

/// Removes what a consumer that is no more has left.
pub(crate) async fn remove_all(aws: &Aws, consumer: &ConnectionId) -> Result<(), StoreError> {
    let table = &aws.config.table;
    let pk = keys::dead_letters(consumer);
    loop {
        let page = aws
            .caller
            .read(|| async {
                let query = aws.dynamodb.query().table_name(table).consistent_read(true);
                query
                    .key_condition_expression("pk = :pk")
                    .expression_attribute_values(":pk", s(&pk))
                    .projection_expression("pk, sk")
                    .send()
                    .await
                    .map_err(Failed::from)
            })
            .await?;
        let (items, more) = (page.items.unwrap_or_default(), page.last_evaluated_key.is_some());
        for item in items {
            aws.caller
                .write(|| async {
                    let delete = aws.dynamodb.delete_item().table_name(table);
                    let delete = delete.set_key(Some(item.clone())).send().await;
                    delete.map(|_| ()).map_err(Failed::from)
                })
                .await?;
        }
        if !more {
            return Ok(());
        }
    }
}

/// The time as items have it.
fn millis(number: i64) -> Millis {
    Millis(number)
}
