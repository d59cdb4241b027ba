//! `storybus outbox`: looking and mending.

use serde_json::Value;
use sqlx::Connection;

use super::{as_producer, bare, consumed, files, id, outbox, send, states};
use crate::bus::Home;
use crate::client::snapshot;
use crate::operator::terminal::on_terminal;
use crate::verbs::{told, with_bus, write};

fn run(home: &Home, words: &[&str]) -> (i32, String, String) {
    told(&bare(home, &["outbox"]).args(words).output().unwrap())
}

/// A bus, and an outbox in which two messages of one story and one of another did not reach it.
fn parked() -> (Home, crate::bus::Bus, Vec<Value>) {
    let (home, bus) = with_bus(&["--demo"]);
    let envelopes = vec![snapshot("s", 1), snapshot("s", 2), snapshot("t", 1)];
    files(&home, &envelopes);
    let nobody = ["--url", "http://127.0.0.1:1/v1/", "--max-attempts", "1"];
    let (code, out, err) = send(&home, &[&nobody[..], &["0.json", "1.json", "2.json"]].concat());
    assert_eq!(code, 4, "{out}{err}");
    assert_eq!(states(&home), ["parked", "pending", "parked"]);
    (home, bus, envelopes)
}

#[test]
fn what_is_parked_is_listed_shown_and_resent_in_its_order() {
    let (home, bus, envelopes) = parked();
    let ids: Vec<String> = envelopes.iter().map(id).collect();
    let (code, out, _) = run(&home, &["list"]);
    assert!(
        code == 0 && out.contains("pending") && out.contains("token_error"),
        "{out}"
    );
    assert!(
        out.contains(&format!("storybus outbox resend {}", ids[0])),
        "{out}"
    );
    let (_, out, _) = run(&home, &["list", "--state", "parked"]);
    assert!(
        out.contains(&ids[0]) && out.contains(&ids[2]) && !out.contains(&ids[1]),
        "{out}"
    );
    let group = envelopes[0]["correlation_id"].as_str().unwrap().to_uppercase();
    let (_, out, _) = run(&home, &["list", "--group", &group]);
    assert!(out.contains(&ids[1]) && !out.contains(&ids[2]), "{out}");
    let limited = outbox(&home, &["list", "--limit", "2", "--newest"]);
    assert_eq!(limited["more"], true);
    assert_eq!(limited["messages"][0]["key"], ids[2].as_str());
    assert!(
        limited["messages"][0]["enqueued_at"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );
    let (_, out, _) = run(&home, &["show", &ids[1]]);
    assert!(
        out.contains(&format!("storybus outbox show {}", ids[0]))
            && out.contains("pending, behind another")
            && out.contains("what it waits behind"),
        "{out}"
    );
    let (_, out, _) = run(&home, &["show", &ids[0]]);
    assert!(
        out.contains("the connection was refused") && !out.contains("Headline"),
        "{out}"
    );
    let (code, out, err) = run(&home, &["stats"]);
    assert!(
        code == 0
            && out.contains("bus     1        2")
            && out.contains("2 order groups are held by a parked message")
            && out.contains("oldest pending"),
        "{out}{err}"
    );
    let (code, out, _) = run(&home, &["resend", "--all-parked"]);
    assert_eq!((code, out.matches("pending again").count()), (0, 2), "{out}");
    assert_eq!(states(&home), ["pending"; 3]);
    // What is pending is made due at once.
    let (code, out, err) = run(&home, &["resend", &ids[0]]);
    assert!(code == 0 && out.contains("pending again"), "{out}{err}");
    assert_eq!(
        send(&home, &["1.json"]).0,
        0,
        "what stands before it is sent, too"
    );
    assert_eq!(consumed(&home, &bus), ids[..2]);
    let (code, _, err) = run(&home, &["resend", &ids[0]]);
    assert!(
        code == 3 && err.contains("is delivered, and that cannot be changed"),
        "{err}"
    );
}

#[test]
fn what_is_dropped_is_refused_and_its_group_goes_on() {
    let (home, bus, envelopes) = parked();
    let ids: Vec<String> = envelopes.iter().map(id).collect();
    let (code, _, err) = run(&home, &["drop", &ids[0]]);
    assert!(code == 2 && err.contains("give --yes"), "{err}");
    let (code, shown) = on_terminal(&mut bare(&home, &["outbox", "drop", &ids[0]]), "n\n");
    assert!(code == 2 && shown.contains("nothing was done"), "{shown}");
    let (code, out, _) = run(&home, &["drop", &ids[0], "--yes"]);
    assert!(code == 0 && out.contains("refused: dropped"), "{out}");
    assert_eq!(
        outbox(&home, &["show", &ids[0]])["last"]["rule"],
        "operator.dropped"
    );
    assert_eq!(send(&home, &["1.json"]).0, 0);
    assert_eq!(consumed(&home, &bus), ids[1..2]);
    let (code, out, err) = send(&home, &["0.json"]);
    assert!(
        code == 3 && out.contains("operator.dropped"),
        "its key stays known: {out}{err}"
    );
    let (code, out, _) = run(&home, &["drop", "--json", "-y", &ids[1]]);
    let failed: Value = serde_json::from_str(&out).unwrap();
    assert!(
        code == 3 && failed["failed"][0]["key"] == ids[1].as_str(),
        "{out}"
    );
}

#[test]
fn what_the_bus_may_have_forgotten_is_resent_only_with_a_word() {
    let (home, bus, envelopes) = parked();
    let key = id(&envelopes[2]);
    // An attempt that may have arrived, more than a week ago.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let path = format!("sqlite:{}", home.path("storybus-outbox.db").display());
            let mut outbox = sqlx::SqliteConnection::connect(&path).await.unwrap();
            sqlx::query("UPDATE sender_log SET unsure_since = due_at - 8 * 86400000 WHERE key = $1")
                .bind(&key)
                .execute(&mut outbox)
                .await
                .unwrap();
            outbox.close().await.unwrap();
        });
    let (code, _, err) = run(&home, &["resend", &key]);
    assert!(
        code == 3 && err.contains("8 days ago") && err.contains("--yes"),
        "{err}"
    );
    let (code, out, err) = send(&home, &["2.json"]);
    assert_eq!(code, 4, "a send does not do it either: {out}{err}");
    let (code, shown) = on_terminal(&mut bare(&home, &["outbox", "resend", &key]), "y\n");
    assert!(
        code == 0 && shown.contains("[y/N]") && shown.contains("pending again"),
        "{shown}"
    );
    assert_eq!(send(&home, &["2.json"]).0, 0);
    assert_eq!(consumed(&home, &bus), [key]);
}

#[test]
fn an_outbox_that_is_not_there_is_told_and_not_made() {
    let home = Home::new();
    for words in [
        &["list"][..],
        &["stats"],
        &["resend", "--all-parked"],
        &["purge", "--older-than", "30d"],
    ] {
        let (code, _, err) = run(&home, words);
        assert!(
            code == 2 && err.contains("there is no outbox at storybus-outbox.db"),
            "{words:?} {err}"
        );
    }
    assert!(!home.path("storybus-outbox.db").exists());
    let (code, out, _) = run(&home, &["migrate"]);
    assert!(code == 0 && out.contains("is made"), "{out}");
    let (code, out, _) = run(&home, &["migrate"]);
    assert!(code == 0 && out.contains("is up to date"), "{out}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(home.path("storybus-outbox.db"))
            .unwrap()
            .permissions(),
    );
    assert_eq!(mode & 0o777, 0o600, "what is to be published is nobody else's");
    let (code, _, err) = run(&home, &["list"]);
    assert!(code == 0 && err.contains("the outbox is empty"), "{err}");
    let (code, _, err) = run(&home, &["show", "k"]);
    assert!(code == 3 && err.contains("the outbox has no message k"), "{err}");
    let (code, out, _) = run(&home, &["show", "k", "--json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 3 && document["error"]["exit_code"] == 3, "{out}");
    let (code, _, err) = run(&home, &["purge", "--older-than", "6d"]);
    assert!(code == 2 && err.contains("at least 7 d"), "{err}");
    assert_eq!(outbox(&home, &["purge", "--older-than", "7d"])["purged"], 0);
    std::fs::write(
        home.path("text"),
        "no database at all, but long enough to be looked at",
    )
    .unwrap();
    let (code, _, err) = run(&home, &["list", "--outbox", "text"]);
    assert!(
        code == 2 && err.contains("text: ") && err.contains("file of SQLite") && !err.contains("password"),
        "{code} {err}"
    );
}

#[test]
fn the_schema_does_what_migrate_does() {
    let home = Home::new();
    let (code, sql, _) = run(&home, &["schema", "--sqlite"]);
    assert!(code == 0 && sql.contains("CREATE TABLE sender_log"), "{sql}");
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let path = format!("sqlite:{}?mode=rwc", home.path("storybus-outbox.db").display());
            let mut outbox = sqlx::SqliteConnection::connect(&path).await.unwrap();
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
                .execute(&mut outbox)
                .await
                .unwrap();
            outbox.close().await.unwrap();
        });
    let (code, out, err) = run(&home, &["migrate"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(states(&home).is_empty());
    let output = as_producer(&home, &["outbox", "list"]).output().unwrap();
    assert_eq!(
        told(&output).0,
        2,
        "an outbox needs no credentials, and takes none"
    );
}

/// A program that keeps its database in another journal mode knows why: only what makes the table asks for write-ahead logging.
#[tokio::test]
async fn the_journal_mode_of_a_program_stays_as_it_is() {
    let (home, _bus) = with_bus(&["--demo"]);
    write(&home, "m.json", &snapshot("s", 1));
    assert_eq!(send(&home, &["m.json"]).0, 0);
    let path = format!("sqlite:{}", home.path("storybus-outbox.db").display());
    let mut program = sqlx::SqliteConnection::connect(&path).await.unwrap();
    let mut mode = async |sql: &'static str| -> String {
        sqlx::query_scalar(sql).fetch_one(&mut program).await.unwrap()
    };
    assert_eq!(
        mode("PRAGMA journal_mode").await,
        "wal",
        "a file that is made new"
    );
    assert_eq!(mode("PRAGMA journal_mode = DELETE").await, "delete");
    write(&home, "n.json", &snapshot("s", 2));
    assert_eq!(send(&home, &["n.json"]).0, 0);
    assert_eq!(told(&bare(&home, &["outbox", "migrate"]).output().unwrap()).0, 0);
    assert_eq!(mode("PRAGMA journal_mode").await, "delete");
    // While it reads, an operator can read too.
    mode("BEGIN; SELECT state FROM sender_log LIMIT 1").await;
    assert_eq!(states(&home), ["delivered", "delivered"]);
    let mut looks = bare(&home, &["outbox", "stats"]);
    assert_eq!(told(&looks.output().unwrap()).0, 0);
    program.close().await.unwrap();
}
