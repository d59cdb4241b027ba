//! One attempt to send one message: the port that each kind of partner implements.

pub mod bus;
mod http;
pub mod rest;
mod retry_after;
mod secret;
pub(crate) mod text;
pub mod verdict;

use std::time::Duration;

use async_trait::async_trait;

pub use bus::{BusConfig, BusConfigError, BusTransport};
pub use rest::{RestConfig, RestConfigError, RestTransport};
pub use secret::{NoSecret, Secret, SecretSource};

use crate::answer::Answer;

/// What a transport is given of a message.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The message's key; on a bus its `message_id`.
    pub key: &'a str,
    /// The exact bytes, the same at every attempt.
    pub body: &'a [u8],
    /// Their media type, where the caller gave one.
    pub content_type: Option<&'a str>,
}

/// How this attempt is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// All of it, a token included, ends within this.
    pub timeout: Duration,
    /// The last attempt's credentials were refused: get new ones first. A transport without any ignores it.
    pub new_credentials: bool,
}

/// A kind of partner.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends the message once and says what came of it; it never fails otherwise. It makes no second attempt of its own, writes nothing
    /// down, and may be called for many messages at once. When it is dropped half-way, the partner may have the message.
    async fn attempt(&self, message: Outgoing<'_>, how: Attempt) -> Answer;

    /// How long the partner remembers a key. After it, a message that may have arrived is not sent again without a person's word.
    fn memory(&self) -> Duration;
}
