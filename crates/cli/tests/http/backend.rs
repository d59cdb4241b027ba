//! A backend that answers what it is asked to, and a server on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use storybus_api::Body;
use storybus_cli::metrics::Metrics;
use storybus_cli::server::{Backend, Broken, Limits, Server, Stopped};
use storybus_core::domain::delivery::{QueueCounts, QueueKey};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Answers by path: `/echo` with the body, `/source` with the caller's source, `/panic` not at all, `/big` with 8 MiB,
/// `/slow` after 300 ms, receives when the server stops or after their wait.
pub(crate) struct Answers {
    stopping: watch::Receiver<bool>,
    pub(crate) disk_failed: AtomicBool,
    pub(crate) begun: AtomicUsize,
    pub(crate) finished: AtomicUsize,
}

#[async_trait]
impl Backend for Answers {
    async fn handle(&self, request: Request<Body>, source: String) -> Response<Bytes> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let (head, body) = request.into_parts();
        let bytes = match body {
            Body::Complete(bytes) => bytes,
            Body::TooLarge => {
                let mut response = Response::new(Bytes::from("too large"));
                *response.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
                return response;
            }
            Body::Altered => unreachable!("nothing stands before this front"),
        };
        let answer = match head.uri.path() {
            "/echo" => bytes,
            "/source" => Bytes::from(source),
            "/panic" => panic!("on purpose"),
            "/big" => Bytes::from(vec![b'x'; 8 << 20]),
            "/slow" => {
                pause(300).await;
                Bytes::from("slow")
            }
            path if path.ends_with("/messages") => {
                let mut stopping = self.stopping.clone();
                tokio::select! {
                    _ = stopping.wait_for(|s| *s) => {}
                    () = pause(5000) => {}
                }
                Bytes::from("{\"messages\":[]}")
            }
            _ => Bytes::from("ok"),
        };
        self.finished.fetch_add(1, Ordering::SeqCst);
        Response::new(answer)
    }

    async fn durable(&self) -> Result<(), Broken> {
        match self.disk_failed.load(Ordering::SeqCst) {
            true => Err("the disk failed".to_owned()),
            false => Ok(()),
        }
    }

    async fn healthy(&self) -> bool {
        !self.disk_failed.load(Ordering::SeqCst)
    }

    async fn queues(&self) -> Vec<(QueueKey, QueueCounts)> {
        Vec::new()
    }
}

/// Real time: the server's limits are about real clients.
pub(crate) async fn pause(ms: u64) {
    tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_millis(ms)).await;
}

/// Limits that a test can wait for.
pub(crate) fn short() -> Limits {
    Limits {
        head_time: Duration::from_millis(300),
        body_time: Duration::from_millis(400),
        idle_time: Duration::from_millis(700),
        write_stall: Duration::from_millis(300),
        write_time: Duration::from_millis(2000),
        linger: Duration::from_millis(300),
        stop_time: Duration::from_millis(600),
        ..Limits::default()
    }
}

pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) backend: Arc<Answers>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Running {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::behind(limits, Vec::new()).await
    }

    pub(crate) async fn behind(limits: Limits, proxies: Vec<std::net::IpAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = watch::Sender::new(false);
        let backend = Arc::new(Answers {
            stopping: stopping.subscribe(),
            disk_failed: AtomicBool::new(false),
            begun: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
        });
        let metrics = Arc::new(Metrics::default());
        let server = Server::start(
            listener,
            backend.clone(),
            limits,
            metrics.clone(),
            proxies,
            stopping,
        );
        Self {
            server,
            address,
            backend,
            metrics,
        }
    }

    pub(crate) async fn stop(self) -> Stopped {
        self.server.stop().await
    }
}
