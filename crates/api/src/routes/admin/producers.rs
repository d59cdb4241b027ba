//! `/admin/tenants/{tenant}/producers`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::admin::{ProducerMembers, Purpose, RateMembers};

use super::page_of;
use crate::answer::registry::{Client, NewClient, page};
use crate::answer::{json, no_content};
use crate::context::Outcome;
use crate::request::{Call, Members, object, refuse_all};
use crate::routes::credentials::operator;

fn members(call: &Call, purpose: Purpose) -> Result<ProducerMembers, Refusal> {
    let (members, shape) = object(call, |m| ProducerMembers {
        name: m.string("name"),
        system_ids: m.strings("system_ids"),
        message_types: m.strings("message_types"),
        role_arn: m.nullable_string("role_arn"),
        rate: m.nullable_object("rate", rate),
        disabled: if purpose == Purpose::Change {
            m.boolean("disabled")
        } else {
            None
        },
    })?;
    refuse_all(shape, members.faults(purpose))?;
    Ok(members)
}

fn rate(m: &mut Members<'_>) -> Option<RateMembers> {
    let (per_second, burst) = (m.integer("per_second"), m.integer("burst"));
    let (per_second, burst) = (m.required("per_second", per_second), m.required("burst", burst));
    // one that is missing has its fault; the other is still judged
    Some(RateMembers {
        per_second: per_second.unwrap_or(1),
        burst: burst.unwrap_or(1),
    })
}

pub(in crate::routes) async fn create(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let issued = bus
        .producer_create(&actor, tenant, &members(call, Purpose::Create)?)
        .await?;
    json(StatusCode::CREATED, &NewClient::from(&issued))
}

pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let (after, limit) = page_of(call)?;
    let found = bus.producer_list(tenant, after.as_deref(), limit).await?;
    json(StatusCode::OK, &page::<_, Client<'_>>("producers", &found))
}

pub(in crate::routes) async fn get(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    json(
        StatusCode::OK,
        &Client::from(&bus.producer_get(tenant, id).await?),
    )
}

pub(in crate::routes) async fn update(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    let connection = bus
        .producer_update(&actor, tenant, id, &members(call, Purpose::Change)?)
        .await?;
    json(StatusCode::OK, &Client::from(&connection))
}

pub(in crate::routes) async fn delete(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    bus.producer_delete(&actor, tenant, id).await?;
    Ok(no_content())
}
