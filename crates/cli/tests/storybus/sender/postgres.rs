//! The same verbs on PostgreSQL, where several nodes share an outbox.

use serde_json::Value;

use super::{Running, as_producer, bare, consumed, files, id};
use crate::bus::{Home, wait_for};
use crate::client::snapshot;
use crate::verbs::{told, with_bus};

fn database() -> String {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(storybus_testpg::database())
}

#[test]
fn two_relays_and_a_send_share_an_outbox() {
    let (home, bus) = with_bus(&["--demo"]);
    let url = database();
    let envelopes: Vec<Value> = (1..=20).map(|n| snapshot(&format!("s{}", n % 4), n)).collect();
    let names = files(&home, &envelopes);
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let outbox = |words: &[&str]| {
        told(
            &bare(&home, &["outbox"])
                .args(words)
                .env("STORYBUS_OUTBOX", &url)
                .output()
                .unwrap(),
        )
    };
    let send = |words: &[&str]| {
        told(
            &as_producer(&home, &["send"])
                .args(words)
                .env("STORYBUS_OUTBOX", &url)
                .output()
                .unwrap(),
        )
    };
    for wanting in [send(&["0.json"]), outbox(&["list"])] {
        let (code, out, err) = wanting;
        assert!(
            code == 2
                && err.contains("there is no outbox in this database yet")
                && err.contains("storybus outbox migrate"),
            "{code} {out}{err}"
        );
    }
    assert_eq!(outbox(&["migrate"]).0, 0);
    let relay = |home: &Home| {
        let mut command = as_producer(home, &["relay", "--no-listen"]);
        command.env("STORYBUS_OUTBOX", &url);
        Running::start(home, command)
    };
    let (mut one, mut two) = (relay(&home), relay(&home));
    let (code, out, err) = send(&words);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, _) = outbox(&["stats", "--json"]);
    let stats: Value = serde_json::from_str(&out).unwrap();
    assert!(
        code == 0 && stats["counts"][0]["count"] == 20 && stats["counts"][0]["state"] == "delivered",
        "{out}"
    );
    wait_for("rest", || one.child.try_wait().unwrap().is_none().then_some(()));
    assert_eq!((one.stop(), two.stop()), (0, 0), "{}", home.read("log"));
    let got = consumed(&home, &bus);
    assert_eq!(got.len(), 20);
    for story in 0..4 {
        let of_story = |n: &usize| (n + 1) % 4 == story;
        let sent: Vec<String> = (0..20).filter(of_story).map(|n| id(&envelopes[n])).collect();
        let came: Vec<String> = got.iter().filter(|id| sent.contains(id)).cloned().collect();
        assert_eq!(came, sent);
    }
}

#[test]
fn the_schema_makes_an_outbox() {
    let home = Home::new();
    let url = database();
    let run = |words: &[&str]| {
        told(
            &bare(&home, &["outbox"])
                .args(words)
                .env("STORYBUS_OUTBOX", &url)
                .output()
                .unwrap(),
        )
    };
    let (code, sql, err) = run(&["schema"]);
    assert!(sql.starts_with("-- To be run once"), "{sql}");
    assert!(code == 0 && sql.contains("CREATE TRIGGER"), "{err}");
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            use sqlx::Connection;
            let mut conn = sqlx::PgConnection::connect(&url).await.unwrap();
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
                .execute(&mut conn)
                .await
                .unwrap();
            conn.close().await.unwrap();
        });
    let (code, out, err) = run(&["migrate"]);
    assert!(code == 0 && out.contains("is up to date"), "{out}{err}");
    assert_eq!(run(&["list"]).0, 0);
}
