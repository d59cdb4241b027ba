//! What is to be known of a rule: where it appears, whose fault it is, whether to try again.

use std::fmt;

use super::TABLE;
use crate::Source;

/// What is to be known of a rule. `docs/errors/` has a page for each, which says the same and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The rule id; of a schema rule the keyword alone, such as `required` or `format.uuid`.
    pub rule: &'static str,
    /// Which kind of check names it.
    pub source: Source,
    /// Where it can be met: at least one place.
    pub appears: &'static [Appears],
    /// Who has to mend it.
    pub fault: Fault,
    /// Whether the same request again can succeed.
    pub retry: Retry,
}

/// A place where a rule can be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appears {
    /// In the `violations` of a refusal with this status.
    Refusal(u16),
    /// In the `tolerated` of a 202: the message was accepted.
    Tolerated,
    /// In the `failed` of an ack, nack or reject that is answered 200.
    Failed,
    /// In the `error` of a job that failed.
    Job,
}

impl fmt::Display for Appears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refusal(status) => write!(f, "{status}"),
            Self::Tolerated => f.write_str("tolerated"),
            Self::Failed => f.write_str("failed"),
            Self::Job => f.write_str("job"),
        }
    }
}

/// Who has to mend what a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Whoever sent the request.
    Caller,
    /// An operator, where the caller is none: it can grant what is asked for.
    Operator,
    /// The bus, or what it runs on.
    Bus,
    /// Nobody: it happens in the best of order.
    Nobody,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "caller",
            Self::Operator => "operator",
            Self::Bus => "bus",
            Self::Nobody => "nobody",
        })
    }
}

/// Whether the same request, byte for byte, can succeed when it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Not as it is; or there is nothing to repeat, since the message was accepted.
    No,
    /// Once, with a new access token.
    NewToken,
    /// After the seconds that the header `Retry-After` tells.
    RetryAfter,
    /// After a moment, a longer one each time; there is no `Retry-After`.
    Moment,
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::No => "no",
            Self::NewToken => "once, with a new token",
            Self::RetryAfter => "after Retry-After",
            Self::Moment => "after a moment",
        })
    }
}

/// The schemas that rules are named after.
pub const SCHEMAS: &[&str] = &[
    "envelope",
    "story-context",
    "telling-event",
    "link-event",
    "delivery-media-available",
    "skill-warning",
    "system-audit",
];

const REFUSED: &[Appears] = &[Appears::Refusal(400)];
/// A message of a later minor version may carry what 1.0 does not know; what the branches of an `anyOf` say of it comes along.
const OR_TOLERATED: &[Appears] = &[Appears::Refusal(400), Appears::Tolerated];

const fn keyword(rule: &'static str, appears: &'static [Appears]) -> About {
    About {
        rule,
        source: Source::Schema,
        appears,
        fault: Fault::Caller,
        retry: Retry::No,
    }
}

/// The keywords of the schemas that can rule, each as if it were a rule: not every schema has all of them.
pub const SCHEMA_KEYWORDS: &[About] = &[
    keyword("additionalProperties", OR_TOLERATED),
    keyword("anyOf", OR_TOLERATED),
    keyword("const", REFUSED),
    keyword("enum", OR_TOLERATED),
    keyword("false_schema", REFUSED),
    keyword("format.date-time", REFUSED),
    keyword("format.uuid", REFUSED),
    keyword("maxLength", REFUSED),
    keyword("maximum", REFUSED),
    keyword("minLength", REFUSED),
    keyword("minimum", REFUSED),
    keyword("not", REFUSED),
    keyword("pattern", OR_TOLERATED),
    keyword("required", REFUSED),
    keyword("type", OR_TOLERATED),
    keyword("uniqueItems", REFUSED),
];

/// What is to be known of a rule, by its id: of a schema rule what is to be known of its keyword. `None` for what is no
/// rule of this version.
#[must_use]
pub fn about(rule: &str) -> Option<&'static About> {
    let named = |table: &'static [About], name: &str| table.iter().find(|about| about.rule == name);
    match rule.split_once('.') {
        Some((schema, word)) if SCHEMAS.contains(&schema) => named(SCHEMA_KEYWORDS, word),
        _ => named(TABLE, rule),
    }
}
