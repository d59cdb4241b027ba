//! The bus's receipt handles: SQS's, with what a rejection has to know.
//!
//! `base64url(["1", workspace, consumer, SQS handle, SQS message id, sequence number, message id, hidden since, enqueued at, receive count, mark])`,
//! and behind a dot its [`Seal`], when the bus has one. A consumer can forge an open one; that gives it nothing: it works at the queue that
//! is named in it alone, SQS checks its own, and a rejection takes the message that is named in it only if the consumer's filter does. What a
//! rejection writes down of a handle has the form that SQS and the bus give it, so that a forged one spoils neither a key nor a list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use storybus_core::domain::delivery::QueueKey;
use storybus_core::domain::time::Millis;
use storybus_protocol::id::{JobId, MessageId};

use super::Seal;

/// The longest that is looked at: SQS's are of 1,024 characters at most, the rest is short.
const MAX: usize = 4_096;
/// The longest of SQS's message ids, in bytes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html>
const MAX_SQS_ID: usize = 100;
/// The longest of its sequence numbers, which are of 128 bits, in digits.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>
const MAX_NUMBER: usize = 39;
/// The end of the year 9999: later times have no RFC 3339 form.
const LAST: Millis = Millis(253_402_300_799_999);
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
    /// Whether the bus made it as it is: its seal was checked.
    pub(crate) sealed: bool,
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
    pub(crate) fn encode(&self, queue: &QueueKey, seal: Option<&Seal>) -> String {
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
        let open = URL_SAFE_NO_PAD.encode(serde_json::to_string(&wire).unwrap_or_default());
        match seal {
            Some(seal) => format!("{open}.{}", seal.of(&open)),
            None => open,
        }
    }

    /// What it says, if it is one of this queue. A seal that does not hold makes it none; without a key, none is looked at.
    pub(crate) fn decode(text: &str, queue: &QueueKey, seal: Option<&Seal>) -> Option<Self> {
        let (open, sealed) = match (text.split_once('.'), seal) {
            (None, _) => (text, false),
            (Some((open, _)), None) => (open, false),
            (Some((open, of_open)), Some(seal)) => (open, seal.holds(open, of_open).then_some(true)?),
        };
        let json = (text.len() <= MAX).then(|| URL_SAFE_NO_PAD.decode(open).ok())??;
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
        let handle = Self {
            sqs_handle: sqs_handle.to_owned(),
            sqs_message_id: sqs_message_id.to_owned(),
            sequence_number: number.to_owned(),
            message_id: id.parse().ok()?,
            hidden_since: Millis(since),
            enqueued_at: Millis(at),
            receive_count: count,
            redelivery: mark.map(str::to_owned),
            sealed,
        };
        handle.is_in_form().then_some(handle)
    }

    /// Whether everything in it can be what SQS and the bus have put there.
    fn is_in_form(&self) -> bool {
        let within = |text: &str, most: usize| (1..=most).contains(&text.len());
        within(&self.sqs_handle, MAX)
            && within(&self.sqs_message_id, MAX_SQS_ID)
            && self.sqs_message_id.bytes().all(|byte| byte.is_ascii_graphic())
            && within(&self.sequence_number, MAX_NUMBER)
            && self.sequence_number.bytes().all(|byte| byte.is_ascii_digit())
            && (Millis(0)..=LAST).contains(&self.enqueued_at)
            && self.redelivery.as_deref().is_none_or(is_mark)
    }
}

/// Whether a text is the mark of a job: `replay:<job>` or `redrive:<job>`.
fn is_mark(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(kind, job)| matches!(kind, "replay" | "redrive") && job.parse::<JobId>().is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
            sealed: false,
        };
        let (ours, seal) = (queue("w1", "c1"), Seal::new(&[1; 32]));
        let text = handle.encode(&ours, None);
        for key in [None, Some(&seal)] {
            assert_eq!(Handle::decode(&text, &ours, key).as_ref(), Some(&handle));
        }
        assert_eq!(Handle::decode(&text, &queue("w2", "c1"), None), None);
        assert_eq!(Handle::decode(&text, &queue("w1", "c2"), None), None);
        assert_eq!(Handle::decode(&text[1..], &ours, None), None);
        assert_eq!(Handle::decode(&format!("{text}x"), &ours, None), None);
        assert_eq!(Handle::decode(&"A".repeat(5000), &ours, None), None);
    }

    #[test]
    fn a_sealed_handle_is_as_the_bus_made_it() {
        let queue = QueueKey {
            workspace: "w1".parse().unwrap(),
            consumer: "c1".parse().unwrap(),
        };
        let handle = |n| Handle {
            sqs_handle: "AQEB/+==".to_owned(),
            sqs_message_id: "0199a1c4-0000-7000-8000-000000000911".to_owned(),
            sequence_number: "18849496460467696128".to_owned(),
            message_id: MessageId::from_bytes([n; 16]),
            hidden_since: Millis(1),
            enqueued_at: Millis(2),
            receive_count: 3,
            redelivery: None,
            sealed: true,
        };
        let (seal, other) = (Seal::new(&[1; 32]), Seal::new(&[2; 32]));
        let text = handle(7).encode(&queue, Some(&seal));
        assert_eq!(Handle::decode(&text, &queue, Some(&seal)), Some(handle(7)));
        let unchecked = Handle::decode(&text, &queue, None).unwrap();
        assert!(!unchecked.sealed, "whoever has no key has checked nothing");
        assert_eq!(Handle::decode(&text, &queue, Some(&other)), None);
        // the seal of another message
        let (_, of_other) = text.split_once('.').unwrap();
        let changed = format!("{}.{of_other}", handle(8).encode(&queue, None));
        assert_eq!(Handle::decode(&changed, &queue, Some(&seal)), None);
        assert_eq!(Handle::decode(&text[..text.len() - 1], &queue, Some(&seal)), None);
        assert_eq!(Handle::decode(&format!("{text}.A"), &queue, Some(&seal)), None);
        // without its seal it is an open one
        let (open, _) = text.split_once('.').unwrap();
        assert!(!Handle::decode(open, &queue, Some(&seal)).unwrap().sealed);
    }

    /// They would become the key of a dead letter, its time or its mark.
    #[test]
    fn forged_parts_without_their_form_make_no_handle() {
        let queue = QueueKey {
            workspace: "w1".parse().unwrap(),
            consumer: "c1".parse().unwrap(),
        };
        let id = MessageId::from_bytes([7; 16]).to_string();
        let whole = json!([
            "1",
            "w1",
            "c1",
            "AQEB/+==",
            "0199a1c4-0000-7000-8000-000000000911",
            "18849496460467696128",
            id,
            1,
            2,
            3,
            "redrive:j1"
        ]);
        let with = |place: usize, value: Value| {
            let mut wire = whole.clone();
            wire[place] = value;
            Handle::decode(&URL_SAFE_NO_PAD.encode(wire.to_string()), &queue, None)
        };
        for (place, value) in [
            (3, json!("AQEB")),
            (4, json!("m".repeat(100))),
            (5, json!("0")),
            (5, json!("9".repeat(39))),
            (7, json!(i64::MAX)),
            (8, json!(0)),
            (10, json!("replay:j1")),
            (10, Value::Null),
        ] {
            assert!(with(place, value.clone()).is_some(), "{place} {value}");
        }
        for (place, value) in [
            (3, json!("")),
            (4, json!("")),
            (4, json!("m".repeat(101))),
            (4, json!("m\u{0}")),
            (5, json!("")),
            (5, json!("9".repeat(40))),
            (5, json!("1-2")),
            (8, json!(-1)),
            (8, json!(i64::MAX)),
            (10, json!("")),
            (10, json!("replay:")),
            (10, json!("else:j1")),
            (10, json!("replay:j1\n")),
        ] {
            assert_eq!(with(place, value.clone()), None, "{place} {value}");
        }
    }
}
