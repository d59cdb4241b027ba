//! `/admin/tenants`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::admin::{Purpose, TenantMembers};

use super::page_of;
use crate::answer::registry::{Tenant, page};
use crate::answer::{json, no_content};
use crate::context::Outcome;
use crate::request::{Call, object, refuse_all};
use crate::routes::credentials::operator;

fn members(call: &Call, purpose: Purpose) -> Result<TenantMembers, Refusal> {
    let (members, shape) = object(call, |m| TenantMembers {
        name: m.string("name"),
        strict_message_types: m.nullable_boolean("strict_message_types"),
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
    let workspace = bus
        .tenant_create(&actor, &members(call, Purpose::Create)?)
        .await?;
    json(StatusCode::CREATED, &Tenant::from(&workspace))
}

pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let (after, limit) = page_of(call)?;
    let found = bus.tenant_list(after.as_deref(), limit).await?;
    json(StatusCode::OK, &page::<_, Tenant<'_>>("tenants", &found))
}

pub(in crate::routes) async fn get(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    json(StatusCode::OK, &Tenant::from(&bus.tenant_get(tenant).await?))
}

pub(in crate::routes) async fn update(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let workspace = bus
        .tenant_update(&actor, tenant, &members(call, Purpose::Change)?)
        .await?;
    json(StatusCode::OK, &Tenant::from(&workspace))
}

pub(in crate::routes) async fn delete(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    bus.tenant_delete(&actor, tenant).await?;
    Ok(no_content())
}
