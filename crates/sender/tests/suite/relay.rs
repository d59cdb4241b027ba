//! What becomes of messages.

use std::time::Duration;

use storybus_sender::message::Message;
use storybus_sender::outbox::{Entry, State};
use tokio::sync::oneshot;

use crate::support::partner::{busy, contention, refused};
use crate::support::{Db, Partner, Recorder, SOON, message, of_group, on_both};

/// A relay in a task of its own, until it is stopped.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<Result<(), storybus_sender::outbox::OutboxError>>,
}

impl Running {
    pub(crate) fn start(relay: storybus_sender::relay::Relay) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            relay
                .run(async {
                    let _ = stopped.await;
                })
                .await
        });
        Self {
            stop: Some(stop),
            task,
        }
    }

    /// Ends it as a crash does: at once, with what it had claimed still claimed.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|error| error.is_cancelled()));
    }

    /// Tells it to stop; what comes back waits until it has.
    pub(crate) fn stopping(mut self) -> impl Future<Output = ()> {
        drop(self.stop.take());
        async {
            tokio::time::timeout(SOON, self.task)
                .await
                .expect("it stops")
                .expect("it does not panic")
                .expect("it settles");
        }
    }

    pub(crate) async fn stop(self) {
        self.stopping().await;
    }
}

on_both! {
    async fn a_relay_with_one_slot_goes_from_message_to_message_without_a_pause(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        for number in 0..5 {
            db.enqueue(&message(&format!("m{number}"))).await;
        }
        // The clock stands still: a relay that waited for its next poll would wait for ever.
        let relay = Running::start(db.relay(&partner, &recorder).concurrency(1));
        recorder.ended(5).await;
        relay.stop().await;
        assert_eq!(partner.keys(), ["m0", "m1", "m2", "m3", "m4"]);
    }

    async fn what_is_enqueued_is_delivered_unchanged(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let relay = Running::start(db.relay(&partner, &recorder));
        for n in 0..20 {
            db.enqueue(&message(&format!("m{n}"))).await;
        }
        recorder.ended(20).await;
        relay.stop().await;
        for n in 0..20 {
            let name = format!("m{n}");
            assert_eq!(db.state(&name).await, State::Delivered);
            assert!(partner.got().iter().any(|got| got.key == name && got.body == message(&name).body));
        }
    }

    async fn a_line_is_sent_in_order_and_others_go_on(db) {
        let (partner, recorder) = (Partner::closed(), Recorder::new());
        for n in 0..5 {
            for group in ["a", "b", "c"] {
                db.enqueue(&of_group(group, &format!("{group}{n}"))).await;
            }
        }
        let relay = Running::start(db.relay(&partner, &recorder));
        partner.has_got(3).await;
        let mut first = partner.keys();
        first.sort();
        assert_eq!(first, ["a0", "b0", "c0"], "one of each line, and no more");
        partner.open(100);
        recorder.ended(15).await;
        relay.stop().await;
        for group in ["a", "b", "c"] {
            let got: Vec<_> = partner.keys().into_iter().filter(|key| key.starts_with(group)).collect();
            let expected: Vec<_> = (0..5).map(|n| format!("{group}{n}")).collect();
            assert_eq!(got, expected);
        }
    }

    async fn a_refused_message_lets_its_line_go_on(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a", [refused()]);
        db.enqueue(&of_group("g", "a")).await;
        db.enqueue(&of_group("g", "b")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(2).await;
        relay.stop().await;
        let a = db.show("a").await;
        assert_eq!((a.state, a.attempts), (State::Refused, 1));
        assert_eq!(a.last.rule.as_deref(), Some("envelope.required"));
        assert_eq!(db.state("b").await, State::Delivered);
    }

    async fn a_transport_that_panics_over_a_message_fails_for_that_alone(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        db.enqueue(&Message { body: b"panic".to_vec(), ..of_group("a", "a0") }).await;
        db.enqueue(&of_group("a", "a1")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.attempted(1).await;
        db.enqueue(&message("b")).await;
        recorder.ended(1).await;
        relay.stop().await;
        let failed = db.show("a0").await;
        assert_eq!((failed.state, failed.last.outcome.as_deref()), (State::Pending, Some("network_error")));
        assert!(failed.unsure_since.is_some(), "it may have been sent");
        assert_eq!((db.state("a1").await, db.state("b").await), (State::Pending, State::Delivered));
    }

    async fn not_now_is_tried_again_after_a_pause(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a", [busy(), contention()]);
        db.enqueue(&message("a")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        for attempts in 1..=2 {
            recorder.attempted(attempts).await;
            until_due(&db, "a").await;
            assert_eq!(recorder.attempts(), attempts, "not before its time");
            db.advance(Duration::from_secs(2));
        }
        recorder.ended(1).await;
        relay.stop().await;
        let a = db.show("a").await;
        assert_eq!((a.state, a.attempts), (State::Delivered, 3));
        assert!(partner.got().iter().all(|got| got.body == message("a").body));
    }
}

/// Comes back when the message is written down as due later.
pub(crate) async fn until_due(db: &Db, name: &str) {
    until(db, name, |entry| !entry.under_way && entry.last.outcome.is_some()).await;
}

/// Comes back when the message is so.
pub(crate) async fn until(db: &Db, name: &str, so: impl Fn(&Entry) -> bool) {
    tokio::time::timeout(SOON, async {
        while !so(&db.show(name).await) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it is so");
}
