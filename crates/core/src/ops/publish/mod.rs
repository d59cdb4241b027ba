//! PUBLISH: one SOM message, made safe to retry.
//!
//! `check` reads the bytes and decides what needs no memory: bytes, schema, grants. `decide` is the protocol as a
//! pure function: from what the ledger knows to the next step. `commit` walks the steps over the ports. `refused` is what
//! the activity tells of a refusal.

mod check;
mod commit;
mod decide;
mod refused;

use bytes::Bytes;
use storybus_json::Document;
use storybus_protocol::answer::{Accepted, Duplicate};
use storybus_protocol::rule;

use super::{Caller, refused_by_store};
use crate::bus::Bus;
use crate::domain::connection::{Producer, Role};
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::domain::time::Millis;

/// A request to publish.
#[derive(Debug, Clone)]
pub struct PublishRequest {
    /// The body as it came: at most [`MAX_BODY`](crate::domain::message::MAX_BODY) bytes are a message.
    pub body: Bytes,
    /// The `Idempotency-Key` header as it came.
    pub idempotency_key: Option<String>,
    /// When the function that runs this ends; nothing is begun that would not end before.
    pub deadline: Millis,
}

/// What a publish answers when it does not refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// Accepted and published now.
    Accepted(Accepted),
    /// Published before, with the same content.
    Duplicate(Duplicate),
}

impl Bus {
    /// Publishes a message (contract §2, §3).
    ///
    /// # Errors
    ///
    /// Every refusal of the contract. Only `503 bus.publish_failed` may leave a record behind, which later retries find.
    pub async fn publish(&self, caller: &Caller, request: &PublishRequest) -> Result<Published, Refusal> {
        let document = match self.rate(caller).await {
            Ok(()) => check::parse(&request.body),
            Err(refusal) => Err(refusal),
        };
        let published = self.publish_parsed(caller, request, &document).await;
        if let Err(refusal) = &published {
            let root = document.as_ref().ok().map(Document::root);
            self.ports
                .activity
                .note(refused::of(caller, root, refusal, self.ports.clock.now()));
        }
        published
    }

    async fn publish_parsed(
        &self,
        caller: &Caller,
        request: &PublishRequest,
        document: &Result<Document<'_>, Refusal>,
    ) -> Result<Published, Refusal> {
        let document = document.as_ref().map_err(Refusal::clone)?;
        let message = check::message(document, caller, request)?;
        self.commit(&message, request.deadline).await
    }

    /// The answer a publish would get; writes nothing and does not wait for contention to pass.
    ///
    /// # Errors
    ///
    /// Every refusal that a publish would get now.
    pub async fn validate(&self, caller: &Caller, request: &PublishRequest) -> Result<Published, Refusal> {
        self.rate(caller).await?;
        let document = check::parse(&request.body)?;
        let message = check::message(&document, caller, request)?;
        self.foresee(&message).await
    }

    /// Takes one from the producer's rate, if it has one.
    async fn rate(&self, caller: &Caller) -> Result<(), Refusal> {
        let Role::Producer(Producer { rate: Some(rate), .. }) = &caller.connection.role else {
            return Ok(());
        };
        let now = self.ports.clock.now();
        let bucket = format!("publish:{}", caller.connection.id);
        match self.ports.rates.take(&bucket, *rate, now).await {
            Ok(None) => Ok(()),
            Ok(Some(at)) => Err(Refusal::policy(
                RefusalKind::RateExceeded,
                rule::RATE_EXCEEDED,
                "this producer is over the rate that its operator has set; send the same bytes again after Retry-After",
            )
            .after(now.retry_after(at))),
            Err(error) => Err(refused_by_store("rates.take", &error)),
        }
    }
}
