//! How an outbox's file on SQLite is kept is its owner's choice.

use storybus_sender::outbox::{Filter, Migrated, Outbox, State};

use crate::relay::Running;
use crate::support::{Caller, Db, Partner, Recorder, message};

async fn mode(caller: &mut Caller) -> String {
    caller.texts("PRAGMA journal_mode").await.remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_migration_that_makes_the_table_sets_write_ahead_logging_and_nothing_else_does() {
    let db = Db::sqlite().await;
    let mut caller = db.caller().await;
    assert_eq!(mode(&mut caller).await, "wal");
    db.outbox.close().await;
    caller.run("PRAGMA journal_mode = DELETE").await;
    assert_eq!(mode(&mut caller).await, "delete");

    // A reader of the program's own, for as long as it likes.
    caller.run("BEGIN").await;
    assert_eq!(caller.int("SELECT count(*) FROM sender_log").await, 0);
    let outbox = Outbox::open(&db.url).expect("an address");
    assert_eq!(outbox.migrate().await, Ok(Migrated::UpToDate));
    assert_eq!(outbox.probe().await, Ok(()));
    assert_eq!(outbox.list(&Filter::default(), 10).await, Ok(Vec::new()));
    caller.run("ROLLBACK").await;

    outbox.enqueue(&message("a")).await.expect("enqueued");
    let (partner, recorder) = (Partner::new(), Recorder::new());
    let relay = Running::start(db.relay_on(&outbox, &partner, &recorder));
    recorder.ended(1).await;
    relay.stop().await;
    outbox.close().await;
    assert_eq!(db.state("a").await, State::Delivered);
    assert_eq!(mode(&mut caller).await, "delete");
}
