//! A plain HTTP/1.1 client for the tests: one connection, one request at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    token: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn rule(&self) -> &str {
        self.body
            .pointer("/violations/0/rule")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, token: None }
    }

    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    pub(crate) fn log_in(&mut self, id: &str, secret: &str) {
        let answer = self.try_log_in(id, secret);
        assert_eq!(answer.status, 200, "{answer:?}");
        self.token = Some(answer.body["access_token"].as_str().unwrap().to_owned());
    }

    pub(crate) fn try_log_in(&mut self, id: &str, secret: &str) -> Answer {
        let basic = STANDARD.encode(format!("{id}:{secret}"));
        let head =
            format!("authorization: Basic {basic}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
        self.ask("POST", "/v1/oauth/token", &head, b"grant_type=client_credentials")
            .unwrap()
    }

    /// `None` when the connection ends before the answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Option<Answer> {
        self.send(method, path, headers, body).ok()?;
        self.answer()
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(&[head.as_bytes(), body].concat())
    }

    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let mut read = Vec::new();
        let end = loop {
            if let Some(end) = read.windows(4).position(|w| w == b"\r\n\r\n") {
                break end;
            }
            let mut byte = [0];
            if self.stream.read(&mut byte).ok()? == 0 {
                return None;
            }
            read.push(byte[0]);
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length: "))
            .map_or(0, |v| v.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        let text = String::from_utf8_lossy(&body).into_owned();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Some(Answer {
            status: head[9..12].parse().unwrap(),
            head,
            body,
            text,
        })
    }

    fn bearer(&self) -> String {
        self.token
            .as_ref()
            .map(|t| format!("authorization: Bearer {t}\r\n"))
            .unwrap_or_default()
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        let bearer = self.bearer();
        self.ask("GET", path, &bearer, b"")
            .unwrap_or_else(|| panic!("no answer to GET {path}"))
    }

    /// Sends a request and leaves the answer for later.
    pub(crate) fn begin(&mut self, path: &str) {
        let bearer = self.bearer();
        self.send("GET", path, &bearer, b"").unwrap();
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.try_post(path, body, "")
            .unwrap_or_else(|| panic!("no answer to POST {path}"))
    }

    pub(crate) fn try_post(&mut self, path: &str, body: &Value, headers: &str) -> Option<Answer> {
        let headers = format!("{}{headers}", self.bearer());
        self.ask("POST", path, &headers, &serde_json::to_vec(body).unwrap())
    }

    pub(crate) fn publish(&mut self, envelope: &Value) -> Answer {
        self.post("/v1/jwt/messages", envelope)
    }

    /// Receives everything that is there and acknowledges it: the message ids in order.
    pub(crate) fn drain(&mut self, tenant: &str, consumer: &str) -> Vec<String> {
        let (base, mut ids) = (format!("/v1/tenants/{tenant}/consumers/{consumer}"), Vec::new());
        loop {
            let answer = self.get(&format!("{base}/messages"));
            let messages = answer.body["messages"]
                .as_array()
                .unwrap_or_else(|| panic!("{answer:?}"))
                .clone();
            if messages.is_empty() {
                return ids;
            }
            let handles: Vec<Value> = messages.iter().map(|m| m["receipt_handle"].clone()).collect();
            ids.extend(
                messages
                    .iter()
                    .map(|m| m["envelope"]["message_id"].as_str().unwrap().to_owned()),
            );
            assert_eq!(
                self.post(&format!("{base}/ack"), &json!({ "receipt_handles": handles }))
                    .status,
                200
            );
        }
    }
}

/// A snapshot of a story. Every call makes a new message id.
pub(crate) fn snapshot(story: &str, n: u32) -> Value {
    json!({
        "som_version": "1.0.0",
        "message_id": new_id(),
        "correlation_id": story_id(story),
        "message_type": "story.context",
        "timestamp": "2026-09-11T10:00:00Z",
        "originating_system": {"system_id": "demo-ncs", "system_type": "ncs"},
        "topic": "som.story.context",
        "payload": {
            "story_id": story,
            "slug": "SLUG",
            "headline": format!("Headline {n}"),
            "story_type": "ACTIVE",
            "lifecycle": {"phase": "DEVELOPING", "phase_entered_at": "2026-09-11T10:00:00Z"},
            "sequence_number": n,
            "updated_at": format!("2026-09-11T{:02}:{:02}:00Z", n / 60, n % 60),
        },
    })
}

fn new_id() -> String {
    let mut bytes = [0; 16];
    storybus_core::ports::Random::fill(&storybus_cli::ports::OsRandom, &mut bytes);
    as_uuid(bytes)
}

fn story_id(story: &str) -> String {
    let mut bytes = [0; 16];
    for (n, b) in story.bytes().enumerate() {
        bytes[n % 16] ^= b;
    }
    as_uuid(bytes)
}

fn as_uuid(b: [u8; 16]) -> String {
    let hex: String = b.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}
