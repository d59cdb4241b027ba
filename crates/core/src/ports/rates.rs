//! Token buckets: how often something may happen.

use async_trait::async_trait;

use super::StoreError;
use crate::domain::connection::Rate;
use crate::domain::time::Millis;

/// Named token buckets. A bucket that was never used is full. They may be forgotten on a restart.
#[async_trait]
pub trait Rates: Send + Sync {
    /// Takes one from the bucket; when it is empty, takes nothing and says when there will be one.
    async fn take(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError>;

    /// Says when there will be one, without taking it; `None` when there is one now.
    async fn peek(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError>;
}
