//! The bus's receipt handles: SQS's, with what a rejection has to know.
//!
//! `base64url(["1", workspace, consumer, SQS handle, SQS message id, sequence number, message id, hidden since, enqueued at, receive count, mark])`.
//! A consumer can forge one; that gives it nothing: it works at the queue that is named in it alone, SQS checks its own, and a rejection
//! takes the message that is named in it only if the consumer's filter does.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::time::Millis;
use storybus_protocol::id::MessageId;

/// The longest that is looked at: SQS's are of 1,024 characters at most, the rest is short.
const MAX: usize = 4_096;
/// The form, so that another can follow.
const VERSION: &str = "1";

/// What a receipt handle says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Handle {
    /// Settles this receive at SQS.
    pub(crate) sqs_handle: String,
    /// SQS's id of the message in this queue.
    pub(crate) sqs_message_id: String,
    /// SQS's order within its group.
    pub(crate) sequence_number: String,
    /// The message id.
    pub(crate) message_id: MessageId,
    /// Not later than its receive: by then it was not hidden yet.
    pub(crate) hidden_since: Millis,
    /// When it came into the queue.
    pub(crate) enqueued_at: Millis,
    /// How often it was received.
    pub(crate) receive_count: u32,
    /// `replay:<job>` or `redrive:<job>` for one that came that way.
    pub(crate) redelivery: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Wire<'a>(
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    &'a str,
    i64,
    i64,
    u32,
    Option<&'a str>,
);

impl Handle {
    /// As a consumer of this queue gets it.
    pub(crate) fn encode(&self, queue: &QueueKey) -> String {
        let id = self.message_id.to_string();
        let wire = Wire(
            VERSION,
            queue.workspace.as_str(),
            queue.consumer.as_str(),
            &self.sqs_handle,
            &self.sqs_message_id,
            &self.sequence_number,
            &id,
            self.hidden_since.0,
            self.enqueued_at.0,
            self.receive_count,
            self.redelivery.as_deref(),
        );
        URL_SAFE_NO_PAD.encode(serde_json::to_string(&wire).unwrap_or_default())
    }

    /// What it says, if it is one of this queue.
    pub(crate) fn decode(text: &str, queue: &QueueKey) -> Option<Self> {
        let json = (text.len() <= MAX).then(|| URL_SAFE_NO_PAD.decode(text).ok())??;
        let wire: Wire<'_> = serde_json::from_slice(&json).ok()?;
        let Wire(
            version,
            workspace,
            consumer,
            sqs_handle,
            sqs_message_id,
            number,
            id,
            since,
            at,
            count,
            mark,
        ) = wire;
        let ours =
            (version, workspace, consumer) == (VERSION, queue.workspace.as_str(), queue.consumer.as_str());
        ours.then_some(())?;
        Some(Self {
            sqs_handle: sqs_handle.to_owned(),
            sqs_message_id: sqs_message_id.to_owned(),
            sequence_number: number.to_owned(),
            message_id: id.parse().ok()?,
            hidden_since: Millis(since),
            enqueued_at: Millis(at),
            receive_count: count,
            redelivery: mark.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_as_they_were_and_only_to_their_queue() {
        let queue = |workspace: &str, consumer: &str| QueueKey {
            workspace: workspace.parse().unwrap(),
            consumer: consumer.parse().unwrap(),
        };
        let handle = Handle {
            sqs_handle: "AQEB/+==".to_owned(),
            sqs_message_id: "0199a1c4-0000-7000-8000-000000000911".to_owned(),
            sequence_number: "18849496460467696128".to_owned(),
            message_id: MessageId::from_bytes([7; 16]),
            hidden_since: Millis(1),
            enqueued_at: Millis(2),
            receive_count: 3,
            redelivery: Some("replay:j1".to_owned()),
        };
        let text = handle.encode(&queue("w1", "c1"));
        assert_eq!(Handle::decode(&text, &queue("w1", "c1")), Some(handle));
        assert_eq!(Handle::decode(&text, &queue("w2", "c1")), None);
        assert_eq!(Handle::decode(&text, &queue("w1", "c2")), None);
        assert_eq!(Handle::decode(&text[1..], &queue("w1", "c1")), None);
        assert_eq!(Handle::decode(&format!("{text}x"), &queue("w1", "c1")), None);
        assert_eq!(Handle::decode(&"A".repeat(5000), &queue("w1", "c1")), None);
    }
}
