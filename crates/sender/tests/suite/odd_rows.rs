//! What a plain `INSERT` may bring in, and what not; and that one odd row stops nobody else.

use storybus_sender::message::{Invalid, MAX_BODY, Message};
use storybus_sender::outbox::{EnqueueError, Filter, State};

use crate::relay::Running;
use crate::support::{Db, Partner, Recorder, message, on_both};

const COLUMNS: &str = "INSERT INTO sender_log (target, key, order_group, content_type, payload) VALUES";

/// Sends until so many have ended.
async fn relay(db: &Db, partner: &std::sync::Arc<Partner>, ends: usize) {
    let recorder = Recorder::new();
    let relay = Running::start(db.relay(partner, &recorder));
    recorder.ended(ends).await;
    relay.stop().await;
}

on_both! {
    async fn a_media_type_and_a_payload_have_limits_for_every_program(db) {
        let mut caller = db.caller().await;
        let blob = |bytes: usize| {
            if db.is_postgres() {
                format!("CAST(repeat('x', {bytes}) AS BYTEA)")
            } else {
                format!("zeroblob({bytes})")
            }
        };
        for (number, bad) in [
            format!("('bus', 'k', NULL, '{}', 'x')", "t".repeat(256)),
            String::from("('bus', 'k', NULL, '', 'x')"),
            String::from("('bus', 'k', NULL, 'text/pl\u{e4}in', 'x')"),
            String::from("('bus', 'k', NULL, 'text/plain\r\nx: y', 'x')"),
            format!("('bus', 'k', NULL, NULL, {})", blob(MAX_BODY + 1)),
        ]
        .into_iter()
        .enumerate()
        {
            assert!(caller.try_run(&format!("{COLUMNS} {bad}")).await.is_err(), "{number}");
        }
        caller.run(&format!("{COLUMNS} ('bus', 'k', NULL, 'text/plain; charset=utf-8', {})", blob(MAX_BODY))).await;
        for bad in ["", "text/pl\u{e4}in", "a\nb", &"t".repeat(256)] {
            let given = Message { content_type: Some(bad.to_owned()), ..message("a") };
            let result = db.outbox.enqueue(&given).await;
            assert_eq!(result, Err(EnqueueError::Invalid(Invalid::ContentType)), "{bad}");
        }
        assert_eq!(caller.int("SELECT count(*) FROM sender_log").await, 1);
    }

    async fn a_text_is_sent_as_its_bytes(db) {
        let mut caller = db.caller().await;
        // PostgreSQL takes what is meant as bytes in its own spelling.
        let text = if db.is_postgres() { "CAST('{\"a\": \"\u{e4}\"}' AS TEXT)::BYTEA" } else { "'{\"a\": \"\u{e4}\"}'" };
        caller.run(&format!("{COLUMNS} ('bus', 'text', NULL, NULL, {text})")).await;
        let partner = Partner::new();
        relay(&db, &partner, 1).await;
        assert_eq!(partner.got()[0].body, "{\"a\": \"\u{e4}\"}".as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_out_what_has_another_type_than_is_meant() {
    let db = Db::sqlite().await;
    let mut caller = db.caller().await;
    for bad in [
        "(CAST('bus' AS BLOB), 'k', NULL, NULL, 'x')",
        "('bus', CAST('k' AS BLOB), NULL, NULL, 'x')",
        "('bus', CAST('k' || char(0) || 'l' AS TEXT), NULL, NULL, 'x')",
        "('bus', CAST(x'6bff' AS TEXT), NULL, NULL, 'x')",
        "('bus', 'k', CAST('g' AS BLOB), NULL, 'x')",
        "('bus', 'k', NULL, CAST('text/plain' AS BLOB), 'x')",
        "('bus', 'k', NULL, NULL, 5)",
    ] {
        assert!(
            caller.try_run(&format!("{COLUMNS} {bad}")).await.is_err(),
            "{bad}"
        );
    }
    for bad in [
        "due_at) VALUES ('bus', 'k', 'x', 'soon')",
        "enqueued_at) VALUES ('bus', 'k', 'x', 1.5)",
        "attempts) VALUES ('bus', 'k', 'x', 'none')",
        "last_detail) VALUES ('bus', 'k', 'x', x'ff')",
        "payload_hash) VALUES ('bus', 'k', 'x', '01234567890123456789012345678901')",
    ] {
        let sql = format!("INSERT INTO sender_log (target, key, payload, {bad}");
        assert!(caller.try_run(&sql).await.is_err(), "{bad}");
    }
    // What SQLite itself makes text of is text.
    caller.run(&format!("{COLUMNS} ('bus', 5, 6, NULL, 'x')")).await;
    relay(&db, &Partner::new(), 1).await;
    assert_eq!(db.state("5").await, State::Delivered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_odd_row_on_sqlite_stops_neither_relays_nor_operators() {
    let db = Db::sqlite().await;
    let mut caller = db.caller().await;
    // A program that does not check, as one with an older table would be.
    caller.run("PRAGMA ignore_check_constraints = ON").await;
    for odd in [
        "INSERT INTO sender_log (target, key, payload) VALUES ('bus', x'ff6b', 'odd')",
        "INSERT INTO sender_log (target, key, order_group, payload) VALUES ('bus', 'group', x'67', 'odd')",
        "INSERT INTO sender_log (target, key, content_type, payload) VALUES ('bus', 'type', x'ff', 'odd')",
        "INSERT INTO sender_log (target, key, payload) VALUES (x'627573', 'target', 'odd')",
        "INSERT INTO sender_log (target, key, payload, attempts) VALUES ('bus', 'attempts', 'odd', 'many')",
        "INSERT INTO sender_log (target, key, payload, due_at) VALUES ('bus', 'due', 'odd', 1.5)",
        "INSERT INTO sender_log (target, key, payload) VALUES ('bus', 'payload', 17)",
    ] {
        caller.run(odd).await;
    }
    for name in ["a", "b"] {
        db.enqueue(&message(name)).await;
    }
    let (partner, recorder) = (Partner::new(), Recorder::new());
    let relay = Running::start(db.relay(&partner, &recorder));
    db.while_time_passes(async {
        for name in ["a", "b"] {
            crate::relay::until(&db, name, |entry| entry.state == State::Delivered).await;
        }
    })
    .await;
    relay.stop().await;
    let all = db.outbox.list(&Filter::default(), 100).await.expect("listed");
    assert_eq!(all.len(), 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_or_replace_on_sqlite_replaces_nothing() {
    let db = Db::sqlite().await;
    let id = db.enqueue(&message("a")).await;
    relay(&db, &Partner::new(), 1).await;
    let mut caller = db.caller().await;
    for replacing in [
        "INSERT OR REPLACE INTO sender_log (target, key, payload) VALUES ('bus', 'a', 'other')".to_owned(),
        "REPLACE INTO sender_log (target, key, payload) VALUES ('bus', 'a', 'other')".to_owned(),
        format!(
            "INSERT OR REPLACE INTO sender_log (id, target, key, payload) VALUES ({id}, 'bus', 'b', 'other')"
        ),
    ] {
        let error = caller.try_run(&replacing).await.expect_err("it is refused");
        assert!(error.to_string().contains("is not replaced"), "{error}");
    }
    // The other ways to meet a key that is there go on as they did.
    for (insert, fails) in [
        ("INSERT INTO", true),
        ("INSERT OR ABORT INTO", true),
        ("INSERT OR IGNORE INTO", false),
    ] {
        let sql = format!("{insert} sender_log (target, key, payload) VALUES ('bus', 'a', 'other')");
        assert_eq!(caller.try_run(&sql).await.is_err(), fails, "{insert}");
    }
    caller
        .run("INSERT OR ABORT INTO sender_log (target, key, payload) VALUES ('bus', 'b', 'x') ON CONFLICT (target, key) DO NOTHING")
        .await;
    let entry = db.show("a").await;
    assert_eq!((entry.id, entry.state, entry.attempts), (id, State::Delivered, 1));
    assert_eq!(caller.int("SELECT count(*) FROM sender_log").await, 2);
    assert_eq!(
        db.outbox
            .payload(&message("a").target, &message("a").key)
            .await
            .expect("kept"),
        message("a").body
    );
}
