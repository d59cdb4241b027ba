//! Token buckets in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use storybus_core::domain::connection::Rate;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Rates, StoreError};

/// Buckets that are always full.
#[derive(Debug, Clone, Copy, Default)]
pub struct FreeRates;

#[async_trait]
impl Rates for FreeRates {
    async fn take(&self, _bucket: &str, _rate: Rate, _now: Millis) -> Result<Option<Millis>, StoreError> {
        Ok(None)
    }

    async fn peek(&self, _bucket: &str, _rate: Rate, _now: Millis) -> Result<Option<Millis>, StoreError> {
        Ok(None)
    }
}

/// Buckets in memory: a bucket is the time at which it will be full again, in microseconds.
#[derive(Debug, Default)]
pub struct MemoryRates(Mutex<HashMap<String, i128>>);

impl MemoryRates {
    fn buckets(&self) -> MutexGuard<'_, HashMap<String, i128>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the bucket would be full again after taking one, or when there will be one to take.
fn judge(full_at: Option<i128>, rate: Rate, now: Millis) -> Result<i128, Millis> {
    let now = i128::from(now.0) * 1000;
    let refill = 1_000_000 / i128::from(rate.per_second.max(1));
    let size = refill * i128::from(rate.burst.max(1));
    let after = full_at.unwrap_or(now).max(now) + refill;
    if after - now <= size {
        return Ok(after);
    }
    let at = (after - size + 999).div_euclid(1000);
    Err(Millis(i64::try_from(at).unwrap_or(i64::MAX)))
}

#[async_trait]
impl Rates for MemoryRates {
    async fn take(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError> {
        let mut buckets = self.buckets();
        match judge(buckets.get(bucket).copied(), rate, now) {
            Ok(full_at) => {
                buckets.insert(bucket.to_owned(), full_at);
                Ok(None)
            }
            Err(at) => Ok(Some(at)),
        }
    }

    async fn peek(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError> {
        Ok(judge(self.buckets().get(bucket).copied(), rate, now).err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::run;

    #[test]
    fn a_bucket_empties_and_refills() {
        run(async {
            let rates = MemoryRates::default();
            let rate = Rate {
                per_second: 2,
                burst: 3,
            };
            for _ in 0..3 {
                assert_eq!(rates.take("b", rate, Millis(0)).await.unwrap(), None);
            }
            assert_eq!(rates.peek("b", rate, Millis(0)).await.unwrap(), Some(Millis(500)));
            assert_eq!(rates.take("b", rate, Millis(0)).await.unwrap(), Some(Millis(500)));
            assert_eq!(
                rates.take("other", rate, Millis(0)).await.unwrap(),
                None,
                "buckets are apart"
            );
            assert_eq!(
                rates.take("b", rate, Millis(499)).await.unwrap(),
                Some(Millis(500))
            );
            assert_eq!(rates.take("b", rate, Millis(500)).await.unwrap(), None);
            for _ in 0..3 {
                assert_eq!(
                    rates.take("b", rate, Millis(60_000)).await.unwrap(),
                    None,
                    "never fuller than its size"
                );
            }
            assert!(rates.take("b", rate, Millis(60_000)).await.unwrap().is_some());
        });
    }
}
