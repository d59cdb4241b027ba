//! Log lines: one JSON object a line, on standard output, where Lambda takes them from.
//!
//! `{"level", "target", "request_id"?, "trace_id"?, "traceparent"?, "fields": {"message", …}}`: the form that
//! `tracing-subscriber` gives its events, without a time, since CloudWatch has one for every line. Which request a line belongs to
//! is known because a function works on one at a time.
//!
//! Payloads, secrets and tokens are never logged. What other crates say at their most talkative would hold what clients send, so
//! of them only warnings and errors are taken, whatever the level.

use std::cell::RefCell;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

/// Takes whole lines, without their end.
pub type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// Lines to standard output.
#[must_use]
pub fn stdout() -> Lines {
    Arc::new(|line| {
        let mut whole = Vec::with_capacity(line.len() + 1);
        whole.extend_from_slice(line.as_bytes());
        whole.push(b'\n');
        // In one write, so that lines of two threads never mix; nobody is left to tell when it fails.
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&whole).and_then(|()| out.flush());
    })
}

/// What a line says of the request that is worked on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Lambda's name for the invocation.
    pub request_id: String,
    /// `X-Amzn-Trace-Id`: X-Ray's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// `traceparent`: W3C Trace Context, as the client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

thread_local! {
    static CURRENT: RefCell<Option<Request>> = const { RefCell::new(None) };
}

/// The request that is worked on from now on.
pub fn begin(request: Request) {
    CURRENT.set(Some(request));
}

/// Nothing is worked on any more.
pub fn end() {
    CURRENT.set(None);
}

/// Starts logging. A second start keeps the first: only tests do that.
pub fn start(level: LevelFilter, lines: Lines) {
    let _ = tracing::subscriber::set_global_default(JsonLines { level, lines });
    std::panic::set_hook(Box::new(|panic| {
        // The text of a panic may quote what it was working on; only one that is a constant is safe to log.
        let text = panic
            .payload()
            .downcast_ref::<&'static str>()
            .copied()
            .unwrap_or("(not shown)");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::event!(Level::ERROR, place, text, "panicked");
    }));
}

/// The subscriber. Spans are not told of: a line has its request's ids.
struct JsonLines {
    level: LevelFilter,
    lines: Lines,
}

impl JsonLines {
    fn level_of(&self, target: &str) -> LevelFilter {
        if target.starts_with("storybus") {
            self.level
        } else {
            self.level.min(LevelFilter::WARN)
        }
    }
}

impl Subscriber for JsonLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level_of(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let line = CURRENT.with_borrow(|request| {
            serde_json::to_string(&Line {
                level: event.metadata().level().as_str(),
                target: event.metadata().target(),
                request: request.as_ref(),
                fields: Fields(event),
            })
        });
        if let Ok(line) = line {
            (self.lines)(&line);
        }
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Serialize)]
struct Line<'a> {
    level: &'a str,
    target: &'a str,
    #[serde(flatten)]
    request: Option<&'a Request>,
    fields: Fields<'a>,
}

struct Fields<'a>(&'a Event<'a>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut writing = Writing {
            map: serializer.serialize_map(None)?,
            failed: None,
        };
        self.0.record(&mut writing);
        match writing.failed {
            Some(error) => Err(error),
            None => writing.map.end(),
        }
    }
}

struct Writing<M: SerializeMap> {
    map: M,
    failed: Option<M::Error>,
}

impl<M: SerializeMap> Writing<M> {
    fn member(&mut self, field: &Field, value: &(impl Serialize + ?Sized)) {
        if self.failed.is_none() {
            self.failed = self.map.serialize_entry(field.name(), value).err();
        }
    }
}

impl<M: SerializeMap> Visit for Writing<M> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.member(field, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field, &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.member(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.member(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;

    fn logged(level: LevelFilter, log: impl FnOnce()) -> Vec<Value> {
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let subscriber = JsonLines {
            level,
            lines: Arc::new(move |line| kept.lock().unwrap().push(serde_json::from_str(line).unwrap())),
        };
        tracing::subscriber::with_default(subscriber, log);
        let lines = lines.lock().unwrap();
        lines.clone()
    }

    #[test]
    fn a_line_is_an_object_with_its_request() {
        let lines = logged(LevelFilter::INFO, || {
            begin(Request {
                request_id: "r-1".to_owned(),
                trace_id: Some("Root=1-5f".to_owned()),
                traceparent: None,
            });
            tracing::info!(target: "storybus::refused", refused = r#"{"at":1}"#, n = 3, "refused");
            end();
            tracing::debug!("not logged");
            tracing::warn!(error = %"a \"quoted\"\nline", "failed");
        });
        assert_eq!(
            lines,
            [
                json!({"level": "INFO", "target": "storybus::refused", "request_id": "r-1", "trace_id": "Root=1-5f",
                    "fields": {"message": "refused", "refused": "{\"at\":1}", "n": 3}}),
                json!({"level": "WARN", "target": "storybus_lambda::logs::tests",
                    "fields": {"message": "failed", "error": "a \"quoted\"\nline"}}),
            ]
        );
    }

    #[test]
    fn other_crates_are_not_listened_to() {
        let lines = logged(LevelFilter::DEBUG, || {
            tracing::debug!(target: "storybus_aws", "ours");
            tracing::info!(target: "aws_smithy_runtime", body = "a payload", "theirs");
            tracing::warn!(target: "aws_smithy_runtime", "their warning");
            let _span = tracing::info_span!(target: "hyper", "a span").entered();
        });
        let told: Vec<&Value> = lines.iter().map(|line| &line["fields"]["message"]).collect();
        assert_eq!(told, ["ours", "their warning"]);
    }
}
