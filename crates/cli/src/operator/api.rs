//! The operator API as the verbs use it: a call and its document, or why there is none.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, anyhow};
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use storybus_protocol::rule;

use super::flags::Common;
use super::refusals::{self, Refused};
use crate::client::answer::{Answer, GaveUp, Repeat};
use crate::client::bus::BusClient;
use crate::client::settings::{Who, of_flag, variable};
use crate::exit::{self, Failure};

/// A client of the operator API.
pub(super) struct Api {
    client: BusClient,
    patience: Duration,
    /// The workspace that was named, by id or by name.
    pub(super) workspace: Option<String>,
    /// Whether it was named for this call, and not for all calls in a file.
    pub(super) narrowed: bool,
    /// The id of the workspace that is meant, once it is known.
    pub(super) meant: Option<String>,
    /// The flags that a command needs that is to go on from here.
    pub(super) carried: String,
}

/// A JSON document as the bus wrote it.
#[derive(Debug, Clone)]
pub(super) struct Document(pub(super) String);

impl Document {
    /// To look into. Numbers may lose digits here, so it is for people alone.
    pub(super) fn value(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.0).context("the answer is not a bus's; is the URL right?")?)
    }
}

/// How a request is sent.
struct Ask<'a> {
    method: Method,
    path: &'a str,
    body: Option<&'a Value>,
    repeat: Repeat,
    /// What to look at when nobody knows whether it was done.
    look: &'a str,
}

impl Api {
    /// As the operator of the settings.
    pub(super) fn new(common: &Common) -> Result<Self, Failure> {
        let settings = common
            .bus
            .settings(Who::Operator, variable("STORYBUS_CLIENT_SECRET"))
            .map_err(|e| Failure::new(exit::UNUSABLE, e))?;
        let named = common.workspace.clone().filter(|w| !w.is_empty());
        let named = if common.bus.profile.is_some() {
            of_flag(named, "STORYBUS_WORKSPACE")
        } else {
            named
        };
        let narrowed = named.is_some();
        let workspace = named.clone().or_else(|| settings.workspace.clone());
        Ok(Self {
            client: BusClient::new(settings),
            patience: Duration::from_secs(common.patience),
            workspace,
            narrowed,
            meant: None,
            carried: common.carried(named.as_deref()),
        })
    }

    /// Reads. Repeated until there is an answer.
    pub(super) fn get(&mut self, path: &str) -> Result<Document, Failure> {
        let answer = self.ask(Method::GET, path, None)?;
        self.document(&answer)
    }

    /// Reads; `None` when the bus answers with this rule, which says that there is no such thing.
    pub(super) fn find(&mut self, path: &str, absent: &str) -> Result<Option<Document>, Failure> {
        let answer = self.ask(Method::GET, path, None)?;
        if answer.violations().iter().any(|v| v.rule == absent) {
            return Ok(None);
        }
        self.document(&answer).map(Some)
    }

    /// Makes something. Not repeated when its answer was lost: `look` says how to find out whether it was made.
    pub(super) fn post(&mut self, path: &str, body: &Value, look: &str) -> Result<Document, Failure> {
        let answer = self.answer(&Ask {
            method: Method::POST,
            path,
            body: Some(body),
            repeat: Repeat::IfUndone,
            look,
        })?;
        self.document(&answer)
    }

    /// Replaces members. Repeated until there is an answer: twice is the same as once.
    pub(super) fn patch(&mut self, path: &str, body: &Value) -> Result<Document, Failure> {
        let answer = self.ask(Method::PATCH, path, Some(body))?;
        self.document(&answer)
    }

    /// Removes or cancels. When an answer was lost and the thing is gone then, it was this that removed it.
    pub(super) fn delete(&mut self, path: &str) -> Result<Document, Failure> {
        self.client.sent = false;
        let mut lost = false;
        let patience = self.patience;
        let answer = self.client.until_final(patience, told, |client| {
            // Whether an attempt before this one may have done it.
            lost |= client.sent;
            client.call(&Method::DELETE, path, b"", Duration::ZERO)
        });
        let answer = answer.map_err(|gave_up| failed(gave_up, ""))?;
        let gone = answer.status == 404 && lost;
        if answer.status == 204 || gone {
            return Ok(Document(String::new()));
        }
        self.document(&answer)
    }

    /// Waits before it looks again.
    pub(super) fn pause(&self, span: Duration) {
        self.client.stop.pause(span);
    }

    fn ask(&mut self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Failure> {
        self.answer(&Ask {
            method,
            path,
            body,
            repeat: Repeat::Always,
            look: "",
        })
    }

    fn answer(&mut self, ask: &Ask<'_>) -> Result<Answer, Failure> {
        let body = ask.body.map(ToString::to_string).unwrap_or_default();
        self.client
            .until(ask.repeat, self.patience, told, |client| {
                client.call(&ask.method, ask.path, body.as_bytes(), Duration::ZERO)
            })
            .map_err(|gave_up| failed(gave_up, ask.look))
    }

    /// The document of a yes.
    fn document(&self, answer: &Answer) -> Result<Document, Failure> {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if (200..300).contains(&answer.status) {
            return Ok(Document(text));
        }
        let violations = answer.violations();
        let told = refusals::told(answer.status, &violations, self.client.client_id());
        if violations.is_empty() {
            return Err(Failure::new(exit::REFUSED, anyhow!(told)));
        }
        let (text, document) = (told, Document(text));
        Err(Failure::new(exit::REFUSED, Refused { text, document }))
    }
}

fn told(reason: &str, pause: Duration) {
    let _ = writeln!(io::stderr(), "{reason}; again in {:.1} s", pause.as_secs_f64());
}

fn failed(gave_up: GaveUp, look: &str) -> Failure {
    match gave_up {
        GaveUp::TimeUp(reason) => Failure::new(exit::GAVE_UP, anyhow!("gave up: {reason}")),
        GaveUp::Stopped => Failure::new(exit::GAVE_UP, anyhow!("stopped")),
        GaveUp::Login(reason) => refusals::refused(rule::OPERATOR_UNAUTHENTICATED, reason),
        GaveUp::Wrong(reason) => Failure::unusable(reason),
        GaveUp::Unknown(reason) => Failure::new(
            exit::UNKNOWN,
            anyhow!(
                "nobody knows whether it was done: {reason}\n  It was not sent again, since it would then be done twice. Look first: {look}"
            ),
        ),
    }
}

/// A part of a path or a value of a query, with everything encoded that means something there.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The id in a member of a document.
pub(super) fn id_in(value: &Value, member: &str) -> Result<String, Failure> {
    let id = value.get(member).map(String::deserialize);
    match id {
        Some(Ok(id)) => Ok(id),
        _ => Err(anyhow!("the answer has no {member}; is the URL right?").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_a_path_is_encoded() {
        assert_eq!(segment("c-1_x.~"), "c-1_x.~");
        assert_eq!(segment("a/b?c#d e%é"), "a%2Fb%3Fc%23d%20e%25%C3%A9");
    }
}
