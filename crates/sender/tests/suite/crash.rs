//! A process that is killed between the business write and the commit, or after it.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use storybus_sender::outbox::State;

use crate::relay::Running;
use crate::support::{Caller, Db, Partner, Recorder, message, on_both};

/// Says to the child below which database it works on, and how far it goes.
const AT: &str = "STORYBUS_TEST_CRASH_AT";
const UNTIL: &str = "STORYBUS_TEST_CRASH_UNTIL";

/// Runs the child until it says that it is so far, and kills it there.
fn crash(db: &Db, until: &'static str) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["crash::child", "--exact", "--ignored", "--nocapture"])
        .env(AT, &db.url)
        .env(UNTIL, until)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child runs");
    let said = BufReader::new(child.stdout.take().expect("its output"))
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains(until));
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    assert!(said, "the child never came to {until}");
}

/// What the child does, as a newsroom's program would: a row of its own and the message that tells of it.
#[tokio::test]
#[ignore = "it is the child that the other tests here start and kill"]
async fn child() {
    let url = std::env::var(AT).expect("the database");
    let until = std::env::var(UNTIL).expect("how far");
    let mut caller = Caller::connect(&url).await;
    let far = |now: &str| {
        if until == now {
            println!("{now}");
            // Until it is killed.
            loop {
                std::thread::park();
            }
        }
    };
    caller.begin().await;
    caller
        .run(&format!("INSERT INTO invoice (name) VALUES ('{until}')"))
        .await;
    far("the business row is written");
    caller.enqueue(&message(&until.replace(' ', "-"))).await;
    far("the message is written");
    caller.run("COMMIT").await;
    far("the transaction is committed");
}

on_both! {
    async fn neither_the_row_nor_the_message_exists_without_the_other(db) {
        let mut caller = db.caller().await;
        caller.run("CREATE TABLE invoice (name VARCHAR(100) PRIMARY KEY)").await;
        for until in ["the business row is written", "the message is written", "the transaction is committed"] {
            tokio::task::block_in_place(|| crash(&db, until));
        }
        // PostgreSQL notices that a client is gone when it next reads from it; what that one wrote is not seen meanwhile.
        assert_eq!(caller.texts("SELECT name FROM invoice").await, ["the transaction is committed"]);
        assert_eq!(caller.texts("SELECT key FROM sender_log").await, ["the-transaction-is-committed"]);
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(1).await;
        relay.stop().await;
        assert_eq!(db.state("the-transaction-is-committed").await, State::Delivered);
    }
}
