//! The ledger's promises, kept by calls whose answers are lost on the wire.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_testkit::FakeClock;
use storybus_testkit::memory::{Claims, Memory};
use storybus_testkit::suite::{Ability, Engine, Factory, Report, Stores, exercise};

use crate::proxy::Fault;
use crate::{Wire, engine};

/// More requests than any behaviour or schedule makes.
const REQUESTS: usize = 20_000;

/// A ledger on DynamoDB; everything else is in memory.
pub(crate) struct Half {
    wire: Wire,
    memory: Arc<Memory>,
}

#[async_trait]
impl Engine for Half {
    fn stores(&self) -> Stores {
        Stores {
            ledger: Arc::new(self.wire.aws.ledger()),
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
        let wire = Wire::of(engine::ledger().await).await;
        let faults = self.0.iter().copied();
        wire.proxy
            .plan(faults.cycle().take(REQUESTS * self.0.len().min(1)));
        let memory = Arc::new(Memory::with_claims(Arc::new(clock), Claims::Trusted));
        Box::new(Half { wire, memory })
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
