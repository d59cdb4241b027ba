//! A request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use storybus_api::{Body, Iam};

use super::Who;

/// A request that is being put together.
pub(crate) struct Ask {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    pub(super) source: String,
    pub(super) iam: Iam,
}

pub(crate) fn ask(method: &'static str, path: impl Into<String>) -> Ask {
    Ask {
        method,
        path: path.into(),
        headers: HeaderMap::new(),
        body: Body::empty(),
        source: "192.0.2.1".to_owned(),
        iam: Iam::Unchecked,
    }
}

impl Ask {
    pub(crate) fn of(self, who: &Who) -> Self {
        let bearer = format!("Bearer {}", who.token);
        self.header("authorization", bearer)
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).expect("a header value");
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = Body::Complete(body.into());
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    pub(crate) fn too_large(mut self) -> Self {
        self.body = Body::TooLarge;
        self
    }

    /// A form.
    pub(crate) fn form(self, form: impl Into<Bytes>) -> Self {
        self.header("content-type", "application/x-www-form-urlencoded")
            .body(form)
    }

    pub(crate) fn basic(self, id: &str, secret: &str) -> Self {
        let credentials = STANDARD.encode(format!("{id}:{secret}"));
        self.header("authorization", format!("Basic {credentials}"))
    }

    pub(crate) fn altered(mut self) -> Self {
        self.body = Body::Altered;
        self
    }

    /// Where signatures are checked, this is who signed.
    pub(crate) fn signed(mut self, by: Option<&str>) -> Self {
        self.iam = by.map_or(Iam::Unsigned, |arn| Iam::Signed(arn.to_owned()));
        self
    }

    pub(crate) fn from(mut self, source: &str) -> Self {
        source.clone_into(&mut self.source);
        self
    }
}
