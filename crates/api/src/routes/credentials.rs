//! Who calls, noted for the log.

use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::Caller;
use storybus_core::ops::admin::Actor;

use crate::context::Outcome;
use crate::request::{Call, bearer};

/// The producer of the token, in the workspace of the path if there is one.
pub(super) async fn producer(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
    tenant: Option<&str>,
) -> Result<Caller, Refusal> {
    let caller = bus.producer(bearer(&call.headers), tenant).await?;
    outcome.connection = Some(caller.connection.id.clone());
    Ok(caller)
}

/// The consumer of the path.
pub(super) async fn consumer(bus: &Bus, call: &Call, outcome: &mut Outcome) -> Result<Caller, Refusal> {
    let [tenant, consumer] = call.path();
    let caller = bus.consumer(bearer(&call.headers), tenant, consumer).await?;
    outcome.connection = Some(caller.connection.id.clone());
    Ok(caller)
}

/// An operator.
pub(super) async fn operator(bus: &Bus, call: &Call, outcome: &mut Outcome) -> Result<Actor, Refusal> {
    let operator = bus.operator(bearer(&call.headers)).await?;
    let actor = Actor::operator(&operator.id);
    outcome.connection = Some(operator.id);
    Ok(actor)
}
