//! A refusal on its way out: status, headers, body.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_protocol::answer;

use super::raw;

/// A refusal with what HTTP wants beside it.
pub(crate) struct Refused {
    refusal: Refusal,
    /// The methods of a path, for a 405.
    allow: Option<String>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, allow: None }
    }
}

/// The status of a kind of refusal.
pub(crate) fn status(kind: RefusalKind) -> StatusCode {
    match kind {
        RefusalKind::Invalid => StatusCode::BAD_REQUEST,
        RefusalKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        RefusalKind::Forbidden => StatusCode::FORBIDDEN,
        RefusalKind::NotFound => StatusCode::NOT_FOUND,
        RefusalKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        RefusalKind::Conflict => StatusCode::CONFLICT,
        RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalKind::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        RefusalKind::RateExceeded => StatusCode::TOO_MANY_REQUESTS,
        RefusalKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        RefusalKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Refused {
    /// A refusal of a method, with those that there are.
    pub(crate) fn method(refusal: Refusal, allow: String) -> Self {
        Self {
            refusal,
            allow: Some(allow),
        }
    }

    /// Its first rule.
    pub(crate) fn rule(&self) -> Option<Cow<'static, str>> {
        self.refusal.violations.first().map(|v| v.rule.clone())
    }

    pub(crate) fn into_response(self) -> Response<Bytes> {
        let Self { refusal, allow } = self;
        let Refusal {
            kind,
            violations,
            retry_after,
        } = refusal;
        let body = serde_json::to_vec(&answer::Refused {
            accepted: false,
            violations,
        });
        // violations are texts: writing them cannot fail
        let mut response = raw(status(kind), body.unwrap_or_default());
        let retry_after = match kind {
            RefusalKind::Unavailable | RefusalKind::RateExceeded => Some(retry_after.unwrap_or(1).max(1)),
            _ => retry_after,
        };
        let mut header = |name: HeaderName, value: Option<HeaderValue>| {
            if let Some(value) = value {
                response.headers_mut().insert(name, value);
            }
        };
        header(RETRY_AFTER, retry_after.map(HeaderValue::from));
        header(
            ALLOW,
            allow.and_then(|methods| HeaderValue::try_from(methods).ok()),
        );
        if kind == RefusalKind::Unauthenticated {
            header(
                WWW_AUTHENTICATE,
                Some(HeaderValue::from_static("Bearer error=\"invalid_token\"")),
            );
        }
        response
    }
}
