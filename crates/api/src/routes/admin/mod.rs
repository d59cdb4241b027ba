//! The operator API.

pub(super) mod activity;
pub(super) mod audit;
pub(super) mod consumers;
pub(super) mod dead_letters;
pub(super) mod jobs;
pub(super) mod messages;
pub(super) mod operators;
pub(super) mod producers;
pub(super) mod secrets;
pub(super) mod stories;
pub(super) mod tenants;

use storybus_core::domain::refusal::Refusal;

use crate::request::{Call, Query};

/// Which part of a list: `?limit=&after=`.
fn page_of(call: &Call) -> Result<(Option<String>, usize), Refusal> {
    let mut query = Query::of(call);
    let (after, limit) = (query.text("after"), query.limit());
    query.finish()?;
    Ok((after, limit))
}
