//! The bus's ports on AWS, by the caller's own credentials.

use std::sync::Arc;

use storybus_aws::Aws;
use storybus_core::Ports;
use storybus_core::ports::{Clock, Random};

use crate::ports::{Argon2Hasher, OsRandom, SystemClock};

/// All of them.
pub(super) fn of(aws: &Aws) -> Ports {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random: Arc<dyn Random> = Arc::new(OsRandom);
    let archive = Arc::new(aws.archive(clock.clone()));
    let connections = Arc::new(aws.connections(clock.clone(), random.clone()));
    let hasher = Arc::new(Argon2Hasher::new(random.clone()));
    Ports {
        ledger: Arc::new(aws.ledger()),
        topic: Arc::new(aws.topic()),
        queues: Arc::new(aws.queues(
            connections.clone(),
            archive.clone(),
            clock.clone(),
            random.clone(),
        )),
        queue_control: Arc::new(aws.queue_control(clock.clone())),
        dead_letters: Arc::new(aws.dead_letters(clock.clone())),
        archive,
        stories: Arc::new(aws.stories()),
        jobs: Arc::new(aws.jobs(clock.clone(), random.clone())),
        activity: Arc::new(aws.activity(clock.clone())),
        workspaces: Arc::new(aws.workspaces(clock.clone(), random.clone())),
        connections,
        audit: Arc::new(aws.audit()),
        rates: Arc::new(aws.rates()),
        keys: Arc::new(aws.public_keys()),
        hasher,
        clock,
        random,
    }
}
