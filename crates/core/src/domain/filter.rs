//! Which messages: grants of producers and filters of consumers.
//!
//! A consumer's filter is an SNS filter policy over message attributes: exact values and prefixes, every list must
//! match, an empty list is no condition. It is written so that both engines agree: nothing here matches that SNS would
//! not. <https://docs.aws.amazon.com/sns/latest/dg/sns-subscription-filter-policies.html>

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::message::Attributes;

/// The largest product of a filter's list lengths, by SNS's rule.
/// <https://docs.aws.amazon.com/sns/latest/dg/subscription-filter-policy-constraints.html>
pub const MAX_COMBINATIONS: usize = 150;

/// Message types: one exactly, a family at any depth, or all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TypePattern {
    /// `*`
    Any,
    /// `family.*`: the prefix with its dot.
    Family(String),
    /// One type.
    Exact(String),
}

/// The text is not a pattern of message types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a message type, `family.*` or `*`")]
pub struct InvalidPattern;

impl TypePattern {
    /// Whether it takes this type.
    #[must_use]
    pub fn matches(&self, message_type: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Family(prefix) => message_type.starts_with(prefix.as_str()),
            Self::Exact(name) => name == message_type,
        }
    }
}

/// SOM's own pattern for a message type: `^[a-z][a-z0-9_.]*$`.
fn is_message_type(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_' || *b == b'.')
}

impl FromStr for TypePattern {
    type Err = InvalidPattern;
    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        // SNS takes filter values of at most 256 characters with comfort; no real type comes near.
        if text.len() > 256 {
            return Err(InvalidPattern);
        }
        match text.strip_suffix('*') {
            Some("") => Ok(Self::Any),
            Some(prefix) if prefix.ends_with('.') && is_message_type(prefix) => {
                Ok(Self::Family(prefix.to_owned()))
            }
            None if is_message_type(text) => Ok(Self::Exact(text.to_owned())),
            _ => Err(InvalidPattern),
        }
    }
}

impl TryFrom<String> for TypePattern {
    type Error = InvalidPattern;
    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Family(prefix) => write!(f, "{prefix}*"),
            Self::Exact(name) => f.write_str(name),
        }
    }
}

impl From<TypePattern> for String {
    fn from(pattern: TypePattern) -> String {
        pattern.to_string()
    }
}

/// What a consumer wants. An empty list means all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Filter {
    /// Types.
    pub message_types: Vec<TypePattern>,
    /// Beginnings of `topic`.
    pub topic_prefixes: Vec<String>,
    /// `system_id`s.
    pub sources: Vec<String>,
}

impl Filter {
    /// Whether a message with these attributes goes to the consumer.
    #[must_use]
    pub fn matches(&self, a: &Attributes) -> bool {
        let any = |empty: bool, found: bool| empty || found;
        any(
            self.message_types.is_empty(),
            self.message_types.iter().any(|p| p.matches(&a.message_type)),
        ) && any(
            self.topic_prefixes.is_empty(),
            self.topic_prefixes
                .iter()
                .any(|p| a.topic.starts_with(p.as_str())),
        ) && any(self.sources.is_empty(), self.sources.contains(&a.system_id))
    }

    /// The product of the lengths of its lists; an empty list counts as one.
    #[must_use]
    pub fn combinations(&self) -> usize {
        [
            self.message_types.len(),
            self.topic_prefixes.len(),
            self.sources.len(),
        ]
        .iter()
        .fold(1, |product: usize, n| product.saturating_mul((*n).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, message_type, expected) in [
            ("*", "story.context", true),
            ("story.context", "story.context", true),
            ("story.context", "story.contexts", false),
            ("telling.*", "telling.started", true),
            ("telling.*", "telling.a.b", true),
            ("telling.*", "telling", false),
            ("telling.*", "tellings.started", false),
            ("skill.warning.*", "skill.run.completed", false),
        ] {
            let parsed: TypePattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(message_type), expected, "{pattern} {message_type}");
            assert_eq!(parsed.to_string(), pattern);
        }
        for bad in ["", "Bad Type", ".*", "a*", "a.**", "**", "1a", "a.*.b", "a\n"] {
            assert!(bad.parse::<TypePattern>().is_err(), "{bad:?}");
        }
    }
}
