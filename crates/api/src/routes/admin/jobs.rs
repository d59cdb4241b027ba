//! `/admin/tenants/{tenant}/jobs`, and what begins one.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::jobs::{RedriveMembers, ReplayMembers};

use super::page_of;
use crate::answer::jobs::JobShown;
use crate::answer::json;
use crate::answer::registry::page;
use crate::context::Outcome;
use crate::request::{Call, object, optional_object, refuse_all};
use crate::routes::credentials::operator;

/// `POST …/redrives`.
pub(in crate::routes) async fn redrive(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, consumer] = call.path();
    let (members, shape) = optional_object(call, |m| RedriveMembers {
        message_ids: m.strings("message_ids"),
    })?;
    refuse_all(shape, members.faults())?;
    let job = bus.redrive_start(&actor, tenant, consumer, &members).await?;
    json(StatusCode::ACCEPTED, &JobShown::from(&job))
}

/// `POST …/replays`.
pub(in crate::routes) async fn replay(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, consumer] = call.path();
    let (members, shape) = object(call, |m| ReplayMembers {
        from: m.string("from"),
        to: m.string("to"),
        message_types: m.strings("message_types"),
        story_ids: m.strings("story_ids"),
        correlation_ids: m.strings("correlation_ids"),
    })?;
    refuse_all(shape, members.faults())?;
    let job = bus.replay_start(&actor, tenant, consumer, &members).await?;
    json(StatusCode::ACCEPTED, &JobShown::from(&job))
}

/// Newest first.
pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let (after, limit) = page_of(call)?;
    let found = bus.job_list(tenant, after.as_deref(), limit).await?;
    json(StatusCode::OK, &page::<_, JobShown<'_>>("jobs", &found))
}

pub(in crate::routes) async fn get(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    json(StatusCode::OK, &JobShown::from(&bus.job_get(tenant, id).await?))
}

/// `DELETE …/jobs/{job}`: asks it to end.
pub(in crate::routes) async fn cancel(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    let actor = operator(bus, call, outcome).await?;
    let [tenant, id] = call.path();
    let job = bus.job_cancel(&actor, tenant, id).await?;
    json(StatusCode::ACCEPTED, &JobShown::from(&job))
}
