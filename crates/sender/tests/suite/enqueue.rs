//! What enqueueing promises.

use storybus_sender::message::{MAX_BODY, Message, PayloadHash};
use storybus_sender::outbox::{EnqueueError, Enqueued, State, enqueue};

use crate::support::{message, of_group, on_both};

on_both! {
    async fn a_message_is_there_when_the_transaction_commits_and_only_then(db) {
        let mut caller = db.caller().await;
        caller.run("CREATE TABLE invoice (id BIGINT PRIMARY KEY)").await;
        for (name, end) in [("kept", "COMMIT"), ("gone", "ROLLBACK")] {
            caller.begin().await;
            let rows = caller.int("SELECT count(*) FROM invoice").await;
            caller.run(&format!("INSERT INTO invoice (id) VALUES ({rows})")).await;
            assert!(matches!(caller.enqueue(&message(name)).await, Enqueued::New { .. }));
            caller.run(end).await;
        }
        assert_eq!(caller.int("SELECT count(*) FROM invoice").await, 1);
        assert_eq!(caller.texts("SELECT key FROM sender_log").await, ["kept"]);
        let entry = db.show("kept").await;
        assert_eq!(entry.state, State::Pending);
        assert_eq!(entry.payload_hash, Some(PayloadHash::of(&message("kept").body).to_string()));
        assert_eq!(entry.attempts, 0);
    }

    async fn the_same_again_tells_what_became_of_it(db) {
        let first = db.outbox.enqueue(&message("a")).await.expect("enqueued");
        let again = db.outbox.enqueue(&message("a")).await.expect("known");
        assert_eq!(again, Enqueued::Known { id: first.id(), state: State::Pending });
        db.outbox.drop(&message("a").target, &message("a").key).await.expect("dropped");
        let after = db.outbox.enqueue(&message("a")).await.expect("known");
        assert_eq!(after, Enqueued::Known { id: first.id(), state: State::Refused });
    }

    async fn a_key_with_other_content_is_told_with_both_hashes_and_spoils_no_transaction(db) {
        db.enqueue(&message("a")).await;
        let other = Message { body: b"something else".to_vec(), ..message("a") };
        let mut caller = db.caller().await;
        caller.begin().await;
        let error = enqueue(caller.conn(), &other).await.expect_err("the key is taken");
        let (kept, given) = (PayloadHash::of(&message("a").body), PayloadHash::of(&other.body));
        assert_eq!(
            error,
            EnqueueError::KeyReused { target: other.target.clone(), key: other.key.clone(), kept, given }
        );
        let text = error.to_string();
        assert!(text.contains(&kept.to_string()) && text.contains(&given.to_string()), "{text}");
        assert!(!text.contains("something"), "{text}");
        caller.enqueue(&message("b")).await;
        caller.run("COMMIT").await;
        assert_eq!(caller.texts("SELECT key FROM sender_log ORDER BY id").await, ["a", "b"]);
        assert_eq!(db.outbox.payload(&other.target, &other.key).await.expect("kept"), message("a").body);
    }

    async fn one_key_may_be_used_once_for_each_target(db) {
        let elsewhere = storybus_sender::message::Target::new("partner").expect("a target");
        db.enqueue(&message("a")).await;
        db.enqueue(&Message { target: elsewhere, body: b"other bytes".to_vec(), ..message("a") }).await;
        assert_eq!(db.caller().await.int("SELECT count(*) FROM sender_log").await, 2);
    }

    async fn what_is_too_large_is_refused_before_anything_is_written(db) {
        let error = db.outbox.enqueue(&Message { body: vec![0; MAX_BODY + 1], ..message("a") }).await;
        assert!(matches!(error, Err(EnqueueError::Invalid(_))), "{error:?}");
        db.enqueue(&Message { body: vec![7; MAX_BODY], ..message("b") }).await;
        assert_eq!(db.show("b").await.size, MAX_BODY as u64);
    }

    async fn a_plain_insert_enqueues(db) {
        let mut caller = db.caller().await;
        caller.run("INSERT INTO sender_log (target, key, order_group, payload) VALUES ('bus', 'plain', 'story', 'the bytes of plain')").await;
        let known = db.outbox.enqueue(&of_group("story", "plain")).await.expect("known");
        assert!(matches!(known, Enqueued::Known { state: State::Pending, .. }));
        let other = Message { body: b"x".to_vec(), ..of_group("story", "plain") };
        assert!(matches!(db.outbox.enqueue(&other).await, Err(EnqueueError::KeyReused { .. })));
        for bad in [
            "('bus', 'with space', NULL, 'x')",
            "('', 'k', NULL, 'x')",
            "('bus', '', NULL, 'x')",
            "('bus', 'k', '', 'x')",
            "('bus', 'k\u{e9}', NULL, 'x')",
        ] {
            let sql = format!("INSERT INTO sender_log (target, key, order_group, payload) VALUES {bad}");
            assert!(caller.try_run(&sql).await.is_err(), "{bad}");
        }
    }

    async fn what_was_enqueued_cannot_be_changed_and_what_is_final_stays(db) {
        db.enqueue(&of_group("g", "a")).await;
        let mut caller = db.caller().await;
        for change in [
            "payload = 'x'", "key = 'b'", "target = 'b'", "order_group = 'b'", "order_group = NULL",
            "payload_hash = NULL", "attempts = -1", "fence = -1", "state = 'lost'",
        ] {
            assert!(caller.try_run(&format!("UPDATE sender_log SET {change}")).await.is_err(), "{change}");
        }
        for end in ["delivered", "refused"] {
            db.enqueue(&message(end)).await;
            caller.run(&format!("UPDATE sender_log SET state = '{end}' WHERE key = '{end}'")).await;
            for state in State::ALL.iter().filter(|state| state.as_str() != end) {
                let sql = format!("UPDATE sender_log SET state = '{state}' WHERE key = '{end}'");
                assert!(caller.try_run(&sql).await.is_err(), "{sql}");
            }
        }
    }

    async fn a_transaction_that_another_came_before_is_told_to_repeat_at_every_isolation_level(db) {
        let begins: &[&str] = if db.is_postgres() {
            &["BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE"]
        } else {
            &["BEGIN"]
        };
        for (number, begin) in begins.iter().enumerate() {
            let name = format!("m{number}");
            let mut caller = db.caller().await;
            caller.run(begin).await;
            // Its snapshot is from before the other's commit.
            caller.int("SELECT count(*) FROM sender_log").await;
            db.enqueue(&of_group("g", &name)).await;
            let result = enqueue(caller.conn(), &of_group("g", &name)).await;
            if begin.ends_with("READ COMMITTED") {
                assert!(matches!(result, Ok(Enqueued::Known { .. })), "{begin}: {result:?}");
            } else {
                assert!(matches!(result, Err(EnqueueError::Conflict(_))), "{begin}: {result:?}");
                let text = result.expect_err("a conflict").to_string();
                assert!(text.contains("repeat the whole transaction"), "{text}");
            }
            caller.run("ROLLBACK").await;
            // Where nobody came before, each level takes it.
            caller.run(begin).await;
            caller.enqueue(&of_group("g", &format!("alone{number}"))).await;
            caller.run("COMMIT").await;
        }
    }

    async fn several_may_migrate_at_once(db) {
        let outboxes: Vec<_> = (0..4)
            .map(|_| storybus_sender::outbox::Outbox::open(&db.url).expect("an address"))
            .collect();
        let all = futures::future::join_all(outboxes.iter().map(storybus_sender::outbox::Outbox::migrate)).await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
        assert_eq!(db.caller().await.int("SELECT max(version) FROM sender_log_migrations").await, 1);
    }
}

#[test]
fn an_address_with_a_password_is_never_repeated() {
    use storybus_sender::outbox::Outbox;
    let outbox = Outbox::open("postgres://me:s3cret@127.0.0.1:1/app").expect("an address");
    assert_eq!(format!("{outbox:?}"), "Outbox(postgres://me@127.0.0.1:1/app)");
    for bad in [
        "postgres://me:s3cret@127.0.0.1:x/app",
        "mysql://me:s3cret@127.0.0.1/app",
        "postgres://me:s3cret@127.0.0.1/app?sslmode=s3cret",
        "",
        "sqlite::memory:",
    ] {
        let error = Outbox::open(bad).expect_err(bad).to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
    for bad in [
        "postgres://me:top@s3cret#/@127.0.0.1:1/app",
        "postgres://me:top@s3cret@127.0.0.1:1/app",
        "postgres://me:top/s3cret@127.0.0.1:1/app",
        "postgres://me:1?s3cret@127.0.0.1:1/app",
        "postgres://me:1#s3cret@127.0.0.1:1/app",
    ] {
        let error = Outbox::open(bad).expect_err(bad).to_string();
        assert!(
            error.contains("percent-encode the password") && !error.contains("s3cret"),
            "{error}"
        );
    }
    for good in [
        "postgres://me:top%40s3cret%23@127.0.0.1:1/app",
        "postgres:///app?host=/run/postgresql",
        "postgres://127.0.0.1/app?user=me",
    ] {
        assert!(Outbox::open(good).is_ok(), "{good}");
    }
    for path in [
        "outbox.db",
        "./dir/outbox.db",
        "C:/outbox.db",
        "sqlite:outbox.db",
        "sqlite://outbox.db",
    ] {
        assert!(Outbox::open(path).is_ok(), "{path}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told_without_its_password() {
    use storybus_sender::outbox::{Outbox, OutboxError};
    let outbox = Outbox::open("postgres://me:s3cret@127.0.0.1:1/app").expect("an address");
    let error = outbox.migrate().await.expect_err("nobody listens there");
    assert!(matches!(error, OutboxError::Unreachable(_)), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("s3cret"), "{error:?}");
}
