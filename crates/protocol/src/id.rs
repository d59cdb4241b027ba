//! Ids: a newtype each, parsing is validation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is not an id of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an id of that kind")
    }
}

impl std::error::Error for InvalidId {}

/// Longest id that is looked up at all.
const MAX_LEN: usize = 64;

fn well_formed(text: &str) -> bool {
    (2..=MAX_LEN).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $($prefix:literal)|+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                if well_formed(text) && ($(text.starts_with($prefix))||+) { Ok(Self(text.to_owned())) } else { Err(InvalidId) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A workspace (wire name `tenant`): `w…`, of `[A-Za-z0-9_-]`, at most 64 characters.
    WorkspaceId, 'w'
}

text_id! {
    /// A connection, which is also its OAuth client id: `p…` producer, `c…` consumer, `o…` operator.
    ConnectionId, 'p' | 'c' | 'o'
}

text_id! {
    /// One of a connection's secrets: `s…`. Not itself secret.
    SecretId, 's'
}

text_id! {
    /// A job: `j…`.
    JobId, 'j'
}

/// What a connection is, and so what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionKind {
    /// Publishes into its workspace.
    Producer,
    /// Reads its own queue.
    Consumer,
    /// Runs the bus.
    Operator,
}

impl ConnectionId {
    /// The kind is the id's first letter.
    pub fn kind(&self) -> ConnectionKind {
        match self.0.as_bytes().first() {
            Some(b'p') => ConnectionKind::Producer,
            Some(b'c') => ConnectionKind::Consumer,
            _ => ConnectionKind::Operator,
        }
    }
}

/// A message's id: a UUID, so letter case does not tell two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Uuid);

/// A message's correlation id, which is its order group: a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CorrelationId(Uuid);

macro_rules! uuid_id {
    ($name:ident) => {
        impl $name {
            /// The sixteen bytes.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// From the sixteen bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            /// Takes the hyphenated form alone (8-4-4-4-12), in any letter case, as SOM does.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                if text.len() != 36 {
                    return Err(InvalidId);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId)
            }
        }

        impl fmt::Display for $name {
            /// Lower case.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0.hyphenated(), f)
            }
        }
    };
}

uuid_id!(MessageId);
uuid_id!(CorrelationId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_take_their_own_kind_alone() {
        assert!("w1".parse::<WorkspaceId>().is_ok());
        for bad in ["", "w", "p1", "w/1", "w 1", &"w".repeat(65)] {
            assert!(bad.parse::<WorkspaceId>().is_err(), "{bad}");
        }
        assert_eq!(
            "c1".parse::<ConnectionId>().map(|c| c.kind()),
            Ok(ConnectionKind::Consumer)
        );
        assert!("x1".parse::<ConnectionId>().is_err());
    }

    #[test]
    fn letter_case_does_not_tell_message_ids_apart() {
        let lower: MessageId = "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07".parse().unwrap();
        let upper: MessageId = "0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07".parse().unwrap();
        assert_eq!(lower, upper);
        assert_eq!(upper.to_string(), "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07");
        assert!("0199a1c47a2e7b318c554d2f9e6a1b07".parse::<MessageId>().is_err());
        assert!(
            "{0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b0}"
                .parse::<MessageId>()
                .is_err()
        );
    }
}
