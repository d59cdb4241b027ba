//! How a signal ends a sender: SIGTERM and SIGINT in good order, a second one at once.

use std::sync::Arc;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::{self, Failure};

/// Whether it is to end. Clones see the same.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    asks: Arc<watch::Sender<bool>>,
    stopped: watch::Receiver<bool>,
}

impl Stop {
    /// Listens for signals from now on.
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let (mut terminate, mut interrupt) =
            (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
        let (asks, stopped) = watch::channel(false);
        let asks = Arc::new(asks);
        let stopping = asks.clone();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if stopping.send_replace(true) {
                    // Nothing is lost: the outbox has every message and every attempt that was begun.
                    std::process::exit(i32::from(exit::FAILED));
                }
            }
        });
        Ok(Self { asks, stopped })
    }

    /// Ends it in good order, as a signal does.
    pub(super) fn ask(&self) {
        self.asks.send_replace(true);
    }

    /// Comes back when it is to end.
    pub(super) async fn asked(&self) {
        let mut stopped = self.stopped.clone();
        // The other end lives as long as the process.
        let _ = stopped.wait_for(|stopping| *stopping).await;
    }

    /// Whether it is to end.
    pub(super) fn is_asked(&self) -> bool {
        *self.stopped.borrow()
    }
}
