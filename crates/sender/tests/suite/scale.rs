//! What waits does not slow down what goes.

use storybus_sender::outbox::{Filter, State};

use crate::relay::Running;
use crate::support::partner::busy;
use crate::support::{Db, Partner, Recorder, message, of_group, on_both};

/// So many messages stand behind the one that is stuck.
const BEHIND: usize = 100_000;

async fn pile_up(db: &Db) {
    let numbers = if db.is_postgres() {
        format!("SELECT n FROM generate_series(1, {BEHIND}) AS n")
    } else {
        format!(
            "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {BEHIND}) SELECT n FROM s"
        )
    };
    db.caller()
        .await
        .run(&format!(
            "INSERT INTO sender_log (target, key, order_group, payload) SELECT 'bus', 'behind-' || n, 'stuck', 'x' FROM ({numbers}) AS numbers"
        ))
        .await;
}

on_both! {
    async fn a_stuck_line_of_a_hundred_thousand_holds_nobody_else_up(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("head", [busy()]);
        db.enqueue(&of_group("stuck", "head")).await;
        pile_up(&db).await;
        let limits = storybus_sender::call::Limits { max_attempts: 1, ..Default::default() };
        let policy = storybus_sender::relay::Policy::one_round();
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy).limits(limits));
        recorder.ended(1).await;
        // Behind all of it in the outbox, and each in two lines of its own.
        for n in 0..50 {
            db.enqueue(&message(&format!("single-{n}"))).await;
            db.enqueue(&of_group(&format!("line-{n}"), &format!("line-{n}"))).await;
        }
        recorder.ended(101).await;
        relay.stop().await;
        assert_eq!(partner.got().len(), 101);
        let stuck = Filter { state: Some(State::Parked), ..Filter::default() };
        assert_eq!(db.outbox.list(&stuck, 10).await.expect("listed").len(), 1);
        let waiting = db.caller().await.int("SELECT count(*) FROM sender_log WHERE turn = 'waiting'").await;
        assert_eq!(waiting, i64::try_from(BEHIND).expect("a number"), "looked at once, and then left alone");
    }

    async fn a_large_message_goes_alone_and_does_not_keep_others_from_going(db) {
        let (partner, recorder) = (Partner::closed(), Recorder::new());
        for n in 0..6 {
            let large = storybus_sender::message::Message { body: vec![b'x'; 1_000], ..message(&format!("m{n}")) };
            db.enqueue(&large).await;
        }
        let huge = storybus_sender::message::Message { body: vec![b'x'; 10_000], ..message("huge") };
        db.enqueue(&huge).await;
        // Room for three of them at a time.
        let relay = Running::start(db.relay(&partner, &recorder).bytes(3_500));
        partner.has_got(3).await;
        assert_eq!(partner.keys(), ["m0", "m1", "m2"]);
        partner.open(100);
        recorder.ended(7).await;
        relay.stop().await;
        assert_eq!(partner.keys().last().map(String::as_str), Some("huge"));
    }
}
