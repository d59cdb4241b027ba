//! The engine as the suites want it: a deployment of its own on an emulator that this test process starts.

mod emulator;
mod tables;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::Credentials;
use storybus_aws::{Aws, Config};
use storybus_testkit::FakeClock;
use storybus_testkit::memory::Memory;
use storybus_testkit::suite::{Ability, Engine, Factory, Stores};

/// The emulator's one account.
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

/// Settings that reach the emulator.
pub(crate) fn shared() -> SdkConfig {
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(REGION))
        .endpoint_url(emulator::address())
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
    aws
}

/// An engine on a deployment of its own.
pub(crate) struct AwsEngine {
    aws: Aws,
    clock: FakeClock,
    /// Ports that the test at hand does not look at.
    memory: Arc<Memory>,
}

#[async_trait]
impl Engine for AwsEngine {
    fn stores(&self) -> Stores {
        let _ = &self.clock;
        Stores {
            ledger: Arc::new(self.aws.ledger()),
            stories: Arc::new(self.aws.stories()),
            ..Stores::of(&self.memory)
        }
    }

    async fn reopen(&mut self) {}
}

/// Makes them.
pub(crate) struct AwsFactory;

#[async_trait]
impl Factory for AwsFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        let memory = Arc::new(Memory::new(Arc::new(clock.clone())));
        Box::new(AwsEngine {
            aws: deployment().await,
            clock,
            memory,
        })
    }

    fn lacks(&self) -> &[Ability] {
        &[Ability::Time, Ability::Claims]
    }
}
