//! What the database does not let be written of one message stops no other.

use std::future::pending;

use storybus_sender::answer::Answer;
use storybus_sender::outbox::{Database, Outbox, OutboxError, State, schema};
use storybus_sender::relay::Fate;

use crate::relay::Running;
use crate::support::partner::refused;
use crate::support::recorder::Told;
use crate::support::{Caller, Db, Partner, Recorder, SOON, message, of_group, on_both};

/// A rule of somebody else's in the outbox's table: writes of rows that are so fail.
async fn forbid(db: &Db, so: &str) {
    let sql = if db.is_postgres() {
        format!(
            "CREATE FUNCTION forbid() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'forbidden here'; END $$;
             CREATE TRIGGER forbid BEFORE UPDATE ON sender_log FOR EACH ROW WHEN ({so}) EXECUTE FUNCTION forbid()"
        )
    } else {
        format!(
            "CREATE TRIGGER forbid BEFORE UPDATE ON sender_log WHEN {so} BEGIN SELECT RAISE(ABORT, 'forbidden here'); END"
        )
    };
    db.caller().await.run(&sql).await;
}

/// Relays until the others are delivered, and hears what is said of the one at fault.
async fn others_go_on(db: &Db, partner: &std::sync::Arc<Partner>) {
    let recorder = Recorder::new();
    for name in ["cursed", "next", "other"] {
        let group = if name == "other" { "other" } else { "g" };
        db.enqueue(&of_group(group, name)).await;
    }
    let relay = Running::start(db.relay(partner, &recorder));
    db.while_time_passes(async {
        recorder.ended(1).await;
        db.enqueue(&message("later")).await;
        recorder.ended(2).await;
        let named = |told: &Told| matches!(told, Told::Troubled(text) if text.contains("cursed") && text.contains("forbidden here"));
        recorder.until(|told| told.iter().any(named)).await;
    })
    .await;
    relay.stop().await;
    assert_eq!(
        (db.state("other").await, db.state("later").await),
        (State::Delivered, State::Delivered)
    );
    assert_eq!(
        (db.state("cursed").await, db.state("next").await),
        (State::Pending, State::Pending)
    );
}

on_both! {
    async fn texts_that_the_database_does_not_take_are_written_in_ascii(db) {
        let plain = if db.is_postgres() { "NEW.last_detail ~ '[^ -~]'" } else { "NEW.last_detail GLOB '*[^ -~]*'" };
        forbid(&db, plain).await;
        let partner = Partner::new();
        let detail = Some(String::from("Schlagzeile \u{201e}zu lang\u{201c}"));
        partner.says("a", [Answer { detail, ..refused() }]);
        for name in ["a", "b"] {
            db.enqueue(&message(name)).await;
        }
        let recorder = Recorder::new();
        let relay = Running::start(db.relay(&partner, &recorder));
        db.while_time_passes(recorder.ended(2)).await;
        relay.stop().await;
        let a = db.show("a").await;
        assert_eq!((a.state, db.state("b").await), (State::Refused, State::Delivered));
        assert_eq!(a.last.detail.as_deref(), Some("Schlagzeile ?zu lang?"));
        assert_eq!(a.last.rule.as_deref(), Some("envelope.required"));
        assert_eq!(partner.got().len(), 2, "nothing is sent twice for it");
    }

    async fn one_that_can_never_be_settled_does_not_stop_the_others(db) {
        forbid(&db, "NEW.key = 'cursed' AND NEW.state = 'delivered'").await;
        others_go_on(&db, &Partner::new()).await;
    }

    async fn one_that_can_never_be_claimed_does_not_stop_the_others(db) {
        forbid(&db, "NEW.key = 'cursed' AND NEW.lease_owner IS NOT NULL").await;
        let partner = Partner::new();
        others_go_on(&db, &partner).await;
        assert!(!partner.keys().contains(&String::from("cursed")));
        // And whoever sends it alone is told, and need not wait for ever.
        let id = db.show("cursed").await.id;
        let relay = db.relay(&partner, &Recorder::new());
        let ids = [id];
        let sent = tokio::time::timeout(SOON, db.while_time_passes(relay.send(&ids, pending())));
        let sent = sent.await.expect("it ends").expect("sent");
        assert_eq!(sent[0].fate, Fate::Untried);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_in_utf8_is_refused_before_anything_is_sent() {
    let db = Db::postgres().await;
    let (before, after) = db.url.split_once('?').expect("a URL");
    for encoding in ["LATIN1", "WIN1252", "SQL_ASCII"] {
        let url = format!("{before}_{}?{after}", encoding.to_lowercase());
        let database = format!(
            "{}_{}",
            before.rsplit_once('/').expect("a name").1,
            encoding.to_lowercase()
        );
        db.caller()
            .await
            .run(&format!(
                "CREATE DATABASE {database} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            ))
            .await;
        let outbox = Outbox::open(&url).expect("an address");
        let error = OutboxError::Encoding {
            found: encoding.to_owned(),
        };
        let refused = Err(error.clone());
        assert_eq!(outbox.migrate().await.map(drop), refused);
        // Made by hand, it is no better.
        let mut caller = Caller::connect(&url).await;
        caller.run(&schema(Database::Postgres)).await;
        assert_eq!(outbox.probe().await, refused);
        outbox.enqueue(&message("a")).await.expect("enqueued");
        let partner = Partner::new();
        let relay = db.relay_on(&outbox, &partner, &Recorder::new());
        let ended = tokio::time::timeout(SOON, relay.run(pending())).await;
        assert_eq!(ended.expect("it ends"), refused);
        assert!(partner.got().is_empty());
        let text = error.to_string();
        assert!(text.contains(encoding) && text.contains("UTF8"), "{text}");
    }
}
