//! What a role may do, and what it is told when it may not.

use storybus_sender::outbox::{Migrated, Outbox, OutboxError};

use crate::support::{Db, on_both};

on_both! {
    async fn a_migration_tells_what_it_did(db) {
        let again = db.outbox.migrate().await;
        assert_eq!(again, Ok(Migrated::UpToDate));
        let mut caller = db.caller().await;
        caller.run("DROP TABLE sender_log_migrations").await;
        caller.run("DROP TABLE sender_log").await;
        if db.is_postgres() {
            caller.run("DROP FUNCTION sender_log_enqueue").await;
            caller.run("DROP FUNCTION sender_log_refuse").await;
        }
        assert_eq!(db.outbox.probe().await, Err(OutboxError::Absent));
        assert_eq!(db.outbox.migrate().await, Ok(Migrated::Made));
        assert_eq!(db.outbox.probe().await, Ok(()));
    }
}

/// The database as a role of its own sees it, which may do nothing but connect until it is granted something.
async fn as_role(db: &Db, role: &str) -> Outbox {
    let mut owner = db.caller().await;
    owner.run(&format!("CREATE ROLE {role} LOGIN PASSWORD 'x'")).await;
    let (_, rest) = db.url.split_once("://").expect("a URL");
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    Outbox::open(&format!("postgres://{role}:x@{host}")).expect("an address")
}

fn role() -> String {
    // Roles are the server's, not the database's.
    format!("relay_{}", std::process::id())
}

#[tokio::test]
async fn a_role_that_may_not_is_told_so_and_one_that_need_not_is_let_through() {
    let db = Db::postgres().await;
    let role = role();
    let outbox = as_role(&db, &role).await;
    let mut owner = db.caller().await;
    // It may read no versions, and the table is there: nothing to do.
    assert_eq!(outbox.migrate().await, Ok(Migrated::UpToDate));
    for granted in ["", "GRANT SELECT ON sender_log TO "] {
        if !granted.is_empty() {
            owner.run(&format!("{granted}{role}")).await;
        }
        let error = outbox.probe().await.expect_err("it may not write");
        assert!(matches!(error, OutboxError::Forbidden(_)), "{error:?}");
    }
    owner
        .run(&format!("GRANT UPDATE, DELETE ON sender_log TO {role}"))
        .await;
    assert_eq!(outbox.probe().await, Ok(()));
    owner
        .run(&format!("GRANT SELECT ON sender_log_migrations TO {role}"))
        .await;
    assert_eq!(outbox.migrate().await, Ok(Migrated::UpToDate));
    owner.run("DROP TABLE sender_log_migrations, sender_log").await;
    owner.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    let error = outbox.migrate().await.expect_err("it may not create");
    assert!(matches!(error, OutboxError::Forbidden(_)), "{error:?}");
    outbox.close().await;
    owner.run(&format!("DROP OWNED BY {role}")).await;
    owner.run(&format!("DROP ROLE {role}")).await;
}
