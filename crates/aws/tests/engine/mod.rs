//! The engine as the suites want it: a deployment of its own on an emulator that this test process starts.

mod activity;
mod emulator;
mod filed;
mod moved;
mod queues;
mod tables;
mod wall;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;
use storybus_aws::{Aws, Config};
use storybus_core::domain::time::Millis;
use storybus_core::ports::{Clock, Random};
use storybus_testkit::suite::{Ability, Engine, Factory, Stores};
use storybus_testkit::{FakeClock, SeededRandom};

use activity::Followed;
use filed::{Filed, Filing};
use moved::{Moved, Moving};
use wall::Wall;

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

/// A fresh deployment: names that no other has, its tables and queues.
pub(crate) async fn deployment() -> Aws {
    let aws = ledger().await;
    tables::archive(&shared(), aws.config()).await;
    queues::create(&shared(), aws.config()).await;
    aws
}

/// One that has the bus's table alone.
pub(crate) async fn ledger() -> Aws {
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
    tables::bus(&shared(), aws.config()).await;
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
    filing: Arc<Filing>,
}

#[async_trait]
impl Engine for AwsEngine {
    fn stores(&self) -> Stores {
        let (aws, random) = (&self.aws, &self.random);
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let connections = Arc::new(aws.connections(clock.clone(), random.clone()));
        let mover = aws.mover(connections.clone(), clock.clone());
        let moving = Moving::new(&shared(), aws.config(), mover);
        let archive = Arc::new(aws.archive(Arc::new(Wall(self.clock.clone()))));
        let queues = aws.queues(
            connections.clone(),
            archive.clone(),
            clock.clone(),
            random.clone(),
        );
        Stores {
            workspaces: Arc::new(aws.workspaces(clock.clone(), random.clone())),
            connections,
            audit: Arc::new(aws.audit()),
            jobs: Arc::new(aws.jobs(clock.clone(), random.clone())),
            activity: self.activity.clone(),
            ledger: Arc::new(aws.ledger()),
            stories: Arc::new(aws.stories()),
            topic: Arc::new(aws.topic()),
            queues: Arc::new(Moved {
                port: queues,
                moving: moving.clone(),
                filing: self.filing.clone(),
            }),
            queue_control: Arc::new(Moved {
                port: aws.queue_control(clock.clone()),
                moving: moving.clone(),
                filing: self.filing.clone(),
            }),
            dead_letters: Arc::new(Moved {
                port: aws.dead_letters(clock),
                moving,
                filing: self.filing.clone(),
            }),
            archive: Arc::new(Filed {
                archive,
                filing: self.filing.clone(),
            }),
        }
    }

    async fn reopen(&mut self) {
        unreachable!("there is nothing that could be closed")
    }

    async fn settle(&self) {
        self.activity.settle().await;
        self.filing.all().await;
    }
}

/// Makes them.
pub(crate) struct AwsFactory;

#[async_trait]
impl Factory for AwsFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        let aws = deployment().await;
        let random = random();
        aws.make_seal(&*random).await.unwrap();
        let activity = Followed::new(aws.activity(Arc::new(clock.clone())));
        let filing = Filing::new(&shared(), aws.config(), aws.archiver());
        Box::new(AwsEngine {
            activity: Arc::new(activity),
            filing: Arc::new(filing),
            aws,
            clock,
            random,
        })
    }

    fn begins(&self) -> Millis {
        // a whole second: DynamoDB keeps no other times of expiry, and the bus rounds them up
        Millis(wall::now().0 / 1000 * 1000)
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
            Ability::Compaction,
        ]
    }
}
