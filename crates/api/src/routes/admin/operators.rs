//! `/admin/operators`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::admin::{OperatorMembers, Purpose};

use super::page_of;
use crate::answer::registry::{Client, NewClient, page};
use crate::answer::{json, no_content};
use crate::context::Outcome;
use crate::request::{Call, object, refuse_all};
use crate::routes::credentials::operator;

fn members(call: &Call, purpose: Purpose) -> Result<OperatorMembers, Refusal> {
    let (members, shape) = object(call, |m| OperatorMembers {
        name: m.string("name"),
        disabled: if purpose == Purpose::Change {
            m.boolean("disabled")
        } else {
            None
        },
    })?;
    refuse_all(shape, members.faults(purpose))?;
    Ok(members)
}

pub(in crate::routes) async fn create(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let issued = bus
        .operator_create(&actor, &members(call, Purpose::Create)?)
        .await?;
    json(StatusCode::CREATED, &NewClient::from(&issued))
}

pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let (after, limit) = page_of(call)?;
    let found = bus.operator_list(after.as_deref(), limit).await?;
    json(StatusCode::OK, &page::<_, Client<'_>>("operators", &found))
}

pub(in crate::routes) async fn get(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [id] = call.path();
    json(StatusCode::OK, &Client::from(&bus.operator_get(id).await?))
}

pub(in crate::routes) async fn update(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [id] = call.path();
    let connection = bus
        .operator_update(&actor, id, &members(call, Purpose::Change)?)
        .await?;
    json(StatusCode::OK, &Client::from(&connection))
}

pub(in crate::routes) async fn delete(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [id] = call.path();
    bus.operator_delete(&actor, id).await?;
    Ok(no_content())
}
