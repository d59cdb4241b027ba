//! A new envelope.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use storybus_protocol::id::{CorrelationId, MessageId};
use uuid::Uuid;

use super::{MAX_BUS_MESSAGE, date_time, for_bus};
use crate::message::{Invalid, Message, Target};
use crate::ports::{Clock, Random};

/// The version of the standard that is written.
const SOM_VERSION: &str = "1.0.0";

/// A member cannot be that. The text names the member, and never repeats its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{member}: {reason}")]
pub struct InvalidEnvelope {
    /// Which member of the envelope.
    pub member: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// What another message was caused by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Its `message_id`.
    pub message_id: String,
    /// Its `correlation_id`.
    pub correlation_id: String,
}

/// An envelope that is being made. Everything is checked by [`build`](Self::build), which says what is wrong by the member's name.
///
/// ```
/// use serde_json::json;
/// use storybus_sender::envelope::Draft;
/// use storybus_sender::ports::{SystemClock, SystemRandom};
///
/// let built = Draft::new("story.context")
///     .system("acme-ncs", "ncs")
///     .payload(&json!({ "story_id": "hurricane", "sequence_number": 1 }))
///     .build(&SystemClock, &SystemRandom)?;
/// assert!(built.bytes.starts_with(br#"{"som_version":"1.0.0","message_id":""#));
/// # Ok::<(), storybus_sender::envelope::InvalidEnvelope>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Draft {
    message_type: String,
    message_id: Option<String>,
    correlation_id: Option<String>,
    causation_id: Option<String>,
    timestamp: Option<String>,
    topic: Option<String>,
    originating_system: Option<Result<Value, String>>,
    payload: Option<Result<Box<RawValue>, String>>,
    extensions: Option<Result<BTreeMap<String, Value>, String>>,
}

/// An envelope that is made: these bytes are the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The exact bytes to keep and to send.
    pub bytes: Vec<u8>,
    /// The message's id.
    pub message_id: MessageId,
    /// Its order group. Later messages about the same story carry the same.
    pub correlation_id: CorrelationId,
}

impl Built {
    /// As what another message is caused by.
    #[must_use]
    pub fn cause(&self) -> Cause {
        Cause {
            message_id: self.message_id.to_string(),
            correlation_id: self.correlation_id.to_string(),
        }
    }

    /// As a message for the outbox.
    pub fn into_message(self, target: Target) -> Result<Message, Invalid> {
        for_bus(target, self.bytes)
    }
}

impl Draft {
    /// An envelope of this type.
    pub fn new(message_type: impl Into<String>) -> Self {
        Self {
            message_type: message_type.into(),
            ..Self::default()
        }
    }

    /// What the message says. Required.
    #[must_use]
    pub fn payload(mut self, payload: &(impl Serialize + ?Sized)) -> Self {
        self.payload = Some(serde_json::value::to_raw_value(payload).map_err(|e| e.to_string()));
        self
    }

    /// The system that it comes from: its `system_id`, which the bus has granted, and its kind, such as `ncs`. Required, this way or
    /// with more members by [`originating_system`](Self::originating_system).
    #[must_use]
    pub fn system(self, system_id: &str, system_type: &str) -> Self {
        self.originating_system(&serde_json::json!({ "system_id": system_id, "system_type": system_type }))
    }

    /// The system that it comes from, with all its members.
    #[must_use]
    pub fn originating_system(mut self, system: &(impl Serialize + ?Sized)) -> Self {
        self.originating_system = Some(serde_json::to_value(system).map_err(|e| e.to_string()));
        self
    }

    /// A `message_id` of one's own, such as one [that comes from the domain](crate::keys). By default a new UUIDv7.
    #[must_use]
    pub fn message_id(mut self, id: impl ToString) -> Self {
        self.message_id = Some(id.to_string());
        self
    }

    /// The story's `correlation_id`, which all messages about it carry. By default that of the cause, or a new UUIDv7.
    #[must_use]
    pub fn correlation_id(mut self, id: impl ToString) -> Self {
        self.correlation_id = Some(id.to_string());
        self
    }

    /// What this message follows from: it takes over its `correlation_id`, and names its `message_id` as `causation_id`.
    #[must_use]
    pub fn caused_by(mut self, cause: &Cause) -> Self {
        self.causation_id = Some(cause.message_id.clone());
        self.correlation_id
            .get_or_insert_with(|| cause.correlation_id.clone());
        self
    }

    /// When it happened, in RFC 3339 with a zone. By default now, in UTC to the millisecond.
    #[must_use]
    pub fn timestamp(mut self, timestamp: impl Into<String>) -> Self {
        self.timestamp = Some(timestamp.into());
        self
    }

    /// A topic of one's own, below `som.`. By default `som.<message_type>`.
    #[must_use]
    pub fn topic(mut self, topic: impl Into<String>) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// Members of a vendor's own, each with a name like `com.acme.trace`.
    #[must_use]
    pub fn extensions(mut self, extensions: &(impl Serialize + ?Sized)) -> Self {
        let read = serde_json::to_value(extensions).and_then(serde_json::from_value);
        self.extensions = Some(read.map_err(|_| "not an object".to_owned()));
        self
    }

    /// Checks every member and writes the envelope, once.
    pub fn build(self, clock: &dyn Clock, random: &dyn Random) -> Result<Built, InvalidEnvelope> {
        let now = clock.since_epoch();
        let new_id = || {
            let mut chance = [0; 10];
            random.fill(&mut chance);
            let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            let id = uuid::Builder::from_unix_timestamp_millis(millis, &chance).into_uuid();
            Uuid::to_string(&id)
        };
        check_message_type(&self.message_type)?;
        let topic = self.topic.unwrap_or_else(|| format!("som.{}", self.message_type));
        if !topic.starts_with("som.") {
            return wrong("topic", "it begins with som.");
        }
        let timestamp = match self.timestamp {
            Some(given) if date_time::is_valid(&given) => given,
            Some(_) => {
                return wrong(
                    "timestamp",
                    "it is a time in RFC 3339 with a zone, such as 2026-09-11T16:41:00Z",
                );
            }
            None => date_time::written(now)
                .ok_or_else(|| invalid("timestamp", "this machine's clock is past the year 9999"))?,
        };
        let message_id = self.message_id.unwrap_or_else(new_id);
        let correlation_id = self.correlation_id.unwrap_or_else(new_id);
        let ids = (
            parsed("message_id", &message_id)?,
            parsed("correlation_id", &correlation_id)?,
        );
        if let Some(id) = &self.causation_id {
            parsed::<MessageId>("causation_id", id)?;
        }
        let envelope = Envelope {
            som_version: SOM_VERSION,
            message_id: &message_id,
            correlation_id: &correlation_id,
            causation_id: self.causation_id.as_deref(),
            message_type: &self.message_type,
            timestamp: &timestamp,
            originating_system: checked_system(self.originating_system)?,
            topic: &topic,
            payload: checked_payload(self.payload)?,
            extensions: checked_extensions(self.extensions)?,
        };
        let bytes = serde_json::to_vec(&envelope).map_err(|e| invalid("payload", e.to_string()))?;
        if bytes.len() > MAX_BUS_MESSAGE {
            let size = bytes.len();
            return wrong(
                "payload",
                format!(
                    "the message has {size} bytes, and a bus takes at most {MAX_BUS_MESSAGE}; put references into it, not content"
                ),
            );
        }
        Ok(Built {
            bytes,
            message_id: ids.0,
            correlation_id: ids.1,
        })
    }
}

/// The members in the order in which they are written.
#[derive(Serialize)]
struct Envelope<'a> {
    som_version: &'a str,
    message_id: &'a str,
    correlation_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a str>,
    message_type: &'a str,
    timestamp: &'a str,
    originating_system: Value,
    topic: &'a str,
    payload: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extensions: Option<BTreeMap<String, Value>>,
}

fn invalid(member: &'static str, reason: impl Into<String>) -> InvalidEnvelope {
    InvalidEnvelope {
        member,
        reason: reason.into(),
    }
}

fn wrong<T>(member: &'static str, reason: impl Into<String>) -> Result<T, InvalidEnvelope> {
    Err(invalid(member, reason))
}

fn parsed<T: std::str::FromStr>(member: &'static str, text: &str) -> Result<T, InvalidEnvelope> {
    text.parse()
        .map_err(|_| invalid(member, "it is a UUID (8-4-4-4-12 hexadecimal digits)"))
}

fn check_message_type(text: &str) -> Result<(), InvalidEnvelope> {
    let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'.';
    if text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(is_part) {
        Ok(())
    } else {
        wrong(
            "message_type",
            "it is of a-z, 0-9, _ and dots, and begins with a letter, like story.context",
        )
    }
}

fn checked_system(given: Option<Result<Value, String>>) -> Result<Value, InvalidEnvelope> {
    const MEMBER: &str = "originating_system";
    let system = given
        .ok_or_else(|| invalid(MEMBER, "it is missing"))?
        .map_err(|e| invalid(MEMBER, e))?;
    for name in ["system_id", "system_type"] {
        let text = system.get(name).and_then(Value::as_str).unwrap_or_default();
        if text.is_empty() {
            return wrong(MEMBER, format!("it is an object with a text {name}"));
        }
    }
    Ok(system)
}

fn checked_payload(given: Option<Result<Box<RawValue>, String>>) -> Result<Box<RawValue>, InvalidEnvelope> {
    let payload = given
        .ok_or_else(|| invalid("payload", "it is missing"))?
        .map_err(|e| invalid("payload", e))?;
    if payload.get().starts_with('{') {
        Ok(payload)
    } else {
        wrong("payload", "it is an object")
    }
}

type Extensions = BTreeMap<String, Value>;

fn checked_extensions(
    given: Option<Result<Extensions, String>>,
) -> Result<Option<Extensions>, InvalidEnvelope> {
    const MEMBER: &str = "extensions";
    let Some(extensions) = given.transpose().map_err(|e| invalid(MEMBER, e))? else {
        return Ok(None);
    };
    if extensions.keys().all(|name| is_namespaced(name)) {
        Ok(Some(extensions))
    } else {
        wrong(
            MEMBER,
            "each name begins with com. and the vendor's own part, like com.acme.trace",
        )
    }
}

/// `com.`, a part of `a-z`, `0-9` and `-`, and a dot.
fn is_namespaced(name: &str) -> bool {
    let vendor = name.strip_prefix("com.").and_then(|rest| rest.split_once('.'));
    vendor.is_some_and(|(vendor, _)| {
        !vendor.is_empty()
            && vendor
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    })
}
