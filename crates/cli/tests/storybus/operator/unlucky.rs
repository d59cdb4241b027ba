//! Lost answers, jobs that fail, and what a bus tells that nobody should obey.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use super::scripted::{Script, Turn, refusal};
use super::terminal::on_terminal;
use super::{done, fails, json, run};
use crate::verbs::command;

fn job(state: &str, more: &Value) -> Turn {
    let mut job = json!({"job_id": "j1", "kind": "redrive", "tenant": "w1", "consumer": "c1", "state": state, "moved": 2,
        "scanned": 4, "progress": 0.5, "created_at": "2026-09-11T10:00:00.000Z", "created_by": "o1", "cancel_requested": false});
    job.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    job.into()
}

#[test]
fn what_makes_something_is_not_sent_again_when_its_answer_is_lost() {
    let made = "POST /v1/admin/tenants/w1/consumers/c1/redrives";
    let script = Script::new(&[(made, &[Turn::Lose])]);
    fails(
        &script.home,
        &["redrive", "c1", "--all"],
        7,
        &[
            "nobody knows whether it was done",
            "not sent again",
            "storybus jobs list",
        ],
    );
    assert_eq!(script.asked().iter().filter(|a| a.line == made).count(), 1);
    let script = Script::new(&[(made, &[Turn::Answer(502, "<html>".to_owned())])]);
    fails(&script.home, &["redrive", "c1", "--all"], 7, &["502"]);
    let script = Script::new(&[("POST /v1/admin/tenants/w1/consumers", &[Turn::Lose])]);
    fails(
        &script.home,
        &["consumers", "create", "x"],
        7,
        &["storybus consumers list", "a secret that nobody has seen"],
    );
}

#[test]
fn what_surely_did_nothing_is_sent_again() {
    let made = "POST /v1/admin/tenants/w1/consumers/c1/redrives";
    let full = Turn::Answer(503, refusal("bus.unavailable", "no room"));
    let script = Script::new(&[(made, &[full, job("queued", &json!({}))])]);
    let (code, out, err) = run(
        &script.home,
        &["redrive", "rundown", "--message", "a,b", "--message", "c"],
    );
    assert!(
        code == 0 && out.contains("j1") && err.contains("503 bus.unavailable; again in"),
        "{out}{err}"
    );
    let asked = script.asked();
    assert_eq!(
        asked.iter().rfind(|a| a.line == made).unwrap().body,
        json!({"message_ids": ["a", "b", "c"]})
    );
    // A read may be repeated whatever happened to it, and so may the end of something.
    let script = Script::new(&[
        (
            "GET /v1/admin/tenants/w1/consumers/c1/queue",
            &[
                Turn::Lose,
                json!({"visible": 1, "in_flight": 0, "dead_lettered": 0}).into(),
            ],
        ),
        (
            "DELETE /v1/admin/tenants/w1/consumers/c1",
            &[
                Turn::Lose,
                Turn::Answer(404, refusal("consumer.not_found", "gone")),
            ],
        ),
    ]);
    assert_eq!(json(&script.home, &["queue", "c1"])["visible"], 1);
    assert!(done(&script.home, &["consumers", "delete", "c1", "--yes"]).contains("deleted"));
}

#[test]
fn a_job_that_is_waited_for_says_how_far_it_is_and_how_it_ended() {
    let made = "POST /v1/admin/tenants/w1/consumers/c1/replays";
    let seen = "GET /v1/admin/tenants/w1/jobs/j1";
    let script = Script::new(&[
        (made, &[job("queued", &json!({"progress": 0}))]),
        (
            seen,
            &[
                job("running", &json!({})),
                job("done", &json!({"progress": 1, "moved": 7})),
            ],
        ),
    ]);
    let (code, out, err) = run(
        &script.home,
        &[
            "replay",
            "c1",
            "--from",
            "2026-09-11T10:00:00Z",
            "--to",
            "2026-09-11T11:00:00Z",
            "--type",
            "story.*,link.*",
            "--story",
            "a,b",
            "--correlation",
            "x",
            "--wait",
        ],
    );
    assert!(code == 0 && out.contains("moved     7"), "{out}{err}");
    assert!(
        err.contains("j1 running: 50 %, 2 moved, 4 scanned") && err.contains("jobs wait j1"),
        "{err}"
    );
    assert_eq!(
        script.asked().iter().find(|a| a.line == made).unwrap().body,
        json!({"from": "2026-09-11T10:00:00Z", "to": "2026-09-11T11:00:00Z", "message_types": ["story.*", "link.*"],
            "story_ids": ["a,b"], "correlation_ids": ["x"]})
    );
    for (state, more, word) in [
        (
            "failed",
            json!({"error": {"rule": "consumer.not_found", "message": "deleted\u{1b}[2J"}}),
            "consumer.not_found: deleted\\u001b[2J",
        ),
        ("cancelled", json!({}), "cancelled"),
    ] {
        let script = Script::new(&[(seen, &[job("running", &json!({})), job(state, &more)])]);
        let (code, out, _) = run(&script.home, &["jobs", "wait", "j1"]);
        assert!(code == 6 && out.contains(word), "{code} {out}");
    }
    let script = Script::new(&[(seen, &[job("done", &json!({"missing": ["a"]}))])]);
    let (code, out, err) = run(&script.home, &["jobs", "wait", "j1", "--json"]);
    assert!(code == 0 && err.contains("1 message is no dead letter"), "{err}");
    assert_eq!(
        serde_json::from_str::<Value>(&out).unwrap()["missing"],
        json!(["a"])
    );
}

#[test]
fn a_replay_up_to_now_is_up_to_now_by_the_clock_of_the_bus() {
    let made = "POST /v1/admin/tenants/w1/consumers/c1/replays";
    let script = Script::new(&[(made, &[job("queued", &json!({}))])]);
    done(&script.home, &["replay", "c1", "--last", "90m"]);
    let asked = script.asked();
    let body = &asked.iter().find(|a| a.line == made).unwrap().body;
    assert_eq!(body["to"], "9999-12-31T23:59:59Z");
    assert!(body["from"].as_str().unwrap().ends_with('Z') && body.get("story_ids").is_none());
    for (words, why) in [
        (&["replay", "c1"][..], "--last"),
        (&["replay", "c1", "--last", "-5m"], "s, m, h or d"),
        (&["replay", "c1", "--from", "yesterday"], "90m ago"),
        (&["replay", "c1", "--last", "1 week"], "s, m, h or d"),
        (
            &["replay", "c1", "--last", "1h", "--to", "10:30"],
            "cannot be used",
        ),
        (&["redrive", "c1"], "--all"),
        (&["redrive", "c1", "--all", "--message", "x"], "cannot be used"),
    ] {
        fails(&script.home, words, 2, &[why]);
    }
}

#[test]
fn dead_letters_are_shown_whole_and_obeyed_by_no_terminal() {
    let letter = |id: &str| {
        json!({"message_id": id, "message_type": "story.context", "topic": "t\u{9b}2J", "correlation_id": "k", "producer_id": "p1",
            "receive_count": 5, "enqueued_at": "2026-09-11T10:00:00.000Z", "dead_lettered_at": "2026-09-11T11:00:00.000Z",
            "redelivery": "redrive:j1", "cause": "rejected", "reason": "no \u{1b}[31mway\nout", "envelope": {"n": "TOKEN", "s": "\u{202e}x\u{7f}"}})
        .to_string()
        .replace("\"TOKEN\"", "1.50e3")
    };
    let page = |ids: &[&str], next: &str| {
        let all: Vec<String> = ids.iter().map(|id| letter(id)).collect();
        Turn::Answer(200, format!("{{\"messages\":[{}]{next}}}", all.join(",")))
    };
    let route = "GET /v1/admin/tenants/w1/consumers/c1/dead-letters?max=100";
    let (second, rest) = (
        format!("{route}&after=n%2F1"),
        format!("{}98&after=n%2F1", route.trim_end_matches("100")),
    );
    let script = Script::new(&[
        (route, &[page(&["m1", "m2"], ",\"next\":\"n/1\"")]),
        (&second, &[page(&["m3"], "")]),
        (&rest, &[page(&["m3"], "")]),
    ]);
    let (_, out, err) = run(&script.home, &["dead-letters", "list", "rundown"]);
    assert!(err.contains("3 have come back from a redrive"), "{err}");
    assert!(
        out.contains("  redrive:j1  ") && out.contains("m3") && out.contains("no \\u001b[31mway\\nout"),
        "{out}"
    );
    assert!(
        out.contains("storybus dead-letters show c1 m1") && out.contains("storybus redrive c1 --all --wait"),
        "{out}"
    );
    let out = done(&script.home, &["dead-letters", "show", "rundown", "M3"]);
    assert!(
        out.contains("\"n\": 1.50e3"),
        "a number stays as it was written: {out}"
    );
    assert!(out.contains("storybus redrive c1 --message m3 --wait"), "{out}");
    let all = json(&script.home, &["dead-letters", "list", "c1"]);
    assert_eq!(all["messages"].as_array().unwrap().len(), 3);
    let raw = done(&script.home, &["dead-letters", "show", "c1", "m1", "--json"]);
    for text in [&out, &raw] {
        assert!(
            !text
                .chars()
                .any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
            "{text:?}"
        );
    }
    fails(
        &script.home,
        &["dead-letters", "show", "c1", "m9"],
        3,
        &["storybus message show m9"],
    );
}

#[test]
fn one_message_and_one_story_are_shown_on_their_way() {
    const ID: &str = "0199b3d0-1111-7000-8000-00000000abcd";
    let script = Script::new(&[
        (
            "GET /v1/admin/tenants/w1/messages/0199b3d0-1111-7000-8000-00000000abcd",
            &[json!({"message_id": ID, "state": "published", "recorded_at": "r", "published_at": "p", "archived": true,
                "message_type": "story.context", "correlation_id": "k", "story_id": "s", "producer_id": "p1",
                "consumers": [{"client_id": "c1", "name": "rundown", "deliveries": [
                    {"state": "acknowledged", "receive_count": 1, "at": "a"},
                    {"state": "dead_lettered", "receive_count": 5, "at": "b", "reason": "why", "redelivery": "replay:j1"}]}]}).into()],
        ),
        (
            "GET /v1/admin/tenants/w1/stories/s?limit=1000",
            &[json!({"story_id": "s", "head": "m2", "sequence_number": 2, "updated_at": "u", "story_type": "ACTIVE",
                "correlation_id": "k", "begun_at": "b", "messages": [
                    {"message_id": "m1", "message_type": "story.context", "published_at": "p", "producer_id": "p1",
                     "system_id": "x", "correlation_id": "k", "sequence_number": 1}], "next": "n"}).into()],
        ),
        (
            "GET /v1/admin/tenants/w1/stories/s?limit=1000&after=n",
            &[json!({"story_id": "s", "messages": [{"message_id": "m2", "message_type": "story.context",
                "published_at": "p2", "producer_id": "p1", "system_id": "x", "correlation_id": "k"}]}).into()],
        ),
        (
            "GET /v1/admin/tenants/w1/producers?limit=1000",
            &[json!({"producers": [{"client_id": "p1", "name": "planning"}]}).into()],
        ),
        (
            "GET /v1/admin/tenants/w1/activity?limit=2&rule=envelope.required&producer=p1",
            &[json!({"activity": [{"time": "t", "status": 400, "producer_id": "p1", "rule": "envelope.required",
                "rules": ["envelope.required", "envelope.type"]}]}).into()],
        ),
    ]);
    let home = &script.home;
    let out = done(home, &["message", "show", ID]);
    assert!(
        out.contains("acknowledged")
            && out.contains("replay:j1")
            && out.contains(&format!("storybus dead-letters show c1 {ID}")),
        "{out}"
    );
    assert!(out.contains("planning (p1)"), "{out}");
    let out = done(home, &["stories", "show", "s"]);
    assert!(
        out.contains("ACTIVE") && out.contains("m1") && out.contains("p2"),
        "{out}"
    );
    let story = json(home, &["stories", "show", "s"]);
    assert_eq!(story["messages"].as_array().unwrap().len(), 2);
    assert_eq!(story["head"], "m2");
    let newest = json(home, &["stories", "show", "s", "--limit", "1"]);
    assert_eq!(newest["messages"].as_array().unwrap().len(), 1);
    assert_eq!(newest["messages"][0]["message_id"], "m2");
    let out = done(
        home,
        &[
            "activity",
            "--rule",
            "envelope.required",
            "--producer",
            "planning",
            "--limit",
            "2",
        ],
    );
    assert!(
        out.contains("400") && out.contains("envelope.required,envelope.type"),
        "{out}"
    );
}

/// What the bus cannot know is not told as if it did; the document has the wire's words.
#[test]
fn what_is_not_known_of_a_way_is_told_so() {
    const ID: &str = "0199b3d0-1111-7000-8000-00000000abcd";
    let way = |state: &str, archived: bool, deliveries: Value| {
        Turn::from(
            json!({"message_id": ID, "state": state, "archived": archived, "producer_id": "p1",
            "consumers": [{"client_id": "c1", "name": "rundown", "deliveries": deliveries}]}),
        )
    };
    let script = Script::new(&[(
        "GET /v1/admin/tenants/w1/messages/0199b3d0-1111-7000-8000-00000000abcd",
        &[
            way("published", false, json!([])),
            way("superseded", false, json!([])),
            way("published", true, json!([])),
            way("published", true, json!([{"state": "delivered"}])),
        ],
    )]);
    let home = &script.home;
    let show = ["message", "show", ID];
    let shown = || {
        let (code, out, notes) = run(home, &show);
        assert_eq!(code, 0, "{out}{notes}");
        (out, notes)
    };
    for told in [
        "is not known before it is archived",
        "no consumer has a part in it: it was superseded",
        "no consumer has a part in it\n",
    ] {
        let (_, notes) = shown();
        assert!(notes.contains(told), "{told}: {notes}");
    }
    let (out, notes) = shown();
    assert!(
        out.contains("handed over") && !out.contains("delivered") && notes.contains("SQS does not tell"),
        "{out}{notes}"
    );
    let document = json(home, &show);
    assert_eq!(document["consumers"][0]["deliveries"][0]["state"], "delivered");
}

#[test]
fn activity_is_followed_as_it_comes_and_each_entry_told_once() {
    let entry = |n: u32, rule: &str| json!({"time": format!("2026-09-11T10:00:0{n}.000Z"), "status": 409, "producer_id": "p1", "message_id": format!("m{n}"), "rule": rule});
    let page = |entries: &[&Value]| Turn::from(json!({ "activity": entries }));
    let (one, two, three) = (entry(1, "a.b"), entry(2, "c.d"), entry(3, "a.b"));
    let script = Script::new(&[
        (
            "GET /v1/admin/tenants/w1/activity?limit=100",
            &[page(&[&one]), page(&[&three, &two, &one])],
        ),
        (
            "GET /v1/admin/tenants/w1/activity?limit=10&rule=a.b",
            &[page(&[&one])],
        ),
    ]);
    let mut child = command(&script.home, "activity")
        .args(["--follow", "--json", "--rule", "a.b"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in [&one, &three] {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(&line, expected);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_terminal_sees_a_bar_until_the_job_is_over() {
    let seen = "GET /v1/admin/tenants/w1/jobs/j1";
    let turns = [
        job("queued", &json!({"progress": 0})),
        job("running", &json!({})),
        job("done", &json!({"progress": 1})),
    ];
    let script = Script::new(&[(seen, &turns)]);
    let (code, shown) = on_terminal(command(&script.home, "jobs").args(["wait", "j1"]), "");
    assert!(
        code == 0 && shown.contains("j1 running [") && shown.contains("2 moved") && shown.contains("done"),
        "{shown:?}"
    );
}

#[test]
fn a_refusal_is_a_document_too_and_is_obeyed_by_no_terminal() {
    let script = Script::new(&[(
        "POST /v1/admin/tenants",
        &[Turn::Answer(
            400,
            refusal("request.invalid", "no\u{1b}]0;x\u{7} name"),
        )],
    )]);
    let (code, out, err) = run(&script.home, &["workspaces", "create", "x", "--json"]);
    assert_eq!(code, 3);
    let refused: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(refused["violations"][0]["rule"], "request.invalid");
    assert!(err.contains("no\\u001b]0;x\\u0007 name"), "{err}");
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'));
    let (_, out, _) = run(&script.home, &["workspaces", "create", "x"]);
    assert_eq!(out, "");
    // And so is what the command says itself.
    for (words, code, pointer) in [
        (&["queue", "nobody"][..], 3, "/violations/0/message"),
        (&["redrive", "c1", "--message", ""], 2, "/error/message"),
    ] {
        let (got, out, _) = run(&script.home, &[words, &["--json"]].concat());
        let refused: Value = serde_json::from_str(&out).unwrap();
        assert!(got == code && refused.pointer(pointer).is_some(), "{got} {out}");
    }
}
