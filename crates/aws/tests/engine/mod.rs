//! The engine as the suites want it: a deployment of its own on an emulator that this test process starts.

mod activity;
mod emulator;
mod halves;
mod moved;
mod queues;
mod tables;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;
use storybus_aws::{Aws, Config};
use storybus_core::ports::{Clock, Random};
use storybus_testkit::memory::{Claims, Memory};
use storybus_testkit::suite::{Ability, Engine, Factory, Stores};
use storybus_testkit::{FakeClock, SeededRandom};

use activity::Followed;
use halves::Halves;
use moved::{Moved, Moving};

/// The emulator's one account.
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

/// Where the emulator listens.
pub(crate) fn address() -> &'static str {
    emulator::address()
}

/// Settings that reach the emulator.
pub(crate) fn shared() -> SdkConfig {
    shared_at(address())
}

/// Settings that reach it by another address.
pub(crate) fn shared_at(endpoint: &str) -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .endpoint_url(endpoint)
        .credentials_provider(aws_sdk_dynamodb::config::SharedCredentialsProvider::new(
            Credentials::new("test", "test", None, None, "tests"),
        ))
        .build()
}

/// A fresh deployment: names that no other has, and its tables.
pub(crate) async fn deployment() -> Aws {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let config = Config {
        table: format!("{prefix}-bus"),
        archive_table: format!("{prefix}-archive"),
        signing_keys: format!("{prefix}-signing-keys"),
        prefix,
        partition: "aws".to_owned(),
        region: REGION.to_owned(),
        account: ACCOUNT.to_owned(),
        queue_endpoint: emulator::address().to_owned(),
        archive_retention: Duration::from_secs(30 * 24 * 3600),
        archive_settle: Duration::ZERO,
        alarm_topic: None,
    };
    let aws = Aws::new(&shared(), config);
    tables::create(&shared(), aws.config()).await;
    queues::create(&shared(), aws.config()).await;
    aws
}

/// Randomness that no other engine has: the emulator knows the names of writes of all tables.
pub(crate) fn random() -> Arc<dyn Random> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let seed = NEXT
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_mul(0x1234_5678_9ABC_DEF1);
    Arc::new(SeededRandom::new(seed))
}

/// An engine on a deployment of its own.
pub(crate) struct AwsEngine {
    aws: Aws,
    clock: FakeClock,
    random: Arc<dyn Random>,
    activity: Arc<Followed>,
    /// Ports that the test at hand does not look at.
    memory: Arc<Memory>,
}

#[async_trait]
impl Engine for AwsEngine {
    fn stores(&self) -> Stores {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let random = &self.random;
        let connections = Arc::new(self.aws.connections(clock.clone(), random.clone()));
        let mover = self.aws.mover(connections.clone(), clock.clone());
        let moving = Moving::new(&shared(), self.aws.config(), mover);
        let archive = self.memory.clone();
        let queues = self
            .aws
            .queues(connections.clone(), archive, clock.clone(), random.clone());
        Stores {
            workspaces: Arc::new(self.aws.workspaces(clock.clone(), random.clone())),
            connections,
            audit: Arc::new(self.aws.audit()),
            jobs: Arc::new(self.aws.jobs(clock.clone(), random.clone())),
            activity: self.activity.clone(),
            ledger: Arc::new(self.aws.ledger()),
            stories: Arc::new(self.aws.stories()),
            topic: Arc::new(Halves {
                topic: self.aws.topic(),
                memory: self.memory.clone(),
            }),
            queues: Arc::new(Moved {
                port: queues,
                moving: moving.clone(),
            }),
            queue_control: Arc::new(Moved {
                port: self.aws.queue_control(clock.clone()),
                moving: moving.clone(),
            }),
            dead_letters: Arc::new(Moved {
                port: self.aws.dead_letters(clock),
                moving,
            }),
            ..Stores::of(&self.memory)
        }
    }

    async fn reopen(&mut self) {}

    async fn settle(&self) {
        self.activity.settle().await;
    }
}

/// Makes them.
pub(crate) struct AwsFactory;

#[async_trait]
impl Factory for AwsFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        let memory = Arc::new(Memory::with_claims(Arc::new(clock.clone()), Claims::Trusted));
        let aws = deployment().await;
        let activity = Followed::new(aws.activity(Arc::new(clock.clone())));
        Box::new(AwsEngine {
            activity: Arc::new(activity),
            aws,
            clock,
            random: random(),
            memory,
        })
    }

    fn lacks(&self) -> &[Ability] {
        &[
            Ability::Time,
            Ability::Reopen,
            Ability::Claims,
            Ability::Counts,
            Ability::Arrivals,
            Ability::Traces,
            Ability::Purges,
            Ability::Turns,
            Ability::Forward,
        ]
    }
}
