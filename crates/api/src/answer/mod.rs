//! Answers: JSON bodies and refusals.

pub(crate) mod envelopes;
pub(crate) mod history;
pub(crate) mod jobs;
mod refused;
pub(crate) mod registry;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;
use storybus_core::domain::refusal::Refusal;

pub(crate) use refused::{Refused, status};

/// The one content type.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer with a body that is JSON already.
pub(crate) fn raw(status: StatusCode, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response<Bytes>, Refusal> {
    match serde_json::to_vec(body) {
        Ok(bytes) => Ok(raw(status, bytes)),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            Err(Refusal::internal())
        }
    }
}

/// `204`.
pub(crate) fn no_content() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
