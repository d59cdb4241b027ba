//! The consumers' queues in an operator's hands, on SQS: [`QueueControl`].
//!
//! What a queue holds cannot be looked at on SQS, so a trace tells of dead letters and purges alone.

mod redeliver;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use storybus_core::domain::archived::Position;
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::job::Turn;
use storybus_core::domain::time::Millis;
use storybus_core::domain::trace::{QueueTrace, Trace, TraceState};
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_core::ports::{Clock, QueueControl, StoreError};
use storybus_protocol::id::{ConnectionId, MessageId, WorkspaceId};

use crate::Aws;
use crate::call::{Failed, Outcome};
use crate::dead_letters::DynamoDeadLetters;
use crate::item::{Attributes as _, n, s};
use crate::writes::Action;
use crate::{audit, keys, queues};

/// The consumers' queues, as jobs and operators use them.
#[derive(Clone)]
pub struct SqsQueueControl {
    aws: Aws,
    dead_letters: DynamoDeadLetters,
}

impl Aws {
    /// The consumers' queues, as jobs and operators use them.
    #[must_use]
    pub fn queue_control(&self, clock: Arc<dyn Clock>) -> SqsQueueControl {
        SqsQueueControl {
            aws: self.clone(),
            dead_letters: self.dead_letters(clock),
        }
    }
}

#[async_trait]
impl QueueControl for SqsQueueControl {
    fn sees_waiting(&self) -> bool {
        false // SQS cannot be asked what is in a queue
    }

    fn queue_url(&self, queue: &QueueKey) -> Option<String> {
        let config = self.aws.config();
        Some(config.queue_url(&config.queue_name(&queue.consumer)))
    }

    async fn redeliver(
        &self,
        queue: &QueueKey,
        turn: &Turn,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        self.send_all(queue, &turn.job, mark, messages).await
    }

    /// A purge takes up to 60 s, and SQS takes no other meanwhile: then it is not available. So is a queue that was deleted by hand.
    async fn purge(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<Option<u64>, StoreError> {
        let Some((visible, in_flight)) = queues::waiting(&self.aws, queue).await? else {
            self.has_never_been(queue).await?;
            return Ok(None);
        };
        // first the audit: nothing is done that nobody can read about
        self.note(queue, audit).await?;
        let url = self
            .aws
            .config()
            .queue_url(&self.aws.config().queue_name(&queue.consumer));
        let purged = self
            .aws
            .caller
            .write(|| async {
                match self.aws.sqs.purge_queue().queue_url(&url).send().await {
                    Ok(_) => Ok(true),
                    Err(error) => match Failed::from(error) {
                        failed if failed.is_absent() => Ok(false),
                        failed if is_at_work(&failed) => {
                            Err(Failed::new(Outcome::Throttled, "the queue is being purged"))
                        }
                        failed => Err(failed),
                    },
                }
            })
            .await?;
        Ok(purged.then_some(visible + in_flight))
    }

    async fn trace(
        &self,
        workspace: &WorkspaceId,
        message_id: MessageId,
        _publications: &[Position],
    ) -> Result<Vec<QueueTrace>, StoreError> {
        let mut traces: BTreeMap<ConnectionId, QueueTrace> = BTreeMap::new();
        for (consumer, letter) in self.dead_letters.of_message(workspace, message_id).await? {
            let trace = Trace {
                state: TraceState::DeadLettered(letter.cause),
                receive_count: letter.receive_count,
                redelivery: letter.redelivery,
                at: Some(letter.dead_at),
            };
            of(&mut traces, consumer).deliveries.push(trace);
        }
        // the original before what jobs delivered
        for trace in traces.values_mut() {
            trace.deliveries.sort_by_key(|trace| trace.redelivery.is_some());
        }
        for (consumer, at) in self.purges(workspace).await? {
            of(&mut traces, consumer).purged_at = Some(at);
        }
        Ok(traces.into_values().collect())
    }
}

fn of(traces: &mut BTreeMap<ConnectionId, QueueTrace>, consumer: ConnectionId) -> &mut QueueTrace {
    traces.entry(consumer.clone()).or_insert_with(|| QueueTrace {
        consumer,
        deliveries: Vec::new(),
        purged_at: None,
    })
}

/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html>
fn is_at_work(failed: &Failed) -> bool {
    failed
        .code
        .as_deref()
        .is_some_and(|code| code.ends_with("PurgeQueueInProgress"))
}

impl SqsQueueControl {
    /// That a queue which is not there is nobody's. That of a registered consumer was deleted by hand: it is not available until the
    /// sweeper has made it anew.
    async fn has_never_been(&self, queue: &QueueKey) -> Result<(), StoreError> {
        let connection = keys::connection(queue.consumer.as_str());
        if self.aws.item(connection).await?.is_none() {
            return Ok(());
        }
        Err(StoreError::QueueGone {
            queue: self.aws.config().queue_name(&queue.consumer),
        })
    }

    /// Writes when a queue is purged, and by whom.
    async fn note(&self, queue: &QueueKey, audit: &AuditEntry) -> Result<(), StoreError> {
        let mut item = keys::purged(queue);
        item.insert("at".to_owned(), n(audit.at.0));
        audit::write_with(&self.aws, vec![Action::put(item)], audit).await
    }

    /// When the queues of a workspace were last purged: a workspace has 99 at most, which is one page.
    async fn purges(&self, workspace: &WorkspaceId) -> Result<Vec<(ConnectionId, Millis)>, StoreError> {
        let pk = keys::purges(workspace);
        let page = self
            .aws
            .caller
            .read(|| async {
                let query = self.aws.dynamodb.query().table_name(&self.aws.config().table);
                query
                    .consistent_read(true)
                    .key_condition_expression("pk = :pk")
                    .expression_attribute_values(":pk", s(&pk))
                    .send()
                    .await
                    .map_err(Failed::from)
            })
            .await?;
        let items = page.items.unwrap_or_default();
        let told = items.iter().map(|item| {
            let at = item.need_number("at").map(Millis)?;
            Ok((item.need_parsed("sk")?, at))
        });
        told.collect()
    }
}
