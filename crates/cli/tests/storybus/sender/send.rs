//! `storybus send`: each way in which it ends.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::proxy::{Fate, Proxy};
use super::{Running, as_producer, bare, consumed, files, id, outbox, send, states};
use crate::bus::{Home, wait_for};
use crate::client::snapshot;
use crate::verbs::{told, with_bus, write};

fn lines(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Sends this on the standard input.
fn piped(home: &Home, words: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = as_producer(home, &["send", "-"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that has seen enough closes its end.
    let _ = stdin.write_all(input);
    drop(stdin);
    told(&child.wait_with_output().unwrap())
}

#[test]
fn what_is_delivered_is_not_sent_again() {
    let (home, bus) = with_bus(&["--demo"]);
    let envelopes: Vec<Value> = (1..=3).map(|n| snapshot("s", n)).collect();
    let names = files(&home, &envelopes);
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let (code, out, err) = send(&home, &words);
    assert_eq!((code, out.matches("delivered  ").count()), (0, 3), "{out}{err}");
    assert_eq!(
        consumed(&home, &bus),
        envelopes.iter().map(id).collect::<Vec<_>>()
    );
    let (code, out, err) = send(&home, &[&["--json"], words.as_slice()].concat());
    assert_eq!((code, out.as_str()), (0, ""), "no attempt, no line: {err}");
    assert!(consumed(&home, &bus).is_empty());
    let one = outbox(&home, &["show", &id(&envelopes[0]).to_uppercase()]);
    assert_eq!(
        (one["state"].as_str(), one["attempts"].as_u64()),
        (Some("delivered"), Some(1))
    );
    let shown = bare(&home, &["outbox", "show", "--payload", &id(&envelopes[0])])
        .output()
        .unwrap();
    assert_eq!(shown.stdout, std::fs::read(home.path("0.json")).unwrap());
}

#[test]
fn an_attempt_is_one_line_of_identifiers() {
    let (home, bus) = with_bus(&["--demo"]);
    let script = [Fate::AnswerLost, Fate::Busy];
    let proxy = Proxy::start(bus.address(), &script, Fate::Through);
    let envelope = snapshot("s", 1);
    write(&home, "1.json", &envelope);
    let (code, out, err) = send(&home, &["1.json", "--json", "--url", &proxy.url]);
    assert_eq!(code, 0, "{out}{err}");
    let mut lines = lines(&out);
    let pauses: Vec<u64> = lines
        .iter_mut()
        .filter_map(|line| line.as_object_mut().unwrap().remove("delay_ms")?.as_u64())
        .collect();
    assert!(
        matches!(pauses[..], [first, second] if (10..=20).contains(&first) && (20..=40).contains(&second)),
        "{pauses:?}"
    );
    let id = id(&envelope);
    assert_eq!(
        lines,
        [
            json!({"message_id": id, "attempt": 1, "status": null, "outcome": "network_error"}),
            json!({"message_id": id, "attempt": 2, "status": 503, "outcome": "refused", "rule": "http.503"}),
            json!({"message_id": id, "attempt": 3, "status": 200, "outcome": "duplicate"}),
        ]
    );
    let bytes = std::fs::read(home.path("1.json")).unwrap();
    assert_eq!(
        proxy.bodies(),
        [bytes.clone(), bytes.clone(), bytes],
        "the same bytes each time"
    );
    assert_eq!(consumed(&home, &bus), [id], "delivered once");
}

#[test]
fn a_refusal_is_three_and_goes_before_the_rest() {
    let (home, bus) = with_bus(&["--demo"]);
    let mut wrong = snapshot("other", 1);
    wrong["payload"]["story_type"] = "NONE".into();
    let names = files(
        &home,
        &[
            snapshot("s", 2),
            snapshot("s", 1),
            wrong.clone(),
            snapshot("t", 1),
        ],
    );
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let (code, out, err) = send(&home, &words);
    assert_eq!(code, 3, "{out}{err}");
    assert!(
        out.contains("1.json: 409 sequence_number.not_increasing")
            && out.contains("2.json: 400 story-context.enum")
            && out.contains("-> storybus explain sequence_number.not_increasing"),
        "{out}"
    );
    assert!(err.contains("2 delivered, 2 refused"), "{err}");
    assert_eq!(states(&home), ["delivered", "refused", "refused", "delivered"]);
    // Refused is final: it is told again, and not sent again.
    bus.kill();
    write(&home, "more.json", &snapshot("u", 1));
    let (code, out, err) = send(&home, &["2.json", "more.json", "--max-attempts", "1"]);
    assert_eq!(code, 3, "refused goes before parked: {out}{err}");
    assert!(
        out.contains("refused    ") && out.contains("parked     "),
        "{out}"
    );
}

#[test]
fn a_bus_that_is_away_parks_and_the_same_command_goes_on() {
    let (home, bus) = with_bus(&["--demo"]);
    let address = bus.address().to_owned();
    bus.kill();
    let envelopes = [snapshot("s", 1), snapshot("s", 2), snapshot("t", 1)];
    let names = files(&home, &envelopes);
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let (code, out, err) = send(&home, &[&["--max-attempts", "2"], words.as_slice()].concat());
    assert_eq!(code, 4, "{out}{err}");
    assert!(
        out.matches("parked     ").count() == 2 && out.contains(&format!("behind {}", id(&envelopes[0]))),
        "{out}"
    );
    for next in [
        "Nobody answered there",
        "storybus outbox list",
        "resend --all-parked",
        "storybus relay",
    ] {
        assert!(err.contains(next), "{err}");
    }
    assert_eq!(states(&home), ["parked", "pending", "parked"]);
    let mut again = bare(&home, &["serve", "--demo", "--addr", &address, "--data", "data"]);
    again.args(["--credentials-file", "given.json"]);
    home.logged(&mut again);
    std::fs::remove_file(home.path("given.json")).unwrap();
    let bus = home.started(again);
    let (code, out, err) = send(&home, &words);
    assert_eq!(code, 0, "{out}{err}");
    let mut got = consumed(&home, &bus);
    got.sort();
    let mut all: Vec<String> = envelopes.iter().map(id).collect();
    all.sort();
    assert_eq!(got, all);
}

#[test]
fn nothing_is_begun_with_what_cannot_be_sent() {
    let (home, _bus) = with_bus(&["--demo"]);
    let envelope = snapshot("s", 1);
    write(&home, "1.json", &envelope);
    let mut other = envelope.clone();
    other["payload"]["headline"] = "Another".into();
    write(&home, "other.json", &other);
    write(&home, "2.json", &snapshot("s", 2));
    std::fs::write(home.path("empty"), "").unwrap();
    std::fs::write(home.path("text"), "hunter2").unwrap();
    for (words, told) in [
        (&["1.json", "none.json"][..], "none.json: cannot read it"),
        (&["1.json", "empty"], "empty: it is empty"),
        (&["1.json", "text"], "text: the message is no SOM envelope"),
        (
            &["1.json", "other.json"],
            "it has the message_id of 1.json and other content (SHA-256 ",
        ),
        (
            &["1.json", "2.json", "--key", "k"],
            "--key: it is of a single message",
        ),
        (&["1.json", "--key", "k"], "on a bus they are the same"),
        (
            &["1.json", "--group", "g"],
            "the order group is the envelope's correlation_id",
        ),
        (&["1.json", "-"], "the standard input is read alone"),
        (&["1.json", "--target", "acme"], "there is no partner acme"),
        (
            &["1.json", "--outbox", "none/outbox.db"],
            "none/outbox.db cannot be made",
        ),
        (
            &["1.json", "--outbox", "mysql://h/db"],
            "not the address of an outbox",
        ),
        (&["1.json", "--url", "h"], "is not a URL"),
        (&["1.json", "--patience", "soon"], "--patience"),
        (&[], "<FILE>"),
    ] {
        let (code, out, err) = send(&home, words);
        assert!(
            code == 2 && err.contains(told) && !err.contains("hunter2"),
            "{words:?}: {code} {out}{err}"
        );
    }
    assert!(!home.path("storybus-outbox.db").exists(), "nothing was begun");
    let (code, _, err) = piped(&home, &[], b"");
    assert!(code == 2 && err.contains("standard input: it is empty"), "{err}");
}

#[test]
fn a_key_with_other_content_is_told_with_both_hashes() {
    let (home, bus) = with_bus(&["--demo"]);
    let envelope = snapshot("s", 1);
    write(&home, "1.json", &envelope);
    assert_eq!(send(&home, &["1.json", "--key", &id(&envelope)]).0, 0);
    let mut other = envelope.clone();
    other["payload"]["headline"] = "Another".into();
    write(&home, "1.json", &other);
    write(&home, "2.json", &snapshot("t", 1));
    let kept = outbox(&home, &["show", &id(&envelope)])["payload_hash"]
        .as_str()
        .unwrap()
        .to_owned();
    let (code, out, err) = send(&home, &["2.json", "1.json"]);
    assert!(
        code == 2
            && err.contains("1.json: the key")
            && err.contains(&kept)
            && err.matches("SHA-256").count() == 1,
        "{code} {out}{err}"
    );
    assert_eq!(states(&home), ["delivered"], "nothing else was enqueued");
    assert_eq!(consumed(&home, &bus).len(), 1);
}

#[test]
fn the_standard_input_is_one_envelope_or_one_a_line() {
    let (home, bus) = with_bus(&["--demo"]);
    let pretty = serde_json::to_string_pretty(&snapshot("s", 1)).unwrap() + "\n";
    let (code, out, err) = piped(&home, &["--json"], pretty.as_bytes());
    assert_eq!((code, lines(&out).len()), (0, 1), "{err}");
    let several: Vec<Value> = (1..=30).map(|n| snapshot("t", n)).collect();
    let text: String = several.iter().map(|e| format!("{e}\r\n\n")).collect();
    let (code, out, err) = piped(&home, &["--json"], text.as_bytes());
    assert_eq!((code, lines(&out).len()), (0, 30), "{err}");
    let ids: Vec<String> = several.iter().map(id).collect();
    assert_eq!(consumed(&home, &bus)[1..], ids);
    // A file with the same message and a line end is the same message.
    std::fs::write(home.path("one.json"), format!("{}\n", several[3])).unwrap();
    assert_eq!(send(&home, &["one.json"]).0, 0);
    let (code, _, err) = piped(&home, &[], format!("{}\nnonsense\n", snapshot("u", 1)).as_bytes());
    assert!(code == 2 && err.contains("line 2: "), "{code} {err}");
    assert_eq!(
        states(&home).len(),
        31,
        "a portion is enqueued whole or not at all"
    );
}

#[test]
fn a_wrong_secret_refuses_no_message() {
    let (home, bus) = with_bus(&["--demo"]);
    let names = files(&home, &[snapshot("s", 1), snapshot("s", 2), snapshot("t", 1)]);
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let wrong = as_producer(&home, &["send", "--json"])
        .args(&words)
        .env("STORYBUS_CLIENT_SECRET", "wrong-hunter2")
        .output()
        .unwrap();
    let (code, out, err) = told(&wrong);
    assert_eq!(code, 4, "{out}{err}");
    assert!(
        !lines(&out).is_empty() && lines(&out).iter().all(|line| line["outcome"] == "token_error"),
        "{out}"
    );
    assert!(!out.contains("hunter2") && !err.contains("hunter2"));
    assert_eq!(states(&home), ["pending"; 3], "nothing is parked for it");
    let wrong = as_producer(&home, &["send"])
        .args(&words)
        .env("STORYBUS_CLIENT_SECRET", "wrong-hunter2")
        .output()
        .unwrap();
    let (code, out, err) = told(&wrong);
    assert_eq!((code, out.matches("kept       ").count()), (4, 2), "{out}{err}");
    for text in [
        "3 kept for the next send or relay",
        "This sender itself is refused",
        "invalid_client",
    ] {
        assert!(err.contains(text), "{err}");
    }
    assert!(!err.contains("resend"), "nothing is parked: {err}");
    assert_eq!(send(&home, &words).0, 0);
    assert_eq!(consumed(&home, &bus).len(), 3);
}

#[test]
fn an_interrupt_ends_it_and_says_what_is_kept() {
    let (home, bus) = with_bus(&["--demo"]);
    let proxy = Proxy::start(bus.address(), &[], Fate::Slow(50));
    let text: String = (1..=200).map(|n| format!("{}\n", snapshot("s", n))).collect();
    std::fs::write(home.path("all.ndjson"), &text).unwrap();
    let mut command = as_producer(&home, &["send", "-", "--json", "--url", &proxy.url]);
    let child = command
        .stdin(std::fs::File::open(home.path("all.ndjson")).unwrap())
        .stdout(std::fs::File::create(home.path("events")).unwrap())
        .stderr(std::fs::File::create(home.path("log")).unwrap())
        .spawn()
        .unwrap();
    let mut running = Running { child };
    wait_for("first attempts", || {
        (home.read("events").lines().count() >= 3).then_some(())
    });
    running.signal(rustix::process::Signal::INT);
    assert_eq!(running.end(), 4, "{}", home.read("log"));
    assert!(
        home.read("log")
            .contains("interrupted: what was enqueued is kept"),
        "{}",
        home.read("log")
    );
    let states = states(&home);
    let delivered = states.iter().filter(|state| *state == "delivered").count();
    assert!(
        states.len() == 200 && (3..200).contains(&delivered),
        "{delivered} of {}",
        states.len()
    );
    assert!(
        states
            .iter()
            .all(|state| state == "delivered" || state == "pending")
    );
    proxy.then(Fate::Through);
    assert_eq!(piped(&home, &[], text.as_bytes()).0, 0);
    assert_eq!(consumed(&home, &bus).len(), 200);
}

#[test]
fn what_waits_behind_one_that_is_not_due_says_when_it_is() {
    let (home, _bus) = with_bus(&["--demo"]);
    files(&home, &[snapshot("s", 1), snapshot("s", 2)]);
    let nobody = ["--url", "http://127.0.0.1:1/v1/", "--max-attempts", "1"];
    let mut first = as_producer(&home, &["send", "0.json", "--patience", "1h", "--json"]);
    first.args(nobody);
    let mut first = Running::start(&home, first);
    wait_for("an attempt", || {
        (home.read("events").lines().count() == 1).then_some(())
    });
    // The attempt is told of before it is written down; in good order it is written down before the end.
    assert_eq!((first.stop(), states(&home)), (4, vec!["pending".to_owned()]));
    let (code, out, err) = send(&home, &["1.json"]);
    assert!(
        code == 4 && out.contains(", which is tried again at 20") && out.contains(" (in "),
        "{out}{err}"
    );
    assert!(
        err.contains("1 waiting behind another") && err.contains("storybus relay") && !err.contains("resend"),
        "{err}"
    );
}
