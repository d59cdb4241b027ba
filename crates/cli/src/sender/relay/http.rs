//! `/healthz` and `/metrics` of a relay. Few ask, and none for long: a connection carries one request.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use storybus_sender::outbox::{Outbox, Stats};
use storybus_sender::ports::{Clock, SystemClock};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};

use super::health::Health;
use super::metrics::Metrics;
use crate::metrics::CONTENT_TYPE;

/// How many may ask at once.
const AT_ONCE: usize = 16;
/// How long a connection may take for all of it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long counts of the outbox are good: counting reads an index from end to end.
const FRESH: Duration = Duration::from_secs(5);
/// How long counting may take, before what was counted last is told.
const COUNTING: Duration = Duration::from_secs(3);
/// A pause when the system has no room for one more connection.
const PAUSE: Duration = Duration::from_millis(100);

/// What is shown.
pub(super) struct Views {
    outbox: Outbox,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    clock: SystemClock,
    counted: Mutex<Option<(Duration, Stats)>>,
}

impl Views {
    pub(super) fn new(
        outbox: Outbox,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
        clock: SystemClock,
    ) -> Self {
        Self {
            outbox,
            metrics,
            health,
            clock,
            counted: Mutex::new(None),
        }
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            response
                .headers_mut()
                .insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.uri().path() {
            "/healthz" => self.healthz(),
            "/metrics" => self.metrics().await,
            _ => text(StatusCode::NOT_FOUND, "there are /healthz and /metrics\n"),
        }
    }

    fn healthz(&self) -> Response<Full<Bytes>> {
        let reasons = self.health.reasons();
        let (status, word) = if reasons.is_empty() {
            (StatusCode::OK, "ok")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "failing")
        };
        // A target that is away is no reason: another relay could do no better, and a restart changes nothing.
        let body = json!({"status": word, "reasons": reasons, "targets": self.health.reach.views()});
        response(status, "application/json", format!("{body}\n"))
    }

    async fn metrics(&self) -> Response<Full<Bytes>> {
        let stats = self.stats().await;
        let healthy = self.health.reasons().is_empty();
        match self.metrics.render(stats.as_ref(), healthy) {
            Ok(body) => response(StatusCode::OK, CONTENT_TYPE, body),
            Err(_) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the metrics cannot be written\n",
            ),
        }
    }

    async fn stats(&self) -> Option<Stats> {
        let mut counted = self.counted.lock().await;
        let now = self.clock.elapsed();
        if let Some((at, stats)) = &*counted
            && now.saturating_sub(*at) < FRESH
        {
            return Some(stats.clone());
        }
        tokio::select! {
            stats = self.outbox.stats() => match stats {
                Ok(stats) => {
                    *counted = Some((self.clock.elapsed(), stats.clone()));
                    Some(stats)
                }
                // Old numbers would look like new ones.
                Err(_) => None,
            },
            () = self.clock.sleep(COUNTING) => None,
        }
    }
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static(content_type),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-store"),
    );
    response
}

fn text(status: StatusCode, body: &str) -> Response<Full<Bytes>> {
    response(status, "text/plain; charset=utf-8", body.to_owned())
}

/// Answers whoever connects, until it is aborted.
pub(super) async fn serve(listener: TcpListener, views: Arc<Views>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let views = views.clone();
                tokio::spawn(async move {
                    converse(stream, views).await;
                    drop(place);
                });
            }
            Err(_) => views.clock.sleep(PAUSE).await,
        }
    }
}

async fn converse(stream: TcpStream, views: Arc<Views>) {
    let answer = service_fn(|request: Request<Incoming>| {
        let views = views.clone();
        async move { Ok::<_, Infallible>(views.answer(&request).await) }
    });
    let conversation = http1::Builder::new()
        .header_read_timeout(None)
        .keep_alive(false)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // Whoever asked has gone, or has the answer.
        _ = conversation => {}
        () = views.clock.sleep(PATIENCE) => {}
    }
}
