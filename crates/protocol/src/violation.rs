use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Which kind of check a message failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The text or its shape: JSON itself, or a SOM schema.
    Schema,
    /// The version of the standard.
    Conformance,
    /// A snapshot against the story's last accepted one.
    Sequence,
    /// A rule of the bus: credentials, grants, limits, idempotency.
    Policy,
}

/// One reason why the bus refused, or what it let pass.
///
/// Callers branch on the status and on [`rule`](Self::rule); [`message`](Self::message) is for people and may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Violation {
    /// Which kind of check.
    pub source: Source,
    /// The rule id, such as `envelope.required` or `message_id.reused`.
    pub rule: Cow<'static, str>,
    /// What happened and what to do, for people.
    pub message: String,
    /// JSON Pointer (RFC 6901) to the value at fault, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Violation {
    /// A violation without a path.
    pub fn new(source: Source, rule: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            source,
            rule: rule.into(),
            message: message.into(),
            path: None,
        }
    }

    /// The same violation at a place.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}
