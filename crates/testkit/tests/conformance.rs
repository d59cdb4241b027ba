//! Every behaviour of every port, over the engine in memory.

use storybus_testkit::executor::run_alone;
use storybus_testkit::suite::{MemoryFactory, SUITES, exercise_all};

#[test]
fn memory_keeps_every_promise() {
    let report = run_alone(exercise_all(&MemoryFactory));
    println!("memory: {report}");
    assert_eq!(
        report.held.len(),
        SUITES.iter().map(|suite| suite.len()).sum::<usize>()
    );
}
