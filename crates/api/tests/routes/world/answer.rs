//! An answer, and what holds for every one.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Value, json};
use storybus_api::Outcome;
use storybus_protocol::answer::Refused;
use storybus_protocol::rule::{Appears, about};

use super::openapi;

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) json: Value,
    pub(crate) outcome: Outcome,
}

impl Answer {
    /// A string in the body.
    pub(crate) fn text(&self, pointer: &str) -> String {
        let value = self.json.pointer(pointer).and_then(Value::as_str);
        assert!(value.is_some(), "no {pointer} in {}", self.json);
        value.unwrap_or_default().to_owned()
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
    pub(super) fn check(&self) {
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

impl Answer {
    /// It is what `docs/openapi.json` says of its route, and its rules are what the table of rules says of them.
    pub(super) fn is_documented(&self, method: &str) {
        let told = format!("{method} {:?}: {} {}", self.outcome.route, self.status, self.json);
        if let Some(template) = self.outcome.route {
            let answer = openapi().answer(method, template, self.status);
            assert!(answer.is_some(), "not documented: {told}");
            let (pointer, answer) = answer.expect("documented");
            if let Some(headers) = answer["headers"].as_object() {
                for name in headers.keys() {
                    assert!(self.headers.contains_key(name), "no {name}: {told}");
                }
            }
            if self.status != 204 {
                let schema = format!("{pointer}/content/application~1json/schema");
                assert_eq!(openapi().faults(&schema, &self.json), [""; 0], "{told}");
            }
        }
        let tolerated = self.json["tolerated"].as_array().cloned().unwrap_or_default();
        let refused = self
            .violations()
            .into_iter()
            .map(|v| (v, Appears::Refusal(self.status)));
        for (violation, place) in refused.chain(tolerated.into_iter().map(|v| (v, Appears::Tolerated))) {
            let known = about(violation["rule"].as_str().expect("a rule"));
            assert!(known.is_some(), "no such rule: {told}");
            let known = known.expect("a rule");
            assert!(known.appears.contains(&place), "{told}");
            assert_eq!(json!(known.source), violation["source"], "{told}");
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
