//! Headers.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_protocol::rule;

use super::percent::decode;

/// Base64 with or without padding: clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The token of an `Authorization: Bearer …`. None when there are several headers: which one is meant, is not guessed.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim_start();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What the `Authorization` of a token request says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Authorization {
    /// Nothing.
    Absent,
    /// HTTP Basic, both parts form-decoded (RFC 6749 §2.3.1).
    Basic {
        client_id: String,
        client_secret: String,
    },
    /// Another scheme, or Basic that cannot be read.
    Unreadable,
    /// More than one header.
    Repeated,
}

/// The client credentials of a token request, as far as they are in its headers.
pub(crate) fn authorization(headers: &HeaderMap) -> Authorization {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Authorization::Absent;
    };
    if values.next().is_some() {
        return Authorization::Repeated;
    }
    value
        .to_str()
        .ok()
        .and_then(basic)
        .unwrap_or(Authorization::Unreadable)
}

fn basic(value: &str) -> Option<Authorization> {
    let (scheme, credentials) = value.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64.decode(credentials.trim()).ok()?).ok()?;
    let (client_id, client_secret) = decoded.split_once(':')?;
    Some(Authorization::Basic {
        client_id: decode(client_id, true)?,
        client_secret: decode(client_secret, true)?,
    })
}

/// `415` for a `Content-Encoding` other than identity.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let identity = headers.get_all(CONTENT_ENCODING).iter().all(|value| {
        value.to_str().is_ok_and(|v| {
            v.split(',')
                .map(str::trim)
                .all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case("identity"))
        })
    });
    if identity {
        return Ok(());
    }
    Err(Refusal::policy(
        RefusalKind::Unsupported,
        rule::REQUEST_UNSUPPORTED,
        "a Content-Encoding other than identity is not read; send the body as it is",
    ))
}

/// Whether the body says that it is a form.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let media_type = values
        .next()
        .and_then(|v| v.to_str().ok())
        .map(|v| v.split(';').next().unwrap_or(v).trim());
    values.next().is_none()
        && media_type.is_some_and(|m| m.eq_ignore_ascii_case("application/x-www-form-urlencoded"))
}

/// The `Idempotency-Key`, if there is one. Several that differ are put together, so that they equal no message id.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let mut key: Option<String> = None;
    for value in headers.get_all("idempotency-key") {
        let value = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
        key = Some(match key {
            Some(before) if before != value => format!("{before}, {value}"),
            _ => value,
        });
    }
    key
}
