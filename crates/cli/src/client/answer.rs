//! Answers of a bus, and the want of one: what may be asked again.

use std::time::Duration;

use storybus_protocol::answer::Refused;
use storybus_protocol::{Violation, rule};

/// An answer of the bus.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Why it is no yes.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        serde_json::from_slice::<Refused>(&self.body)
            .map(|r| r.violations)
            .unwrap_or_default()
    }

    /// The first reason in a few words.
    pub(super) fn reason(&self) -> String {
        match self.violations().first() {
            Some(violation) => format!("{} {}", self.status, violation.rule),
            None => self.status.to_string(),
        }
    }

    /// Whether the same request may get another answer later (the public client's rule, and contention).
    pub(super) fn may_change(&self) -> bool {
        match self.status {
            408 | 429 | 500..=599 => true,
            409 => self
                .violations()
                .iter()
                .any(|v| v.rule == rule::COMMIT_CONTENTION),
            _ => false,
        }
    }

    /// Whether what was asked for may have been done all the same: an answer of the way there, or the bus's own fault.
    pub(super) fn may_have_acted(&self) -> bool {
        let undone = |v: &Violation| [rule::BUS_UNAVAILABLE, rule::RATE_EXCEEDED].contains(&&*v.rule);
        self.status >= 500 && !self.violations().iter().any(undone)
    }
}

/// No answer of the bus itself.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It may be reached later.
    Network(String),
    /// The same, and nothing was sent to it.
    Unsent(String),
    /// What answers there does not speak what the URL says.
    Wrong(String),
    /// It does not take the credentials.
    Login(String),
}

/// How it ended when no final answer came.
#[derive(Debug)]
pub(crate) enum GaveUp {
    /// The time is up; what came last.
    TimeUp(String),
    /// It does not take the credentials.
    Login(String),
    /// What answers there does not speak what the URL says.
    Wrong(String),
    /// It may have been done: the answer was lost, and the request is not one to repeat blindly.
    Unknown(String),
    /// Somebody wants to stop.
    Stopped,
}

/// When a request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Always: twice is the same as once.
    Always,
    /// Only when the last attempt surely did nothing: it never reached the bus, or the bus says so.
    IfUndone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surely_did_nothing_is_sent_again_when_twice_is_too_much() {
        let answer = |status, body: &str| Answer {
            status,
            retry_after: None,
            body: body.as_bytes().to_vec(),
        };
        let of_rule = |rule: &str| {
            format!(
                r#"{{"accepted":false,"violations":[{{"source":"policy","rule":"{rule}","message":"m"}}]}}"#
            )
        };
        assert!(!answer(503, &of_rule("bus.unavailable")).may_have_acted());
        assert!(!answer(429, &of_rule("rate.exceeded")).may_have_acted());
        assert!(!answer(409, &of_rule("secret.limit")).may_have_acted());
        assert!(answer(500, &of_rule("bus.internal_error")).may_have_acted());
        assert!(answer(502, "<html>").may_have_acted());
        assert!(answer(504, "").may_have_acted());
    }

    #[test]
    fn what_may_change_is_tried_again() {
        let refused = |status, rule: &str| Answer {
            status,
            retry_after: None,
            body: format!(
                r#"{{"accepted":false,"violations":[{{"source":"policy","rule":"{rule}","message":"m"}}]}}"#
            )
            .into_bytes(),
        };
        for (status, rule, again) in [
            (408, "x.y", true),
            (429, "rate.exceeded", true),
            (500, "bus.internal_error", true),
            (503, "message.in_flight", true),
            (409, "commit.contention", true),
            (409, "message_id.reused", false),
            (400, "envelope.required", false),
            (401, "producer.unauthenticated", false),
            (403, "producer.not_registered", false),
            (413, "message.too_large", false),
        ] {
            assert_eq!(refused(status, rule).may_change(), again, "{status} {rule}");
        }
    }
}
