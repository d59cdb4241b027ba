//! Every behaviour of every port, over SQLite.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use async_trait::async_trait;
use engine::SqliteEngine;
use storybus_testkit::FakeClock;
use storybus_testkit::executor::run;
use storybus_testkit::suite::{Engine, Factory, SUITES, exercise_all};

struct SqliteFactory;

#[async_trait]
impl Factory for SqliteFactory {
    async fn engine(&self, clock: FakeClock) -> Box<dyn Engine> {
        Box::new(SqliteEngine::new(&clock))
    }
}

#[test]
fn sqlite_keeps_every_promise() {
    let report = run(exercise_all(&SqliteFactory));
    println!("sqlite: {report}");
    assert_eq!(
        report.held.len(),
        SUITES.iter().map(|suite| suite.len()).sum::<usize>()
    );
}
