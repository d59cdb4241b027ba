//! Publishing, and what became of it.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use storybus_core::Bus;
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_core::ops::Caller;
use storybus_core::ops::publish::{PublishRequest, Published};
use storybus_json::{Document, Value};
use storybus_protocol::answer::MessageState;
use storybus_protocol::id::MessageId;
use storybus_protocol::rule;

use super::credentials;
use crate::context::{Body, Outcome};
use crate::request::{ALTERED, Call, check_encoding, idempotency_key, message_body};
use crate::{MAX_BODY, answer};

/// Whether the message is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Real,
    Dry,
}

/// `POST /tenants/{tenant}/messages`.
pub(super) async fn publish(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let [tenant] = call.path();
    let caller = credentials::producer(bus, call, outcome, Some(tenant)).await?;
    send(bus, call, outcome, &caller, Run::Real).await
}

/// `POST /tenants/{tenant}/iam/messages`.
pub(super) async fn publish_by_role(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let [tenant] = call.path();
    let caller = credentials::producer_by_role(bus, call, outcome, tenant).await?;
    send(bus, call, outcome, &caller, Run::Real).await
}

/// `POST /jwt/messages`.
pub(super) async fn publish_by_token(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let caller = credentials::producer(bus, call, outcome, None).await?;
    send(bus, call, outcome, &caller, Run::Real).await
}

/// `POST /tenants/{tenant}/validate`.
pub(super) async fn validate(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let [tenant] = call.path();
    let caller = credentials::producer(bus, call, outcome, Some(tenant)).await?;
    send(bus, call, outcome, &caller, Run::Dry).await
}

async fn send(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    caller: &Caller,
    run: Run,
) -> Result<Response<Bytes>, Refusal> {
    check_encoding(&call.headers)?;
    let request = PublishRequest {
        body: message_body(&call.body),
        idempotency_key: idempotency_key(&call.headers),
        deadline: call.context.deadline,
    };
    let published = match run {
        Run::Real => bus.publish(caller, &request).await,
        Run::Dry => bus.validate(caller, &request).await,
    };
    match published {
        Ok(Published::Accepted(accepted)) => {
            outcome.message_id = Some(accepted.message_id.clone());
            answer::json(StatusCode::ACCEPTED, &accepted)
        }
        Ok(Published::Duplicate(duplicate)) => {
            outcome.message_id = Some(duplicate.message_id.clone());
            answer::json(StatusCode::OK, &duplicate)
        }
        Err(refusal) => {
            if let Body::Complete(body) = &call.body {
                outcome.message_id = message_id(&refusal, body);
            }
            Err(say_why(refusal, &call.body))
        }
    }
}

/// The id of a refused message, for the log. The body is read once more for that, but not where reading is what was
/// refused, nor for a client that already asks too much.
fn message_id(refusal: &Refusal, body: &[u8]) -> Option<String> {
    let unread = matches!(refusal.kind, RefusalKind::TooLarge | RefusalKind::RateExceeded)
        || refusal
            .violations
            .iter()
            .any(|v| v.rule == rule::MESSAGE_NOT_JSON);
    if unread {
        return None;
    }
    let document = Document::parse(body).ok()?;
    let id: MessageId = document
        .root()
        .get("message_id")
        .and_then(Value::as_str)?
        .parse()
        .ok()?;
    Some(id.to_string())
}

/// The core has judged a stand-in; the client sent something else.
fn say_why(mut refusal: Refusal, body: &Body) -> Refusal {
    let why = match body {
        Body::TooLarge if refusal.kind == RefusalKind::TooLarge => {
            format!("the body has more than {MAX_BODY} bytes; no more are carried")
        }
        Body::Altered if refusal.rules().eq([rule::MESSAGE_NOT_JSON]) => ALTERED.to_owned(),
        Body::Complete(_) | Body::TooLarge | Body::Altered => return refusal,
    };
    for violation in &mut refusal.violations {
        violation.message.clone_from(&why);
    }
    refusal
}

/// `GET /tenants/{tenant}/messages/{message_id}`.
#[derive(Serialize)]
struct State {
    message_id: MessageId,
    state: MessageState,
    recorded_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_at: Option<String>,
}

/// `GET /tenants/{tenant}/messages/{message_id}`.
pub(super) async fn state(bus: &Bus, call: &Call, outcome: &mut Outcome) -> Result<Response<Bytes>, Refusal> {
    let [tenant, message_id] = call.path();
    let caller = credentials::producer(bus, call, outcome, Some(tenant)).await?;
    let status = bus.message_state(&caller, message_id).await?;
    outcome.message_id = Some(status.message_id.to_string());
    let state = State {
        message_id: status.message_id,
        state: status.state,
        recorded_at: status.recorded_at.to_rfc3339(),
        published_at: status.published_at.map(|at| at.to_rfc3339()),
    };
    answer::json(StatusCode::OK, &state)
}
