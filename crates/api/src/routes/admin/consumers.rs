//! `/admin/tenants/{tenant}/consumers`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::admin::{ConsumerMembers, Purpose};

use super::page_of;
use crate::answer::registry::{Client, NewClient, Queue, Settled, page};
use crate::answer::{json, no_content};
use crate::context::Outcome;
use crate::request::{Call, object, optional_object, refuse_all};
use crate::routes::credentials::operator;

fn members(call: &Call, purpose: Purpose) -> Result<ConsumerMembers, Refusal> {
    let change = purpose == Purpose::Change;
    let (members, shape) = object(call, |m| ConsumerMembers {
        name: m.string("name"),
        message_types: m.strings("message_types"),
        topic_prefixes: m.strings("topic_prefixes"),
        sources: m.strings("sources"),
        max_receives: m.nullable_integer("max_receives"),
        visibility_seconds: m.nullable_integer("visibility_seconds"),
        reader_role_arn: m.nullable_string("reader_role_arn"),
        disabled: if change { m.boolean("disabled") } else { None },
        paused: if change { m.boolean("paused") } else { None },
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
    let [tenant] = call.path();
    let issued = bus
        .consumer_create(&actor, tenant, &members(call, Purpose::Create)?)
        .await?;
    json(StatusCode::CREATED, &Settled::<NewClient<'_>>::from(&issued))
}

pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let (after, limit) = page_of(call)?;
    let found = bus.consumer_list(tenant, after.as_deref(), limit).await?;
    json(StatusCode::OK, &page::<_, Client<'_>>("consumers", &found))
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
        &Client::from(&bus.consumer_get(tenant, id).await?),
    )
}

pub(in crate::routes) async fn update(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    let changed = bus
        .consumer_update(&actor, tenant, id, &members(call, Purpose::Change)?)
        .await?;
    json(StatusCode::OK, &Settled::<Client<'_>>::from(&changed))
}

pub(in crate::routes) async fn delete(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    bus.consumer_delete(&actor, tenant, id).await?;
    Ok(no_content())
}

/// `POST …/purge`.
pub(in crate::routes) async fn purge(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    let ((), shape) = optional_object(call, |_| ())?;
    refuse_all(shape, Vec::new())?;
    let purged = bus.consumer_purge(&actor, tenant, id).await?;
    json(StatusCode::OK, &serde_json::json!({ "purged": purged }))
}

/// `GET …/queue`.
pub(in crate::routes) async fn queue(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    json(
        StatusCode::OK,
        &Queue::from(bus.consumer_queue(tenant, id).await?),
    )
}
