//! The bus behind the server: the routes of `/v1` on the store of this directory.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use storybus_api::{Api, Body, Context, Iam};
use storybus_core::domain::delivery::{QueueCounts, QueueKey};
use storybus_core::ports::AuditLog;
use storybus_protocol::id::ConnectionKind;
use storybus_sqlite::Store;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::server::{Backend, Broken};

/// How long the store may take to show that it works.
const HEALTH: Duration = Duration::from_secs(2);
/// How often that is tried, however often it is asked: it writes.
const HEALTH_EVERY: Duration = Duration::from_secs(1);
/// How many queues have series of their own in the metrics, and how long they may take to be counted.
const QUEUES_SHOWN: usize = 100;
const QUEUES_TIME: Duration = Duration::from_secs(2);

/// The bus of one data directory.
pub(super) struct Embedded {
    /// The routes.
    pub api: Api,
    /// The store.
    pub store: Store,
    /// Whether it worked when that was last tried.
    pub health: Mutex<Option<(Instant, bool)>>,
    /// Whether `x-storybus-fault` is obeyed.
    #[cfg(feature = "faults")]
    pub faults: bool,
}

impl Embedded {
    fn api_for(&self, request: &Request<Body>) -> Api {
        #[cfg(feature = "faults")]
        if self.faults
            && let Some(faulty) = super::faults::api(self.api.bus(), request)
        {
            return faulty;
        }
        #[cfg(not(feature = "faults"))]
        let _ = request;
        self.api.clone()
    }

    async fn shown_queues(&self) -> Option<Vec<(QueueKey, QueueCounts)>> {
        let ports = self.api.bus().ports();
        let mut queues = Vec::new();
        for workspace in ports.workspaces.list(None, QUEUES_SHOWN).await.ok()? {
            let left = QUEUES_SHOWN - queues.len();
            let consumers = ports
                .connections
                .list(Some(&workspace.id), ConnectionKind::Consumer, None, left);
            for consumer in consumers.await.ok()? {
                let key = QueueKey {
                    workspace: workspace.id.clone(),
                    consumer: consumer.id,
                };
                let counts = ports.queues.counts(&key).await.ok()?;
                queues.push((key, counts));
            }
            if queues.len() >= QUEUES_SHOWN {
                break;
            }
        }
        Some(queues)
    }
}

#[async_trait]
impl Backend for Embedded {
    async fn handle(&self, request: Request<Body>, source: String) -> Response<Bytes> {
        let bus = self.api.bus();
        // As a function on AWS would end by itself, long before its claim does.
        let deadline = bus.ports().clock.now().plus(bus.settings().window / 2);
        self.api_for(&request)
            .handle(
                request,
                Context {
                    source,
                    deadline,
                    iam: Iam::Unchecked,
                },
            )
            .await
    }

    async fn durable(&self) -> Result<(), Broken> {
        self.store.barrier().await.map_err(|error| error.to_string())
    }

    async fn healthy(&self) -> bool {
        // Whoever asks meanwhile waits for the same answer.
        let mut last = self.health.lock().await;
        match *last {
            Some((at, healthy)) if at.elapsed() < HEALTH_EVERY => healthy,
            _ => {
                let looked = async {
                    self.store.audit_log().list(None, 1).await.is_ok() && self.store.try_write().await.is_ok()
                };
                let healthy = timeout(HEALTH, looked).await.unwrap_or(false);
                *last = Some((Instant::now(), healthy));
                healthy
            }
        }
    }

    async fn queues(&self) -> Vec<(QueueKey, QueueCounts)> {
        timeout(QUEUES_TIME, self.shown_queues())
            .await
            .ok()
            .flatten()
            .unwrap_or_default()
    }
}
