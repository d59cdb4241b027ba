//! Who calls, noted for the log.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use storybus_core::Bus;
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_core::ops::Caller;
use storybus_core::ops::admin::Actor;
use storybus_protocol::id::ConnectionId;

use crate::context::{Iam, Outcome};
use crate::request::{Call, bearer};

/// The producer of the token, in the workspace of the path if there is one.
pub(super) async fn producer(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    tenant: Option<&str>,
) -> Result<Caller, Refusal> {
    let caller = bus.producer(bearer(&call.headers), tenant).await;
    let caller = caller.map_err(|refusal| named(refusal, call, outcome))?;
    outcome.connection = Some(caller.connection.id.clone());
    Ok(caller)
}

/// The producer whose role signed the request.
pub(super) async fn producer_by_role(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    tenant: &str,
) -> Result<Caller, Refusal> {
    let arn = match &call.context.iam {
        Iam::Signed(arn) => Some(arn.as_str()),
        Iam::Unsigned | Iam::Unchecked => None,
    };
    let caller = bus.producer_by_role(arn, tenant).await?;
    outcome.connection = Some(caller.connection.id.clone());
    Ok(caller)
}

/// The consumer of the path.
pub(super) async fn consumer(bus: &Bus, call: &Call, outcome: &mut Outcome) -> Result<Caller, Refusal> {
    let [tenant, consumer] = call.path();
    let caller = bus.consumer(bearer(&call.headers), tenant, consumer).await;
    let caller = caller.map_err(|refusal| named(refusal, call, outcome))?;
    outcome.connection = Some(caller.connection.id.clone());
    Ok(caller)
}

/// An operator.
pub(super) async fn operator(bus: &Bus, call: &Call, outcome: &mut Outcome) -> Result<Actor, Refusal> {
    let operator = bus.operator(bearer(&call.headers)).await;
    let operator = operator.map_err(|refusal| named(refusal, call, outcome))?;
    let actor = Actor::operator(&operator.id);
    outcome.connection = Some(operator.id);
    Ok(actor)
}

#[derive(Deserialize)]
struct Subject {
    sub: ConnectionId,
}

/// Notes whose request is refused, if its token has held: it has when the refusal is a 403.
fn named(refusal: Refusal, call: &Call, outcome: &mut Outcome) -> Refusal {
    if refusal.kind == RefusalKind::Forbidden {
        let payload = bearer(&call.headers).and_then(|token| token.split('.').nth(1));
        let payload = payload.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let subject = payload.and_then(|bytes| serde_json::from_slice::<Subject>(&bytes).ok());
        outcome.connection = subject.map(|subject| subject.sub);
    }
    refusal
}
