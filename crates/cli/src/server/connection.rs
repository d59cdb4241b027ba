//! One connection from its first byte to its last.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until, timeout};

use super::answer;
use super::limits::Limits;
use super::service::Conversation;
use super::watch::Watch;
use super::wire::Wire;

/// How long a client may take for the few bytes of an answer that hyper does not write.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);
/// A timer for when there is no deadline.
const FAR: std::time::Duration = std::time::Duration::from_secs(86_400);

/// hyper with our limits.
pub(super) fn protocol(limits: &Limits) -> http1::Builder {
    let mut http1 = http1::Builder::new();
    // Time is the watch's: hyper's own timer for heads runs while a connection is idle, too.
    http1.header_read_timeout(None);
    http1.max_header_size(limits.head_bytes);
    // What is read ahead of a body, and what is written at once.
    http1.max_buf_size(32 * 1024);
    http1
}

/// How a connection ended.
enum End {
    Done,
    Late,
}

/// Serves a connection until it ends, is late, or is aborted; `stopping` becomes true when the server stops.
pub(super) async fn serve(
    stream: TcpStream,
    http1: http1::Builder,
    watch: Arc<Watch>,
    conversation: Conversation,
    mut stopping: Receiver<bool>,
) {
    let wire = Wire::new(stream, watch.clone());
    let mut connection = http1.serve_connection(TokioIo::new(wire), conversation);
    let end = {
        let mut stop = pin!(stopping.wait_for(|stopping| *stopping));
        let mut stopped = false;
        let mut timer = pin!(sleep_until(Instant::now() + FAR));
        poll_fn(|cx| {
            if !stopped && stop.as_mut().poll(cx).is_ready() {
                stopped = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            if let Poll::Ready(result) = Pin::new(&mut connection).poll(cx) {
                if let Err(error) = result {
                    tracing::trace!(%error, "connection broken off");
                }
                return Poll::Ready(End::Done);
            }
            loop {
                let now = Instant::now();
                let deadline = watch.deadline().unwrap_or(now + FAR);
                if deadline <= now {
                    return Poll::Ready(End::Late);
                }
                // A timer that goes off early only looks again; so it is set only when it would be late.
                if timer.deadline() <= now || timer.deadline() > deadline {
                    timer.as_mut().reset(deadline);
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    };
    if matches!(end, End::Late) && watch.in_head() {
        let stream = connection.into_parts().io.into_inner().into_inner();
        last_words(stream, &answer::slow_head()).await;
    }
}

/// Says why, in a few bytes, and closes.
pub(super) async fn last_words(mut stream: TcpStream, own: &answer::Own) {
    let bytes = answer::raw(own);
    let _ = timeout(LAST_WORDS, async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await
    })
    .await;
}
