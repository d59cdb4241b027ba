//! What holds a line back, and what does not.

use std::time::Duration;

use storybus_sender::call::Limits;
use storybus_sender::message::Message;
use storybus_sender::outbox::{Enqueued, State};
use storybus_sender::relay::{OnNo, Policy, Rounds};

use crate::relay::Running;
use crate::support::partner::{busy, refused};
use crate::support::{Partner, Recorder, key, message, of_group, on_both, target};

/// One attempt, and it is parked.
fn parks_at_once() -> (Policy, Limits) {
    (
        Policy::one_round(),
        Limits {
            max_attempts: 1,
            ..Limits::default()
        },
    )
}

on_both! {
    async fn a_parked_message_holds_its_line_and_no_other(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let (policy, limits) = parks_at_once();
        partner.says("a0", [busy()]);
        for name in ["a0", "a1", "a2"] {
            db.enqueue(&of_group("a", name)).await;
        }
        for name in ["b0", "b1"] {
            db.enqueue(&of_group("b", name)).await;
        }
        db.enqueue(&message("c")).await;
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy).limits(limits));
        recorder.ended(4).await;
        assert_eq!(db.state("a0").await, State::Parked);
        assert_eq!(db.outbox.stats().await.expect("counted").held_groups, 1);
        // Another message of the line, later: it waits too, and what has nothing to do with it goes on.
        db.enqueue(&of_group("a", "a3")).await;
        db.enqueue(&of_group("b", "b2")).await;
        recorder.ended(5).await;
        for name in ["a1", "a2", "a3"] {
            let entry = db.show(name).await;
            assert_eq!((entry.state, entry.attempts, entry.waiting), (State::Pending, 0, true), "{name}");
        }
        db.outbox.resend(&target(), &key("a0"), None).await.expect("resent");
        recorder.ended(9).await;
        relay.stop().await;
        let line: Vec<_> = partner.keys().into_iter().filter(|key| key.starts_with('a')).collect();
        assert_eq!(line, ["a0", "a0", "a1", "a2", "a3"]);
        assert_eq!(db.show("a0").await.attempts, 2);
    }

    async fn dropping_the_parked_one_lets_its_line_go_on(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let (policy, limits) = parks_at_once();
        partner.says("a0", [busy()]);
        db.enqueue(&of_group("a", "a0")).await;
        db.enqueue(&of_group("a", "a1")).await;
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy).limits(limits));
        recorder.ended(1).await;
        db.outbox.drop(&target(), &key("a0")).await.expect("dropped");
        recorder.ended(2).await;
        relay.stop().await;
        let dropped = db.show("a0").await;
        assert_eq!(dropped.state, State::Refused);
        assert_eq!(dropped.last.rule.as_deref(), Some("operator.dropped"));
        assert_eq!(db.state("a1").await, State::Delivered);
        // Its key stays known.
        let again = db.outbox.enqueue(&of_group("a", "a0")).await.expect("known");
        assert!(matches!(again, Enqueued::Known { state: State::Refused, .. }));
    }

    async fn a_policy_may_release_the_line_of_a_parked_message(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let (policy, limits) = parks_at_once();
        partner.says("a0", [busy()]);
        for name in ["a0", "a1", "a2"] {
            db.enqueue(&of_group("a", name)).await;
        }
        let relay = db.relay(&partner, &recorder).policy(Policy { parked_holds: false, ..policy }).limits(limits);
        let relay = Running::start(relay);
        recorder.ended(3).await;
        assert_eq!((db.state("a0").await, db.state("a2").await), (State::Parked, State::Delivered));
        assert_eq!(db.outbox.stats().await.expect("counted").held_groups, 0);
        db.outbox.resend(&target(), &key("a0"), None).await.expect("resent");
        recorder.ended(4).await;
        relay.stop().await;
        assert_eq!(db.state("a0").await, State::Delivered);
    }

    async fn what_is_resent_into_a_line_that_went_on_comes_before_what_waits(db) {
        let (policy, limits) = parks_at_once();
        let policy = Policy { parked_holds: false, ..policy };
        let (partner, recorder) = (Partner::with(1, Duration::from_secs(7 * 86_400)), Recorder::new());
        partner.says("a0", [busy()]);
        for name in ["a0", "a1", "a2", "a3"] {
            db.enqueue(&of_group("a", name)).await;
        }
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy).limits(limits));
        recorder.ended(1).await;
        // a1 is under way, at the partner's closed gate.
        partner.has_got(2).await;
        db.outbox.resend(&target(), &key("a0"), None).await.expect("resent");
        partner.open(10);
        recorder.ended(5).await;
        relay.stop().await;
        assert_eq!(partner.keys(), ["a0", "a1", "a0", "a2", "a3"]);
    }

    async fn a_policy_may_park_what_the_partner_refuses(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a0", [refused()]);
        partner.says("b0", [refused()]);
        let policy = Policy { on_refusal: OnNo::Park, ..Policy::default() };
        for name in ["a0", "a1"] {
            db.enqueue(&of_group("a", name)).await;
        }
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy));
        recorder.ended(1).await;
        relay.stop().await;
        assert_eq!((db.state("a0").await, db.state("a1").await), (State::Parked, State::Pending));

        // Or by rule alone.
        let policy = Policy { parking_rules: vec![String::from("envelope.required")], ..Policy::default() };
        db.enqueue(&of_group("b", "b0")).await;
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy));
        recorder.ended(2).await;
        relay.stop().await;
        assert_eq!(db.state("b0").await, State::Parked);
    }

    async fn rounds_go_on_until_their_time_is_over(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.always(Some(busy()));
        let minute = Duration::from_secs(60);
        let policy = Policy { rounds: Rounds::For { span: minute * 5, pause: minute }, ..Policy::default() };
        let limits = Limits { max_attempts: 2, ..Limits::default() };
        db.enqueue(&of_group("a", "a0")).await;
        db.enqueue(&of_group("a", "a1")).await;
        let relay = Running::start(db.relay(&partner, &recorder).policy(policy).limits(limits));
        for attempts in 1..=5 {
            recorder.attempted(attempts).await;
            crate::relay::until_due(&db, "a0").await;
            assert_eq!(db.state("a0").await, State::Pending);
            db.advance(minute);
        }
        recorder.ended(1).await;
        relay.stop().await;
        let parked = db.show("a0").await;
        // An attempt a minute, two in a round: the round that ends after five minutes is the last.
        assert_eq!((parked.state, parked.attempts), (State::Parked, 6));
        assert_eq!(db.state("a1").await, State::Pending);
    }

    async fn transactions_that_commit_in_another_order_are_sent_in_the_order_of_their_commits(db) {
        // On PostgreSQL the second transaction waits for the first in the same group, so that ids follow commits; what is not of the group
        // does not wait. On SQLite there is one writer at a time.
        let (mut first, mut second) = (db.caller().await, db.caller().await);
        first.begin().await;
        first.enqueue(&of_group("a", "a0")).await;
        let later = tokio::spawn(async move {
            second.begin().await;
            second.enqueue(&of_group("a", "a1")).await;
            second.run("COMMIT").await;
        });
        if db.is_postgres() {
            let mut third = db.caller().await;
            third.begin().await;
            third.enqueue(&of_group("b", "b0")).await;
            third.run("COMMIT").await;
        }
        first.enqueue(&of_group("a", "a2")).await;
        first.run("COMMIT").await;
        later.await.expect("committed");
        let order = db.caller().await.texts("SELECT key FROM sender_log WHERE order_group = 'a' ORDER BY id").await;
        assert_eq!(order, ["a0", "a2", "a1"]);
    }

    async fn many_writers_and_two_relays_keep_each_line_in_order(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let second = storybus_sender::outbox::Outbox::open(&db.url).expect("an address");
        let relays = [
            Running::start(db.relay(&partner, &recorder)),
            Running::start(db.relay_on(&second, &partner, &recorder)),
        ];
        let mut writers = Vec::new();
        for writer in 0..4 {
            let mut caller = db.caller().await;
            writers.push(tokio::spawn(async move {
                for n in 0..25 {
                    caller.begin().await;
                    // Two of one group in each, of ten groups.
                    for part in ["x", "y"] {
                        let name = format!("w{writer}-{n:02}-{part}");
                        caller.enqueue(&of_group(&format!("g{}", n % 10), &name)).await;
                    }
                    caller.run("COMMIT").await;
                }
            }));
        }
        for writer in writers {
            writer.await.expect("written");
        }
        // The relays' clocks stand still: they look when they are told to.
        db.outbox.wake();
        second.wake();
        recorder.ended(200).await;
        for relay in relays {
            relay.stop().await;
        }
        assert_eq!(partner.keys().len(), 200, "each once");
        let mut caller = db.caller().await;
        for group in 0..10 {
            let order = caller.texts(&format!("SELECT key FROM sender_log WHERE order_group = 'g{group}' ORDER BY id")).await;
            let sent: Vec<_> = partner.keys().into_iter().filter(|key| order.contains(key)).collect();
            assert_eq!(sent, order);
        }
    }

    async fn another_target_is_left_to_another_relay(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let elsewhere = storybus_sender::message::Target::new("partner").expect("a target");
        db.enqueue(&Message { target: elsewhere.clone(), ..message("a") }).await;
        db.enqueue(&message("b")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(1).await;
        relay.stop().await;
        assert_eq!(partner.keys(), ["b"]);
        assert_eq!(db.outbox.show(&elsewhere, &key("a")).await.expect("there").state, State::Pending);
    }
}
