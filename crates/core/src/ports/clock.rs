//! Time.

use std::time::Duration;

use async_trait::async_trait;

use crate::domain::time::Millis;

/// The time, and waiting for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now. Never earlier than an earlier call said, on the same node; on several nodes within 5 s of each other.
    fn now(&self) -> Millis;

    /// Comes back when `span` has passed.
    async fn sleep(&self, span: Duration);
}
