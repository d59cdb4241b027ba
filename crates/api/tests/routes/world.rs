//! A bus in memory behind the API, and the usual errands.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use serde_json::{Value, json};
use storybus_api::{Api, Body, Context, Outcome};
use storybus_core::ports::Clock;
use storybus_core::{Bus, Ports, Settings};
use storybus_protocol::answer::Refused;
use storybus_testkit::executor::run;
use storybus_testkit::{FakeClock, FixedKeys, Memory, MemoryRates, PlainHasher, SeededRandom};

/// A bus with one operator.
pub(crate) struct World {
    pub(crate) clock: FakeClock,
    pub(crate) memory: Memory,
    pub(crate) api: Api,
    pub(crate) operator: Who,
}

/// A client with a token.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: String,
}

/// A workspace with a producer of everything (as `desk-1`) and a consumer of everything.
pub(crate) struct Room {
    pub(crate) tenant: String,
    pub(crate) producer: Who,
    pub(crate) consumer: Who,
}

impl Room {
    /// The path of the consumer's calls.
    pub(crate) fn pull(&self, call: &str) -> String {
        format!(
            "/v1/tenants/{}/consumers/{}/{call}",
            self.tenant, self.consumer.id
        )
    }

    /// The path of the producer's publishes.
    pub(crate) fn publish(&self) -> String {
        format!("/v1/tenants/{}/messages", self.tenant)
    }
}

/// A request that is being put together.
pub(crate) struct Ask {
    method: &'static str,
    path: String,
    headers: HeaderMap,
    body: Body,
    source: String,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) json: Value,
    pub(crate) outcome: Outcome,
}

pub(crate) fn ask(method: &'static str, path: impl Into<String>) -> Ask {
    Ask {
        method,
        path: path.into(),
        headers: HeaderMap::new(),
        body: Body::empty(),
        source: "192.0.2.1".to_owned(),
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

    pub(crate) fn from(mut self, source: &str) -> Self {
        source.clone_into(&mut self.source);
        self
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = FakeClock::automatic();
        let memory = Memory::new(Arc::new(clock.clone()));
        let engine = Arc::new(memory.clone());
        let ports = Ports {
            clock: Arc::new(clock.clone()),
            random: Arc::new(SeededRandom::new(7)),
            ledger: engine.clone(),
            topic: engine.clone(),
            queues: engine.clone(),
            workspaces: engine.clone(),
            connections: engine.clone(),
            audit: engine,
            rates: Arc::new(MemoryRates::default()),
            hasher: Arc::new(PlainHasher),
            keys: Arc::new(FixedKeys::default()),
        };
        let bus = Bus::new(ports, Settings::default());
        let issued = run(bus.operator_bootstrap("first operator"))
            .expect("bootstrap")
            .expect("the first operator");
        assert_eq!(run(bus.operator_bootstrap("again")), Ok(None));
        let nobody = Who {
            id: String::new(),
            secret: String::new(),
            token: String::new(),
        };
        let mut world = Self {
            clock,
            memory,
            api: Api::new(bus),
            operator: nobody,
        };
        let (id, secret) = (issued.connection.id.to_string(), issued.secret.secret);
        world.operator = world.logged_in(&id, &secret);
        world
    }

    /// The same bus with ports changed.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Ports)) -> Api {
        Api::new(self.api.bus().with_ports(change))
    }

    pub(crate) fn send(&self, ask: Ask) -> Answer {
        self.send_to(&self.api, ask)
    }

    /// Sends, and checks what holds for every answer.
    pub(crate) fn send_to(&self, api: &Api, ask: Ask) -> Answer {
        let mut request = Request::new(ask.body);
        *request.method_mut() = ask.method.parse().expect("a method");
        *request.uri_mut() = ask.path.parse::<Uri>().expect("a URI");
        *request.headers_mut() = ask.headers;
        let deadline = self.clock.now().plus(Duration::from_secs(15));
        let response = run(api.handle(
            request,
            Context {
                source: ask.source,
                deadline,
            },
        ));
        let (parts, body) = response.into_parts();
        let outcome = parts.extensions.get::<Outcome>().expect("an outcome").clone();
        let json = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).expect("JSON")
        };
        let answer = Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            json,
            outcome,
        };
        answer.check();
        answer
    }

    /// Sends as the operator.
    pub(crate) fn operate(&self, method: &'static str, path: &str, body: Option<Value>) -> Answer {
        let ask = ask(method, path).of(&self.operator);
        self.send(match body {
            Some(body) => ask.json(&body),
            None => ask,
        })
    }

    pub(crate) fn logged_in(&self, id: &str, secret: &str) -> Who {
        let answer = self.send(
            ask("POST", "/v1/oauth/token")
                .basic(id, secret)
                .form("grant_type=client_credentials"),
        );
        assert_eq!(answer.status, 200, "{}", answer.json);
        let token = answer.text("/access_token");
        Who {
            id: id.to_owned(),
            secret: secret.to_owned(),
            token,
        }
    }

    /// Makes a connection and logs it in.
    pub(crate) fn client(&self, path: &str, members: Value) -> Who {
        let answer = self.operate("POST", path, Some(members));
        assert_eq!(answer.status, 201, "{}", answer.json);
        self.logged_in(&answer.text("/client_id"), &answer.text("/client_secret"))
    }

    pub(crate) fn tenant(&self) -> String {
        self.operate("POST", "/v1/admin/tenants", Some(json!({"name": "room"})))
            .text("/tenant")
    }

    pub(crate) fn producer(&self, tenant: &str, system_id: &str) -> Who {
        let members = json!({"name": "p", "system_ids": [system_id], "message_types": ["*"]});
        self.client(&format!("/v1/admin/tenants/{tenant}/producers"), members)
    }

    pub(crate) fn consumer(&self, tenant: &str) -> Who {
        self.client(
            &format!("/v1/admin/tenants/{tenant}/consumers"),
            json!({"name": "c"}),
        )
    }

    pub(crate) fn room(&self) -> Room {
        let tenant = self.tenant();
        Room {
            producer: self.producer(&tenant, "desk-1"),
            consumer: self.consumer(&tenant),
            tenant,
        }
    }

    /// Publishes an event without a schema; its number tells it from others.
    pub(crate) fn note(&self, room: &Room, number: u64) -> Value {
        let note = note(number);
        let answer = self.send(ask("POST", room.publish()).of(&room.producer).json(&note));
        assert_eq!(answer.status, 202, "{}", answer.json);
        note
    }

    /// Receives with these parameters.
    pub(crate) fn receive(&self, room: &Room, query: &str) -> Vec<Value> {
        let answer = self.send(ask("GET", room.pull(&format!("messages{query}"))).of(&room.consumer));
        assert_eq!(answer.status, 200, "{}", answer.json);
        answer.json["messages"].as_array().expect("a list").clone()
    }
}

/// An event of a type that has no schema. Each number is an order group of its own.
pub(crate) fn note(number: u64) -> Value {
    json!({
        "som_version": "1.0.0",
        "message_id": format!("0199a1c4-7a2e-7b31-8c55-{number:012}"),
        "correlation_id": format!("0199a1c4-7a2e-7b31-9c55-{number:012}"),
        "message_type": "asset.note",
        "timestamp": "2026-09-11T16:41:00Z",
        "originating_system": {"system_id": "desk-1", "system_type": "ncs"},
        "topic": "som.asset.note",
        "payload": {"n": number},
    })
}

/// A snapshot of one story.
pub(crate) fn snapshot(number: u64, sequence: u64) -> Value {
    let mut message = note(number);
    message["message_type"] = json!("story.context");
    message["topic"] = json!("som.story.context");
    message["payload"] = json!({
        "story_id": "story-1",
        "slug": "SLUG",
        "headline": "Headline",
        "story_type": "ACTIVE",
        "lifecycle": {"phase": "DEVELOPING", "phase_entered_at": "2026-09-11T10:00:00Z"},
        "sequence_number": sequence,
        "updated_at": format!("2026-09-11T10:{sequence:02}:00Z"),
    });
    message
}

impl Answer {
    /// A string in the body.
    pub(crate) fn text(&self, pointer: &str) -> String {
        let value = self.json.pointer(pointer).and_then(Value::as_str);
        value
            .unwrap_or_else(|| panic!("no {pointer} in {}", self.json))
            .to_owned()
    }

    pub(crate) fn header(&self, name: impl http::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn violations(&self) -> Vec<Value> {
        self.json["violations"].as_array().cloned().unwrap_or_default()
    }

    /// The rules of a refusal, in order.
    pub(crate) fn rules(&self) -> Vec<String> {
        self.violations()
            .iter()
            .map(|v| v["rule"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The places of a refusal, in order; `-` for none.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.violations()
            .iter()
            .map(|v| v["path"].as_str().unwrap_or("-").to_owned())
            .collect()
    }

    /// It is a refusal with this status, by this rule alone.
    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, rule: &str) {
        assert_eq!(
            (self.status, self.rules()),
            (status, vec![rule.to_owned()]),
            "{}",
            self.json
        );
    }

    /// It is `400 request.invalid` at these places.
    #[track_caller]
    pub(crate) fn is_invalid_at(&self, paths: &[&str]) {
        assert_eq!(self.status, 400, "{}", self.json);
        assert_eq!(self.paths(), paths, "{}", self.json);
        assert!(
            self.rules().iter().all(|r| r == "request.invalid"),
            "{}",
            self.json
        );
    }

    #[track_caller]
    pub(crate) fn is_ok(&self) -> &Self {
        assert_eq!(self.status, 200, "{}", self.json);
        self
    }

    /// The body with what is different in every bus taken out.
    pub(crate) fn redacted(&self) -> Value {
        redacted(&self.json)
    }

    /// What holds for every answer.
    fn check(&self) {
        let told = format!("{} {}", self.status, self.json);
        assert!(self.header(CACHE_CONTROL).is_some(), "cacheable? {told}");
        if self.status == 204 {
            assert!(self.body.is_empty(), "{told}");
            return;
        }
        assert_eq!(self.header(CONTENT_TYPE), Some("application/json"), "{told}");
        let token = self.outcome.route == Some("/oauth/token");
        if self.status < 300 {
            assert_eq!(self.outcome.rule, None, "{told}");
        } else if token {
            assert!(self.json["error"].is_string(), "{told}");
            assert_eq!(
                self.outcome.rule.as_deref(),
                self.json["error"].as_str(),
                "{told}"
            );
        } else {
            let refused: Refused = serde_json::from_slice(&self.body).expect("a refusal");
            assert!(!refused.accepted && !refused.violations.is_empty(), "{told}");
            assert_eq!(
                self.outcome.rule,
                Some(refused.violations[0].rule.clone()),
                "{told}"
            );
            assert!(refused.violations.iter().all(|v| !v.message.is_empty()), "{told}");
        }
        let seconds = self
            .header(RETRY_AFTER)
            .map(|s| s.parse::<u64>().expect("whole seconds"));
        match self.status {
            503 | 429 => assert!(seconds >= Some(1), "{told}"),
            _ => assert!(seconds.is_none() || self.status == 500, "{told}"),
        }
        let challenge = self.header(WWW_AUTHENTICATE);
        match (self.status, token) {
            (401, true) => assert_eq!(challenge, Some("Basic realm=\"storybus\""), "{told}"),
            (401, false) => assert_eq!(challenge, Some("Bearer error=\"invalid_token\""), "{told}"),
            _ => assert_eq!(challenge, None, "{told}"),
        }
    }
}

fn redacted(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(redacted_text(text)),
        Value::Array(values) => values.iter().map(redacted).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), redacted(value)))
            .collect(),
        other => other.clone(),
    }
}

/// Ids, secrets, tokens and receipt handles.
fn redacted_text(text: &str) -> String {
    let id = |t: &str| t.len() == 21 && t.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    match text.split_once('.') {
        Some((consumer, number)) if id(consumer) && number.parse::<u64>().is_ok() => "[handle]".to_owned(),
        _ if id(text) => format!("[{}]", &text[..1]),
        _ if text.len() == 43 && !text.contains(' ') => "[secret]".to_owned(),
        _ if text.starts_with("eyJ") => "[token]".to_owned(),
        _ => text.to_owned(),
    }
}
