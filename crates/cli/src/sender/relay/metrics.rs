//! What a relay counts, for Prometheus. Label values come from closed sets: the relay's targets, outcomes, states, and rules that are known.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use storybus_protocol::rule;
use storybus_sender::outbox::{State, Stats};
use storybus_sender::relay::{Attempted, Ended, StepTaken};

use crate::metrics::ProcessMetrics;

/// From a millisecond to a minute.
const BUCKETS: [f64; 14] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    target: String,
    outcome: &'static str,
    rule: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    target: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SpoolLabels {
    end: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

/// What a relay counts.
pub(crate) struct Metrics {
    targets: Vec<String>,
    attempts: Family<AttemptLabels, Counter>,
    ended: Family<StateLabels, Counter>,
    attempt_seconds: Histogram,
    step_seconds: Histogram,
    in_flight: Gauge,
    taken_over: Counter,
    failed_steps: Counter,
    spooled: Family<SpoolLabels, Counter>,
    registry: Registry,
}

impl Metrics {
    /// Nothing yet, of a relay with these targets.
    pub(crate) fn new(targets: &[String]) -> Self {
        let mut all = Registry::default();
        all.register_collector(Box::new(ProcessMetrics));
        let registry = all.sub_registry_with_prefix("storybus_sender");
        let attempts = Family::default();
        registry.register(
            "attempts",
            "Attempts by target, outcome and first rule",
            attempts.clone(),
        );
        let ended = Family::default();
        registry.register(
            "messages",
            "Messages that were delivered, refused or parked by this relay",
            ended.clone(),
        );
        let attempt_seconds = Histogram::new(BUCKETS);
        registry.register("attempt_seconds", "Time of an attempt", attempt_seconds.clone());
        let step_seconds = Histogram::new(BUCKETS);
        registry.register(
            "step_seconds",
            "Time of a step: the transaction that settles and claims",
            step_seconds.clone(),
        );
        let in_flight = Gauge::default();
        registry.register("in_flight", "Messages that are being sent", in_flight.clone());
        let taken_over = Counter::<u64, AtomicU64>::default();
        registry.register(
            "taken_over",
            "Attempts whose lease was over, so that another relay had the message",
            taken_over.clone(),
        );
        let failed_steps = Counter::<u64, AtomicU64>::default();
        registry.register(
            "failed_steps",
            "Steps that failed: the outbox could not be read or written",
            failed_steps.clone(),
        );
        let spooled = Family::default();
        registry.register("spool_files", "Files of the spool by their end", spooled.clone());
        registry.register(
            "build",
            "The program",
            Info::new(BuildLabels {
                version: env!("CARGO_PKG_VERSION"),
            }),
        );
        Self {
            targets: targets.to_vec(),
            attempts,
            ended,
            attempt_seconds,
            step_seconds,
            in_flight,
            taken_over,
            failed_steps,
            spooled,
            registry: all,
        }
    }

    pub(super) fn attempted(&self, attempt: &Attempted<'_>) {
        let labels = AttemptLabels {
            target: attempt.target.to_owned(),
            outcome: attempt.answer.outcome.as_str(),
            rule: known_rule(attempt.answer.rule.as_deref()),
        };
        self.attempts.get_or_create(&labels).inc();
        self.attempt_seconds.observe(attempt.took.as_secs_f64());
    }

    pub(super) fn ended(&self, message: &Ended<'_>) {
        let labels = StateLabels {
            target: message.target.to_owned(),
            state: message.state.as_str(),
        };
        self.ended.get_or_create(&labels).inc();
    }

    pub(super) fn stepped(&self, step: &StepTaken) {
        self.step_seconds.observe(step.took.as_secs_f64());
        self.in_flight
            .set(i64::try_from(step.under_way).unwrap_or(i64::MAX));
    }

    pub(super) fn taken_over(&self) {
        self.taken_over.inc();
    }

    pub(super) fn troubled(&self) {
        self.failed_steps.inc();
    }

    /// A file of the spool has come so far.
    pub(crate) fn spooled(&self, end: &'static str) {
        self.spooled.get_or_create(&SpoolLabels { end }).inc();
    }

    /// All of it in the text format, with the outbox as it stood last.
    pub(super) fn render(&self, stats: Option<&Stats>, healthy: bool) -> Result<String, Error> {
        let mut text = String::with_capacity(8 * 1024);
        prometheus_text::encode(&mut text, &self.registry)?;
        let mut registry = Registry::with_prefix("storybus_sender");
        let well = Gauge::<i64>::default();
        well.set(i64::from(healthy));
        registry.register("healthy", "1 while /healthz answers 200", well);
        if let Some(stats) = stats {
            self.add_outbox(&mut registry, stats);
        }
        let mut of_now = String::new();
        prometheus_text::encode(&mut of_now, &registry)?;
        text.push_str(&of_now);
        Ok(text)
    }

    fn add_outbox(&self, registry: &mut Registry, stats: &Stats) {
        // Other relays' targets are counted together, since callers choose their names.
        let mut counts: BTreeMap<(&str, State), i64> = BTreeMap::new();
        for target in &self.targets {
            for state in [State::Pending, State::Parked] {
                counts.insert((target, state), 0);
            }
        }
        for count in &stats.counts {
            let ours = self.targets.contains(&count.target);
            let target = if ours { count.target.as_str() } else { "others" };
            let number = i64::try_from(count.count).unwrap_or(i64::MAX);
            let sum = counts.entry((target, count.state)).or_default();
            *sum = sum.saturating_add(number);
        }
        let messages = Family::<StateLabels, Gauge>::default();
        registry.register("outbox_messages", "Messages in the outbox", messages.clone());
        for ((target, state), count) in counts {
            let labels = StateLabels {
                target: target.to_owned(),
                state: state.as_str(),
            };
            messages.get_or_create(&labels).set(count);
        }
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = Gauge::<i64>::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            registry.register(name, help, gauge);
        };
        gauge(
            "oldest_pending_seconds",
            "How long the oldest pending message has been there; 0 when there is none",
            stats.oldest_pending_ms.unwrap_or(0) / 1000,
        );
        gauge(
            "held_groups",
            "Order groups that a parked message holds",
            stats.held_groups,
        );
    }
}

/// A rule as a label: a partner could make up others.
fn known_rule(rule: Option<&str>) -> String {
    let Some(rule) = rule else {
        return String::new();
    };
    let of_http = rule
        .strip_prefix("http.")
        .is_some_and(|status| status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit()));
    if of_http || rule::about(rule).is_some() {
        rule.to_owned()
    } else {
        "other".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use storybus_sender::answer::{About, Answer, Left, Outcome, Retry};
    use storybus_sender::outbox::Count;

    #[test]
    fn is_in_the_text_format() {
        let metrics = Metrics::new(&["bus".to_owned()]);
        for rule in [
            "message.in_flight",
            "http.502",
            "http.made-up",
            "envelope.required",
            "made.up",
        ] {
            let answer = Answer {
                outcome: Outcome::Refused,
                status: Some(503),
                rule: Some(rule.to_owned()),
                detail: None,
                retry: Retry::Backoff,
                retry_after: None,
                about: About::Moment,
                left: Left::Maybe,
            };
            metrics.attempted(&Attempted {
                id: 1,
                target: "bus",
                key: "k",
                attempt: 1,
                round_attempt: 1,
                took: Duration::from_millis(3),
                answer: &answer,
                delay: None,
            });
        }
        metrics.stepped(&StepTaken {
            took: Duration::from_millis(1),
            under_way: 7,
        });
        metrics.spooled("done");
        let count = |target: &str, state, count| Count {
            target: target.to_owned(),
            state,
            count,
        };
        let stats = Stats {
            counts: vec![
                count("bus", State::Pending, 3),
                count("x", State::Parked, 1),
                count("y", State::Parked, 1),
            ],
            oldest_pending_ms: Some(61_000),
            held_groups: 2,
        };
        let text = metrics.render(Some(&stats), true).unwrap();
        for line in [
            r#"storybus_sender_attempts_total{target="bus",outcome="refused",rule="message.in_flight"} 1"#,
            r#"storybus_sender_attempts_total{target="bus",outcome="refused",rule="http.502"} 1"#,
            r#"storybus_sender_attempts_total{target="bus",outcome="refused",rule="envelope.required"} 1"#,
            r#"storybus_sender_attempts_total{target="bus",outcome="refused",rule="other"} 2"#,
            "storybus_sender_attempt_seconds_count 5",
            "storybus_sender_step_seconds_count 1",
            "storybus_sender_in_flight 7",
            r#"storybus_sender_spool_files_total{end="done"} 1"#,
            r#"storybus_sender_outbox_messages{target="bus",state="pending"} 3"#,
            r#"storybus_sender_outbox_messages{target="bus",state="parked"} 0"#,
            r#"storybus_sender_outbox_messages{target="others",state="parked"} 2"#,
            "storybus_sender_oldest_pending_seconds 61",
            "storybus_sender_held_groups 2",
            "storybus_sender_healthy 1",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert!(
            text.lines()
                .all(|l| l.starts_with('#')
                    || l.rsplit_once(' ').is_some_and(|(_, v)| v.parse::<f64>().is_ok())),
            "{text}"
        );
    }
}
