//! The time that calls of AWS take and wait. It is the machine's own: a service does not know a test's clock.
#![expect(clippy::disallowed_methods, reason = "waiting for a service is real time")]

use std::time::{Duration, Instant};

/// Waits.
pub(crate) async fn rest(span: Duration) {
    tokio::time::sleep(span).await;
}

/// A result with the time that it took.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let value = work.await;
    (value, begun.elapsed())
}
