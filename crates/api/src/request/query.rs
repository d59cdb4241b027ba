//! Query parameters: strict on those that the route knows, deaf to the others.

use std::ops::RangeInclusive;

use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_core::ops::admin::{DEFAULT_PAGE, MAX_PAGE};
use storybus_protocol::Violation;

use super::percent::decode;
use super::{Call, fault};

/// A query that is being read. Faults are collected and refused together by [`finish`](Self::finish).
pub(crate) struct Query<'q> {
    raw: &'q str,
    faults: Vec<Violation>,
}

impl<'q> Query<'q> {
    pub(crate) fn of(call: &'q Call) -> Self {
        Self {
            raw: &call.query,
            faults: Vec::new(),
        }
    }

    /// A parameter's value.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let mut found = self.raw.split('&').filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key, true).as_deref() == Some(name)).then_some(value)
        });
        let value = found.next()?;
        if found.next().is_some() {
            self.fault(name, "is given more than once");
            return None;
        }
        let decoded = decode(value, true);
        if decoded.is_none() {
            self.fault(name, "is not percent-encoded UTF-8");
        }
        decoded
    }

    /// A parameter that is a whole number.
    pub(crate) fn number(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text(name)?;
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        let within = number.filter(|n| range.contains(n));
        if within.is_none() {
            self.fault(
                name,
                format!("must be a whole number, {} to {}", range.start(), range.end()),
            );
        }
        within
    }

    /// How many entries of a list to show: 1–1,000, 100 unless asked for otherwise.
    pub(crate) fn limit(&mut self) -> usize {
        let limit = self.number("limit", 1..=MAX_PAGE as u64);
        limit
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(DEFAULT_PAGE)
    }

    /// Adds a fault of a parameter.
    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.faults.push(fault(format!("/{name}"), message));
    }

    /// Refuses if anything was wrong.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        if self.faults.is_empty() {
            Ok(())
        } else {
            Err(Refusal::of(RefusalKind::Invalid, self.faults))
        }
    }
}
