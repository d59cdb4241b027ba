//! HTTP/1.1 for the bus: connections, limits, and a clean end.
//!
//! hyper reads and writes HTTP; everything about time, room and fairness is here. A [`Backend`] answers.
//!
//! - A connection is a task. What it is doing and until when it may is its `watch`; [`Limits`] has every number.
//! - A request that has begun is a task of its own, so that a client that leaves cannot stop a publish half-way, and a
//!   handler that panics breaks nothing but its own answer. A receive that waits is the exception: it ends with its client.
//! - No answer leaves before everything committed so far is on disk.
//! - At the end ([`Server::stop`]) the listener closes, idle connections close, running requests finish.

mod answer;
mod answers;
mod body;
mod connection;
mod connections;
mod limits;
mod log;
mod receives;
mod service;
mod tally;
mod watch;
mod wire;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use storybus_api::Body;
use storybus_core::domain::delivery::{QueueCounts, QueueKey};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch as channel};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::metrics::Metrics;
use connections::Room;
pub use limits::Limits;

/// Why nothing can be promised any more: the disk failed.
pub type Broken = String;

/// What answers.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Answers a request; `source` is who is counted for failed log-ins.
    async fn handle(&self, request: Request<Body>, source: String) -> Response<Bytes>;

    /// Comes back when everything committed so far is on disk.
    async fn durable(&self) -> Result<(), Broken>;

    /// Whether the store works.
    async fn healthy(&self) -> bool;

    /// The queues and how full they are, up to a number.
    async fn queues(&self) -> Vec<(QueueKey, QueueCounts)>;
}

/// How many clients that find no room are told so at once; more are only closed.
const TURNED_AWAY_AT_ONCE: usize = 32;
/// How long to wait when the operating system has no more file descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often that is logged.
const WARN_AGAIN: Duration = Duration::from_secs(10);

/// A server that runs.
pub struct Server {
    shared: Arc<service::Shared>,
    stopping: channel::Sender<bool>,
    accepting: tokio::task::JoinHandle<()>,
    broken: mpsc::Receiver<Broken>,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Every request was finished.
    Clean,
    /// Some were not, when the time was up.
    CutOff,
}

impl Server {
    /// Serves what connects to `listener`.
    ///
    /// `stopping` is shared with the backend, so that receives that wait can come back when it becomes true; `proxies`
    /// are believed when they say who their client is.
    #[must_use]
    pub fn start(
        listener: TcpListener,
        backend: Arc<dyn Backend>,
        limits: Limits,
        metrics: Arc<Metrics>,
        proxies: Vec<IpAddr>,
        stopping: channel::Sender<bool>,
    ) -> Self {
        let (broken, broke) = mpsc::channel(1);
        let shared = Arc::new(service::Shared {
            backend,
            metrics,
            connections: Arc::new(connections::Connections::new(limits.connections)),
            receives: Arc::new(receives::Receives::new(
                limits.receives,
                limits.receives_of_consumer,
            )),
            room: body::BodyRoom::new(limits.bodies_bytes),
            answers: Arc::new(answers::AnswerRoom::new(limits.answers_bytes)),
            proxies,
            log: log::RequestLog::default(),
            working: tally::Tally::default(),
            broken,
            limits,
        });
        let accepting = tokio::spawn(accept(listener, shared.clone(), stopping.subscribe()));
        Self {
            shared,
            stopping,
            accepting,
            broken: broke,
        }
    }

    /// Comes back when nothing can be promised any more, with the reason; never otherwise.
    pub async fn broken(&mut self) -> Broken {
        match self.broken.recv().await {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }

    /// Stops: no new connection, no new request; those that run may finish, within the limit.
    pub async fn stop(self) -> Stopped {
        let end = Instant::now() + self.shared.limits.stop_time;
        self.stopping.send_replace(true);
        let _ = self.accepting.await;
        let all_gone = async {
            self.shared.connections.all_closed().await;
            self.shared.working.none().await;
        };
        if timeout_at(end, all_gone).await.is_ok() {
            return Stopped::Clean;
        }
        self.shared.connections.abort_all();
        Stopped::CutOff
    }
}

/// Takes connections until the server stops.
async fn accept(listener: TcpListener, shared: Arc<service::Shared>, mut stopping: channel::Receiver<bool>) {
    let http1 = connection::protocol(&shared.limits);
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_AT_ONCE));
    let stopped = stopping.clone();
    let mut warned = None;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // The client is gone again, or the system is out of something that a connection less may give back.
                tracing::debug!(%error, "no connection");
                if is_shortage(&error) {
                    let now = Instant::now();
                    if warned.is_none_or(|at: Instant| now >= at + WARN_AGAIN) {
                        warned = Some(now);
                        tracing::warn!(%error, "the system has no room for one more connection; others are closed");
                    }
                    shared.connections.close_least();
                    sleep_until(Instant::now() + ACCEPT_PAUSE).await;
                }
                continue;
            }
        };
        // Answers are written at once and whole: nothing is gained by waiting for more.
        let _ = stream.set_nodelay(true);
        match shared.connections.make_room() {
            Room::Free => {}
            Room::Made => {
                shared.metrics.connections_evicted.inc();
            }
            Room::None => {
                shared.metrics.connections_refused.inc();
                turn_away(stream, &turned_away);
                continue;
            }
        }
        let watch = Arc::new(watch::Watch::new(shared.limits.clone()));
        let conversation = service::Conversation {
            shared: shared.clone(),
            watch: watch.clone(),
            peer,
        };
        let serve = connection::serve(
            stream,
            http1.clone(),
            watch.clone(),
            conversation,
            stopped.clone(),
        );
        shared.connections.spawn(watch, serve);
    }
}

/// Whether the operating system is out of something.
fn is_shortage(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

/// Tells a client that there is no room, unless too many are being told.
fn turn_away(stream: TcpStream, places: &Arc<Semaphore>) {
    if let Ok(place) = places.clone().try_acquire_owned() {
        tokio::spawn(async move {
            connection::last_words(stream, &answer::too_many_connections()).await;
            drop(place);
        });
    }
}
