//! Who may write what became of a message: the one that has its lease.

use std::time::Duration;

use storybus_sender::outbox::{Outbox, State};

use crate::relay::Running;
use crate::support::partner::{busy, cut_off, refused};
use crate::support::recorder::Told;
use crate::support::{Db, HandClock, Partner, Recorder, message, of_group, on_both};

const LEASE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Another node: its own outbox, its own clock.
fn node(db: &Db, offset: Duration) -> Db {
    let outbox = Outbox::open(&db.url).expect("an address");
    outbox.advance(offset);
    Db::node(db, outbox, HandClock::default())
}

on_both! {
    async fn a_paused_owner_whose_lease_was_taken_over_changes_nothing_when_it_wakes(db) {
        for (number, late) in [refused(), busy(), cut_off(), crate::support::partner::yes()].into_iter().enumerate() {
            let (name, next) = (format!("a{number}"), format!("b{number}"));
            db.enqueue(&of_group("g", &name)).await;
            db.enqueue(&of_group("g", &next)).await;
            let (slow, slow_told) = (Partner::closed(), Recorder::new());
            slow.says(&name, [late]);
            let paused = Running::start(db.relay(&slow, &slow_told));
            slow.has_got(1).await;

            // The database's time goes on; the first node does not notice.
            db.outbox.advance(LEASE);
            let other = node(&db, LEASE * (1 + u32::try_from(number).expect("small")));
            let (partner, told) = (Partner::new(), Recorder::new());
            let relay = Running::start(other.relay(&partner, &told));
            told.ended(2).await;
            relay.stop().await;
            let before = (db.show(&name).await, db.show(&next).await);
            assert_eq!((before.0.state, before.0.attempts), (State::Delivered, 2));
            assert_eq!(before.1.state, State::Delivered);

            slow.open(1);
            slow_told.until(|told| told.contains(&Told::TakenOver(name.clone()))).await;
            paused.stop().await;
            assert_eq!(before, (db.show(&name).await, db.show(&next).await));
            assert!(!slow_told.told().iter().any(|told| matches!(told, Told::Ended { .. })));
        }
    }

    async fn while_a_lease_runs_nobody_else_sends_it(db) {
        db.enqueue(&of_group("g", "a")).await;
        let (slow, told) = (Partner::closed(), Recorder::new());
        let first = Running::start(db.relay(&slow, &told));
        slow.has_got(1).await;
        let other = node(&db, Duration::ZERO);
        other.outbox.advance(LEASE - Duration::from_secs(10));
        let (partner, other_told) = (Partner::new(), Recorder::new());
        let second = Running::start(other.relay(&partner, &other_told));
        other.enqueue(&message("b")).await;
        other_told.ended(1).await;
        assert_eq!(partner.keys(), ["b"]);
        slow.open(1);
        told.ended(1).await;
        first.stop().await;
        second.stop().await;
        assert_eq!(db.show("a").await.attempts, 1);
    }

    async fn a_relay_that_was_stopped_between_claim_and_attempt_does_not_send(db) {
        // Its step takes longer than its lease: a clock that jumps while it waits for the database.
        let (partner, recorder) = (Partner::new(), Recorder::new());
        db.enqueue(&message("a")).await;
        let mut caller = db.caller().await;
        caller.begin().await;
        // Holds the relay up in its step.
        if db.is_postgres() {
            caller.run("SELECT pg_advisory_xact_lock(1935832435, 1024)").await;
        }
        let relay = Running::start(db.relay(&partner, &recorder));
        // It waits for the step, and for the time after which it would give it up.
        db.clock.has_slept(1).await;
        db.clock.advance(LEASE);
        caller.run("ROLLBACK").await;
        crate::relay::until(&db, "a", |entry| entry.last.detail.is_some()).await;
        assert!(partner.got().is_empty());
        let entry = db.show("a").await;
        assert_eq!((entry.state, entry.unsure_since), (State::Pending, None));
        db.advance(Duration::from_secs(2));
        recorder.ended(1).await;
        relay.stop().await;
        assert_eq!(partner.keys(), ["a"]);
    }

    async fn clocks_of_nodes_that_differ_change_nothing(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        for n in 0..40 {
            db.enqueue(&of_group(&format!("g{}", n % 8), &format!("m{n:02}"))).await;
        }
        let mut relays = Vec::new();
        for minutes in [0, 1, 1_000_000] {
            let other = node(&db, Duration::ZERO);
            other.clock.advance(Duration::from_secs(60) * minutes);
            relays.push(Running::start(other.relay(&partner, &recorder)));
        }
        recorder.ended(40).await;
        for relay in relays {
            relay.stop().await;
        }
        assert_eq!(partner.got().len(), 40);
        assert!(!recorder.told().iter().any(|told| matches!(told, Told::TakenOver(_))));
    }

    async fn a_relay_that_is_stopped_finishes_what_is_under_way_and_starts_nothing(db) {
        let (partner, recorder) = (Partner::closed(), Recorder::new());
        for name in ["a0", "a1"] {
            db.enqueue(&of_group("a", name)).await;
        }
        let relay = Running::start(db.relay(&partner, &recorder));
        partner.has_got(1).await;
        let stopping = relay.stopping();
        partner.open(10);
        stopping.await;
        assert_eq!((db.state("a0").await, db.state("a1").await), (State::Delivered, State::Pending));
        let next = db.show("a1").await;
        assert_eq!((next.attempts, next.under_way), (0, false));
        assert_eq!(partner.keys(), ["a0"]);
    }

    async fn what_may_have_arrived_longer_ago_than_the_partner_remembers_is_parked_instead_of_sent(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        for name in ["unsure", "sure"] {
            db.enqueue(&of_group(name, name)).await;
        }
        partner.says("unsure", [cut_off()]);
        partner.says("sure", [busy()]);
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.attempted(2).await;
        for name in ["unsure", "sure"] {
            crate::relay::until_due(&db, name).await;
        }
        relay.stop().await;
        assert!(db.show("unsure").await.unsure_since.is_some());
        assert!(db.show("sure").await.unsure_since.is_none(), "nothing was left of it");
        // No relay runs for a week.
        db.advance(DAY * 7);
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(2).await;
        relay.stop().await;
        let parked = db.show("unsure").await;
        assert_eq!((parked.state, parked.attempts), (State::Parked, 1));
        assert_eq!(parked.last.rule.as_deref(), Some("sender.partner_may_have_forgotten"));
        assert!(parked.last.detail.is_some_and(|detail| detail.contains("twice")));
        assert_eq!(db.state("sure").await, State::Delivered);
        assert_eq!(partner.keys().iter().filter(|key| *key == "unsure").count(), 1);
    }

    async fn an_attempt_that_nobody_came_back_from_counts_as_one_that_may_have_arrived(db) {
        let (partner, recorder) = (Partner::closed(), Recorder::new());
        db.enqueue(&message("a")).await;
        let dying = Running::start(db.relay(&partner, &recorder));
        partner.has_got(1).await;
        dying.kill().await;
        db.advance(DAY * 7);
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(1).await;
        relay.stop().await;
        assert!(partner.got().is_empty());
        assert_eq!(db.state("a").await, State::Parked);
    }

    async fn a_message_during_which_relays_end_again_and_again_is_parked_at_last(db) {
        let limits = storybus_sender::call::Limits { max_attempts: 2, ..Default::default() };
        db.enqueue(&message("poison")).await;
        for attempt in 1..=4 {
            let (partner, recorder) = (Partner::closed(), Recorder::new());
            let dying = Running::start(db.relay(&partner, &recorder).limits(limits).policy(storybus_sender::relay::Policy::one_round()));
            partner.has_got(1).await;
            dying.kill().await;
            assert_eq!(db.show("poison").await.attempts, attempt);
            db.advance(LEASE);
        }
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let relay = Running::start(db.relay(&partner, &recorder).limits(limits).policy(storybus_sender::relay::Policy::one_round()));
        recorder.ended(1).await;
        relay.stop().await;
        let parked = db.show("poison").await;
        assert_eq!((parked.state, parked.attempts), (State::Parked, 4));
        assert_eq!(parked.last.rule.as_deref(), Some("sender.relays_ended"));
        assert!(partner.got().is_empty());
    }
    async fn a_claim_that_is_given_back_unsent_keeps_what_was_answered_before(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a", [busy()]);
        db.enqueue(&message("a")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.attempted(1).await;
        crate::relay::until_due(&db, "a").await;
        relay.stop().await;
        let answered = db.show("a").await.last;

        let other = node(&db, Duration::from_secs(2));
        let mut caller = db.caller().await;
        caller.begin().await;
        if db.is_postgres() {
            caller.run("SELECT pg_advisory_xact_lock(1935832435, 1024)").await;
        }
        let relay = Running::start(other.relay(&partner, &recorder));
        other.clock.has_slept(1).await;
        other.clock.advance(LEASE);
        caller.run("ROLLBACK").await;
        crate::relay::until(&db, "a", |entry| !entry.under_way && entry.attempts == 2).await;
        relay.stop().await;
        assert_eq!(partner.got().len(), 1);
        assert_eq!(db.show("a").await.last, answered);
        assert_eq!(answered.status, Some(503));
    }
}
