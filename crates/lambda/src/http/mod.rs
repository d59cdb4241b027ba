//! Requests of an HTTP API to the bus, and its answers back.

mod answer;
mod event;
mod path;
mod request;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use lambda_runtime::Error;
use serde_json::value::RawValue;
use storybus_api::{Api, Context, Outcome};
use storybus_core::domain::time::Millis;
use storybus_protocol::rule::{self, SCHEMAS};

pub use answer::Answer;

use crate::invocation::Invocation;
use crate::logs;
use crate::metrics::{Directive, Meter, Property};
use crate::panics::caught;
use crate::ports::Stopwatch;
use crate::runtime::Handler;
use event::Event;

/// How long before Lambda ends the function a publish must have been answered: the answer has to be written, and taken.
const MARGIN: Duration = Duration::from_millis(500);
/// The bus behind an HTTP API.
pub struct Front {
    api: Api,
    meter: Arc<Meter>,
}

impl Front {
    /// A front of these routes.
    #[must_use]
    pub fn new(api: Api, meter: Arc<Meter>) -> Self {
        Self { api, meter }
    }

    /// Answers an event. Whatever is in it, and whatever goes wrong, there is an answer in the bus's format.
    pub async fn answer(&self, event: &RawValue, invocation: &Invocation) -> Answer {
        let watch = Stopwatch::start();
        let (method, mut response) = match serde_json::from_str::<Event<'_>>(event.get()) {
            Ok(event) => {
                invocation.begin(event.headers.get("traceparent").map(|value| &**value));
                let method = event.request_context.http.method.to_string();
                (method, self.respond(event, invocation.deadline).await)
            }
            Err(error) => {
                invocation.begin(None);
                // Where it cannot be read, not what stands there.
                tracing::error!(
                    line = error.line(),
                    column = error.column(),
                    "this is no event of an HTTP API in payload format 2.0"
                );
                (String::new(), answer::failed(false))
            }
        };
        let outcome = response.extensions_mut().remove::<Outcome>().unwrap_or_default();
        self.tell(invocation, &method, response.status().as_u16(), &outcome, watch);
        logs::end();
        response.into()
    }

    async fn respond(&self, event: Event<'_>, deadline: Millis) -> Response<Bytes> {
        let context = Context {
            source: event.request_context.http.source_ip.to_string(),
            deadline: deadline.minus(MARGIN),
            iam: request::iam(&event),
        };
        let request = request::request(event);
        let token = request.uri().path() == "/v1/oauth/token";
        match caught(self.api.handle(request, context)).await {
            Ok(response) => response,
            Err(_) => {
                self.meter.count("Panics", 1);
                answer::failed(token)
            }
        }
    }

    fn tell(&self, invocation: &Invocation, method: &str, status: u16, outcome: &Outcome, watch: Stopwatch) {
        let meter = &self.meter;
        meter.count("Requests", 1);
        if outcome.delivered > 0 {
            meter.count("Deliveries", outcome.delivered);
        }
        if outcome.rule.as_deref() == Some(rule::COMMIT_CONTENTION) {
            meter.count("Contention", 1);
        }
        if status >= 500 {
            meter.count("Failures", 1);
        }
        meter.time("Duration", watch.millis());
        let mut told: Vec<Property<'_>> = vec![
            ("Route", outcome.route.unwrap_or("-").into()),
            ("Status", status.to_string().into()),
            ("method", method.chars().take(10).collect::<String>().into()),
            ("request_id", invocation.request_id.as_str().into()),
        ];
        let mut directives: Vec<Directive> = vec![&["Route", "Status"]];
        if let Some(rule) = &outcome.rule {
            directives.push(&["Rule"]);
            told.push(("Rule", group(rule)));
            told.push(("rule", rule.as_ref().into()));
        }
        let ids = [
            ("trace_id", invocation.trace_id.as_deref()),
            ("connection", outcome.connection.as_ref().map(|c| c.as_str())),
            ("tried", outcome.tried.as_ref().map(|c| c.as_str())),
            ("message_id", outcome.message_id.as_deref()),
        ];
        told.extend(ids.into_iter().filter_map(|(name, id)| Some((name, id?.into()))));
        meter.finish(self.api.bus().ports().clock.now(), &directives, &told);
    }
}

/// A schema's rules are many: in the metrics they are one.
fn group(rule: &str) -> Cow<'_, str> {
    match rule.split_once('.') {
        Some((schema, _)) if SCHEMAS.contains(&schema) => format!("{schema}.*").into(),
        _ => rule.into(),
    }
}

impl Handler for Front {
    type Answer = Answer;

    async fn handle(&self, event: &RawValue, invocation: &Invocation) -> Result<Answer, Error> {
        Ok(self.answer(event, invocation).await)
    }
}
