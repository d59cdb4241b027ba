//! What operators may do, and what not.

use std::time::Duration;

use storybus_sender::call::Limits;
use storybus_sender::message::Message;
use storybus_sender::outbox::{Confirmed, Enqueued, Filter, OperatorError, State};
use storybus_sender::relay::Policy;

use crate::relay::Running;
use crate::support::partner::{busy, cut_off, refused};
use crate::support::{Db, Partner, Recorder, key, message, of_group, on_both, target};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Sends until so many have ended, each with one attempt.
async fn relay(db: &Db, partner: &std::sync::Arc<Partner>, ends: usize) {
    let recorder = Recorder::new();
    let limits = Limits {
        max_attempts: 1,
        ..Limits::default()
    };
    let relay = Running::start(
        db.relay(partner, &recorder)
            .policy(Policy::one_round())
            .limits(limits),
    );
    recorder.ended(ends).await;
    relay.stop().await;
}

on_both! {
    async fn what_is_final_is_not_resent(db) {
        let partner = Partner::new();
        partner.says("refused", [refused()]);
        partner.says("parked", [busy(), busy()]);
        for name in ["delivered", "refused", "parked"] {
            db.enqueue(&message(name)).await;
        }
        relay(&db, &partner, 3).await;
        db.enqueue(&message("pending")).await;
        let resend = async |name: &str| db.outbox.resend(&target(), &key(name), None).await;
        assert!(matches!(resend("delivered").await, Err(OperatorError::Final { state: State::Delivered, .. })));
        assert!(matches!(resend("refused").await, Err(OperatorError::Final { state: State::Refused, .. })));
        assert!(matches!(resend("nobody").await, Err(OperatorError::NotFound { .. })));
        resend("parked").await.expect("resent");
        // What is pending already is due at once, and otherwise as it was.
        for name in ["parked", "pending"] {
            resend(name).await.expect("due at once");
            assert_eq!(db.state(name).await, State::Pending);
        }
        relay(&db, &partner, 2).await;
        assert_eq!((db.state("parked").await, db.show("parked").await.attempts), (State::Parked, 2));
        assert!(partner.got().iter().all(|got| got.body == message(&got.key).body));
    }

    async fn what_may_have_arrived_a_week_ago_is_resent_only_with_a_confirmation(db) {
        let partner = Partner::new();
        partner.says("unsure", [cut_off()]);
        partner.says("sure", [busy()]);
        for name in ["unsure", "sure"] {
            db.enqueue(&message(name)).await;
        }
        relay(&db, &partner, 2).await;
        db.advance(DAY * 6);
        assert_eq!(db.state("unsure").await, State::Parked);
        db.advance(DAY);
        let error = db.outbox.resend(&target(), &key("unsure"), None).await.expect_err("it asks first");
        assert!(matches!(error, OperatorError::MayRepeat { days: 7, remembers: 7, .. }), "{error:?}");
        assert!(error.to_string().contains("a second time"), "{error}");
        assert_eq!(db.state("unsure").await, State::Parked);
        // Of the other one nothing can have arrived.
        db.outbox.resend(&target(), &key("sure"), None).await.expect("resent");
        db.outbox.resend(&target(), &key("unsure"), Some(Confirmed)).await.expect("resent");
        relay(&db, &partner, 2).await;
        assert_eq!((db.state("unsure").await, db.state("sure").await), (State::Delivered, State::Delivered));
    }

    async fn within_the_week_a_resend_needs_no_confirmation_and_the_week_goes_on(db) {
        let partner = Partner::new();
        partner.says("a", [cut_off(), cut_off()]);
        db.enqueue(&message("a")).await;
        relay(&db, &partner, 1).await;
        let since = db.show("a").await.unsure_since;
        db.advance(DAY * 5);
        db.outbox.resend(&target(), &key("a"), None).await.expect("resent");
        relay(&db, &partner, 1).await;
        assert_eq!(db.show("a").await.unsure_since, since, "the first that may have arrived counts");
        db.advance(DAY * 3);
        assert!(matches!(
            db.outbox.resend(&target(), &key("a"), None).await,
            Err(OperatorError::MayRepeat { days: 8, .. })
        ));
    }

    async fn what_is_under_way_cannot_be_dropped_and_what_is_final_neither(db) {
        let (partner, recorder) = (Partner::closed(), Recorder::new());
        db.enqueue(&of_group("g", "a")).await;
        db.enqueue(&of_group("g", "b")).await;
        db.enqueue(&of_group("g", "c")).await;
        let running = Running::start(db.relay(&partner, &recorder));
        partner.has_got(1).await;
        assert!(matches!(db.outbox.drop(&target(), &key("a")).await, Err(OperatorError::UnderWay { .. })));
        db.outbox.drop(&target(), &key("b")).await.expect("dropped");
        partner.open(10);
        recorder.ended(2).await;
        running.stop().await;
        assert_eq!(partner.keys(), ["a", "c"]);
        for (name, state) in [("a", State::Delivered), ("b", State::Refused)] {
            let error = db.outbox.drop(&target(), &key(name)).await.expect_err("final");
            assert!(matches!(error, OperatorError::Final { state: found, .. } if found == state), "{error:?}");
        }
        // Not looked at by any relay yet.
        db.enqueue(&of_group("g", "d")).await;
        db.outbox.drop(&target(), &key("d")).await.expect("dropped");
        assert_eq!(db.state("d").await, State::Refused);
        assert!(matches!(db.outbox.drop(&target(), &key("nobody")).await, Err(OperatorError::NotFound { .. })));
    }

    async fn lists_filter_and_go_on_where_they_stopped(db) {
        let partner = Partner::new();
        partner.says("m3", [refused()]);
        for n in 0..7 {
            db.enqueue(&message(&format!("m{n}"))).await;
        }
        relay(&db, &partner, 7).await;
        for n in 0..3 {
            db.enqueue(&of_group("g", &format!("g{n}"))).await;
        }
        let keys = |filter: Filter, limit| {
            let outbox = db.outbox.clone();
            async move {
                let entries = outbox.list(&filter, limit).await.expect("listed");
                (
                    entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>(),
                    entries.last().map(|entry| entry.id),
                )
            }
        };
        let delivered = Filter { state: Some(State::Delivered), ..Filter::default() };
        let (page, after) = keys(delivered.clone(), 4).await;
        assert_eq!(page, ["m0", "m1", "m2", "m4"]);
        let (page, _) = keys(Filter { after, ..delivered.clone() }, 4).await;
        assert_eq!(page, ["m5", "m6"]);
        let newest = Filter { newest_first: true, ..delivered };
        let (page, after) = keys(newest.clone(), 2).await;
        assert_eq!(page, ["m6", "m5"]);
        assert_eq!(keys(Filter { after, ..newest }, 2).await.0, ["m4", "m2"]);
        let of_line = Filter { group: Some(String::from("g")), target: Some(String::from("bus")), ..Filter::default() };
        assert_eq!(keys(of_line, 10).await.0, ["g0", "g1", "g2"]);
        let elsewhere = Filter { target: Some(String::from("partner")), ..Filter::default() };
        assert!(keys(elsewhere, 10).await.0.is_empty());
        assert_eq!(keys(Filter::default(), 0).await.0.len(), 1, "a limit is at least one");
        assert_eq!(keys(Filter::default(), 5_000).await.0.len(), 10);
    }

    async fn stats_count_and_tell_the_oldest(db) {
        assert_eq!(db.outbox.stats().await.expect("counted"), Default::default());
        let partner = Partner::new();
        for n in 0..3 {
            db.enqueue(&message(&format!("m{n}"))).await;
        }
        relay(&db, &partner, 3).await;
        let elsewhere = storybus_sender::message::Target::new("partner").expect("a target");
        db.enqueue(&Message { target: elsewhere, ..message("m0") }).await;
        db.advance(Duration::from_secs(90));
        let stats = db.outbox.stats().await.expect("counted");
        let counts: Vec<_> = stats.counts.iter().map(|count| (count.target.as_str(), count.state, count.count)).collect();
        assert_eq!(counts, [("bus", State::Delivered, 3), ("partner", State::Pending, 1)]);
        assert!(stats.oldest_pending_ms.is_some_and(|age| (90_000..150_000).contains(&age)), "{stats:?}");
        assert_eq!(stats.held_groups, 0);
    }

    async fn a_purge_spares_what_is_not_final_or_not_a_week_old(db) {
        let partner = Partner::new();
        partner.says("parked", [busy()]);
        partner.says("refused", [refused()]);
        for name in ["old", "parked", "refused"] {
            db.enqueue(&message(name)).await;
        }
        relay(&db, &partner, 3).await;
        db.enqueue(&message("pending")).await;
        db.advance(DAY * 6);
        assert_eq!(db.outbox.purge(Duration::ZERO).await.expect("purged"), 0, "a week at least");
        db.advance(DAY * 2);
        assert_eq!(db.outbox.purge(DAY * 30).await.expect("purged"), 0);
        let last = db.enqueue(&message("young")).await;
        assert_eq!(db.outbox.purge(DAY * 7).await.expect("purged"), 2);
        let left = db.caller().await.texts("SELECT key FROM sender_log ORDER BY id").await;
        assert_eq!(left, ["parked", "pending", "young"]);
        // A purged key is a new one, under a number that was never used.
        let again = db.outbox.enqueue(&message("old")).await.expect("new");
        assert!(matches!(again, Enqueued::New { id } if id > last), "{again:?}");
    }
    async fn what_is_pending_and_rests_is_sent_at_once_when_it_is_resent(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a", [busy()]);
        db.enqueue(&message("a")).await;
        let running = Running::start(db.relay(&partner, &recorder));
        recorder.attempted(1).await;
        crate::relay::until_due(&db, "a").await;
        db.outbox.resend(&target(), &key("a"), None).await.expect("due at once");
        recorder.ended(1).await;
        assert_eq!((db.state("a").await, db.show("a").await.attempts), (State::Delivered, 2));
        running.stop().await;
        // But not while it is being sent.
        let (slow, recorder) = (Partner::closed(), Recorder::new());
        db.enqueue(&message("b")).await;
        let running = Running::start(db.relay(&slow, &recorder));
        slow.has_got(1).await;
        assert!(matches!(db.outbox.resend(&target(), &key("b"), None).await, Err(OperatorError::UnderWay { .. })));
        slow.open(1);
        recorder.ended(1).await;
        running.stop().await;
    }
}
