//! Receive, acknowledge, give back, reject.

use std::time::Duration;

use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{Answer, Room, World, ask, note};

fn call(world: &World, room: &Room, call: &str, body: &Value) -> Answer {
    world.send(ask("POST", room.pull(call)).of(&room.consumer).json(body))
}

fn handle(message: &Value) -> String {
    message["receipt_handle"].as_str().expect("a handle").to_owned()
}

#[test]
fn a_receive_embeds_the_bytes() {
    let world = World::new();
    let room = world.room();
    let body = note(1).to_string().replace(
        "{\"n\":1}",
        "{ \"n\" : 1.0e0,\n\t\"big\":9007199254740993, \"e\":\"\\u00e9\" } ",
    );
    let answer = world.send(
        ask("POST", room.publish())
            .of(&room.producer)
            .body(format!(" {body}\n")),
    );
    assert_eq!(answer.status, 202);
    let answer = world.send(ask("GET", room.pull("messages")).of(&room.consumer));
    let text = std::str::from_utf8(&answer.body).expect("UTF-8");
    assert!(text.contains(&format!("\"envelope\": {body}\n}}")), "{text}");
    assert_eq!(answer.outcome.delivered, 1);
    let mut shown = answer.is_ok().redacted();
    shown["messages"][0]["envelope"] = json!("[as sent]");
    assert_json_snapshot!(shown);
}

#[test]
fn an_empty_list_is_an_answer() {
    let world = World::new();
    let room = world.room();
    let start = world.clock.now();
    let answer = world.send(ask("GET", room.pull("messages?wait=3&unknown=%zz&max=10")).of(&room.consumer));
    assert_eq!(answer.is_ok().json, json!({"messages": []}));
    assert_eq!(world.clock.now(), start.plus(Duration::from_secs(3)));
}

#[test]
fn several_come_at_once_and_no_more_than_asked_for() {
    let world = World::new();
    let room = world.room();
    let sent: Vec<Value> = (1..=3).map(|n| world.note(&room, n)).collect();
    let first = world.receive(&room, "?max=2");
    let rest = world.receive(&room, "?max=%31%30&visibility=43200");
    let envelopes: Vec<Value> = first.iter().chain(&rest).map(|m| m["envelope"].clone()).collect();
    assert_eq!((first.len(), envelopes), (2, sent));
}

#[test]
fn parameters_are_taken_strictly() {
    let world = World::new();
    let room = world.room();
    let long = format!("attempt={}", "a".repeat(129));
    for (query, paths) in [
        ("max=0", &["/max"][..]),
        ("max=11", &["/max"]),
        ("max=x", &["/max"]),
        ("max=", &["/max"]),
        ("max", &["/max"]),
        ("max=-1", &["/max"]),
        ("max=+1", &["/max"]),
        ("max=1.0", &["/max"]),
        ("max=99999999999999999999999", &["/max"]),
        ("max=%zz", &["/max"]),
        ("max=1&max=1", &["/max"]),
        ("max=1&%6dax=1", &["/max"]),
        ("wait=21", &["/wait"]),
        ("visibility=0", &["/visibility"]),
        ("visibility=43201", &["/visibility"]),
        ("attempt=", &["/attempt"]),
        ("attempt=a.b", &["/attempt"]),
        ("attempt=%00", &["/attempt"]),
        (&long, &["/attempt"]),
        ("wait=x&max=0&visibility=y", &["/max", "/wait", "/visibility"]),
    ] {
        let answer = world.send(ask("GET", room.pull(&format!("messages?{query}"))).of(&room.consumer));
        assert_eq!(
            (query, answer.paths()),
            (query, paths.iter().map(|p| (*p).to_owned()).collect())
        );
        answer.is_invalid_at(paths);
    }
}

#[test]
fn an_attempt_repeats_a_receive() {
    let world = World::new();
    let room = world.room();
    world.note(&room, 1);
    let first = world.receive(&room, "?attempt=once-1_A");
    assert_eq!(first.len(), 1);
    assert_eq!(world.receive(&room, "?attempt=once-1_A"), first);
    assert_eq!(world.receive(&room, "?attempt=other"), Vec::<Value>::new());
}

#[test]
fn acknowledged_is_gone() {
    let world = World::new();
    let room = world.room();
    world.note(&room, 1);
    let given = handle(&world.receive(&room, "")[0]);
    let answer = call(
        &world,
        &room,
        "ack",
        &json!({"receipt_handles": [given, "no-such-handle", given]}),
    );
    assert_json_snapshot!(answer.is_ok().redacted());
    let again = call(&world, &room, "ack", &json!({"receipt_handles": [given]}));
    assert_eq!(again.is_ok().json, json!({"ok": [given], "failed": []}));
    world.clock.advance(Duration::from_secs(61));
    assert_eq!(world.receive(&room, ""), Vec::<Value>::new());
}

#[test]
fn given_back_comes_again_after_the_delay() {
    let world = World::new();
    let room = world.room();
    world.note(&room, 1);
    let given = handle(&world.receive(&room, "")[0]);
    let answer = call(
        &world,
        &room,
        "nack",
        &json!({"receipt_handles": [given], "delay_seconds": 30.0}),
    );
    assert_eq!(answer.is_ok().json, json!({"ok": [given], "failed": []}));
    assert_eq!(world.receive(&room, ""), Vec::<Value>::new());
    world.clock.advance(Duration::from_secs(30));
    let again = world.receive(&room, "");
    assert_eq!(again[0]["receive_count"], 2);
    let given = handle(&again[0]);
    call(&world, &room, "nack", &json!({"receipt_handles": [given, given]})).is_ok();
    assert_eq!(world.receive(&room, "")[0]["receive_count"], 3);
}

#[test]
fn rejected_is_a_dead_letter() {
    let world = World::new();
    let room = world.room();
    world.note(&room, 1);
    let given = handle(&world.receive(&room, "")[0]);
    let answer = call(
        &world,
        &room,
        "reject",
        &json!({"receipt_handles": [given], "reason": "no such desk"}),
    );
    assert_eq!(answer.is_ok().json, json!({"ok": [given], "failed": []}));
    let path = format!(
        "/v1/admin/tenants/{}/consumers/{}/queue",
        room.tenant, room.consumer.id
    );
    assert_eq!(
        world.operate("GET", &path, None).json,
        json!({"visible": 0, "in_flight": 0, "dead_lettered": 1})
    );
}

#[test]
fn bodies_are_taken_strictly() {
    let world = World::new();
    let room = world.room();
    let eleven: Vec<String> = (0..11).map(|n| n.to_string()).collect();
    let long = "h".repeat(2049);
    let cases: Vec<(&str, Value, Vec<&str>)> = vec![
        ("ack", json!({}), vec!["/receipt_handles"]),
        ("ack", json!([]), vec![""]),
        ("ack", json!(null), vec![""]),
        ("ack", json!({"receipt_handles": null}), vec!["/receipt_handles"]),
        ("ack", json!({"receipt_handles": "h"}), vec!["/receipt_handles"]),
        ("ack", json!({"receipt_handles": []}), vec!["/receipt_handles"]),
        (
            "ack",
            json!({"receipt_handles": eleven}),
            vec!["/receipt_handles"],
        ),
        (
            "ack",
            json!({"receipt_handles": vec!["h"; 11]}),
            vec!["/receipt_handles"],
        ),
        (
            "ack",
            json!({"receipt_handles": ["h", 1, {}]}),
            vec!["/receipt_handles/1", "/receipt_handles/2"],
        ),
        (
            "ack",
            json!({"receipt_handles": ["h", long]}),
            vec!["/receipt_handles/1"],
        ),
        (
            "ack",
            json!({"receipt_handles": ["h"], "delay_seconds": 1}),
            vec!["/delay_seconds"],
        ),
        (
            "ack",
            json!({"receipt_handles": ["h"], "a/b~c": 1}),
            vec!["/a~1b~0c"],
        ),
        (
            "nack",
            json!({"receipt_handles": ["h"], "delay_seconds": -1}),
            vec!["/delay_seconds"],
        ),
        (
            "nack",
            json!({"receipt_handles": ["h"], "delay_seconds": 43201}),
            vec!["/delay_seconds"],
        ),
        (
            "nack",
            json!({"receipt_handles": ["h"], "delay_seconds": 1.5}),
            vec!["/delay_seconds"],
        ),
        (
            "nack",
            json!({"receipt_handles": ["h"], "delay_seconds": null}),
            vec!["/delay_seconds"],
        ),
        (
            "nack",
            json!({"receipt_handles": [], "delay_seconds": "1"}),
            vec!["/delay_seconds", "/receipt_handles"],
        ),
        ("reject", json!({"receipt_handles": ["h"]}), vec!["/reason"]),
        (
            "reject",
            json!({"receipt_handles": ["h"], "reason": ""}),
            vec!["/reason"],
        ),
        (
            "reject",
            json!({"receipt_handles": ["h"], "reason": 5}),
            vec!["/reason"],
        ),
        (
            "reject",
            json!({"receipt_handles": ["h"], "reason": "é".repeat(1001)}),
            vec!["/reason"],
        ),
        ("reject", json!({}), vec!["/receipt_handles", "/reason"]),
    ];
    for (route, body, paths) in cases {
        call(&world, &room, route, &body).is_invalid_at(&paths);
    }
    let raw = |body: &[u8]| {
        world.send(
            ask("POST", room.pull("ack"))
                .of(&room.consumer)
                .body(body.to_vec()),
        )
    };
    for text in [&b""[..], b"{", b"\xff", b"{}x", b"\xEF\xBB\xBF{}"] {
        raw(text).is_invalid_at(&["-"]);
    }
    raw(br#"{"receipt_handles":["h"],"receipt_handles":["h"]}"#).is_invalid_at(&["/receipt_handles"]);
    let ack = || ask("POST", room.pull("ack")).of(&room.consumer);
    world.send(ack().too_large()).is_invalid_at(&["-"]);
    world
        .send(ack().header("content-encoding", "gzip").body("{}"))
        .is_refused(415, "request.unsupported");
    call(
        &world,
        &room,
        "reject",
        &json!({"receipt_handles": ["h"], "reason": "é".repeat(1000)}),
    )
    .is_ok();
}

#[test]
fn a_queue_is_read_by_its_own_consumer_alone() {
    let world = World::new();
    let room = world.room();
    let other = world.consumer(&room.tenant);
    let calls = [
        ("GET", "messages"),
        ("POST", "ack"),
        ("POST", "nack"),
        ("POST", "reject"),
        ("GET", "skills"),
    ];
    for (method, call) in calls {
        world
            .send(ask(method, room.pull(call)))
            .is_refused(401, "consumer.unauthenticated");
        for who in [&room.producer, &other, &world.operator] {
            world
                .send(ask(method, room.pull(call)).of(who))
                .is_refused(403, "consumer.not_registered");
        }
    }
    let elsewhere = format!(
        "/v1/tenants/{}/consumers/{}/messages",
        world.tenant(),
        room.consumer.id
    );
    world
        .send(ask("GET", elsewhere).of(&room.consumer))
        .is_refused(403, "consumer.not_registered");
    let path = format!("/v1/admin/tenants/{}/consumers/{}", room.tenant, room.consumer.id);
    world
        .operate("PATCH", &path, Some(json!({"disabled": true})))
        .is_ok();
    world
        .send(ask("GET", room.pull("messages")).of(&room.consumer))
        .is_refused(403, "consumer.not_registered");
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    world
        .send(ask("GET", room.pull("messages")).of(&room.consumer))
        .is_refused(403, "consumer.not_registered");
}

#[test]
fn paused_messages_wait() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}/consumers/{}", room.tenant, room.consumer.id);
    world
        .operate("PATCH", &path, Some(json!({"paused": true})))
        .is_ok();
    world.note(&room, 1);
    let start = world.clock.now();
    assert_eq!(world.receive(&room, "?wait=5"), Vec::<Value>::new());
    assert_eq!(world.clock.now(), start.plus(Duration::from_secs(5)));
    world
        .operate("PATCH", &path, Some(json!({"paused": false})))
        .is_ok();
    assert_eq!(world.receive(&room, "")[0]["receive_count"], 1);
}

#[test]
fn no_skills_yet() {
    let world = World::new();
    let room = world.room();
    let answer = world.send(ask("GET", room.pull("skills")).of(&room.consumer));
    assert_eq!(answer.is_ok().json, json!({"registrations": []}));
}
