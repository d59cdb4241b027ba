//! Token buckets.
//!
//! A bucket is nothing but the time at which it is full again, so a full one need not be kept: its item expires. Taking one is one
//! conditional write; a bucket that is not full takes a second. A take whose answer was lost and that is repeated takes twice, which
//! makes a producer wait a little longer, never shorter.

use async_trait::async_trait;
use storybus_core::domain::connection::Rate;
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Rates, StoreError};

use crate::Aws;
use crate::item::{Attributes, Item, expiry, n};
use crate::keys;
use crate::writes::{Action, Check, Committed};

/// How often a take meets rivals before it gives up.
const RIVALS: usize = 10;

/// [`Rates`] on DynamoDB.
#[derive(Clone)]
pub struct DynamoRates {
    aws: Aws,
}

impl Aws {
    /// Token buckets.
    #[must_use]
    pub fn rates(&self) -> DynamoRates {
        DynamoRates { aws: self.clone() }
    }
}

/// A rate in microseconds.
struct Bucket {
    now: i64,
    /// How long one takes to come back.
    interval: i64,
    /// How long an empty bucket takes to be full.
    size: i64,
}

impl Bucket {
    fn new(rate: Rate, now: Millis) -> Self {
        let interval = 1_000_000 / i64::from(rate.per_second.max(1));
        Self {
            now: now.0.saturating_mul(1000),
            interval,
            size: interval * i64::from(rate.burst.max(1)),
        }
    }

    /// The last time at which the bucket may be full again if there is to be one in it now.
    fn limit(&self) -> i64 {
        self.now.saturating_add(self.size - self.interval)
    }

    /// When there will be one; none: now.
    fn wait(&self, full_at: i64) -> Option<Millis> {
        let over = full_at.max(self.now) - self.limit();
        (over > 0).then(|| Millis((self.now + over + 999).div_euclid(1000)))
    }

    /// Not before the bucket is full.
    fn expires_at(&self) -> Millis {
        Millis(self.now.saturating_add(self.size) / 1000 + 1000)
    }
}

#[async_trait]
impl Rates for DynamoRates {
    async fn take(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError> {
        let (key, rate) = (keys::rate(bucket), Bucket::new(rate, now));
        for _ in 0..RIVALS {
            let from_full = Action::update(key.clone(), "SET full_at = :full_at, expires_at = :expires_at")
                .when("attribute_not_exists(pk) OR full_at <= :now")
                .value(":full_at", n(rate.now.saturating_add(rate.interval)))
                .value(":now", n(rate.now));
            let Some(full_at) = self.write(from_full, &rate).await? else {
                return Ok(None);
            };
            if let Some(at) = rate.wait(full_at) {
                return Ok(Some(at));
            }
            let from_part = Action::update(
                key.clone(),
                "SET full_at = full_at + :interval, expires_at = :expires_at",
            )
            .when("full_at > :now AND full_at <= :limit")
            .value(":interval", n(rate.interval))
            .value(":now", n(rate.now))
            .value(":limit", n(rate.limit()));
            if self.write(from_part, &rate).await?.is_none() {
                return Ok(None);
            }
        }
        Err(StoreError::Unavailable {
            reason: "too many take from one bucket".to_owned(),
        })
    }

    async fn peek(&self, bucket: &str, rate: Rate, now: Millis) -> Result<Option<Millis>, StoreError> {
        let (key, rate) = (keys::rate(bucket), Bucket::new(rate, now));
        let item = self
            .aws
            .caller
            .read(|| async {
                let request = self
                    .aws
                    .dynamodb
                    .get_item()
                    .table_name(&self.aws.config.table)
                    .set_key(Some(key.clone()))
                    .consistent_read(true);
                Ok(request.send().await?.item)
            })
            .await?;
        Ok(rate.wait(full_at(item.as_ref())))
    }
}

impl DynamoRates {
    /// Writes; when the condition failed, when the bucket is full again.
    async fn write(&self, action: Action, rate: &Bucket) -> Result<Option<i64>, StoreError> {
        let action = action.value(":expires_at", expiry(rate.expires_at()));
        Ok(match self.aws.write_one(&self.aws.config.table, action).await? {
            Committed::Done => None,
            Committed::Refused { checks, .. } => Some(full_at(checks.first().and_then(Check::item))),
        })
    }
}

/// When a bucket is full again; one that was never used has been for ever.
fn full_at(item: Option<&Item>) -> i64 {
    item.and_then(|item| item.number("full_at"))
        .unwrap_or(i64::MIN / 2)
}
