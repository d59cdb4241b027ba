//! Batches of messages of an SQS FIFO queue, and which of them have failed.
//!
//! Of a batch with failures SQS deletes what is not reported. In a group nothing may overtake what failed, so the first failure of a
//! group and everything after it in that group is reported, whether or not it was worked on: it comes back, and every worker can do
//! it again. <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>

use std::collections::HashSet;

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use serde::Serialize;
use storybus_aws::Arrived;
use storybus_core::domain::time::Millis;

/// The answer to a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchAnswer {
    /// What comes back; everything else is deleted.
    pub batch_item_failures: Vec<BatchItem>,
}

/// One message of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItem {
    /// SQS's own id of it.
    pub item_identifier: String,
}

/// A batch as it was received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Every message's id and group, in the order of the batch.
    all: Vec<(String, String)>,
    /// Those that can be read, in that order.
    pub messages: Vec<Arrived>,
    /// The ids of the others.
    unreadable: Vec<String>,
}

impl From<SqsEvent> for Batch {
    fn from(event: SqsEvent) -> Self {
        let mut batch = Self::default();
        for message in event.records {
            let id = message.message_id.clone().unwrap_or_default();
            let group = message
                .attributes
                .get("MessageGroupId")
                .cloned()
                .unwrap_or_default();
            batch.all.push((id.clone(), group));
            match read(message) {
                Ok(message) => batch.messages.push(message),
                Err(missing) => {
                    tracing::error!(
                        sqs_message_id = id,
                        missing,
                        "a message of the queue cannot be read"
                    );
                    batch.unreadable.push(id);
                }
            }
        }
        batch
    }
}

impl Batch {
    /// The answer when these have failed, by SQS's ids.
    #[must_use]
    pub fn answer(&self, failed: impl IntoIterator<Item = String>) -> BatchAnswer {
        let failed: HashSet<String> = failed
            .into_iter()
            .chain(self.unreadable.iter().cloned())
            .collect();
        let mut stopped: HashSet<&str> = HashSet::new();
        let mut back = Vec::new();
        for (id, group) in &self.all {
            if failed.contains(id) || stopped.contains(group.as_str()) {
                stopped.insert(group);
                back.push(BatchItem {
                    item_identifier: id.clone(),
                });
            }
        }
        BatchAnswer {
            batch_item_failures: back,
        }
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The id of every message.
    pub fn ids(&self) -> impl Iterator<Item = String> + '_ {
        self.all.iter().map(|(id, _)| id.clone())
    }
}

/// The message; or which part of it is missing.
fn read(message: SqsMessage) -> Result<Arrived, &'static str> {
    let system = &message.attributes;
    let need = |name: &'static str| system.get(name).cloned().ok_or(name);
    let number = |name: &'static str| need(name)?.parse::<i64>().map_err(|_| name);
    Ok(Arrived {
        sqs_message_id: message
            .message_id
            .filter(|id| !id.is_empty())
            .ok_or("messageId")?,
        receipt_handle: message.receipt_handle,
        group: need("MessageGroupId")?,
        deduplication_id: need("MessageDeduplicationId")?,
        sequence_number: need("SequenceNumber")?,
        sent_at: Millis(number("SentTimestamp")?),
        first_received: number("ApproximateFirstReceiveTimestamp").ok().map(Millis),
        receive_count: number("ApproximateReceiveCount")?
            .try_into()
            .map_err(|_| "ApproximateReceiveCount")?,
        source_queue: system.get("DeadLetterQueueSourceArn").cloned(),
        body: message.body.ok_or("body")?,
        attributes: message
            .message_attributes
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.string_value?)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(messages: &[(&str, &str)]) -> Batch {
        Batch {
            all: messages
                .iter()
                .map(|(id, group)| ((*id).to_owned(), (*group).to_owned()))
                .collect(),
            ..Batch::default()
        }
    }

    #[track_caller]
    fn back(batch: &Batch, failed: &[&str], expected: &[&str]) {
        let answer = batch.answer(failed.iter().map(|id| (*id).to_owned()));
        let ids: Vec<&str> = answer
            .batch_item_failures
            .iter()
            .map(|item| item.item_identifier.as_str())
            .collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn nothing_of_a_group_overtakes_what_failed() {
        let all = batch(&[
            ("1", "a"),
            ("2", "b"),
            ("3", "a"),
            ("4", "c"),
            ("5", "b"),
            ("6", "a"),
        ]);
        back(&all, &[], &[]);
        back(&all, &["3"], &["3", "6"]);
        back(&all, &["1", "5"], &["1", "3", "5", "6"]);
        back(&all, &["none of them"], &[]);
        let ids: Vec<String> = all.ids().collect();
        assert_eq!(all.answer(ids).batch_item_failures.len(), all.len());
    }

    #[test]
    fn what_cannot_be_read_comes_back() {
        let mut all = batch(&[("1", "a"), ("2", "a"), ("3", "b")]);
        all.unreadable.push("1".to_owned());
        back(&all, &[], &["1", "2"]);
    }
}
