//! `storybus relay` as a service: what it sends, how it stops, what it says of its health.

use std::io::Write;
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::Value;

use super::proxy::{Fate, Proxy};
use super::{Running, address, as_producer, bare, consumed, files, id, outbox, send, states, wait_long};
use crate::bus::{Bus, Home, wait_for};
use crate::client::{Client, snapshot};
use crate::verbs::{told, with_bus, write};

/// Enqueues files for a relay: nobody is there to send them now.
fn enqueue(home: &Home, envelopes: &[Value]) {
    let names = files(home, envelopes);
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let nobody = ["--url", "http://127.0.0.1:1/v1/", "--max-attempts", "1"];
    assert_eq!(send(home, &[&nobody[..], &words].concat()).0, 4);
    let (code, ..) = told(
        &bare(home, &["outbox", "resend", "--all-parked"])
            .output()
            .unwrap(),
    );
    assert_eq!(code, 0);
}

fn get(home: &Home, path: &str) -> crate::client::Answer {
    let mut client = Client::connect(&address(home));
    client.get(path)
}

fn all_delivered(home: &Home, count: usize) {
    wait_for("delivery of everything", || {
        let states = states(home);
        (states.len() == count && states.iter().all(|state| state == "delivered")).then_some(())
    });
}

#[test]
fn it_sends_what_is_there_and_what_comes_and_stops_in_good_order() {
    let (home, bus) = with_bus(&["--demo"]);
    let envelopes: Vec<Value> = (1..=5).map(|n| snapshot("s", n)).collect();
    enqueue(&home, &envelopes[..3]);
    let mut relay = Running::relay(&home, &["--log", "trace"]);
    all_delivered(&home, 3);
    let health = get(&home, "/healthz");
    assert_eq!(
        (health.status, health.body["status"].as_str()),
        (200, Some("ok")),
        "{health:?}"
    );
    // Another program enqueues: the relay finds it, and `send` waits for whoever has it.
    for (n, envelope) in envelopes.iter().enumerate().skip(3) {
        write(&home, "more.json", envelope);
        let (code, out, err) = send(&home, &["more.json"]);
        assert_eq!(code, 0, "{n}: {out}{err}");
    }
    all_delivered(&home, 5);
    assert_eq!(
        consumed(&home, &bus),
        envelopes.iter().map(id).collect::<Vec<_>>()
    );
    let metrics = get(&home, "/metrics");
    assert!(
        metrics.head.contains("text/plain; version=0.0.4"),
        "{}",
        metrics.head
    );
    for line in [
        r#"storybus_sender_attempts_total{target="bus",outcome="accepted",rule=""} "#,
        r#"storybus_sender_messages_total{target="bus",state="delivered"} "#,
        r#"storybus_sender_outbox_messages{target="bus",state="pending"} 0"#,
        "storybus_sender_oldest_pending_seconds 0",
        "storybus_sender_held_groups 0",
        "storybus_sender_healthy 1",
        "storybus_sender_step_seconds_count ",
        "storybus_sender_in_flight 0",
    ] {
        assert!(
            metrics.text.contains(line),
            "{line} is missing in\n{}",
            metrics.text
        );
    }
    assert_eq!(get(&home, "/nothing").status, 404);
    assert_eq!(relay.stop(), 0);
    let (events, log) = (home.read("events"), home.read("log"));
    assert!(
        events.lines().count() >= 3
            && events
                .lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{events}"
    );
    assert!(log.contains("\"stopped\""), "{log}");
    let secret = bus.text("/producer/client_secret");
    for text in [&events, &log] {
        assert!(
            !text.contains("Headline") && !text.contains(secret),
            "no payload, no secret"
        );
    }
}

#[test]
fn a_wrong_secret_makes_it_unwell_and_refuses_nothing() {
    let (home, bus) = with_bus(&["--demo"]);
    enqueue(&home, &[snapshot("s", 1), snapshot("t", 1)]);
    let mut command = as_producer(&home, &["relay", "--listen", "127.0.0.1:0"]);
    command.env("STORYBUS_CLIENT_SECRET", "wrong-hunter2");
    let mut relay = Running::start(&home, command);
    let health = wait_for("a relay that is unwell", || {
        let health = get(&home, "/healthz");
        (health.body["reasons"][0]["reason"] == "sender_refused").then_some(health)
    });
    assert_eq!(
        (health.status, health.body["reasons"][0]["target"].as_str()),
        (503, Some("bus"))
    );
    assert_eq!(relay.stop(), 0);
    assert!(!home.read("log").contains("hunter2"));
    assert!(states(&home).iter().all(|state| state == "pending"));
    let mut relay = Running::relay(&home, &[]);
    // The round was over, and the next begins within a minute; an operator need not wait for it.
    assert_eq!(send(&home, &["0.json", "1.json", "--patience", "90s"]).0, 0);
    assert_eq!(relay.stop(), 0);
    assert_eq!(consumed(&home, &bus).len(), 2);
}

#[test]
fn a_secret_that_is_mended_in_its_file_needs_no_restart() {
    let (home, bus) = with_bus(&["--demo"]);
    enqueue(&home, &[snapshot("s", 1), snapshot("t", 1)]);
    std::fs::write(home.path("secret"), "wrong-hunter2\n").unwrap();
    let mut relay = Running::relay(&home, &["--client-secret-file", "secret"]);
    let health = wait_for("a relay that is unwell", || {
        let health = get(&home, "/healthz");
        (health.body["reasons"][0]["reason"] == "sender_refused").then_some(health)
    });
    let detail = health.body["reasons"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("read again before each try") && !detail.contains("hunter2"),
        "{detail}"
    );
    std::fs::write(home.path("secret"), bus.text("/producer/client_secret")).unwrap();
    // One message tries every 30 s.
    wait_long("delivery", || states(&home) == ["delivered", "delivered"]);
    assert_eq!(get(&home, "/healthz").status, 200);
    assert_eq!(relay.stop(), 0);
    assert_eq!(consumed(&home, &bus).len(), 2);
}

#[test]
fn a_bus_that_is_away_is_told_of_once_and_the_relay_is_well() {
    let (home, bus) = with_bus(&["--demo"]);
    let proxy = Proxy::start(bus.address(), &[], Fate::Cut);
    enqueue(&home, &[snapshot("s", 1)]);
    // A round of many short pauses: the default's next round would be a minute away.
    let mut relay = Running::relay(&home, &["--url", &proxy.url, "--max-attempts", "1000"]);
    wait_long("word about it", || {
        home.read("log").contains("nothing gets through")
    });
    let log = home.read("log");
    assert!(
        log.contains("\"target_name\":\"bus\"") && log.contains("\"since\":\"20"),
        "{log}"
    );
    let health = get(&home, "/healthz");
    let target = &health.body["targets"][0];
    assert_eq!((health.status, target["target"].as_str()), (200, Some("bus")));
    assert!(
        target["unreachable_since"].is_string() && target["detail"].is_string(),
        "{target}"
    );
    proxy.then(Fate::Through);
    all_delivered(&home, 1);
    let target = &get(&home, "/healthz").body["targets"][0];
    assert!(
        target["unreachable_since"].is_null() && target["last_delivered_at"].is_string(),
        "{target}"
    );
    assert_eq!(relay.stop(), 0);
    let log = home.read("log");
    assert_eq!(log.matches("nothing gets through").count(), 1, "{log}");
    assert_eq!(log.matches("can be reached again").count(), 1, "{log}");
    assert_eq!(consumed(&home, &bus).len(), 1);
}

#[test]
fn a_database_that_goes_makes_it_unwell_until_it_comes_back() {
    let (home, bus) = with_bus(&["--demo"]);
    enqueue(&home, &[snapshot("s", 1)]);
    let mut relay = Running::relay(&home, &["--outbox", "storybus-outbox.db"]);
    all_delivered(&home, 1);
    // The table is taken away under it, as a migration in the wrong database would.
    let sql = |statement: &'static str| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(async {
                use sqlx::Connection;
                let path = format!("sqlite:{}", home.path("storybus-outbox.db").display());
                let mut outbox = sqlx::SqliteConnection::connect(&path).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut outbox).await.unwrap();
                outbox.close().await.unwrap();
            });
    };
    sql("ALTER TABLE sender_log RENAME TO elsewhere");
    let health = wait_for("a relay that is unwell", || {
        let health = get(&home, "/healthz");
        (health.status == 503).then_some(health)
    });
    assert_eq!(health.body["reasons"][0]["reason"], "outbox", "{health:?}");
    sql("ALTER TABLE elsewhere RENAME TO sender_log");
    wait_for("a relay that is well", || {
        (get(&home, "/healthz").status == 200).then_some(())
    });
    assert_eq!(relay.stop(), 0);
    assert_eq!(consumed(&home, &bus).len(), 1);
}

#[test]
fn policies_decide_what_a_no_does_to_a_story() {
    let (home, bus) = with_bus(&["--demo"]);
    let story = [snapshot("s", 2), snapshot("s", 1), snapshot("s", 3)];
    enqueue(&home, &story);
    let mut relay = Running::relay(&home, &["--park", "sequence_number.not_increasing"]);
    wait_for("a parked message", || {
        (states(&home)[1] == "parked").then_some(())
    });
    assert_eq!(relay.stop(), 0);
    assert_eq!(
        states(&home),
        ["delivered", "parked", "pending"],
        "it holds its group"
    );
    let group = story[0]["correlation_id"].as_str().unwrap();
    let line = outbox(&home, &["list", "--group", group]);
    assert_eq!(line["messages"].as_array().unwrap().len(), 2);
    let resent = bare(&home, &["outbox", "resend", &id(&story[1])])
        .output()
        .unwrap();
    assert_eq!(told(&resent).0, 0);
    let mut relay = Running::relay(&home, &[]);
    wait_for("a refusal", || {
        (states(&home) == ["delivered", "refused", "delivered"]).then_some(())
    });
    assert_eq!(relay.stop(), 0);
    assert_eq!(consumed(&home, &bus), [id(&story[0]), id(&story[2])]);
}

#[test]
fn it_does_not_start_with_what_it_cannot_use() {
    let (home, _bus): (Home, Bus) = with_bus(&["--demo"]);
    std::fs::write(home.path("partners.toml"), "[partners.bus]\nurl = 'http://h/'\n").unwrap();
    std::fs::write(
        home.path("text.db"),
        "This is no database, and longer than the head of one: ".repeat(20),
    )
    .unwrap();
    assert_eq!(told(&bare(&home, &["outbox", "migrate"]).output().unwrap()).0, 0);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (words, told_is) in [
        (&["--listen", "0.0.0.0:0"][..], "give --listen-beyond-loopback"),
        (&["--listen", &taken], "is another relay running?"),
        (&["--listen", "9464"], "IP:PORT"),
        (&["--spool", "none"], "none is no directory"),
        (&["--partners", "none.toml"], "none.toml"),
        (&["--partners", "partners.toml"], "the bus itself"),
        (&["--no-bus"], "--partners"),
        (&["--concurrency", "0"], "--concurrency"),
        (&["--patience", "0s"], "--patience"),
        (&["--outbox", "typo.db"], "there is no outbox at typo.db"),
        (&["--outbox", "text.db"], "Look whether that is a file of SQLite"),
        (&["--outbox", "."], "Look whether that is a file of SQLite"),
        (
            &["--outbox", "postgres://u:a@hunter2#/@127.0.0.1:1/db"],
            "percent-encode the password",
        ),
        (&["--on-parked", "forget"], "--on-parked"),
    ] {
        let listens = words[0] == "--listen";
        let quiet = if listens { &[][..] } else { &["--no-listen"] };
        let mut command = as_producer(&home, &["relay"]);
        command.args(quiet).args(words);
        let (code, out, err) = told(&command.output().unwrap());
        assert!(
            code == 2 && err.contains(told_is) && !err.contains("hunter2"),
            "{words:?}: {code} {out}{err}"
        );
    }
    assert!(!home.path("typo.db").exists(), "nothing is made");
}

/// Enqueues as a program in any language does.
fn insert(home: &Home, target: &str, key: &str, envelope: &Value) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            use sqlx::Connection;
            let path = format!("sqlite:{}", home.path("storybus-outbox.db").display());
            let mut outbox = sqlx::SqliteConnection::connect(&path).await.unwrap();
            sqlx::query("INSERT INTO sender_log (target, key, payload) VALUES ($1, $2, $3)")
                .bind(target)
                .bind(key)
                .bind(envelope.to_string().into_bytes())
                .execute(&mut outbox)
                .await
                .unwrap();
            outbox.close().await.unwrap();
        });
}

#[test]
fn a_row_that_is_mistaken_is_refused_or_told_of() {
    let (home, bus) = with_bus(&["--demo"]);
    assert_eq!(told(&bare(&home, &["outbox", "migrate"]).output().unwrap()).0, 0);
    let (one, two) = (snapshot("s", 1), snapshot("t", 1));
    insert(&home, "bus", "story-1", &one);
    insert(&home, "buss", &id(&two), &two);
    let mut relay = Running::relay(&home, &[]);
    wait_for("a refusal", || {
        (states(&home) == ["refused", "pending"]).then_some(())
    });
    let refused = outbox(&home, &["show", "story-1"]);
    assert_eq!(refused["last"]["rule"], "sender.key_mismatch", "{refused}");
    wait_for("a word about the target", || {
        let log = home.read("log");
        (log.contains("does not serve") && log.contains("\"target_name\":\"buss\"")).then_some(())
    });
    let shown = bare(&home, &["outbox", "show", &id(&two)]).output().unwrap();
    let (code, out, err) = told(&shown);
    assert!(
        code == 3 && err.contains("--target buss") && err.contains("the target buss has it"),
        "{code} {out}{err}"
    );
    assert_eq!(relay.stop(), 0);
    assert!(consumed(&home, &bus).is_empty());
}

#[test]
fn lines_that_nobody_reads_hold_up_no_message_and_no_stop() {
    let (home, bus) = with_bus(&["--demo"]);
    let envelopes: Vec<Value> = (1..=3).map(|n| snapshot("s", n)).collect();
    enqueue(&home, &envelopes);
    // A pipe that is full: the first line does not fit any more.
    let (_reader, mut full) = std::io::pipe().unwrap();
    fcntl_setfl(&full, OFlags::NONBLOCK).unwrap();
    while full.write(&[b'\n'; 4096]).is_ok() {}
    while full.write(b"\n").is_ok() {}
    fcntl_setfl(&full, OFlags::empty()).unwrap();
    let mut command = as_producer(&home, &["relay", "--no-listen", "--json"]);
    command
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(std::fs::File::create(home.path("log")).unwrap());
    let mut relay = Running {
        child: command.spawn().unwrap(),
    };
    // It keeps the other end of the pipe, which is to be the relay's alone.
    drop(command);
    all_delivered(&home, 3);
    assert_eq!(relay.stop(), 0);
    let log = home.read("log");
    assert!(log.contains("the last lines of --json were not written"), "{log}");
    assert_eq!(consumed(&home, &bus).len(), 3);
}

#[test]
fn a_file_that_is_replaced_under_it_ends_it() {
    let (home, _bus) = with_bus(&["--demo"]);
    for words in [&["migrate"][..], &["migrate", "--outbox", "backup.db"]] {
        let made = bare(&home, &["outbox"]).args(words).output().unwrap();
        assert_eq!(told(&made).0, 0);
    }
    let mut relay = Running::relay(&home, &[]);
    wait_for("a relay that is well", || {
        (get(&home, "/healthz").status == 200).then_some(())
    });
    std::fs::rename(home.path("backup.db"), home.path("storybus-outbox.db")).unwrap();
    assert_eq!(relay.end(), 1);
    let log = home.read("log");
    assert!(log.contains("replaced or removed"), "{log}");
    // What is there now is an outbox like any other. The first one's address is forgotten.
    std::fs::remove_file(home.path("log")).unwrap();
    let mut relay = Running::relay(&home, &[]);
    wait_for("another relay that is well", || {
        (get(&home, "/healthz").status == 200).then_some(())
    });
    assert_eq!(relay.stop(), 0);
}
