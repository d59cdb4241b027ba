//! The keys that sign access tokens.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Response, StatusCode};
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ports::StoreError;

use crate::answer;
use crate::context::Outcome;
use crate::request::Call;

/// For anybody, and for a cache for 5 minutes: as long as the bus itself keeps keys.
pub(super) async fn show(bus: &Bus, _: &Call, _: &mut Outcome) -> Result<Response<Bytes>, Refusal> {
    let keys = bus.jwks().await.map_err(|error| {
        tracing::error!(%error, "no keys to show");
        match error {
            StoreError::Unavailable { .. } | StoreError::QueueGone { .. } | StoreError::Unknown { .. } => {
                Refusal::unavailable()
            }
            StoreError::Internal { .. } => Refusal::internal(),
        }
    })?;
    let mut response = answer::json(StatusCode::OK, &keys)?;
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    Ok(response)
}
