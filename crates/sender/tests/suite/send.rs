//! Sending given messages, and ending.

use std::future::pending;

use storybus_sender::call::Limits;
use storybus_sender::outbox::State;
use storybus_sender::relay::{Fate, Policy, Sent};

use crate::support::partner::{busy, refused, sender_refused};
use crate::support::{Db, Partner, Recorder, SOON, message, of_group, on_both};

async fn send(db: &Db, partner: &std::sync::Arc<Partner>, ids: &[i64]) -> Vec<Fate> {
    let limits = Limits {
        max_attempts: 1,
        ..Limits::default()
    };
    let relay = db
        .relay(partner, &Recorder::new())
        .policy(Policy::one_round())
        .limits(limits);
    let sent = tokio::time::timeout(SOON, relay.send(ids, pending()))
        .await
        .expect("it ends")
        .expect("the database is there");
    assert_eq!(sent.iter().map(|sent| sent.id).collect::<Vec<_>>(), ids);
    sent.into_iter().map(|Sent { fate, .. }| fate).collect()
}

/// Counts steps.
#[derive(Default)]
struct Steps(std::sync::atomic::AtomicUsize);

impl storybus_sender::relay::Observer for Steps {
    fn stepped(&self, _step: &storybus_sender::relay::StepTaken) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

on_both! {
    async fn it_ends_when_each_is_delivered_refused_or_parked(db) {
        let partner = Partner::new();
        partner.says("b", [refused()]);
        partner.says("c", [busy()]);
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(db.enqueue(&message(name)).await);
        }
        ids.push(i64::MAX);
        let fates = send(&db, &partner, &ids).await;
        assert_eq!(fates, [Fate::Delivered, Fate::Refused, Fate::Parked, Fate::Unknown]);
        // Again: nothing is sent.
        assert_eq!(send(&db, &partner, &ids).await, fates);
        assert_eq!(partner.got().len(), 3);
    }

    async fn what_stands_before_it_in_line_is_sent_and_nothing_else(db) {
        let partner = Partner::new();
        for n in 0..3 {
            db.enqueue(&of_group("g", &format!("before{n}"))).await;
            db.enqueue(&of_group("other", &format!("other{n}"))).await;
            db.enqueue(&message(&format!("single{n}"))).await;
        }
        let id = db.enqueue(&of_group("g", "mine")).await;
        db.enqueue(&of_group("g", "after")).await;
        assert_eq!(send(&db, &partner, &[id]).await, [Fate::Delivered]);
        assert_eq!(partner.keys(), ["before0", "before1", "before2", "mine"]);
        for name in ["other0", "single0", "after"] {
            assert_eq!((db.state(name).await, db.show(name).await.attempts), (State::Pending, 0), "{name}");
        }
        // What was left is placed by whoever comes next.
        let recorder = Recorder::new();
        let relay = crate::relay::Running::start(db.relay(&partner, &recorder));
        recorder.ended(7).await;
        relay.stop().await;
    }

    async fn it_tells_by_whom_a_message_is_held_instead_of_waiting(db) {
        let partner = Partner::new();
        partner.says("a0", [busy()]);
        let first = db.enqueue(&of_group("a", "a0")).await;
        let second = db.enqueue(&of_group("a", "a1")).await;
        let fates = send(&db, &partner, &[first, second]).await;
        assert_eq!(fates, [Fate::Parked, Fate::Held { by: String::from("a0"), parked: true }]);

        // One that is not ours is not parked by our one round: a relay goes on with it.
        partner.says("b0", [busy()]);
        db.enqueue(&of_group("b", "b0")).await;
        let ours = db.enqueue(&of_group("b", "b1")).await;
        let sending = send(&db, &partner, &[ours]).await;
        assert_eq!(sending, [Fate::Held { by: String::from("b0"), parked: false }]);
        assert_eq!(db.state("b0").await, State::Pending);
    }

    async fn it_ends_when_the_sender_is_refused(db) {
        let partner = Partner::new();
        partner.always(Some(sender_refused()));
        let mut ids = Vec::new();
        for n in 0..300 {
            ids.push(db.enqueue(&message(&format!("m{n}"))).await);
        }
        let fates = send(&db, &partner, &ids).await;
        assert!(fates.iter().all(|fate| *fate == Fate::Untried), "nothing is parked for it");
        let tried = partner.got().len();
        assert!((1..=64).contains(&tried), "{tried}");
        let first = db.show("m0").await;
        assert_eq!((first.state, first.attempts), (State::Pending, 1));
        assert_eq!(first.last.rule.as_deref(), Some("producer.not_registered"));
        // Whoever comes when the sender is mended need not wait.
        partner.always(None);
        let recorder = Recorder::new();
        let relay = crate::relay::Running::start(db.relay(&partner, &recorder));
        recorder.ended(300).await;
        relay.stop().await;
        assert_eq!((db.state("m0").await, db.state("m299").await), (State::Delivered, State::Delivered));
    }

    async fn it_waits_for_another_relay_that_is_sending_it(db) {
        let (slow, told) = (Partner::closed(), Recorder::new());
        let id = db.enqueue(&message("a")).await;
        let relay = crate::relay::Running::start(db.relay(&slow, &told));
        slow.has_got(1).await;
        let partner = Partner::new();
        let ids = [id];
        let mut sending = std::pin::pin!(send(&db, &partner, &ids));
        assert!(futures::poll!(&mut sending).is_pending());
        slow.open(1);
        told.ended(1).await;
        // It looks again when it is told to, or after its poll.
        let waking = async {
            loop {
                db.outbox.wake();
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            fates = &mut sending => assert_eq!(fates, [Fate::Delivered]),
            () = waking => {}
        }
        relay.stop().await;
        assert!(partner.got().is_empty());
    }
    async fn while_it_waits_for_its_own_it_does_not_ask_for_what_is_due_otherwise(db) {
        let (slow, told) = (Partner::closed(), Recorder::new());
        let ids = [db.enqueue(&message("mine")).await];
        db.enqueue(&message("other")).await;
        let relay = crate::relay::Running::start(db.relay(&slow, &told).concurrency(1));
        slow.has_got(1).await;
        let steps = std::sync::Arc::new(Steps::default());
        let sender = db.relay(&Partner::new(), &Recorder::new()).observer(std::sync::Arc::clone(&steps) as _);
        let mut sending = std::pin::pin!(sender.send(&ids, pending()));
        let taken = || steps.0.load(std::sync::atomic::Ordering::SeqCst);
        let mut looks = 0;
        while looks < 100 {
            tokio::select! {
                biased;
                sent = &mut sending => panic!("it is still under way: {sent:?}"),
                probed = db.outbox.probe() => probed.expect("the outbox is there"),
            }
            looks += usize::from(taken() > 0);
        }
        assert!(taken() <= 4, "its time stands still, and it took {} steps", taken());
        slow.open(2);
        db.while_time_passes(told.ended(2)).await;
        relay.stop().await;
    }

    async fn what_stands_before_it_is_not_given_up_by_the_senders_policy(db) {
        db.enqueue(&of_group("g", "before")).await;
        let ids = [db.enqueue(&of_group("g", "mine")).await];
        // Relays that ended while they were sending it: more often than one round of one attempt allows.
        for _ in 0..3 {
            let (slow, told) = (Partner::closed(), Recorder::new());
            let dying = crate::relay::Running::start(db.relay(&slow, &told));
            slow.has_got(1).await;
            dying.kill().await;
            db.advance(std::time::Duration::from_secs(30));
        }
        let partner = Partner::new();
        assert_eq!(send(&db, &partner, &ids).await, [Fate::Delivered]);
        assert_eq!(partner.keys(), ["before", "mine"]);
    }
}
