//! Ports of the publish path that say how long each step took, and what became of claims.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use storybus_core::domain::message::Publication;
use storybus_core::domain::record::{RecordKey, StoryKey};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, Reading, Recorded, Removal, Supersession, Written,
};
use storybus_core::ports::topic::PublishError;
use storybus_core::ports::{Ledger, StoreError, Topic};

use super::Meter;
use crate::ports::Stopwatch;

/// A ledger that is measured.
pub struct TimedLedger {
    inner: Arc<dyn Ledger>,
    meter: Arc<Meter>,
    claimed: Arc<AtomicBool>,
}

/// A topic that is measured.
pub struct TimedTopic {
    inner: Arc<dyn Topic>,
    meter: Arc<Meter>,
    claimed: Arc<AtomicBool>,
}

/// Both, measured. A publication that follows a claim is a republication: a function works on one message at a time.
#[must_use]
pub fn timed(
    ledger: Arc<dyn Ledger>,
    topic: Arc<dyn Topic>,
    meter: &Arc<Meter>,
) -> (TimedLedger, TimedTopic) {
    let claimed = Arc::new(AtomicBool::new(false));
    let of_ledger = TimedLedger {
        inner: ledger,
        meter: Arc::clone(meter),
        claimed: Arc::clone(&claimed),
    };
    let of_topic = TimedTopic {
        inner: topic,
        meter: Arc::clone(meter),
        claimed,
    };
    (of_ledger, of_topic)
}

impl TimedLedger {
    async fn measured<T>(&self, name: &'static str, call: impl Future<Output = T>) -> T {
        let watch = Stopwatch::start();
        let result = call.await;
        self.meter.time(name, watch.millis());
        result
    }
}

#[async_trait]
impl Ledger for TimedLedger {
    async fn read(
        &self,
        key: &RecordKey,
        story: Option<&StoryKey>,
        now: Millis,
    ) -> Result<Reading, StoreError> {
        self.measured("LedgerRead", self.inner.read(key, story, now))
            .await
    }

    async fn record(&self, new: &NewRecord) -> Result<Recorded, StoreError> {
        self.claimed.store(false, Ordering::Relaxed);
        self.measured("LedgerRecord", self.inner.record(new)).await
    }

    async fn claim(&self, claim: &NewClaim) -> Result<Written, StoreError> {
        let written = self.measured("LedgerClaim", self.inner.claim(claim)).await;
        let done = matches!(written, Ok(Written::Done));
        self.claimed.store(done, Ordering::Relaxed);
        match written {
            Ok(Written::Done) => self.meter.count("Claims", 1),
            Ok(Written::Lost) => self.meter.count("ClaimsLost", 1),
            Err(_) => {}
        }
        written
    }

    async fn supersede(&self, supersession: &Supersession) -> Result<Written, StoreError> {
        self.measured("LedgerSupersede", self.inner.supersede(supersession))
            .await
    }

    async fn remove(&self, removal: &Removal) -> Result<Written, StoreError> {
        self.measured("LedgerRemove", self.inner.remove(removal)).await
    }

    async fn give_back(&self, give_back: &GiveBack) -> Result<Written, StoreError> {
        self.measured("LedgerGiveBack", self.inner.give_back(give_back))
            .await
    }

    async fn mark(&self, marking: &Marking) -> Result<Written, StoreError> {
        self.measured("LedgerMark", self.inner.mark(marking)).await
    }
}

#[async_trait]
impl Topic for TimedTopic {
    async fn publish(&self, publication: &Publication, timeout: Duration) -> Result<(), PublishError> {
        let watch = Stopwatch::start();
        let result = self.inner.publish(publication, timeout).await;
        self.meter.time("TopicPublish", watch.millis());
        match &result {
            Ok(()) if self.claimed.swap(false, Ordering::Relaxed) => self.meter.count("Republications", 1),
            Ok(()) => {}
            Err(PublishError::Refused { .. }) => self.meter.count("PublicationsRefused", 1),
            Err(PublishError::Unknown { .. }) => self.meter.count("PublicationsUnknown", 1),
        }
        result
    }
}
