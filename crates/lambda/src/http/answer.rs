//! The answer of a function to an HTTP API, payload format 2.0.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Response, StatusCode};
use serde::Serialize;
use storybus_api::Outcome;
use storybus_core::domain::refusal::Refusal;
use storybus_protocol::answer::Refused;

/// Lambda takes an answer of 6 MB. A body as text grows by its quotes, at most to twice its size; from here on it goes as base64,
/// which grows by a third.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const LONGEST_TEXT: usize = 2_900_000;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The status.
    pub status_code: u16,
    /// The headers; the bus has none twice.
    pub headers: BTreeMap<String, String>,
    /// The body, as text or in base64.
    pub body: String,
    /// Which.
    pub is_base64_encoded: bool,
}

impl From<Response<Bytes>> for Answer {
    fn from(response: Response<Bytes>) -> Self {
        let (head, body) = response.into_parts();
        let headers = head.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        let headers = headers.collect();
        let (body, is_base64_encoded) = match String::from_utf8(body.into()) {
            Ok(text) if text.len() <= LONGEST_TEXT => (text, false),
            Ok(text) => (STANDARD.encode(text), true),
            Err(bytes) => (STANDARD.encode(bytes.as_bytes()), true),
        };
        Self {
            status_code: head.status.as_u16(),
            headers,
            body,
            is_base64_encoded,
        }
    }
}

/// `500 bus.internal_error`, in the form that the route has: that of RFC 6749 on the token's, else the bus's.
pub(super) fn failed(token: bool) -> Response<Bytes> {
    #[derive(Serialize)]
    struct TokenError {
        error: &'static str,
        error_description: &'static str,
    }
    let Refusal { violations, .. } = Refusal::internal();
    let rule = violations.first().map(|v| v.rule.clone());
    // Plain strings always become JSON.
    let (body, rule) = if token {
        let error = TokenError {
            error: "server_error",
            error_description: "the bus failed; the fault is its own and is in its log",
        };
        (serde_json::to_vec(&error), Some("server_error".into()))
    } else {
        let refused = Refused {
            accepted: false,
            violations,
        };
        (serde_json::to_vec(&refused), rule)
    };
    let mut response = Response::new(Bytes::from(body.unwrap_or_default()));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let headers = response.headers_mut();
    headers.insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    headers.insert(
        http::header::CACHE_CONTROL,
        http::HeaderValue::from_static("no-store"),
    );
    response.extensions_mut().insert(Outcome {
        rule,
        ..Outcome::default()
    });
    response
}
