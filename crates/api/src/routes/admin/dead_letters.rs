//! `/admin/tenants/{tenant}/consumers/{consumer}/dead-letters`.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use storybus_core::Bus;
use storybus_core::domain::dead_letter::DeadLetter;
use storybus_core::domain::refusal::Refusal;
use storybus_protocol::id::{ConnectionId, JobId, MessageId};

use crate::answer::envelopes::{Bare, messages};
use crate::answer::history::reason;
use crate::answer::raw;
use crate::context::Outcome;
use crate::request::{Call, Query};
use crate::routes::credentials::operator;

/// The most dead letters of a page.
const MAX_PAGE: u64 = 100;
/// How many a page has unless asked for otherwise.
const DEFAULT_PAGE: usize = 10;

/// A dead letter without its envelope.
#[derive(Serialize)]
struct Head<'a> {
    message_id: MessageId,
    message_type: &'a str,
    correlation_id: &'a str,
    topic: &'a str,
    producer_id: &'a ConnectionId,
    receive_count: u32,
    enqueued_at: String,
    dead_lettered_at: String,
    cause: &'static str,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redelivery: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<&'a JobId>,
}

impl Bare for DeadLetter {
    fn head(&self) -> impl Serialize {
        let (cause, reason) = reason(&self.cause, self.receive_count);
        Head {
            message_id: self.message_id,
            message_type: &self.attributes.message_type,
            correlation_id: &self.attributes.correlation_id,
            topic: &self.attributes.topic,
            producer_id: &self.attributes.producer_id,
            receive_count: self.receive_count,
            enqueued_at: self.enqueued_at.to_rfc3339(),
            dead_lettered_at: self.dead_at.to_rfc3339(),
            cause,
            reason,
            redelivery: self.redelivery.as_deref(),
            job_id: self.taken_by.as_ref(),
        }
    }

    fn envelope(&self) -> &[u8] {
        &self.body
    }
}

/// `?max=&after=`: a look, oldest first.
pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant, consumer] = call.path();
    let mut query = Query::of(call);
    let (after, max) = (query.text("after"), query.number("max", 1..=MAX_PAGE));
    query.finish()?;
    let max = max
        .and_then(|max| usize::try_from(max).ok())
        .unwrap_or(DEFAULT_PAGE);
    let page = bus
        .dead_letter_list(tenant, consumer, after.as_deref(), max)
        .await?;
    Ok(raw(
        StatusCode::OK,
        messages(&page.letters, page.next.as_deref())?,
    ))
}
