//! Which partner, and how it speaks: what a file of settings says.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::Url;
use serde::Deserialize;

use super::answers::{RestAnswers, Status, Table};
use super::{HeaderText, KEY, RestTransport, Span};
use crate::ports::Clock;
use crate::transport::NoSecret;
use crate::transport::http::{Http, Options};

/// A REST partner. In a TOML file:
///
/// ```toml
/// url = "https://partner.example/orders"
/// memory = "48h"
/// [headers]
/// Authorization = { env = "PARTNER_TOKEN", prefix = "Bearer " }
/// [answers]
/// refused = [410]
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestConfig {
    /// Where messages go. `{key}` in its path or query is replaced by the message's key, for partners that take `PUT`.
    pub url: String,
    /// `POST` (the default), `PUT` or `PATCH`.
    #[serde(default = "post")]
    pub method: String,
    /// More headers.
    #[serde(default)]
    pub headers: BTreeMap<String, HeaderText>,
    /// The media type of messages that bring none: `application/json`.
    #[serde(default = "json")]
    pub content_type: String,
    /// The header that carries the key: `Idempotency-Key`. Empty: none, where the URL has the key.
    #[serde(default = "idempotency_key")]
    pub key_header: String,
    /// How the key stands there.
    #[serde(default)]
    pub key_form: KeyForm,
    /// Which statuses mean something else than by default.
    #[serde(default)]
    pub answers: RestAnswers,
    /// How long the partner remembers a key: ask it. 24 hours by default, which is what most promise. A message that may have arrived is not
    /// sent again later than that without a person's word.
    #[serde(default = "day")]
    pub memory: Span,
    /// How long a connection may take to be there: 5 s. What takes longer was surely not sent.
    #[serde(default = "connect")]
    pub connect_timeout: Span,
}

/// How a key stands in its header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyForm {
    /// As a structured-field string, in quotes: what the draft of `Idempotency-Key` asks for.
    #[default]
    Quoted,
    /// As it is, for partners that would take the quotes for a part of it.
    Bare,
}

/// The settings cannot be those of a partner. No text of it holds a header's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestConfigError {
    /// Not a URL that can be sent to.
    #[error("url: not one like https://partner.example/orders: {0}")]
    Url(String),
    /// Not a method that carries a body.
    #[error("method: {0:?} is none of POST, PUT and PATCH")]
    Method(String),
    /// Not a header, or one that is not to be set.
    #[error("headers: {name:?} {reason}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A header's value is not where it should be.
    #[error("headers: {name:?}: {source}")]
    Value {
        /// The header's name.
        name: String,
        /// Why there is none.
        source: NoSecret,
    },
    /// Not a media type.
    #[error("content_type: {0:?} cannot stand in a header")]
    ContentType(String),
    /// The key would be nowhere.
    #[error(
        "key_header: it may be empty only where the URL holds {{key}}: without the key the partner cannot tell a repetition"
    )]
    NoKey,
    /// A status is in two lists.
    #[error("the status {status} is both in answers.{} and in answers.{}; it can mean one thing only", .lists[0], .lists[1])]
    Ambiguous {
        /// Which.
        status: Status,
        /// The lists.
        lists: [&'static str; 2],
    },
    /// The HTTP client cannot be made: a proxy in the environment that is no URL, or no certificates on this machine.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

fn post() -> String {
    "POST".to_owned()
}

fn json() -> String {
    "application/json".to_owned()
}

fn idempotency_key() -> String {
    "Idempotency-Key".to_owned()
}

fn day() -> Span {
    Span(Duration::from_secs(86_400))
}

fn connect() -> Span {
    Span(Options::default().connect_timeout)
}

impl RestConfig {
    /// `POST` to this URL, and everything else by default.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: post(),
            headers: BTreeMap::new(),
            content_type: json(),
            key_header: idempotency_key(),
            key_form: KeyForm::default(),
            answers: RestAnswers::default(),
            memory: day(),
            connect_timeout: connect(),
        }
    }

    pub(super) fn build(
        self,
        clock: Arc<dyn Clock>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<RestTransport, RestConfigError> {
        let url = self.parsed_url()?;
        let method = match self.method.to_ascii_uppercase().as_str() {
            "POST" => Method::POST,
            "PUT" => Method::PUT,
            "PATCH" => Method::PATCH,
            _ => return Err(RestConfigError::Method(self.method)),
        };
        let key_header = self.parsed_key_header()?;
        let (headers, secrets) = self.read_headers(key_header.as_ref(), variable)?;
        if HeaderValue::from_str(&self.content_type).is_err() || self.content_type.is_empty() {
            return Err(RestConfigError::ContentType(self.content_type));
        }
        let options = Options {
            connect_timeout: self.connect_timeout.0,
            ..Options::default()
        };
        let http = Http::new(&url, options, clock).map_err(|e| RestConfigError::Client(e.to_string()))?;
        Ok(RestTransport {
            http,
            method,
            url: self.url.trim().to_owned(),
            headers,
            key_header,
            key_form: self.key_form,
            content_type: self.content_type,
            table: Table::new(&self.answers)?,
            memory: self.memory.0,
            secrets,
        })
    }

    /// The URL with some key in it.
    fn parsed_url(&self) -> Result<Url, RestConfigError> {
        let wrong = |reason: &str| Err(RestConfigError::Url(reason.to_owned()));
        let text = self.url.trim();
        let url = Url::parse(&text.replace(KEY, "k")).map_err(|e| RestConfigError::Url(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("it begins with neither https:// nor http://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong(
                "it holds a user name or a password; put them into a header, from a variable or a file",
            );
        }
        let other = Url::parse(&text.replace(KEY, "l"));
        if !other.is_ok_and(|other| other.origin() == url.origin()) {
            return wrong("{key} can stand in its path and its query alone");
        }
        if url.fragment().is_some() {
            return wrong("it has a fragment, which is never sent");
        }
        Ok(url)
    }

    fn parsed_key_header(&self) -> Result<Option<HeaderName>, RestConfigError> {
        if self.key_header.is_empty() {
            return if self.url.contains(KEY) {
                Ok(None)
            } else {
                Err(RestConfigError::NoKey)
            };
        }
        name(&self.key_header).map(Some)
    }

    fn read_headers(
        &self,
        key_header: Option<&HeaderName>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(HeaderMap, HashSet<String>), RestConfigError> {
        let (mut headers, mut secrets) = (HeaderMap::new(), HashSet::new());
        for (given, text) in &self.headers {
            let wrong = |reason| RestConfigError::Header {
                name: given.clone(),
                reason,
            };
            let name = name(given)?;
            if Some(&name) == key_header {
                return Err(wrong("carries the key, which each message brings"));
            }
            if headers.contains_key(&name) {
                return Err(wrong("is there twice, in different letter case"));
            }
            let (value, secret) = text.read(variable).map_err(|source| RestConfigError::Value {
                name: given.clone(),
                source,
            })?;
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| wrong("has a value that cannot stand in a header: a line break, perhaps"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
            // A short text is in every answer somewhere, and no secret.
            if secret.expose().len() >= 8 {
                secrets.insert(secret.expose().to_owned());
            }
        }
        Ok((headers, secrets))
    }
}

/// A header that may be set.
fn name(given: &str) -> Result<HeaderName, RestConfigError> {
    let wrong = |reason| RestConfigError::Header {
        name: given.to_owned(),
        reason,
    };
    let name = HeaderName::from_bytes(given.as_bytes()).map_err(|_| wrong("is no header's name"))?;
    if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&name) {
        return Err(wrong("is set by the connection itself"));
    }
    if name == CONTENT_TYPE {
        return Err(wrong("is told by content_type"));
    }
    Ok(name)
}
