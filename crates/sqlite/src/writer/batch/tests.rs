use std::sync::Mutex;

use storybus_testkit::FakeClock;

use super::*;
use crate::checkpoint::CheckpointLimits;
use crate::rows::Rows as _;

type Answers = Arc<Mutex<Vec<(&'static str, Result<(), StoreError>)>>>;

/// Adds a workspace's number, or fails, or panics.
struct Step(&'static str, Answers);

impl Command for Step {
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        tx.number(&"w-shared".parse().unwrap())?;
        match self.0 {
            "fails" => tx
                .execute("INSERT INTO workspace_number (workspace) VALUES ('w-shared')", [])
                .map(drop),
            "panics" => panic!("on purpose"),
            "is broken" => Err(Failure::Stored("broken".to_owned())),
            other => tx.number(&other.parse().unwrap()).map(drop),
        }
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        self.1.lock().unwrap().push((self.0, outcome));
    }
}

fn batches(directory: &tempfile::TempDir) -> Batches {
    let mut connection = Connection::open(directory.path().join("bus.db")).unwrap();
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .unwrap();
    crate::schema::migrate(&mut connection).unwrap();
    let durability = Arc::new(Durability::new());
    let checkpoints = Arc::new(Checkpoints::new(
        CheckpointLimits::default(),
        Arc::clone(&durability),
    ));
    let clock = Arc::new(EngineClock::new(Arc::new(FakeClock::new()), Millis(0)));
    Batches::new(
        connection,
        Arc::new(Registry::default()),
        clock,
        durability,
        checkpoints,
        Arc::default(),
        std::time::Duration::from_secs(30 * 24 * 3600),
    )
    .unwrap()
}

#[test]
fn a_command_that_fails_takes_no_other_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut batches = batches(&directory);
    let answers = Answers::default();
    let steps = ["w1", "fails", "w2", "panics", "is broken", "w3"];
    let mut waiting: Vec<Box<dyn Command>> = steps
        .iter()
        .map(|step| Box::new(Step(step, Arc::clone(&answers))) as Box<dyn Command>)
        .collect();
    batches.run(&mut waiting);
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert_eq!(answers.iter().map(|(step, _)| *step).collect::<Vec<_>>(), steps);
    for (step, outcome) in answers {
        assert_eq!(outcome.is_ok(), step.starts_with('w'), "{step}: {outcome:?}");
        assert!(
            matches!(outcome, Ok(()) | Err(StoreError::Internal { .. })),
            "{step}: {outcome:?}"
        );
    }
    let written = batches.transaction(|tx| {
        let names = tx.all(
            "SELECT workspace FROM workspace_number ORDER BY number",
            [],
            |row| row.get::<_, String>(0),
        )?;
        assert_eq!(names, ["w-shared", "w1", "w2", "w3"]);
        assert_eq!(
            tx.known_number(&"w-shared".parse().unwrap())?,
            Some(1),
            "what was rolled back is not remembered"
        );
        Ok(())
    });
    assert!(written.is_ok());
}

#[test]
fn only_what_was_written_is_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let mut batches = batches(&directory);
    let answers = Answers::default();
    let commits = |batches: &Batches| batches.durability.last().commit;
    batches.run(&mut vec![Box::new(Step("w1", Arc::clone(&answers)))]);
    let before = commits(&batches);
    batches.run(&mut vec![Box::new(Step("w1", Arc::clone(&answers)))]);
    assert_eq!(commits(&batches), before, "there was nothing to write");
    batches.run(&mut vec![Box::new(Step("w2", answers))]);
    assert_eq!(commits(&batches), before + 1);
}

#[test]
fn a_failed_store_does_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let mut batches = batches(&directory);
    let answers = Answers::default();
    batches.fail("the disk is gone");
    batches.run(&mut vec![Box::new(Step("w1", Arc::clone(&answers)))]);
    let answers = std::mem::take(&mut *answers.lock().unwrap());
    assert!(
        matches!(&answers[0].1, Err(StoreError::Unavailable { reason }) if reason.contains("gone")),
        "{answers:?}"
    );
    batches.close();
    let wal = std::fs::metadata(directory.path().join("bus.db-wal"))
        .unwrap()
        .len();
    assert!(wal > 0, "nothing is copied from pages that may be lost");
}
