//! A refusal: what the caller is told, free of HTTP.

use serde::{Deserialize, Serialize};
use storybus_protocol::{Source, Violation, rule};

/// What kind of refusal; each front maps it to its own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    /// The request or the message is wrong.
    Invalid,
    /// No credentials, or ones that do not hold.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// The route does not know this method.
    MethodNotAllowed,
    /// The request does not agree with what the bus remembers.
    Conflict,
    /// The message is too large.
    TooLarge,
    /// The bus cannot read this form of request.
    Unsupported,
    /// The caller is over its rate.
    RateExceeded,
    /// Not now; the same request again later is safe.
    Unavailable,
    /// Our own fault.
    Internal,
}

/// What the caller is told instead of a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What kind.
    pub kind: RefusalKind,
    /// Why: at least one.
    pub violations: Vec<Violation>,
    /// Whole seconds after which to ask again.
    pub retry_after: Option<u64>,
}

impl Refusal {
    /// A refusal for several reasons.
    #[must_use]
    pub fn of(kind: RefusalKind, violations: Vec<Violation>) -> Self {
        Self {
            kind,
            violations,
            retry_after: None,
        }
    }

    /// A refusal by one rule of the bus.
    pub fn policy(kind: RefusalKind, rule: &'static str, message: impl Into<String>) -> Self {
        Self::of(kind, vec![Violation::new(Source::Policy, rule, message)])
    }

    /// The rules, each once, in the order in which they stand.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.violations.iter().enumerate().filter_map(|(n, violation)| {
            let rule: &str = &violation.rule;
            let seen = self.violations.iter().take(n).any(|v| v.rule == *rule);
            (!seen).then_some(rule)
        })
    }

    /// The same at a place (of its first violation).
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        if let Some(first) = self.violations.first_mut() {
            first.path = Some(path.into());
        }
        self
    }

    /// The same with a time to come back.
    #[must_use]
    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    /// `503 bus.unavailable`: a store cannot be reached or has no room; nothing was written.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::policy(
            RefusalKind::Unavailable,
            rule::BUS_UNAVAILABLE,
            "the bus cannot reach its store or has no room; nothing was written: send the same request again later",
        )
        .after(1)
    }

    /// `503 bus.unavailable`: a consumer's queue was deleted outside the bus.
    #[must_use]
    pub fn queue_gone() -> Self {
        Self::policy(
            RefusalKind::Unavailable,
            rule::BUS_UNAVAILABLE,
            "the consumer's queue is not there: somebody has deleted it outside the bus, which makes it anew within some ten minutes; nothing was done: send the same request again then",
        )
        .after(60)
    }

    /// `500 bus.internal_error`: our own fault.
    #[must_use]
    pub fn internal() -> Self {
        Self::policy(
            RefusalKind::Internal,
            rule::BUS_INTERNAL_ERROR,
            "the bus failed; the fault is its own and is in its log: send the same request again, and tell the operator if it stays",
        )
    }

    /// `400 request.invalid` at a place of the request.
    pub fn request_invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::policy(RefusalKind::Invalid, rule::REQUEST_INVALID, message).at(path)
    }
}
