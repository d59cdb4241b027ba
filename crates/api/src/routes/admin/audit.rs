//! `/admin/audit`.

use bytes::Bytes;
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;

use crate::answer::json;
use crate::answer::registry::{Audited, list as list_of};
use crate::context::Outcome;
use crate::request::{Call, Query};
use crate::routes::credentials::operator;

/// `?limit=&before=`: newest first.
pub(in crate::routes) async fn list(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Response<Bytes>, Refusal> {
    operator(bus, call, outcome).await?;
    let mut query = Query::of(call);
    let (before, limit) = (query.text("before"), query.limit());
    query.finish()?;
    let page = bus.audit_list(before.as_deref(), limit).await?;
    json(
        StatusCode::OK,
        &list_of::<_, Audited<'_>>("entries", &page.entries, page.next.as_deref()),
    )
}
