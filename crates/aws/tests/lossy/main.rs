//! The ledger's promises and those of publishing, kept by calls whose requests and answers are lost on the wire.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../engine/mod.rs"]
mod engine;
mod explore;
#[expect(dead_code, reason = "each test takes what it needs")]
#[path = "../proxy/mod.rs"]
mod proxy;

use std::sync::Arc;

use async_trait::async_trait;
use storybus_aws::Aws;
use storybus_testkit::FakeClock;
use storybus_testkit::memory::{Claims, Memory};
use storybus_testkit::suite::{Ability, Engine, Factory, Report, Stores, exercise};

use proxy::{Fault, Proxy};

/// The engine's factory is the suites'; here only its deployments are used.
const _: &dyn Factory = &engine::AwsFactory;

/// More requests than any behaviour or schedule makes.
const REQUESTS: usize = 20_000;

/// A ledger on DynamoDB; everything else is in memory.
pub(crate) struct Half {
    aws: Aws,
    /// It ends with this.
    _proxy: Proxy,
    memory: Arc<Memory>,
}

#[async_trait]
impl Engine for Half {
    fn stores(&self) -> Stores {
        Stores {
            ledger: Arc::new(self.aws.ledger()),
            ..Stores::of(&self.memory)
        }
    }

    async fn reopen(&mut self) {
        unreachable!("there is nothing that could be closed")
    }
}

/// Makes engines of which each request meets the next of these faults, over and over.
pub(crate) struct Lossy(pub(crate) &'static [Fault]);

#[async_trait]
impl Factory for Lossy {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        let direct = engine::ledger().await;
        let proxy = Proxy::start(engine::address()).await;
        let aws = Aws::new(&engine::shared_at(proxy.address()), direct.config().clone());
        let faults = self.0.iter().copied();
        proxy.plan(faults.cycle().take(REQUESTS * self.0.len().min(1)));
        let memory = Arc::new(Memory::with_claims(Arc::new(clock), Claims::Trusted));
        Box::new(Half {
            aws,
            _proxy: proxy,
            memory,
        })
    }

    fn lacks(&self) -> &[Ability] {
        &[Ability::Reopen, Ability::Claims, Ability::Answers]
    }
}

async fn keeps(faults: &'static [Fault]) -> Report {
    let report = exercise(&Lossy(faults), "suite::ledger::").await;
    assert_eq!((report.held.len(), report.skipped.len()), (48, 3), "{report}");
    report
}

#[tokio::test]
async fn every_first_answer_is_lost() {
    println!("aws: {}", keeps(&[Fault::AnswerLost, Fault::None]).await);
}

#[tokio::test]
async fn two_answers_of_three_are_lost() {
    println!(
        "aws: {}",
        keeps(&[Fault::AnswerLost, Fault::AnswerLost, Fault::None]).await
    );
}

#[tokio::test]
async fn requests_and_answers_are_lost_in_turn() {
    println!(
        "aws: {}",
        keeps(&[
            Fault::RequestLost,
            Fault::None,
            Fault::None,
            Fault::DeliveredBut(500, "InternalServerError"),
            Fault::None,
            Fault::AnswerLost,
            Fault::Answered(400, "ThrottlingException"),
            Fault::None,
        ])
        .await
    );
}
