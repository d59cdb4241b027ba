//! Any REST partner: one request a message, the key in `Idempotency-Key`.
//!
//! The key is sent as the draft of that header asks, as a structured-field string (RFC 8941): in quotes. What an answer means is a
//! matter of its status alone ([`RestAnswers`] lists the defaults): a partner's body has no form that one could rely on. There is one
//! exception, for people: the `type` and `title` of a problem (RFC 9457) come into the detail of an answer, its `detail` does not,
//! since that may repeat what was sent.

mod answers;
mod config;
mod header;
mod span;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method};
use reqwest::Url;
use serde::Deserialize;

pub use answers::{RestAnswers, Status};
pub use config::{KeyForm, RestConfig, RestConfigError};
pub use header::HeaderText;
pub use span::Span;

use self::answers::{Meaning, Table};
use super::http::{Http, Reply, Sending, seconds, within};
use super::{Attempt, Outgoing, Transport, text};
use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::ports::Clock;

/// How much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;
/// Where the key stands in a URL.
const KEY: &str = "{key}";

/// A REST partner.
pub struct RestTransport {
    http: Http,
    method: Method,
    url: String,
    headers: HeaderMap,
    key_header: Option<HeaderName>,
    key_form: KeyForm,
    content_type: String,
    table: Table,
    memory: Duration,
    secrets: HashSet<String>,
}

impl RestTransport {
    /// A transport to this partner; the variables that the headers name are those of the process. Nothing is sent before the first
    /// attempt.
    pub fn new(config: RestConfig, clock: Arc<dyn Clock>) -> Result<Self, RestConfigError> {
        Self::with_variables(config, clock, &|name| std::env::var(name).ok())
    }

    /// The same, with variables from elsewhere.
    pub fn with_variables(
        config: RestConfig,
        clock: Arc<dyn Clock>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, RestConfigError> {
        config.build(clock, variable)
    }

    async fn send(&self, message: Outgoing<'_>, sending: &Sending) -> Answer {
        let Some(request) = self.request(message) else {
            return Answer {
                outcome: Outcome::Refused,
                status: None,
                rule: Some("request.invalid".to_owned()),
                detail: Some(
                    "the message's key or media type cannot stand in a request; nothing was sent".to_owned(),
                ),
                retry: Retry::No,
                retry_after: None,
                about: About::Message,
                left: Left::Nothing,
            };
        };
        sending.begins();
        match self.http.exchange(request, MAX_ANSWER).await {
            Ok(reply) => self.answer(&reply),
            Err(none) => none.answer(),
        }
    }

    fn request(&self, message: Outgoing<'_>) -> Option<reqwest::Request> {
        let url = self.url.replace(KEY, &text::percent_encoded(message.key));
        let content_type = message.content_type.unwrap_or(&self.content_type);
        let mut request = self
            .http
            .request(self.method.clone(), Url::parse(&url).ok()?)
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, content_type)
            .body(message.body.to_vec());
        if let Some(name) = &self.key_header {
            let value = match self.key_form {
                KeyForm::Quoted => quoted(message.key)?,
                KeyForm::Bare => message.key.to_owned(),
            };
            request = request.header(name, HeaderValue::from_str(&value).ok()?);
        }
        request.build().ok()
    }

    fn answer(&self, reply: &Reply) -> Answer {
        let status = reply.status;
        let meaning = self.table.meaning(status);
        let (outcome, retry, about) = match meaning {
            Meaning::Accepted => (Outcome::Accepted, Retry::No, About::Message),
            Meaning::Duplicate => (Outcome::Duplicate, Retry::No, About::Message),
            Meaning::Refused => (Outcome::Refused, Retry::No, About::Message),
            Meaning::Sender => (Outcome::Refused, Retry::No, About::Sender),
            Meaning::Again => (Outcome::Refused, Retry::Backoff, About::Moment),
        };
        let no = !outcome.is_yes();
        Answer {
            outcome,
            status: Some(status),
            rule: no.then(|| format!("http.{status}")),
            detail: no.then(|| self.detail(reply, meaning)),
            retry,
            retry_after: reply.retry_after.filter(|_| no),
            about,
            left: left(status),
        }
    }

    fn detail(&self, reply: &Reply, meaning: Meaning) -> String {
        let said = problem(reply).map_or_else(String::new, |problem| {
            let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
            format!(": {}", text::without(problem, &secrets))
        });
        let advice = match (meaning, reply.status) {
            (Meaning::Sender, 300..=399) => "; redirects are never followed: correct the URL",
            (Meaning::Sender, 401 | 403 | 407) => "; check the credentials in the headers",
            (Meaning::Sender, _) => "; check the URL and the method",
            _ => "",
        };
        text::clean(&format!("the partner answers {}{said}{advice}", reply.status))
    }
}

#[async_trait]
impl Transport for RestTransport {
    async fn attempt(&self, message: Outgoing<'_>, how: Attempt) -> Answer {
        let sending = Sending::default();
        let work = self.send(message, &sending);
        within(self.http.clock(), how.timeout, work)
            .await
            .unwrap_or_else(|| Answer {
                outcome: Outcome::NetworkError,
                status: None,
                rule: None,
                detail: Some(format!("no answer within {}", seconds(how.timeout))),
                retry: Retry::Backoff,
                retry_after: None,
                about: About::Moment,
                left: if sending.has_begun() {
                    Left::Maybe
                } else {
                    Left::Nothing
                },
            })
    }

    fn memory(&self) -> Duration {
        self.memory
    }
}

impl std::fmt::Debug for RestTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestTransport").finish_non_exhaustive()
    }
}

/// What may be left at the partner: most refusals of a request mean that it was not carried out. The exceptions speak of a request
/// that is known (409, 422), or of one that was cut off.
fn left(status: u16) -> Left {
    match status {
        408 | 409 | 422 | 425 => Left::Maybe,
        400..=499 => Left::Nothing,
        _ => Left::Maybe,
    }
}

/// A structured-field string (RFC 8941 §3.3.3); `None` for what it cannot hold.
fn quoted(key: &str) -> Option<String> {
    let mut quoted = String::with_capacity(key.len() + 2);
    quoted.push('"');
    for c in key.chars() {
        if !(' '..='~').contains(&c) {
            return None;
        }
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    Some(quoted)
}

/// The title and the type of a problem.
fn problem(reply: &Reply) -> Option<String> {
    #[derive(Deserialize)]
    struct Problem {
        #[serde(default)]
        title: Option<String>,
        #[serde(default, rename = "type")]
        kind: Option<String>,
    }
    let media_type = reply.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = media_type.split(';').next()?.trim();
    if !media_type.eq_ignore_ascii_case("application/problem+json") {
        return None;
    }
    let problem: Problem = serde_json::from_slice(&reply.body).ok()?;
    match (problem.title, problem.kind.filter(|kind| kind != "about:blank")) {
        (Some(title), Some(kind)) => Some(format!("{title} ({kind})")),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_quoted_as_a_structured_field_string() {
        for (key, header) in [
            ("send-1042-to-acme", "\"send-1042-to-acme\""),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(key).as_deref(), Some(header));
        }
        for bad in ["é", "a\nb", "\u{7f}"] {
            assert_eq!(quoted(bad), None, "{bad}");
        }
    }
}
