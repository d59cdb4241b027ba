//! What is sent: target, key, order group, bytes. Parsing is validation.

use std::fmt;

use sha2::{Digest, Sha256};

/// Longest name of a target, in bytes.
pub const MAX_TARGET: usize = 100;
/// Longest key and longest order group, in bytes.
pub const MAX_KEY: usize = 255;
/// Longest media type, in bytes.
pub const MAX_CONTENT_TYPE: usize = 255;
/// Largest body, in bytes. A bus takes 240,000.
pub const MAX_BODY: usize = 16 * 1024 * 1024;

/// The text cannot be that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Empty, too long, or with characters that are not printable ASCII.
    #[error("a {what} is 1 to {most} printable ASCII characters without spaces")]
    Text {
        /// Which part.
        what: &'static str,
        /// The most bytes.
        most: usize,
    },
    /// A media type that no header can carry.
    #[error("a media type is 1 to {MAX_CONTENT_TYPE} printable ASCII characters")]
    ContentType,
    /// Larger than the outbox keeps.
    #[error("the message has {size} bytes; an outbox keeps at most {MAX_BODY}")]
    TooLarge {
        /// Its bytes.
        size: usize,
    },
    /// Not an envelope that a bus could take.
    #[error("the message is no SOM envelope: {reason}")]
    NotAnEnvelope {
        /// What is missing or wrong.
        reason: String,
    },
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $most:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes the text if it can be one.
            pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
                let text = text.into();
                if (1..=$most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
                    Ok(Self(text))
                } else {
                    Err(Invalid::Text { what: $what, most: $most })
                }
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// Whom a message is for: a name that the relay has a transport for, such as `bus`.
    Target, "target", MAX_TARGET
}

text! {
    /// What tells a message from all others of its target, stable and derived from the domain: `send-1042-to-acme`, or a
    /// `message_id`. Never made anew for a retry.
    Key, "key", MAX_KEY
}

text! {
    /// Messages of one group are sent one after another, in the order in which they were enqueued; on a bus the `correlation_id`.
    Group, "order group", MAX_KEY
}

/// The SHA-256 of a message's exact bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadHash(pub [u8; 32]);

impl PayloadHash {
    /// Of these bytes.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }
}

impl fmt::Display for PayloadHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A message as it is put into an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Whom it is for.
    pub target: Target,
    /// What it is known by.
    pub key: Key,
    /// What it stands in line behind; `None`: in no line.
    pub group: Option<Group>,
    /// The exact bytes.
    pub body: Vec<u8>,
    /// Their media type, for partners that look at it: at most [`MAX_CONTENT_TYPE`] printable ASCII characters.
    pub content_type: Option<String>,
}

impl Message {
    /// Whether an outbox keeps it. What the other parts may be, their types say.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.body.len() > MAX_BODY {
            return Err(Invalid::TooLarge {
                size: self.body.len(),
            });
        }
        let bad = |text: &String| {
            !(1..=MAX_CONTENT_TYPE).contains(&text.len()) || !text.bytes().all(|b| (b' '..=b'~').contains(&b))
        };
        if self.content_type.as_ref().is_some_and(bad) {
            return Err(Invalid::ContentType);
        }
        Ok(())
    }
}
