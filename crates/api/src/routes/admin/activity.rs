//! `/admin/tenants/{tenant}/activity`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::history::ActivityQuery;
use storybus_protocol::id::{ConnectionId, ConnectionKind};

use crate::answer::history::ActivityShown;
use crate::answer::json;
use crate::answer::registry::list as list_of;
use crate::context::Outcome;
use crate::request::{Call, Query};
use crate::routes::credentials::operator;

/// `?limit=&before=&rule=&producer=`: newest first.
pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let [tenant] = call.path();
    let mut query = Query::of(call);
    let (before, limit) = (query.text("before"), query.limit());
    let (rule, producer) = (query.text("rule"), query.text("producer"));
    let is_producer = |id: &String| {
        id.parse::<ConnectionId>()
            .is_ok_and(|id| id.kind() == ConnectionKind::Producer)
    };
    if producer.as_ref().is_some_and(|id| !is_producer(id)) {
        query.fault("producer", "is not the id of a producer: p…");
    }
    query.finish()?;
    let asked = ActivityQuery {
        before: before.as_deref(),
        rule: rule.as_deref(),
        producer: producer.as_deref(),
        limit,
    };
    let page = bus.activity_list(tenant, &asked).await?;
    json(
        StatusCode::OK,
        &list_of::<_, ActivityShown<'_>>("activity", &page.entries, page.next.as_deref()),
    )
}
