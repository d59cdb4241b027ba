//! How the databases carry the relay's statements out: by the indexes that are made for them, so that what waits costs nothing.

use super::Outbox;
use super::conn::{Arg, Sql};
use super::lock::{self, Lock};
use super::{step, write};

/// The statements, with parameters, and the index that each has to use for what it looks for.
fn statements() -> Vec<(&'static Sql, Vec<Arg<'static>>, &'static str)> {
    const IDS: Arg<'static> = Arg::Text(r#"[{"id": 1}]"#);
    vec![
        (
            &step::DUE,
            vec![Arg::Text("bus"), Arg::Int(1), Arg::Int(64)],
            "sender_log_due",
        ),
        (&step::NEXT_DUE, vec![Arg::Text("bus")], "sender_log_due"),
        (
            &step::FAR_AHEAD,
            vec![Arg::Text("bus"), Arg::Int(1), Arg::Int(256)],
            "sender_log_due",
        ),
        (
            &step::NEARER,
            vec![IDS, Arg::Int(1), Arg::Int(2), Arg::Int(3)],
            BY_ID,
        ),
        (&step::ONLY_NEXT_DUE, vec![IDS, Arg::Text("bus")], BY_ID),
        (
            &step::PLACE,
            vec![Arg::Text("bus"), Arg::Int(256)],
            "sender_log_new",
        ),
        (
            &step::PLACE,
            vec![Arg::Text("bus"), Arg::Int(256)],
            "sender_log_first",
        ),
        (
            &step::PLACE,
            vec![Arg::Text("bus"), Arg::Int(256)],
            "sender_log_line",
        ),
        (
            &step::CLAIM,
            vec![IDS, Arg::Int(1), Arg::Text("me"), Arg::Int(2)],
            BY_ID,
        ),
        (&step::SETTLED_BEFORE, vec![IDS], BY_ID),
        (&step::ONLY_PLACE, vec![IDS], BY_ID),
        (&step::ONLY_STANDINGS, vec![IDS], "sender_log_first"),
        (
            &step::ONLY_DUE,
            vec![IDS, Arg::Text("bus"), Arg::Int(1), Arg::Int(64)],
            BY_ID,
        ),
        (&write::WRITE, vec![IDS], BY_ID),
        (
            &write::MOVE_UP,
            vec![Arg::Text(r#"[{"target": "bus", "group": "g"}]"#)],
            "sender_log_line",
        ),
        (
            &write::MOVE_UP,
            vec![Arg::Text(r#"[{"target": "bus", "group": "g"}]"#)],
            "sender_log_first",
        ),
    ]
}

/// Another name for the table's primary key.
const BY_ID: &str = "";

/// SQLite's plans speak of searches and scans.
fn outbox_is_file(plan: &[String]) -> bool {
    plan.iter()
        .any(|line| line.starts_with("SEARCH ") || line.starts_with("SCAN "))
}

async fn by_their_indexes(outbox: &Outbox) {
    outbox.migrate().await.expect("migrated");
    let mut own = outbox.connect().await.expect("connected");
    let mut conn = own.conn();
    // A backlog that no statistics know of yet.
    conn.script(
        "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 20000)
         INSERT INTO sender_log (target, key, order_group, payload) SELECT 'bus', n, n % 100, 'x' FROM s",
        "INSERT INTO sender_log (target, key, order_group, payload) SELECT 'bus', n, n % 100, 'x' FROM generate_series(1, 20000) AS n",
    )
    .await
    .expect("a backlog");
    lock::begin(&mut conn, Lock::Lines).await.expect("begun");
    for (sql, args, index) in statements() {
        let plan = conn.explain(sql, &args).await.expect("a plan");
        let index = match (index, outbox_is_file(&plan)) {
            (BY_ID, true) => "sender_log USING INTEGER PRIMARY KEY",
            (BY_ID, false) => "sender_log_pkey",
            (index, _) => index,
        };
        // By that, and by nothing that grows with the backlog: reading it whole, or the index of the states, which holds every row.
        assert!(plan.iter().any(|line| line.contains(index)), "{index}: {plan:#?}");
        let bad = plan.iter().any(|line| {
            line.contains("Seq Scan on sender_log")
                || line.starts_with("SCAN sender_log")
                || line.contains("sender_log_state")
        });
        assert!(!bad, "{plan:#?}");
    }
}

#[tokio::test]
async fn on_sqlite() {
    let dir = tempfile::tempdir().expect("a directory");
    let outbox =
        Outbox::open(&format!("sqlite:{}", dir.path().join("outbox.db").display())).expect("an address");
    by_their_indexes(&outbox).await;
}

#[tokio::test]
async fn on_postgres() {
    let outbox = Outbox::open(&storybus_testpg::database().await).expect("an address");
    by_their_indexes(&outbox).await;
}
