//! What the bus counts, for Prometheus.
//!
//! Label values come from closed sets (methods, route templates, statuses, rule ids), never from what a client chose, so
//! that nobody can make the bus remember ever more series. Queues have series of their own, up to a number.

use std::fmt::Error;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, prometheus_text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use storybus_core::domain::delivery::{QueueCounts, QueueKey};

use crate::process;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// From a quarter of a millisecond to ten seconds.
const PUBLISH_BUCKETS: [f64; 16] = [
    0.000_25, 0.000_5, 0.001, 0.002, 0.003, 0.005, 0.007_5, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
    rule: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

/// The counters and gauges.
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    publish_seconds: Histogram,
    /// Requests that are being worked on.
    pub in_flight: Gauge,
    /// Open connections.
    pub connections: Gauge,
    /// Connections that were answered 503 because there was no room.
    pub connections_refused: Counter,
    /// Connections that were closed to make room.
    pub connections_evicted: Counter,
    /// Receives under way.
    pub receives: Gauge,
    /// Messages put into the queues: published now, not before.
    pub publications: Counter,
    /// Publications that failed or whose outcome is unknown.
    pub publications_failed: Counter,
    /// Messages handed to consumers.
    pub deliveries: Counter,
    /// Messages that jobs put into the queues.
    pub redelivered: Counter,
    /// Messages acknowledged.
    pub acknowledged: Counter,
    /// Messages given back.
    pub released: Counter,
    /// Messages that consumers sent to the dead letters.
    pub rejected: Counter,
    login_failures: Counter,
    /// Handlers that panicked.
    pub panics: Counter,
    registry: Registry,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Registry::default();
        all.register_collector(Box::new(ProcessMetrics));
        let registry = all.sub_registry_with_prefix("storybus");
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::<u64, AtomicU64>::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let publications = counter("publications", "Messages published to the queues");
        let publications_failed = counter(
            "publications_failed",
            "Publications that failed, or whose outcome is unknown",
        );
        let deliveries = counter(
            "deliveries",
            "Messages handed to consumers, every receive counted",
        );
        let redelivered = counter(
            "redelivered",
            "Messages put into the queues by replays and redrives",
        );
        let acknowledged = counter("acknowledged", "Messages acknowledged");
        let released = counter("released", "Messages given back by consumers");
        let rejected = counter("rejected", "Messages that consumers sent to the dead letters");
        let login_failures = counter(
            "login_failures",
            "Token requests with credentials that do not hold, or over the limit",
        );
        let panics = counter("panics", "Requests whose handler broke off");
        let connections_refused = counter(
            "connections_refused",
            "Connections answered 503: all the others were at work",
        );
        let connections_evicted = counter(
            "connections_evicted",
            "Connections closed to make room for others",
        );
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let in_flight = gauge("requests_in_flight", "Requests that are being worked on");
        let connections = gauge("connections", "Open connections");
        let receives = gauge(
            "receives_under_way",
            "Receives that wait for a message, or for their answer to be taken",
        );
        let requests = Family::default();
        registry.register(
            "requests",
            "Requests by route, method, status and first rule",
            requests.clone(),
        );
        let publish_seconds = Histogram::new(PUBLISH_BUCKETS);
        registry.register(
            "publish_seconds",
            "Time from a publish's last byte to its answer",
            publish_seconds.clone(),
        );
        registry.register(
            "build",
            "The program",
            Info::new(BuildLabels {
                version: env!("CARGO_PKG_VERSION"),
            }),
        );
        Self {
            requests,
            publish_seconds,
            in_flight,
            connections,
            connections_refused,
            connections_evicted,
            receives,
            publications,
            publications_failed,
            deliveries,
            redelivered,
            acknowledged,
            released,
            rejected,
            login_failures,
            panics,
            registry: all,
        }
    }
}

impl Metrics {
    /// Counts a request that has been answered.
    pub fn answered(
        &self,
        route: Option<&'static str>,
        method: &Method,
        status: StatusCode,
        rule: Option<&str>,
        took: Duration,
    ) {
        let labels = RequestLabels {
            route: route.unwrap_or("none"),
            method: known_method(method),
            status: status.as_u16(),
            rule: rule.unwrap_or_default().to_owned(),
        };
        self.requests.get_or_create(&labels).inc();
        match route {
            Some("/tenants/{tenant}/messages" | "/jwt/messages") if method == Method::POST => {
                self.publish_seconds.observe(took.as_secs_f64());
            }
            Some("/oauth/token")
                if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS) =>
            {
                self.login_failures.inc();
            }
            _ => {}
        }
    }

    /// All of it in the text format, with the queues.
    pub fn render(&self, queues: &[(QueueKey, QueueCounts)]) -> Result<String, Error> {
        let mut text = String::with_capacity(16 * 1024);
        prometheus_text::encode(&mut text, &self.registry)?;
        let mut registry = Registry::with_prefix("storybus");
        let messages = Family::<QueueLabels, Gauge>::default();
        registry.register(
            "queue_messages",
            "Messages in a consumer's queue",
            messages.clone(),
        );
        for (key, counts) in queues {
            for (state, count) in [
                ("visible", counts.visible),
                ("in_flight", counts.in_flight),
                ("dead_lettered", counts.dead_lettered),
            ] {
                let labels = QueueLabels {
                    tenant: key.workspace.to_string(),
                    consumer: key.consumer.to_string(),
                    state,
                };
                messages
                    .get_or_create(&labels)
                    .set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        let mut of_queues = String::new();
        prometheus_text::encode(&mut of_queues, &registry)?;
        text.push_str(&of_queues);
        Ok(text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    tenant: String,
    consumer: String,
    state: &'static str,
}

/// A method of HTTP; a client may make up others.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// What the operating system says of the process, asked when it is wanted.
#[derive(Debug)]
pub(crate) struct ProcessMetrics;

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let usage = process::usage();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| -> Result<(), Error> {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge(
            "process_resident_memory_bytes",
            "Memory in use",
            usage.resident_bytes,
        )?;
        gauge("process_open_fds", "Open file descriptors", usage.open_files)?;
        gauge(
            "process_start_time_seconds",
            "When the process started, since 1970",
            usage.started_at,
        )?;
        let Some(seconds) = usage.cpu_seconds else {
            return Ok(());
        };
        let counter = ConstCounter::new(seconds);
        counter.encode(encoder.encode_descriptor(
            "process_cpu_seconds",
            "Processor time used",
            None,
            counter.metric_type(),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_in_the_text_format() {
        let metrics = Metrics::default();
        let route = Some("/tenants/{tenant}/messages");
        metrics.answered(
            route,
            &Method::POST,
            StatusCode::ACCEPTED,
            None,
            Duration::from_millis(3),
        );
        metrics.answered(
            route,
            &Method::POST,
            StatusCode::CONFLICT,
            Some("message_id.reused"),
            Duration::from_millis(1),
        );
        metrics.answered(
            Some("/oauth/token"),
            &Method::POST,
            StatusCode::UNAUTHORIZED,
            Some("invalid_client"),
            Duration::ZERO,
        );
        let made_up = Method::from_bytes(b"FROBNICATE").unwrap();
        metrics.answered(
            None,
            &made_up,
            StatusCode::NOT_FOUND,
            Some("route.not_found"),
            Duration::ZERO,
        );
        metrics.publications.inc();
        let queue = QueueKey {
            workspace: "w1".parse().unwrap(),
            consumer: "c1".parse().unwrap(),
        };
        let counts = QueueCounts {
            visible: 7,
            ..QueueCounts::default()
        };
        let text = metrics.render(&[(queue, counts)]).unwrap();
        for line in [
            r#"storybus_requests_total{route="/tenants/{tenant}/messages",method="POST",status="202",rule=""} 1"#,
            r#"storybus_requests_total{route="none",method="other",status="404",rule="route.not_found"} 1"#,
            r#"storybus_publish_seconds_bucket{le="0.003"} 2"#,
            "storybus_publish_seconds_count 2",
            "storybus_publications_total 1",
            "storybus_login_failures_total 1",
            r#"storybus_queue_messages{tenant="w1",consumer="c1",state="visible"} 7"#,
            concat!(
                r#"storybus_build_info{version=""#,
                env!("CARGO_PKG_VERSION"),
                r#""} 1"#
            ),
            "# TYPE storybus_connections gauge",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        assert!(text.contains("\nprocess_resident_memory_bytes "));
        assert!(
            text.lines()
                .all(|l| l.starts_with('#')
                    || l.rsplit_once(' ').is_some_and(|(_, v)| v.parse::<f64>().is_ok())),
            "{text}"
        );
    }
}
