//! The operator API as the verbs use it: a call and its document, lists gathered from their pages, refusals in words.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, anyhow};
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::flags::{Common, Paging};
use super::refusals;
use crate::client::bus::{Answer, BusClient, GaveUp, Repeat};
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
    json: bool,
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

/// How a list is paged.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListKind {
    /// The member that holds the entries.
    pub(super) name: &'static str,
    /// The parameter for the number of entries, and the most that it takes.
    pub(super) size: (&'static str, usize),
    /// The parameter that takes the `next` of the page before.
    pub(super) cursor: &'static str,
}

impl ListKind {
    /// A list with `limit` and `after`.
    pub(super) const fn of(name: &'static str) -> Self {
        Self {
            name,
            size: ("limit", 1000),
            cursor: "after",
        }
    }

    /// A list with `limit` and `before`: the newest first.
    pub(super) const fn newest(name: &'static str) -> Self {
        Self {
            cursor: "before",
            ..Self::of(name)
        }
    }
}

/// A list, gathered from as many pages as were wanted.
#[derive(Debug)]
pub(super) struct Gathered {
    name: &'static str,
    /// Everything of the first page but the list itself.
    members: BTreeMap<String, Box<RawValue>>,
    /// The entries as the bus wrote them.
    pub(super) entries: Vec<Box<RawValue>>,
    /// Whether there is more.
    pub(super) next: Option<String>,
}

impl Gathered {
    /// One document, as if it had been one page.
    pub(super) fn document(&self) -> Result<Document, Failure> {
        let mut all: BTreeMap<&str, Box<RawValue>> = self
            .members
            .iter()
            .map(|(k, v)| (k.as_str(), v.clone()))
            .collect();
        let raw = |text: String| RawValue::from_string(text).context("cannot join the pages");
        let entries: Vec<&str> = self.entries.iter().map(|e| e.get()).collect();
        all.insert(self.name, raw(format!("[{}]", entries.join(",")))?);
        if let Some(next) = &self.next {
            all.insert("next", raw(Value::from(next.as_str()).to_string())?);
        }
        Ok(Document(
            serde_json::to_string(&all).context("cannot join the pages")?,
        ))
    }

    /// The entries, to look into.
    pub(super) fn values(&self) -> Result<Vec<Value>, Failure> {
        let parsed: Result<_, _> = self
            .entries
            .iter()
            .map(|e| serde_json::from_str(e.get()))
            .collect();
        Ok(parsed.context("the answer is not a bus's")?)
    }

    /// What surrounds the list, to look into.
    pub(super) fn member(&self, name: &str) -> Value {
        self.members
            .get(name)
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
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
        let workspace = named.or_else(|| settings.workspace.clone());
        Ok(Self {
            client: BusClient::new(settings),
            patience: Duration::from_secs(common.patience),
            workspace,
            narrowed,
            json: common.json,
            carried: common.carried(None),
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
        let mut attempts = 0;
        let patience = self.patience;
        let answer = self.client.until_final(patience, told, |client| {
            attempts += 1;
            client.call(&Method::DELETE, path, b"", Duration::ZERO)
        });
        let answer = answer.map_err(|gave_up| failed(gave_up, ""))?;
        let gone = answer.status == 404 && attempts > 1;
        if answer.status == 204 || gone {
            return Ok(Document(String::new()));
        }
        self.document(&answer)
    }

    /// A list, from as many pages as it takes.
    pub(super) fn gather(
        &mut self,
        path: &str,
        list: ListKind,
        chosen: &[(&str, &str)],
        paging: &Paging,
    ) -> Result<Gathered, Failure> {
        let most = paging.most();
        let mut gathered = Gathered {
            name: list.name,
            members: BTreeMap::new(),
            entries: Vec::new(),
            next: None,
        };
        loop {
            let left = most.map(|most| most.saturating_sub(gathered.entries.len()));
            let before = gathered.next.take();
            let page = self.page(path, list, chosen, left, before.as_deref())?;
            gathered.entries.extend(page.entries);
            gathered.next = page.next;
            if gathered.members.is_empty() {
                gathered.members = page.members;
            }
            let enough = most.is_some_and(|most| gathered.entries.len() >= most);
            if enough || gathered.next.is_none() || gathered.next == before {
                return Ok(gathered);
            }
        }
    }

    /// The first entry of a list that passes; no more pages than it takes.
    pub(super) fn first(
        &mut self,
        path: &str,
        list: ListKind,
        passes: impl Fn(&Value) -> bool,
    ) -> Result<Option<Document>, Failure> {
        let mut next: Option<String> = None;
        loop {
            let page = self.page(path, list, &[], None, next.as_deref())?;
            for entry in page.entries {
                let entry = Document(entry.get().to_owned());
                if passes(&entry.value()?) {
                    return Ok(Some(entry));
                }
            }
            if page.next.is_none() || page.next == next {
                return Ok(None);
            }
            next = page.next;
        }
    }

    /// One page, of at most `most` entries.
    fn page(
        &mut self,
        path: &str,
        list: ListKind,
        chosen: &[(&str, &str)],
        most: Option<usize>,
        after: Option<&str>,
    ) -> Result<Gathered, Failure> {
        let (size, largest) = list.size;
        let mut query = format!("{path}?{size}={}", most.map_or(largest, |most| most.min(largest)));
        let after = after.map(|after| (list.cursor, after));
        for (name, value) in chosen.iter().copied().chain(after) {
            query.push_str(&format!("&{name}={}", segment(value)));
        }
        let page = self.get(&query)?;
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(&page.0).context("the answer is not a bus's; is the URL right?")?;
        let entries = members.remove(list.name).context("the answer has no list")?;
        let next = members.remove("next");
        Ok(Gathered {
            name: list.name,
            entries: serde_json::from_str(entries.get()).context("the answer has no list")?,
            next: next
                .and_then(|next| serde_json::from_str(next.get()).ok())
                .flatten(),
            members,
        })
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
        if self.json && !violations.is_empty() {
            super::out::document(&Document(text))?;
        }
        Err(Failure::new(
            exit::REFUSED,
            anyhow!(
                "{}",
                refusals::told(answer.status, &violations, self.client.client_id())
            ),
        ))
    }
}

fn told(reason: &str, pause: Duration) {
    let _ = writeln!(io::stderr(), "{reason}; again in {:.1} s", pause.as_secs_f64());
}

fn failed(gave_up: GaveUp, look: &str) -> Failure {
    match gave_up {
        GaveUp::TimeUp(reason) => Failure::new(exit::GAVE_UP, anyhow!("gave up: {reason}")),
        GaveUp::Stopped => Failure::new(exit::GAVE_UP, anyhow!("stopped")),
        GaveUp::Login(reason) => Failure::new(exit::REFUSED, anyhow!("{reason}")),
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

    #[test]
    fn pages_become_one_document_and_numbers_keep_their_digits() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let gathered = Gathered {
            name: "messages",
            members: BTreeMap::from([("story_id".to_owned(), raw("\"s\""))]),
            entries: vec![raw("{\"n\":1.0}"), raw("{\"n\":12345678901234567890123}")],
            next: Some("n\"1".to_owned()),
        };
        assert_eq!(
            gathered.document().unwrap().0,
            r#"{"messages":[{"n":1.0},{"n":12345678901234567890123}],"next":"n\"1","story_id":"s"}"#
        );
    }
}
