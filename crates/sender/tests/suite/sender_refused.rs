//! A no to the sender is no message's fault.

use std::time::Duration;

use storybus_sender::call::Limits;
use storybus_sender::outbox::State;
use storybus_sender::relay::{OnSender, Policy};

use crate::relay::Running;
use crate::support::partner::{busy, sender_refused, unauthenticated};
use crate::support::recorder::Told;
use crate::support::{Partner, Recorder, message, on_both};

on_both! {
    async fn a_no_to_the_sender_refuses_nothing_and_pauses_the_target(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.always(Some(sender_refused()));
        for n in 0..200 {
            db.enqueue(&message(&format!("m{n}"))).await;
        }
        let relay = Running::start(db.relay(&partner, &recorder).concurrency(4));
        let paused = async |times: usize| {
            recorder
                .until(|told| told.iter().filter(|told| **told == Told::Paused).count() >= times)
                .await;
        };
        paused(4).await;
        // A while later one tries, not four.
        for pause in 1..=3 {
            db.advance(Duration::from_secs(31));
            paused(4 + pause).await;
            assert_eq!(recorder.attempts(), 4 + pause);
        }
        partner.always(None);
        db.advance(Duration::from_secs(31));
        // The probe goes through, and then everything: what was tried is due with the others.
        recorder.ended(200).await;
        relay.stop().await;
        assert!(recorder.attempts() <= 200 + 4 + 3, "no hot loop: {} attempts", recorder.attempts());
        assert_eq!(db.state("m0").await, State::Delivered);
    }

    async fn a_token_that_is_not_taken_is_renewed_once_in_the_same_claim(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a", [unauthenticated()]);
        db.enqueue(&message("a")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.ended(1).await;
        let got: Vec<_> = partner.got().iter().map(|got| got.new_credentials).collect();
        assert_eq!(got, [false, true]);
        assert_eq!((db.state("a").await, db.show("a").await.attempts), (State::Delivered, 2));
        let told = recorder.told();
        let numbers: Vec<_> = told
            .iter()
            .filter_map(|told| match told {
                Told::Attempted { attempt, delay, .. } => Some((*attempt, *delay)),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [(1, Some(Duration::ZERO)), (2, None)]);

        // Twice: it is the sender that is refused.
        partner.says("b", [unauthenticated(), unauthenticated()]);
        db.enqueue(&message("b")).await;
        recorder.until(|told| told.contains(&Told::Paused)).await;
        crate::relay::until_due(&db, "b").await;
        relay.stop().await;
        assert_eq!((db.state("b").await, db.show("b").await.attempts), (State::Pending, 2));
        assert_eq!(partner.keys().iter().filter(|key| *key == "b").count(), 2);
    }

    async fn a_policy_may_park_or_refuse_what_the_sender_may_not_send(db) {
        for (on_sender, state) in [(OnSender::Park, State::Parked), (OnSender::Refuse, State::Refused)] {
            let (partner, recorder) = (Partner::new(), Recorder::new());
            let name = state.as_str();
            partner.says(name, [sender_refused()]);
            db.enqueue(&message(name)).await;
            let policy = Policy { on_sender, ..Policy::default() };
            let relay = Running::start(db.relay(&partner, &recorder).policy(policy));
            recorder.ended(1).await;
            relay.stop().await;
            assert_eq!(db.state(name).await, state);
        }
    }
    async fn credentials_are_renewed_once_a_round_however_many_claims_it_takes(db) {
        let (partner, recorder) = (Partner::new(), Recorder::new());
        partner.says("a", [unauthenticated(), busy(), unauthenticated()]);
        db.enqueue(&message("a")).await;
        let relay = Running::start(db.relay(&partner, &recorder));
        recorder.attempted(2).await;
        crate::relay::until_due(&db, "a").await;
        db.advance(Duration::from_secs(2));
        // The second refusal of the round is final for it: the sender is refused.
        recorder.until(|told| told.contains(&Told::Paused)).await;
        crate::relay::until(&db, "a", |entry| !entry.under_way && entry.attempts == 3).await;
        let renewed = || partner.got().iter().map(|got| got.new_credentials).collect::<Vec<_>>();
        assert_eq!(renewed(), [false, true, false]);
        // The next round may renew them again.
        partner.says("a", [unauthenticated()]);
        db.advance(Duration::from_secs(31));
        db.outbox.advance(Duration::from_secs(61));
        recorder.ended(1).await;
        relay.stop().await;
        assert_eq!(renewed(), [false, true, false, false, true]);
        assert_eq!((db.state("a").await, db.show("a").await.attempts), (State::Delivered, 5));
    }

    async fn a_renewal_is_an_attempt_and_no_round_has_more_than_it_may(db) {
        for (max_attempts, tried) in [(1, vec![false]), (2, vec![false, true]), (3, vec![false, false, true])] {
            let (partner, recorder) = (Partner::new(), Recorder::new());
            let name = format!("m{max_attempts}");
            let mut answers = vec![unauthenticated(), unauthenticated()];
            if max_attempts == 3 {
                answers.insert(0, busy());
            }
            partner.says(&name, answers);
            db.enqueue(&message(&name)).await;
            let limits = Limits { max_attempts, ..Limits::default() };
            let relay = Running::start(db.relay(&partner, &recorder).limits(limits));
            if max_attempts == 3 {
                crate::relay::until_due(&db, &name).await;
                db.advance(Duration::from_secs(2));
            }
            recorder.until(|told| told.contains(&Told::Paused)).await;
            relay.stop().await;
            let renewed: Vec<_> = partner.got().iter().map(|got| got.new_credentials).collect();
            assert_eq!(renewed, tried, "{max_attempts}");
            db.outbox.drop(&message(&name).target, &message(&name).key).await.expect("dropped");
        }
    }
}
