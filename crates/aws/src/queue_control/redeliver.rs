//! What jobs put into a queue.
//!
//! Batches of at most ten messages and 1 MiB, in order, of each group one message at a time: when an entry fails, or an answer is
//! lost, nothing that belongs behind it has been sent. Each has a deduplication id of its own per job and position, so that a
//! repetition within 5 minutes sends nothing twice; it ends with the message id, as a publication's does.

use std::collections::HashSet;

use aws_sdk_sqs::types::{MessageAttributeValue as Value, SendMessageBatchRequestEntry as Entry};
use sha2::{Digest, Sha256};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::ports::StoreError;
use storybus_core::ports::queue_control::{Redelivered, Redelivery};
use storybus_protocol::id::JobId;

use super::SqsQueueControl;
use crate::arrived::REDELIVERY;
use crate::call::Failed;
use crate::item::unreadable;
use crate::keys::hex;
use crate::queues::of_entry;

/// The most messages of a batch.
const MOST: usize = 10;
/// The most bytes of a batch: SQS takes 1,048,576 of bodies and attributes together.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html>
const MOST_BYTES: usize = 1_000_000;

impl SqsQueueControl {
    pub(super) async fn send_all(
        &self,
        queue: &QueueKey,
        job: &JobId,
        mark: &str,
        messages: &[Redelivery],
    ) -> Result<Redelivered, StoreError> {
        let entries: Vec<Entry> = messages
            .iter()
            .map(|message| entry(queue, job, mark, message))
            .collect::<Result<_, _>>()?;
        let mut waiting: Vec<usize> = (0..entries.len()).collect();
        while !waiting.is_empty() {
            let batch = next(&waiting, messages);
            let chosen: Vec<Entry> = batch
                .iter()
                .filter_map(|n| {
                    entries.get(*n).cloned().map(|mut entry| {
                        entry.id = n.to_string();
                        entry
                    })
                })
                .collect();
            if !self.send(queue, chosen).await? {
                self.has_never_been(queue).await?;
                return Ok(Redelivered::NoQueue);
            }
            waiting.retain(|n| !batch.contains(n));
        }
        Ok(Redelivered::Done)
    }

    /// Sends a batch until every entry is in the queue; `false` when there is none.
    async fn send(&self, queue: &QueueKey, entries: Vec<Entry>) -> Result<bool, StoreError> {
        let url = self
            .aws
            .config()
            .queue_url(&self.aws.config().queue_name(&queue.consumer));
        self.aws
            .caller
            .write(|| async {
                // those that are in are recognised by their deduplication ids
                let send = self.aws.sqs.send_message_batch().queue_url(&url);
                match send.set_entries(Some(entries.clone())).send().await {
                    Ok(answer) => match answer.failed.first() {
                        None => Ok(true),
                        Some(entry) => Err(of_entry(entry)),
                    },
                    Err(error) => {
                        let failed = Failed::from(error);
                        if failed.is_absent() {
                            Ok(false)
                        } else {
                            Err(failed)
                        }
                    }
                }
            })
            .await
    }
}

/// The next batch: in order, of each group the first that waits.
fn next(waiting: &[usize], messages: &[Redelivery]) -> Vec<usize> {
    let (mut batch, mut groups, mut bytes) = (Vec::new(), HashSet::new(), 0);
    for (n, message) in waiting.iter().filter_map(|n| Some((*n, messages.get(*n)?))) {
        if batch.len() == MOST {
            break;
        }
        if !groups.insert(message.correlation_id) {
            continue;
        }
        let pairs = message
            .attributes
            .pairs()
            .map(|(name, value)| name.len() + 6 + value.len());
        let size = message.body.len() + pairs.sum::<usize>() + 200;
        if !batch.is_empty() && bytes + size > MOST_BYTES {
            break;
        }
        bytes += size;
        batch.push(n);
    }
    batch
}

fn entry(queue: &QueueKey, job: &JobId, mark: &str, message: &Redelivery) -> Result<Entry, StoreError> {
    let text = |value: &str| {
        let value = Value::builder().data_type("String").string_value(value);
        value.build().map_err(unreadable)
    };
    let body = std::str::from_utf8(&message.body).map_err(unreadable)?;
    let digest: [u8; 32] = Sha256::digest(format!("{job}\n{}", message.position.0)).into();
    let mut entry = Entry::builder()
        .id("-")
        .message_body(body)
        .message_group_id(format!("{}.{}", queue.workspace, message.correlation_id))
        .message_deduplication_id(format!("{}.{}", hex(&digest[..16]), message.message_id))
        .message_attributes(REDELIVERY, text(mark)?);
    // an attribute without a value is none
    for (name, value) in message.attributes.pairs().filter(|(_, value)| !value.is_empty()) {
        entry = entry.message_attributes(name, text(value)?);
    }
    entry.build().map_err(unreadable)
}
