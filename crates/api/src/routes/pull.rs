//! A consumer reads its queue and settles what it got.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use storybus_core::Bus;
use storybus_core::domain::delivery::{Delivery, Settled};
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::pull::{MAX_BATCH, MAX_REASON, MAX_WAIT, ReceiveRequest};
use storybus_core::ports::queues::MAX_VISIBILITY;
use storybus_protocol::rule;

use super::credentials;
use crate::answer;
use crate::answer::envelopes::{Bare, messages};
use crate::context::Outcome;
use crate::request::{Call, Members, Query, fault, object, refuse_all};

/// The longest receipt handle that is looked up, in bytes: a failed one is given back in the answer.
const MAX_HANDLE: usize = 2048;

/// `GET …/messages?max=&wait=&visibility=&attempt=`.
pub(super) async fn receive(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let caller = credentials::consumer(bus, call, outcome).await?;
    let mut query = Query::of(call);
    let request = ReceiveRequest {
        max: query.number("max", 1..=MAX_BATCH as u64),
        wait_seconds: query.number("wait", 0..=MAX_WAIT.as_secs()),
        visibility_seconds: query.number("visibility", 1..=MAX_VISIBILITY.as_secs()),
        attempt: query.text("attempt"),
    };
    query.finish()?;
    let deliveries = bus.receive(&caller, &request).await?;
    outcome.delivered = deliveries.len();
    Ok(answer::raw(StatusCode::OK, messages(&deliveries, None)?))
}

/// A delivery without its envelope.
#[derive(Serialize)]
struct Head<'a> {
    receipt_handle: &'a str,
    message_type: &'a str,
    correlation_id: &'a str,
    topic: &'a str,
    producer_id: &'a str,
    receive_count: u32,
    enqueued_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    redelivery: Option<&'a str>,
}

impl Bare for Delivery {
    fn head(&self) -> impl Serialize {
        Head {
            receipt_handle: &self.receipt_handle,
            message_type: &self.attributes.message_type,
            correlation_id: &self.attributes.correlation_id,
            topic: &self.attributes.topic,
            producer_id: self.attributes.producer_id.as_str(),
            receive_count: self.receive_count,
            enqueued_at: self.enqueued_at.to_rfc3339(),
            redelivery: self.redelivery.as_deref(),
        }
    }

    fn envelope(&self) -> &[u8] {
        &self.body
    }
}

/// `POST …/ack`.
pub(super) async fn acknowledge(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let caller = credentials::consumer(bus, call, outcome).await?;
    let (handles, shape) = object(call, receipt_handles)?;
    refuse_all(shape, handles.faults())?;
    let settled = bus.acknowledge(&caller, &handles.distinct).await?;
    settlement(&handles, &settled)
}

/// `POST …/nack`.
pub(super) async fn release(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let caller = credentials::consumer(bus, call, outcome).await?;
    let ((handles, delay), shape) = object(call, |members| {
        (receipt_handles(members), members.integer("delay_seconds"))
    })?;
    let delay = delay.map(|d| u64::try_from(d).ok().filter(|d| *d <= MAX_VISIBILITY.as_secs()));
    let mut faults = handles.faults();
    if delay == Some(None) {
        faults.push(fault(
            "/delay_seconds",
            format!("must be 0 to {}", MAX_VISIBILITY.as_secs()),
        ));
    }
    refuse_all(shape, faults)?;
    let settled = bus.release(&caller, &handles.distinct, delay.flatten()).await?;
    settlement(&handles, &settled)
}

/// `POST …/reject`.
pub(super) async fn reject(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let caller = credentials::consumer(bus, call, outcome).await?;
    let ((handles, reason), shape) = object(call, |members| {
        let handles = receipt_handles(members);
        let reason = members.string("reason");
        (handles, members.required("reason", reason).unwrap_or_default())
    })?;
    let mut faults = handles.faults();
    if !(1..=MAX_REASON).contains(&reason.chars().take(MAX_REASON + 1).count()) {
        faults.push(fault("/reason", format!("must be 1 to {MAX_REASON} characters")));
    }
    refuse_all(shape, faults)?;
    let settled = bus.reject(&caller, &handles.distinct, &reason).await?;
    settlement(&handles, &settled)
}

/// `GET …/skills`.
pub(super) async fn skills(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    credentials::consumer(bus, call, outcome).await?;
    answer::json(StatusCode::OK, &json!({ "registrations": [] }))
}

/// The handles of a call. One that is given twice is settled once, and answered once.
struct Handles {
    given: usize,
    distinct: Vec<String>,
    too_long: Vec<usize>,
}

fn receipt_handles(members: &mut Members<'_>) -> Handles {
    let given = members.strings("receipt_handles");
    let given = members.required("receipt_handles", given).unwrap_or_default();
    let mut handles = Handles {
        given: given.len(),
        distinct: Vec::new(),
        too_long: Vec::new(),
    };
    for (n, handle) in given.into_iter().enumerate().take(MAX_BATCH) {
        if handle.len() > MAX_HANDLE {
            handles.too_long.push(n);
        } else if !handles.distinct.contains(&handle) {
            handles.distinct.push(handle);
        }
    }
    handles
}

impl Handles {
    fn faults(&self) -> Vec<storybus_protocol::Violation> {
        let mut faults = Vec::new();
        if !(1..=MAX_BATCH).contains(&self.given) {
            faults.push(fault(
                "/receipt_handles",
                format!("must be 1 to {MAX_BATCH} receipt handles"),
            ));
        }
        faults.extend(self.too_long.iter().map(|n| {
            fault(
                format!("/receipt_handles/{n}"),
                format!("must be at most {MAX_HANDLE} bytes: no handle is longer"),
            )
        }));
        faults
    }
}

/// The answer of the three.
#[derive(Serialize)]
struct Settlement<'a> {
    ok: Vec<&'a str>,
    failed: Vec<Failed<'a>>,
}

#[derive(Serialize)]
struct Failed<'a> {
    receipt_handle: &'a str,
    rule: &'static str,
    message: &'static str,
}

fn settlement(handles: &Handles, settled: &[Settled]) -> Result<Response<Bytes>, Refusal> {
    let mut answer = Settlement {
        ok: Vec::new(),
        failed: Vec::new(),
    };
    for (handle, settled) in handles.distinct.iter().zip(settled) {
        let (rule, message) = match settled {
            Settled::Done => {
                answer.ok.push(handle);
                continue;
            }
            Settled::Invalid => (
                rule::RECEIPT_HANDLE_INVALID,
                "not a handle of this queue, or its visibility has ended: the message comes again with a new one",
            ),
            Settled::NotArchived => (
                rule::MESSAGE_NOT_ARCHIVED,
                "the message is not in the archive yet; send the same call again in a moment",
            ),
        };
        answer.failed.push(Failed {
            receipt_handle: handle,
            rule,
            message,
        });
    }
    answer::json(StatusCode::OK, &answer)
}
