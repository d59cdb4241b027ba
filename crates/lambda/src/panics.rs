//! Panics stay in the request that they are of.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// What broke off; the panic is in the log already, by the hook of [`logs::start`](crate::logs::start).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// The future's output, unless it panics. What it shares with others must be whole after each statement, as the bus's locks are
/// (none of them is poisoned for good).
///
/// # Errors
///
/// It panicked.
pub async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    // on the heap, as in the runtime
    AssertUnwindSafe(Box::pin(future))
        .catch_unwind()
        .await
        .map_err(|_| Panicked)
}
