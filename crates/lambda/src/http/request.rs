//! From an event to a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use storybus_api::{Body, Iam, MAX_BODY};

use super::event::Event;
use super::path::path;

/// The request of an event. What cannot be read in it ends in a request that the bus refuses by itself.
pub(super) fn request(event: Event<'_>) -> Request<Body> {
    let method = Method::from_bytes(event.request_context.http.method.as_bytes());
    let uri = uri(
        &path(&event.raw_path, &event.request_context),
        &event.raw_query_string,
    );
    let headers = headers(&event);
    let body = body(event, &headers);
    let mut request = Request::new(body);
    // No method of the bus has such a name, so it is refused as one that is not known.
    *request.method_mut() = method.unwrap_or(Method::TRACE);
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

/// Who signed it.
pub(super) fn iam(event: &Event<'_>) -> Iam {
    let signer = event
        .request_context
        .authorizer
        .as_ref()
        .and_then(|a| a.iam.as_ref());
    match signer.and_then(|s| s.user_arn.as_deref()) {
        Some(arn) => Iam::Signed(arn.to_owned()),
        None => Iam::Unsigned,
    }
}

fn uri(path: &str, query: &str) -> Uri {
    let whole = if query.is_empty() {
        PathAndQuery::try_from(path)
    } else {
        PathAndQuery::try_from(format!("{path}?{query}"))
    };
    // A path alone that the query has spoiled is still the client's; else it is `/`, which there is not.
    whole
        .or_else(|_| PathAndQuery::try_from(path))
        .map_or_else(|_| Uri::from_static("/"), Uri::from)
}

fn headers(event: &Event<'_>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(event.headers.len());
    for (name, value) in &event.headers {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_bytes(value.as_bytes()),
        ) {
            headers.append(name, value);
        }
    }
    headers
}

/// The body. What the gateway takes for text it hands on as text, with U+FFFD where bytes were no UTF-8: then it is not as long
/// as the client said.
fn body(event: Event<'_>, headers: &HeaderMap) -> Body {
    let declared: Option<usize> = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    if declared.is_some_and(|length| length > MAX_BODY) {
        return Body::TooLarge;
    }
    let bytes = match event.body {
        None => Bytes::new(),
        Some(text) if event.is_base64_encoded => match STANDARD.decode(text.as_bytes()) {
            Ok(bytes) => Bytes::from(bytes),
            Err(_) => return Body::Altered,
        },
        Some(text) => Bytes::from(text.into_owned()),
    };
    match declared {
        Some(length) if length != bytes.len() => Body::Altered,
        _ if bytes.len() > MAX_BODY => Body::TooLarge,
        _ => Body::Complete(bytes),
    }
}
