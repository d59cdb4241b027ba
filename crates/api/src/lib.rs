//! HTTP in, core operation, HTTP out.
//!
//! [`Api::handle`] takes a request whose body has been read and gives the answer. It knows neither a server nor a
//! runtime, so that the embedded server and the functions on AWS are two thin fronts over the same routes.
//!
//! - `routes`: one table of method, path and handler, and one module a resource. A handler reads the request, calls
//!   one operation of the core and wraps its result.
//! - `request`: reading headers, queries and bodies, strictly; every fault is listed with its place.
//! - `answer`: JSON bodies, and a refusal's status and headers.
//!
//! # What a front does
//!
//! It reads the body up to [`MAX_BODY`] bytes and says [`Body::TooLarge`] when there was more; it says where the request
//! came from and when it must be answered; it logs and counts by the [`Outcome`] that every response carries as an
//! extension. It answers nothing by itself, except beside `/v1`.
//!
//! # What holds on every route
//!
//! - Every refusal has the body of the contract, except on `POST /v1/oauth/token`, which speaks RFC 6749.
//! - A path is compared segment by segment. What stands for an id may be percent-encoded, nothing else; a trailing or a
//!   double slash makes another path, which does not exist.
//! - Only the methods of the table exist. `HEAD` is not one: a receive that shows nothing would still hide messages.
//!   `OPTIONS` is not one: no browser of another origin calls the bus.
//! - Unknown query parameters are ignored, as RFC 6749 and most clients have it; known ones are taken strictly, and not
//!   twice. Unknown members of a body are refused.
//! - `Content-Type` is not looked at, except on the token route; a `Content-Encoding` other than `identity` is refused.
//! - Nothing is cacheable but the JWKS.
//! - Tokens, secrets and bodies are never logged; what a client sent is reflected in part only, and cut.

mod answer;
mod context;
mod request;
mod routes;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{Request, Response};
use storybus_core::Bus;

pub use context::{Body, Context, Iam, Outcome};

/// The most bytes of a body that a front reads: a message of the largest size.
pub const MAX_BODY: usize = storybus_core::domain::message::MAX_BODY;

/// The bus behind HTTP. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    bus: Bus,
}

impl Api {
    /// The API of a bus.
    #[must_use]
    pub fn new(bus: Bus) -> Self {
        Self { bus }
    }

    /// The bus behind it.
    #[must_use]
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Answers a request. The response always carries an [`Outcome`] as an extension.
    pub async fn handle(&self, request: Request<Body>, context: Context) -> Response<Bytes> {
        let (head, body) = request.into_parts();
        let mut outcome = Outcome::default();
        let answered = match routes::find(&head.method, head.uri.path(), context.iam != Iam::Unchecked) {
            Ok(found) => {
                outcome.route = Some(found.route.template);
                let call = request::Call {
                    path: found.parameters,
                    query: head.uri.query().unwrap_or_default().to_owned(),
                    headers: head.headers,
                    body,
                    context,
                };
                (found.route.handler)(&self.bus, &call, &mut outcome)
                    .await
                    .map_err(answer::Refused::from)
            }
            Err(refused) => Err(refused),
        };
        let mut response = answered.unwrap_or_else(|refused| {
            outcome.rule = refused.rule();
            refused.into_response()
        });
        response
            .headers_mut()
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        response.extensions_mut().insert(outcome);
        response
    }
}
