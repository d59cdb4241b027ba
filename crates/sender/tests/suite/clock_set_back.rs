//! The database's clock is set back: what was written before it is hours ahead, and is not waited for.

use std::future::pending;
use std::time::Duration;

use storybus_sender::call::Limits;
use storybus_sender::outbox::{Outbox, State};
use storybus_sender::relay::Fate;

use crate::relay::Running;
use crate::support::partner::busy;
use crate::support::{Db, HandClock, Partner, Recorder, SOON, key, message, of_group, on_both, target};

const HOURS: Duration = Duration::from_secs(5 * 3600);
const LEASE: Duration = Duration::from_secs(30);

/// The database as it was seen before.
fn before(db: &Db) -> Db {
    let outbox = Outbox::open(&db.url).expect("an address");
    outbox.advance(HOURS);
    Db::node(db, outbox, HandClock::default())
}

/// An answer of not now, five hours ahead.
async fn rests(db: &Db, names: &[&str]) {
    let then = before(db);
    let (partner, recorder) = (Partner::new(), Recorder::new());
    for name in names {
        partner.says(name, [busy()]);
        then.enqueue(&of_group(name, name)).await;
    }
    // Longer than this takes: the database's time goes on meanwhile.
    let limits = Limits {
        base_delay: Limits::default().max_delay,
        ..Limits::default()
    };
    let relay = Running::start(then.relay(&partner, &recorder).limits(limits));
    recorder.attempted(names.len()).await;
    for name in names {
        crate::relay::until_due(&then, name).await;
    }
    relay.stop().await;
}

on_both! {
    async fn what_rests_is_sent_by_a_relay(db) {
        rests(&db, &["a", "b"]).await;
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(2).await;
        relay.stop().await;
        assert_eq!((db.state("a").await, db.state("b").await), (State::Delivered, State::Delivered));
    }

    async fn what_rests_is_sent_when_it_is_given_and_nothing_else(db) {
        rests(&db, &["a", "b"]).await;
        let ids = [db.enqueue(&of_group("a", "next")).await];
        let partner = Partner::new();
        let relay = db.relay(&partner, &Recorder::new());
        let sent = tokio::time::timeout(SOON, relay.send(&ids, pending())).await.expect("it ends").expect("sent");
        assert_eq!(sent[0].fate, Fate::Delivered);
        assert_eq!(partner.keys(), ["a", "next"]);
    }

    async fn a_lease_of_then_lasts_as_long_as_one_of_now(db) {
        let then = before(&db);
        for name in ["a", "b"] {
            then.enqueue(&message(name)).await;
        }
        let slow = Partner::closed();
        let dying = Running::start(then.relay(&slow, &Recorder::new()));
        slow.has_got(2).await;
        dying.kill().await;
        // An operator need not wait for it.
        db.outbox.drop(&target(), &key("b")).await.expect("dropped");
        let (partner, recorder) = (Partner::new(), Recorder::new());
        let relay = Running::start(db.relay(&partner, &recorder));
        // By now it is somebody's for a lease at most, and not before that is over anybody else's.
        crate::relay::until(&db, "a", |entry| entry.under_way).await;
        assert!(partner.got().is_empty());
        db.advance(LEASE);
        recorder.ended(1).await;
        relay.stop().await;
        assert_eq!((db.state("a").await, db.show("a").await.attempts), (State::Delivered, 2));
    }
}
