//! `/admin/tenants/{tenant}/messages`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;

use crate::answer::history::WayShown;
use crate::answer::json;
use crate::context::Outcome;
use crate::request::Call;
use crate::routes::credentials::operator;

/// A message's whole way.
pub(in crate::routes) async fn way(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant, message_id] = call.path();
    let way = bus.message_way(tenant, message_id).await?;
    json(StatusCode::OK, &WayShown::from(&way))
}
