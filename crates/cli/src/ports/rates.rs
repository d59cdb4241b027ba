//! Token buckets in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use storybus_core::domain::connection::Rate;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Rates, StoreError};

/// How many buckets are kept that are not full.
const CAPACITY: usize = 65_536;

/// Buckets in memory. A bucket is nothing but the time at which it is full again, so a full one need not be kept; at the
/// capacity the half that would be full first is forgotten.
#[derive(Debug)]
pub struct MemoryRates {
    /// When each bucket is full again, in microseconds.
    full_at: Mutex<HashMap<Box<str>, i64>>,
    capacity: usize,
}

impl Default for MemoryRates {
    fn default() -> Self {
        Self {
            full_at: Mutex::default(),
            capacity: CAPACITY,
        }
    }
}

impl MemoryRates {
    fn buckets(&self) -> MutexGuard<'_, HashMap<Box<str>, i64>> {
        self.full_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the bucket is full again after one was taken; or, when it is empty, when there will be one.
fn judge(full_at: Option<i64>, rate: Rate, now: i64) -> Result<i64, Millis> {
    let interval = 1_000_000 / i64::from(rate.per_second.max(1));
    let size = interval * i64::from(rate.burst.max(1));
    let after = full_at.unwrap_or(now).max(now).saturating_add(interval);
    if after - now <= size {
        return Ok(after);
    }
    Err(Millis((after - size + 999).div_euclid(1000)))
}

fn micros(now: Millis) -> i64 {
    now.0.saturating_mul(1000)
}

/// Makes room: full buckets go, then the half of the others that would be full first.
fn forget(buckets: &mut HashMap<Box<str>, i64>, now: i64, capacity: usize) {
    buckets.retain(|_, full_at| *full_at > now);
    if buckets.len() * 2 <= capacity {
        return;
    }
    let mut times: Vec<i64> = buckets.values().copied().collect();
    let (_, median, _) = times.select_nth_unstable(buckets.len() / 2);
    let median = *median;
    // Buckets that all fill up at one time cannot be told apart: let them go too.
    buckets.retain(|_, full_at| *full_at > median);
}

#[async_trait]
impl Rates for MemoryRates {
    async fn take(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError> {
        let now = micros(now);
        let mut buckets = self.buckets();
        if let Some(full_at) = buckets.get_mut(bucket) {
            return Ok(judge(Some(*full_at), rate, now)
                .map(|after| *full_at = after)
                .err());
        }
        match judge(None, rate, now) {
            Ok(after) => {
                if buckets.len() >= self.capacity {
                    forget(&mut buckets, now, self.capacity);
                }
                buckets.insert(bucket.into(), after);
                Ok(None)
            }
            Err(at) => Ok(Some(at)),
        }
    }

    async fn peek(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError> {
        Ok(judge(self.buckets().get(bucket).copied(), rate, micros(now)).err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 2,
        burst: 3,
    };

    #[tokio::test]
    async fn a_bucket_empties_and_refills() {
        let rates = MemoryRates::default();
        for _ in 0..3 {
            assert_eq!(rates.take("b", RATE, Millis(0)).await.unwrap(), None);
        }
        assert_eq!(rates.peek("b", RATE, Millis(0)).await.unwrap(), Some(Millis(500)));
        assert_eq!(rates.take("b", RATE, Millis(0)).await.unwrap(), Some(Millis(500)));
        assert_eq!(
            rates.take("other", RATE, Millis(0)).await.unwrap(),
            None,
            "buckets are apart"
        );
        assert_eq!(
            rates.take("b", RATE, Millis(499)).await.unwrap(),
            Some(Millis(500))
        );
        assert_eq!(rates.take("b", RATE, Millis(500)).await.unwrap(), None);
        for _ in 0..3 {
            assert_eq!(
                rates.take("b", RATE, Millis(60_000)).await.unwrap(),
                None,
                "never fuller than its size"
            );
        }
        assert!(rates.take("b", RATE, Millis(60_000)).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn memory_is_bounded_and_the_emptiest_buckets_stay() {
        let rates = MemoryRates {
            full_at: Mutex::default(),
            capacity: 100,
        };
        for _ in 0..3 {
            assert_eq!(rates.take("empty", RATE, Millis(0)).await.unwrap(), None);
        }
        for n in 0..10_000 {
            assert_eq!(rates.take(&format!("n{n}"), RATE, Millis(0)).await.unwrap(), None);
            assert!(rates.buckets().len() <= 100);
        }
        assert!(rates.peek("empty", RATE, Millis(0)).await.unwrap().is_some());
        for n in 0..200 {
            rates
                .take(&format!("later{n}"), RATE, Millis(3_600_000))
                .await
                .unwrap();
        }
        assert!(!rates.buckets().contains_key("empty"), "full by then");
    }
}
