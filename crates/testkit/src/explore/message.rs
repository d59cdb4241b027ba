//! The messages that the explorations send.

use bytes::Bytes;
use storybus_protocol::id::{CorrelationId, MessageId};

use crate::suite::sample;

/// A message, as its producer sends it each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// A short name for schedules.
    pub name: String,
    /// Its id.
    pub id: MessageId,
    /// Its order group.
    pub correlation_id: CorrelationId,
    /// The sequence number, if it is a snapshot.
    pub snapshot: Option<u64>,
    /// Its bytes.
    pub body: Bytes,
}

/// The order group of the one story.
const STORY: u64 = 1;
/// The order group of the events.
const EVENTS: u64 = 2;

impl Message {
    /// An event, which no story order binds.
    #[must_use]
    pub fn event() -> Self {
        Self::made("E", 100, EVENTS, None, "desk.note", r#"{"text":"one"}"#)
    }

    /// The event's id with other content.
    #[must_use]
    pub fn altered_event() -> Self {
        Self::made("E'", 100, EVENTS, None, "desk.note", r#"{"text":"two"}"#)
    }

    /// Snapshot `n` of the one story.
    #[must_use]
    pub fn snapshot(n: u64) -> Self {
        Self::of_story(format!("S{n}"), n, "one")
    }

    /// The id and the number of snapshot `n` with other content.
    #[must_use]
    pub fn altered_snapshot(n: u64) -> Self {
        Self::of_story(format!("S{n}'"), n, "two")
    }

    fn of_story(name: String, n: u64, headline: &str) -> Self {
        let payload = format!(
            r#"{{"story_id":"s","slug":"S","headline":"{headline}","story_type":"PLANNED","sequence_number":{n},"updated_at":"2026-09-11T16:41:00Z"}}"#
        );
        Self::made(&name, n, STORY, Some(n), "story.context", &payload)
    }

    fn made(
        name: &str,
        n: u64,
        group: u64,
        snapshot: Option<u64>,
        message_type: &str,
        payload: &str,
    ) -> Self {
        let (id, correlation_id) = (sample::message_id(n), sample::correlation_id(group));
        let body = format!(
            r#"{{"som_version":"1.0.0","message_id":"{id}","correlation_id":"{correlation_id}","message_type":"{message_type}","timestamp":"2026-09-11T16:41:00Z","originating_system":{{"system_id":"ncs","system_type":"ncs"}},"topic":"som.x","payload":{payload}}}"#
        );
        Self {
            name: name.to_owned(),
            id,
            correlation_id,
            snapshot,
            body: Bytes::from(body),
        }
    }
}
