//! All ports of a bus for a test.

use std::sync::Arc;

use storybus_core::Ports;
use storybus_core::ports::{Clock, Random};

use crate::hasher::PlainHasher;
use crate::keys::FixedKeys;
use crate::rates::FreeRates;
use crate::suite::Stores;

/// The ports of a bus on these stores: secrets cost nothing, rates are free, the signing key is known to everybody.
#[must_use]
pub fn ports(stores: &Stores, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Ports {
    Ports {
        clock,
        random,
        ledger: Arc::clone(&stores.ledger),
        topic: Arc::clone(&stores.topic),
        queues: Arc::clone(&stores.queues),
        queue_control: Arc::clone(&stores.queue_control),
        dead_letters: Arc::clone(&stores.dead_letters),
        archive: Arc::clone(&stores.archive),
        stories: Arc::clone(&stores.stories),
        jobs: Arc::clone(&stores.jobs),
        activity: Arc::clone(&stores.activity),
        workspaces: Arc::clone(&stores.workspaces),
        connections: Arc::clone(&stores.connections),
        audit: Arc::clone(&stores.audit),
        rates: Arc::new(FreeRates),
        hasher: Arc::new(PlainHasher),
        keys: Arc::new(FixedKeys::default()),
    }
}
