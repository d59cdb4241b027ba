//! Every behaviour of every port, over the engine in memory, bare and in ports that could fail.

use std::sync::Arc;

use async_trait::async_trait;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run_alone;
use storybus_testkit::faulty::{self, Plan};
use storybus_testkit::suite::{Engine, Factory, MemoryFactory, SUITES, Stores, exercise_all};

fn behaviours() -> usize {
    SUITES.iter().map(|suite| suite.len()).sum()
}

#[test]
fn memory_keeps_every_promise() {
    let report = run_alone(exercise_all(&MemoryFactory));
    println!("memory: {report}");
    assert_eq!(report.held.len(), behaviours());
}

/// Makes engines in memory whose ports meet no fault, though they could.
struct WrappedFactory;

struct Wrapped(Box<dyn Engine>);

#[async_trait]
impl Engine for Wrapped {
    fn stores(&self) -> Stores {
        faulty::stores(&self.0.stores(), &(Arc::new(Plan::new()) as _))
    }

    async fn reopen(&mut self) {
        self.0.reopen().await;
    }
}

#[async_trait]
impl Factory for WrappedFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        Box::new(Wrapped(MemoryFactory.engine(clock).await))
    }
}

/// A wrapped port passes on what it is given, and gives back what comes.
#[test]
fn ports_that_could_fail_keep_every_promise() {
    let report = run_alone(exercise_all(&WrappedFactory));
    println!("wrapped: {report}");
    assert_eq!(report.held.len(), behaviours());
}
