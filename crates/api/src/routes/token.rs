//! Access tokens: RFC 6749 §4.4 to the letter. The one route that refuses in that RFC's form.
//!
//! The form is judged before the secret, whose check is slow: a request that could not succeed costs nothing. A method
//! other than `POST` is no token request and is refused like on every other path.

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, PRAGMA, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde::Serialize;
use storybus_core::Bus;
use storybus_core::domain::refusal::Refusal;
use storybus_core::ops::token::{TokenRefusal, TokenRequest};

use crate::answer;
use crate::context::{Body, Outcome};
use crate::request::{Authorization, Call, Form, authorization, check_encoding, is_form};

/// The largest form, in bytes: ids and secrets are short.
const MAX_FORM: usize = 16 * 1024;

/// `{"error": …}`.
#[derive(Debug, Serialize)]
struct TokenError {
    #[serde(skip)]
    status: StatusCode,
    #[serde(skip)]
    retry_after: Option<u64>,
    error: &'static str,
    /// ASCII without quotes and backslashes, as the RFC wants it.
    error_description: &'static str,
}

fn refused(status: StatusCode, error: &'static str, error_description: &'static str) -> TokenError {
    TokenError {
        status,
        retry_after: None,
        error,
        error_description,
    }
}

fn invalid_request(error_description: &'static str) -> TokenError {
    refused(StatusCode::BAD_REQUEST, "invalid_request", error_description)
}

fn invalid_client(error_description: &'static str) -> TokenError {
    refused(StatusCode::UNAUTHORIZED, "invalid_client", error_description)
}

impl From<TokenRefusal> for TokenError {
    fn from(refusal: TokenRefusal) -> Self {
        match refusal {
            TokenRefusal::InvalidClient => {
                invalid_client("unknown client, wrong secret, or the client is disabled")
            }
            TokenRefusal::InvalidScope => refused(
                StatusCode::BAD_REQUEST,
                "invalid_scope",
                "an unknown scope, or one that this client cannot have",
            ),
            TokenRefusal::SlowDown(seconds) => Self {
                retry_after: Some(seconds.max(1)),
                ..refused(
                    StatusCode::TOO_MANY_REQUESTS,
                    "slow_down",
                    "too many failed attempts, or too many attempts at once; try again after Retry-After",
                )
            },
            TokenRefusal::Unavailable => Self {
                retry_after: Some(1),
                ..refused(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "temporarily_unavailable",
                    "the bus cannot reach its store; try again after Retry-After",
                )
            },
            TokenRefusal::Internal => Self {
                retry_after: Some(1),
                ..refused(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "server_error",
                    "the bus failed; the fault is its own and is in its log",
                )
            },
        }
    }
}

/// `POST /oauth/token`.
pub(super) async fn issue(bus: &Bus, call: &Call, outcome: &mut Outcome) -> Result<Response<Bytes>, Refusal> {
    let mut response = match grant(bus, call, outcome).await {
        Ok(response) => response?,
        Err(error) => {
            outcome.rule = Some(error.error.into());
            let mut response = answer::json(error.status, &error)?;
            let mut header = |name: HeaderName, value| response.headers_mut().insert(name, value);
            if error.status == StatusCode::UNAUTHORIZED {
                header(
                    WWW_AUTHENTICATE,
                    HeaderValue::from_static("Basic realm=\"storybus\""),
                );
            }
            if let Some(seconds) = error.retry_after {
                header(RETRY_AFTER, HeaderValue::from(seconds));
            }
            response
        }
    };
    response
        .headers_mut()
        .insert(PRAGMA, HeaderValue::from_static("no-cache"));
    Ok(response)
}

async fn grant(
    bus: &Bus,
    call: &Call,
    outcome: &mut Outcome,
) -> Result<Result<Response<Bytes>, Refusal>, TokenError> {
    let request = read(call)?;
    let client = request.client_id.parse().ok();
    let token = match bus.token_issue(&request).await {
        Ok(token) => token,
        Err(refusal) => {
            outcome.tried = client;
            return Err(refusal.into());
        }
    };
    outcome.connection = client;
    Ok(answer::json(StatusCode::OK, &token))
}

fn read(call: &Call) -> Result<TokenRequest, TokenError> {
    if !is_form(&call.headers) {
        return Err(invalid_request(
            "the body must be application/x-www-form-urlencoded",
        ));
    }
    if check_encoding(&call.headers).is_err() {
        return Err(invalid_request(
            "a Content-Encoding other than identity is not read",
        ));
    }
    let form = match &call.body {
        Body::Complete(bytes) if bytes.len() <= MAX_FORM => Form::parse(bytes).map_err(invalid_request)?,
        Body::Complete(_) | Body::TooLarge => {
            return Err(invalid_request("the form is larger than 16384 bytes"));
        }
        Body::Altered => {
            return Err(invalid_request("the form is not as long as Content-Length says"));
        }
    };
    match form.get("grant_type") {
        Some("client_credentials") => {}
        Some(_) => {
            return Err(refused(
                StatusCode::BAD_REQUEST,
                "unsupported_grant_type",
                "only client_credentials is supported",
            ));
        }
        None => return Err(invalid_request("grant_type is missing")),
    }
    let (client_id, client_secret) = credentials(authorization(&call.headers), &form)?;
    Ok(TokenRequest {
        client_id,
        client_secret,
        scope: form.get("scope").map(str::to_owned),
        source: call.context.source.clone(),
    })
}

/// The credentials: from the header or from the form. A `client_id` in the form beside Basic is no second way, as long as
/// it names the same client (RFC 6749 §3.2.1).
fn credentials(header: Authorization, form: &Form) -> Result<(String, String), TokenError> {
    let (id, secret) = (form.get("client_id"), form.get("client_secret"));
    match header {
        Authorization::Repeated => Err(invalid_request("more than one Authorization header")),
        Authorization::Basic { .. } | Authorization::Unreadable if secret.is_some() => Err(invalid_request(
            "credentials in the Authorization header and in the form; use one way",
        )),
        Authorization::Basic { client_id, .. } if id.is_some_and(|id| id != client_id) => Err(
            invalid_request("the form and the Authorization header name different clients"),
        ),
        Authorization::Basic {
            client_id,
            client_secret,
        } => Ok((client_id, client_secret)),
        Authorization::Unreadable => Err(invalid_client(
            "the Authorization header is not HTTP Basic that can be read",
        )),
        Authorization::Absent => match (id, secret) {
            (Some(id), Some(secret)) => Ok((id.to_owned(), secret.to_owned())),
            (None, Some(_)) => Err(invalid_request("client_id is missing")),
            (_, None) => Err(invalid_client(
                "no client credentials: send them by HTTP Basic or in the form",
            )),
        },
    }
}
