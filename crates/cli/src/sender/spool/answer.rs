//! The answer beside a file: what became of the message, without its content.

use std::ffi::OsStr;

use serde::{Deserialize, Serialize};
use storybus_core::domain::time::Millis;
use storybus_sender::outbox::Entry;

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Answer {
    /// The file's name when it was put there.
    pub(super) file: String,
    /// The message_id; absent where none could be read.
    pub(super) key: Option<String>,
    /// `delivered`, `refused`, `parked`, or `not_enqueued`.
    pub(super) state: String,
    /// Of the last attempt: `accepted`, `duplicate`, `refused`, `network_error`, `token_error`.
    pub(super) outcome: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) rule: Option<String>,
    pub(super) detail: Option<String>,
    pub(super) attempts: u64,
    pub(super) order_group: Option<String>,
    pub(super) enqueued_at: Option<String>,
    pub(super) first_attempt_at: Option<String>,
    pub(super) last_attempt_at: Option<String>,
    pub(super) finished_at: Option<String>,
}

impl Answer {
    /// Of a message in the outbox.
    pub(super) fn of(entry: &Entry) -> Self {
        let time = |ms: i64| Millis(ms).to_rfc3339();
        Self {
            file: String::new(),
            key: Some(entry.key.clone()),
            state: entry.state.as_str().to_owned(),
            outcome: entry.last.outcome.clone(),
            status: entry.last.status,
            rule: entry.last.rule.clone(),
            detail: entry.last.detail.clone(),
            attempts: entry.attempts,
            order_group: entry.order_group.clone(),
            enqueued_at: Some(time(entry.enqueued_at)),
            first_attempt_at: entry.first_attempt_at.map(time),
            last_attempt_at: entry.last_attempt_at.map(time),
            finished_at: entry.finished_at.map(time),
        }
    }

    /// Of a file that was not enqueued.
    pub(super) fn not_enqueued(rule: &str, detail: String, now: Millis) -> Self {
        Self {
            state: "not_enqueued".to_owned(),
            rule: Some(rule.to_owned()),
            detail: Some(detail),
            finished_at: Some(now.to_rfc3339()),
            ..Self::default()
        }
    }

    /// As text, of a file of this name.
    pub(super) fn text(&self, file: &OsStr) -> Vec<u8> {
        let named = Self {
            file: file.display().to_string(),
            ..self.clone()
        };
        // Texts and numbers are always JSON.
        let mut text = serde_json::to_vec_pretty(&named).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// Whether a text is an answer about this key.
pub(super) fn is_about(text: &[u8], key: Option<&str>) -> bool {
    #[derive(Deserialize)]
    struct About {
        key: Option<String>,
    }
    serde_json::from_slice::<About>(text).is_ok_and(|about| about.key.as_deref() == key)
}
