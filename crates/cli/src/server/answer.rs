//! The server's own answers, in the format of the bus: what is refused before, or around, the bus itself.

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER,
};
use http::{Response, StatusCode};
use serde::Serialize;
use storybus_api::Outcome;
use storybus_protocol::answer::Refused;
use storybus_protocol::{Source, Violation, rule};

/// An answer with the rule that it names, for the log and the metrics.
pub(super) struct Own {
    response: Response<Bytes>,
    rule: &'static str,
}

fn refusal(status: StatusCode, rule: &'static str, message: impl Into<String>) -> Own {
    let refused = Refused {
        accepted: false,
        violations: vec![Violation::new(Source::Policy, rule, message)],
    };
    // Plain strings always become JSON.
    let body = serde_json::to_vec(&refused).unwrap_or_default();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let mut header = |name, value| {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value))
    };
    header(CONTENT_TYPE, "application/json");
    header(CACHE_CONTROL, "no-store");
    Own { response, rule }
}

/// The form of RFC 6749, in which the token route alone refuses.
#[derive(Serialize)]
struct TokenError<'a> {
    error: &'static str,
    error_description: &'a str,
}

impl Own {
    fn after(mut self, seconds: u32) -> Self {
        self.response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(seconds));
        self
    }

    /// The same in the form of the token route.
    pub(super) fn of_token(mut self) -> Self {
        let error = match self.response.status() {
            StatusCode::SERVICE_UNAVAILABLE => "temporarily_unavailable",
            StatusCode::INTERNAL_SERVER_ERROR => "server_error",
            _ => "invalid_request",
        };
        let refused: Option<Refused> = serde_json::from_slice(self.response.body()).ok();
        let message = refused.and_then(|refused| refused.violations.into_iter().next());
        let error_description = &message.map(|violation| violation.message).unwrap_or_default();
        let body = TokenError {
            error,
            error_description,
        };
        *self.response.body_mut() = Bytes::from(serde_json::to_vec(&body).unwrap_or_default());
        self.rule = error;
        self
    }

    /// The answer, with what became of the request as an extension, as the bus's own answers have it.
    pub(super) fn into_response(self) -> Response<Bytes> {
        self.into_response_to(Outcome::default())
    }

    /// The same for a request of which something is known already.
    pub(super) fn into_response_to(mut self, request: Outcome) -> Response<Bytes> {
        let outcome = Outcome {
            rule: Some(self.rule.into()),
            ..request
        };
        self.response.extensions_mut().insert(outcome);
        self.response
    }

    fn close(mut self) -> Self {
        self.response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        self
    }
}

/// A head that is no HTTP/1.1 request, or too long a one. The status is hyper's.
pub(super) fn unreadable(status: StatusCode) -> Own {
    let message = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "the request line and its headers are longer than 16,384 bytes, or more than 100 headers; the bus needs few of them"
        }
        StatusCode::URI_TOO_LONG => "the request line is too long",
        _ => "this is not an HTTP/1.1 request that the bus can read: see RFC 9112",
    };
    refusal(status, rule::REQUEST_INVALID, message).close()
}

/// A request that does not say whom it is for, or says so more than once.
pub(super) fn no_host() -> Own {
    refusal(
        StatusCode::BAD_REQUEST,
        rule::REQUEST_INVALID,
        "a request has one Host header, no fewer and no more (RFC 9112, section 3.2); nothing was done",
    )
    .close()
}

/// A head that did not come in time.
pub(super) fn slow_head() -> Own {
    refusal(
        StatusCode::REQUEST_TIMEOUT,
        rule::REQUEST_INVALID,
        "the request line and headers did not come within 10 s; nothing was done: send the same request again",
    )
    .close()
}

/// A body that did not come in time.
pub(super) fn slow_body() -> Own {
    refusal(
        StatusCode::REQUEST_TIMEOUT,
        rule::REQUEST_INVALID,
        "the body did not come within 30 s; nothing was done: send the same request again",
    )
    .close()
}

/// A body that is not framed as its head says.
pub(super) fn broken_body() -> Own {
    refusal(
        StatusCode::BAD_REQUEST,
        rule::REQUEST_INVALID,
        "the body is not framed as the headers say (Content-Length or chunked); nothing was done",
    )
    .close()
}

/// No memory for one more large body.
pub(super) fn no_room_for_body() -> Own {
    refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        rule::BUS_UNAVAILABLE,
        "too many large requests come in at once; nothing was done: send the same request again",
    )
    .after(1)
    .close()
}

/// No memory for one more large answer.
pub(super) fn no_room_for_answer() -> Own {
    refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        rule::BUS_UNAVAILABLE,
        "too many large answers wait to be taken by their clients: send the same request again, a receive with the same attempt",
    )
    .after(1)
}

/// No room for one more connection.
pub(super) fn too_many_connections() -> Own {
    refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        rule::BUS_UNAVAILABLE,
        "the bus has as many connections as it takes; nothing was done: connect again in a moment",
    )
    .after(1)
    .close()
}

/// No room for one more receive.
pub(super) fn too_many_receives() -> Own {
    refusal(
        StatusCode::TOO_MANY_REQUESTS,
        rule::RATE_EXCEEDED,
        "too many receives are under way at once: wait for the answers of some of them first",
    )
    .after(1)
}

/// The handler broke off.
pub(super) fn internal() -> Own {
    refusal(
        StatusCode::INTERNAL_SERVER_ERROR,
        rule::BUS_INTERNAL_ERROR,
        "the bus failed; the fault is its own and is in its log: send the same request again, and tell the operator if it stays",
    )
}

/// The disk failed: nothing can be promised.
pub(super) fn unavailable() -> Own {
    refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        rule::BUS_UNAVAILABLE,
        "the bus's disk failed and it stops; whether this was done is not certain: send the same request again later",
    )
    .after(5)
    .close()
}

/// Another method where there is only something to look at.
pub(super) fn only_get() -> Own {
    let mut own = refusal(
        StatusCode::METHOD_NOT_ALLOWED,
        rule::METHOD_NOT_ALLOWED,
        "this path takes GET alone",
    );
    own.response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    own
}

/// The answer as bytes, for a connection that hyper does not write to (any more).
pub(super) fn raw(own: &Own) -> Bytes {
    let (response, mut out) = (&own.response, BytesMut::with_capacity(512));
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(response.status().as_str().as_bytes());
    out.put_slice(b" ");
    out.put_slice(response.status().canonical_reason().unwrap_or("Error").as_bytes());
    for (name, value) in response.headers() {
        out.put_slice(b"\r\n");
        out.put_slice(name.as_str().as_bytes());
        out.put_slice(b": ");
        out.put_slice(value.as_bytes());
    }
    out.put_slice(b"\r\n");
    out.put_slice(CONTENT_LENGTH.as_str().as_bytes());
    out.put_slice(format!(": {}\r\n\r\n", response.body().len()).as_bytes());
    out.put_slice(response.body());
    out.freeze()
}
