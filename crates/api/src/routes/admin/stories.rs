//! `/admin/tenants/{tenant}/stories`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;

use super::page_of;
use crate::answer::history::{StoryShown, TimelineShown};
use crate::answer::json;
use crate::answer::registry::page;
use crate::context::Outcome;
use crate::request::Call;
use crate::routes::credentials::operator;

/// The one begun last first.
pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let (after, limit) = page_of(call)?;
    let found = bus.story_list(tenant, after.as_deref(), limit).await?;
    json(StatusCode::OK, &page::<_, StoryShown<'_>>("stories", &found))
}

/// One, with its timeline.
pub(in crate::routes) async fn get(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant, story_id] = call.path();
    let (after, limit) = page_of(call)?;
    let timeline = bus
        .story_timeline(tenant, story_id, after.as_deref(), limit)
        .await?;
    json(StatusCode::OK, &TimelineShown::of(story_id, &timeline))
}
