//! The log of refused publishes.
//!
//! A refusal costs the publish path a line of the function's log, and no request. CloudWatch hands the lines on to the function
//! `activity`, which stores them; that takes some seconds, and a line that the log loses is lost.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::Position;
use storybus_core::domain::time::Millis;
use storybus_core::ports::activity::ACTIVITY_RETENTION;
use storybus_core::ports::{ActivityLog, Clock, StoreError};
use storybus_protocol::id::WorkspaceId;

use crate::Aws;
use crate::item::{Attributes as _, Item, expiry, json, key, unreadable};
use crate::keys;
use crate::query::Range;

/// What the lines of refusals have as `target`: the subscription of the log hands on these.
pub const TARGET: &str = "storybus::refused";

const DAY: i64 = 24 * 3600 * 1000;
/// Digits of a time in milliseconds, until the year 2286.
const TIME_LEN: usize = 13;
/// The longest id of a log event.
const EVENT_LEN: usize = 56;

/// [`ActivityLog`] on DynamoDB. A position is a refusal's time and the log event that told it.
#[derive(Clone)]
pub struct DynamoActivity {
    aws: Aws,
    clock: Arc<dyn Clock>,
}

impl Aws {
    /// The log of refused publishes.
    #[must_use]
    pub fn activity(&self, clock: Arc<dyn Clock>) -> DynamoActivity {
        DynamoActivity {
            aws: self.clone(),
            clock,
        }
    }
}

/// A line of a log, as CloudWatch hands it on.
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/SubscriptionFilters.html>
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LogEvent {
    /// Its id: the same when it is handed on again.
    pub id: String,
    /// The line.
    pub message: String,
}

/// What CloudWatch hands on to a function, unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogEvents {
    /// `DATA_MESSAGE`; or `CONTROL_MESSAGE`, which only asks whether somebody is there.
    pub message_type: String,
    /// The lines.
    pub log_events: Vec<LogEvent>,
}

/// A refusal that a log event told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The event's id.
    pub event: String,
    /// The refusal.
    pub refusal: RefusedPublish,
}

/// A log line of ours: the fields are at the top or below `fields`.
#[derive(Deserialize)]
struct Line {
    target: String,
    #[serde(default)]
    refused: Option<String>,
    #[serde(default)]
    fields: Option<Fields>,
}

#[derive(Deserialize)]
struct Fields {
    refused: Option<String>,
}

impl LogEvents {
    /// Reads what CloudWatch handed on, from its JSON.
    ///
    /// # Errors
    ///
    /// [`StoreError::Internal`] when it is not in CloudWatch's form.
    pub fn parse(unpacked: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(unpacked).map_err(unreadable)
    }

    /// The refusals among the lines. Every other line is left out: whoever writes into that log cannot stop the rest.
    #[must_use]
    pub fn refusals(&self) -> Vec<Noted> {
        let read = |event: &LogEvent| {
            let line: Line = serde_json::from_str(&event.message).ok()?;
            let text = line.refused.or(line.fields.and_then(|fields| fields.refused));
            let refusal = serde_json::from_str(&text.filter(|_| line.target == TARGET)?).ok()?;
            Some(Noted {
                event: event.id.clone(),
                refusal,
            })
        };
        self.log_events.iter().filter_map(read).collect()
    }
}

/// A refusal's place: its time, and the event's id, whose order is that of the lines.
fn place(at: Millis, event: &str) -> String {
    let is_plain = event.len() <= EVENT_LEN && !event.is_empty() && event.bytes().all(|b| b.is_ascii_digit());
    let event = if is_plain {
        format!("{event:0>EVENT_LEN$}")
    } else {
        keys::hex(&Sha256::digest(event))[..EVENT_LEN].to_owned()
    };
    format!("{:0TIME_LEN$}-{event}", at.0.max(0))
}

/// The time of a place; `None` when the text is none.
fn time_of(text: &str) -> Option<Millis> {
    let (at, event) = text.split_once('-')?;
    let event_fits =
        event.len() == EVENT_LEN && event.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let at_fits = at.len() == TIME_LEN && at.bytes().all(|b| b.is_ascii_digit());
    (event_fits && at_fits).then(|| at.parse().ok().map(Millis))?
}

fn day(at: Millis) -> i64 {
    at.0.max(0).div_euclid(DAY)
}

fn item(noted: &Noted) -> Result<Item, StoreError> {
    let refusal = &noted.refusal;
    let mut item = key(
        keys::refusals_of(&refusal.workspace, day(refusal.at)),
        place(refusal.at, &noted.event),
    );
    item.insert("refusal".to_owned(), json(refusal)?);
    item.insert(
        "expires_at".to_owned(),
        expiry(refusal.at.plus(ACTIVITY_RETENTION)),
    );
    Ok(item)
}

impl DynamoActivity {
    /// Stores refusals. The same ones again are the same entries.
    ///
    /// # Errors
    ///
    /// When some may not be stored: then all may be stored again.
    pub async fn store(&self, noted: &[Noted]) -> Result<(), StoreError> {
        let mut seen = HashSet::new();
        let mut requests = Vec::new();
        for noted in noted {
            let item = item(noted)?;
            // one batch may not have an item twice
            if !seen.insert((item.need_text("pk")?.to_owned(), item.need_text("sk")?.to_owned())) {
                continue;
            }
            let put = PutRequest::builder()
                .set_item(Some(item))
                .build()
                .map_err(unreadable)?;
            requests.push(WriteRequest::builder().put_request(put).build());
        }
        self.aws.write_each(requests).await
    }
}

#[async_trait]
impl ActivityLog for DynamoActivity {
    fn note(&self, refusal: RefusedPublish) {
        match serde_json::to_string(&refusal) {
            Ok(text) => tracing::info!(target: TARGET, refused = %text, "refused"),
            Err(error) => tracing::error!(%error, "a refusal was not noted"),
        }
    }

    async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<&Position>,
        limit: usize,
    ) -> Result<Vec<(Position, RefusedPublish)>, StoreError> {
        let now = self.clock.now();
        let oldest = day(now.minus(ACTIVITY_RETENTION));
        // a function's clock may be ahead of ours
        let newest = before
            .and_then(|before| time_of(&before.0))
            .map_or(day(now) + 1, day);
        let mut all = Vec::new();
        for day in (oldest..=newest).rev() {
            if all.len() >= limit {
                break;
            }
            let range = Range::of(keys::refusals_of(workspace, day))
                .backwards(before.map(|before| before.0.as_str()))
                .limit(limit - all.len());
            for item in self.aws.range(range).await? {
                let refusal: RefusedPublish = item.need_json("refusal")?;
                if now < refusal.at.plus(ACTIVITY_RETENTION) {
                    all.push((Position(item.need_text("sk")?.to_owned()), refusal));
                }
            }
        }
        Ok(all)
    }

    fn is_position(&self, position: &Position) -> bool {
        time_of(&position.0).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> RefusedPublish {
        serde_json::from_value(serde_json::json!({
            "at": 1_789_144_860_000_i64, "workspace": "w1", "producer": "p1", "kind": "invalid", "rules": ["a.b"],
        }))
        .unwrap()
    }

    #[test]
    fn refusals_are_read_from_the_lines_of_a_log() {
        let text = serde_json::to_string(&refusal()).unwrap();
        let line = |message: serde_json::Value| message.to_string();
        let messages = [
            "START RequestId: x".to_owned(),
            line(serde_json::json!({"target": TARGET, "fields": {"message": "refused", "refused": text}})),
            line(serde_json::json!({"target": TARGET, "message": "refused", "refused": text})),
            line(serde_json::json!({"target": "other", "refused": text})),
            line(serde_json::json!({"target": TARGET, "refused": "{}"})),
            line(serde_json::json!({"target": TARGET, "fields": {}})),
            "{".to_owned(),
        ];
        let events: Vec<_> = (0..)
            .zip(messages)
            .map(|(n, message)| serde_json::json!({"id": n.to_string(), "timestamp": n, "message": message}))
            .collect();
        let payload = serde_json::json!({
            "messageType": "DATA_MESSAGE", "owner": "1", "logGroup": "g", "logStream": "s", "subscriptionFilters": ["f"],
            "logEvents": events,
        });
        let events = LogEvents::parse(payload.to_string().as_bytes()).unwrap();
        let noted = |event: &str| Noted {
            event: event.to_owned(),
            refusal: refusal(),
        };
        assert_eq!(events.refusals(), [noted("1"), noted("2")]);
        assert!(LogEvents::parse(b"[]").is_err());
    }

    #[test]
    fn places_are_in_the_order_of_time_and_line() {
        let places = [
            place(Millis(-5), "9"),
            place(Millis(7), "9"),
            place(Millis(7), "10"),
            place(Millis(7), &"9".repeat(EVENT_LEN)),
            place(Millis(1_789_144_860_000), "1"),
            place(Millis(1_789_144_860_001), "not a number"),
        ];
        assert!(places.is_sorted());
        assert!(places.iter().all(|place| time_of(place).is_some()));
    }
}
