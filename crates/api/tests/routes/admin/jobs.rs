//! Redrives and replays.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Room, World, ask, note, snapshot};

const DAY: Duration = Duration::from_secs(86_400);

fn numbers(messages: &[Value]) -> Vec<u64> {
    messages
        .iter()
        .map(|m| m["envelope"]["payload"]["n"].as_u64().expect("a note"))
        .collect()
}

fn dead(world: &World, room: &Room) -> Vec<u64> {
    let answer = world.operate("GET", &room.operated("dead-letters"), None);
    numbers(answer.is_ok().json["messages"].as_array().expect("a list"))
}

/// A room with three dead letters.
fn with_dead_letters() -> (World, Room) {
    let world = World::new();
    let room = world.room();
    for n in 1..=3 {
        world.note(&room, n);
    }
    world.reject_all(&room, "no such desk");
    (world, room)
}

#[test]
fn a_dead_letter_tells_why() {
    let (world, room) = with_dead_letters();
    let answer = world.operate("GET", &room.operated("dead-letters?max=2"), None);
    let page = &answer.is_ok().json;
    assert_eq!(
        numbers(page["messages"].as_array().unwrap_or(&Vec::new())),
        [1, 2]
    );
    let first = &page["messages"][0];
    assert_eq!(
        (&first["cause"], &first["reason"], &first["receive_count"]),
        (&json!("rejected"), &json!("no such desk"), &json!(1))
    );
    assert_eq!(first["envelope"], note(1));
    let next = page["next"].as_str().expect("more");
    let rest = world.operate("GET", &room.operated(&format!("dead-letters?after={next}")), None);
    assert_eq!(
        numbers(rest.is_ok().json["messages"].as_array().unwrap_or(&Vec::new())),
        [3]
    );
    assert_eq!(rest.json.get("next"), None);
    world
        .operate("GET", &room.operated("dead-letters?after=x&max=0"), None)
        .is_invalid_at(&["/max"]);
    world
        .operate("GET", &room.operated("dead-letters?after=x"), None)
        .is_invalid_at(&["/after"]);
}

#[test]
fn a_redrive_moves_all_of_them_back() {
    let (world, room) = with_dead_letters();
    let job = world.job(&room, "redrives", json!({}));
    assert_eq!(
        (&job["state"], &job["moved"], &job["scanned"], &job["progress"]),
        (&json!("done"), &json!(3), &json!(3), &json!(1.0))
    );
    assert_eq!(dead(&world, &room), [0; 0]);
    let got = world.receive(&room, "");
    assert_eq!(numbers(&got), [1, 2, 3]);
    for message in got {
        assert_eq!(message["receive_count"], 1);
        assert_eq!(
            message["redelivery"],
            format!("redrive:{}", job["job_id"].as_str().unwrap_or_default())
        );
    }
}

#[test]
fn a_redrive_moves_the_chosen_and_tells_what_it_missed() {
    let (world, room) = with_dead_letters();
    let unknown = note(77)["message_id"].clone();
    let upper = note(2)["message_id"].as_str().unwrap_or_default().to_uppercase();
    // one that stands twice, as it does where a message died twice, is one
    let job = world.job(
        &room,
        "redrives",
        json!({"message_ids": [upper, unknown, note(2)["message_id"]]}),
    );
    assert_eq!((&job["state"], &job["moved"]), (&json!("done"), &json!(1)));
    assert_eq!(job["missing"], json!([unknown]));
    assert_eq!(dead(&world, &room), [1, 3]);
}

#[test]
fn two_redrives_share_them() {
    let (world, room) = with_dead_letters();
    let ids = |n: &[u64]| json!({"message_ids": n.iter().map(|n| note(*n)["message_id"].clone()).collect::<Vec<_>>()});
    let one = world
        .operate("POST", &room.operated("redrives"), Some(ids(&[1, 2])))
        .json;
    let two = world
        .operate("POST", &room.operated("redrives"), Some(ids(&[2, 3])))
        .json;
    let (one, two) = (world.work(&room, &one), world.work(&room, &two));
    assert_eq!((&one["moved"], &two["moved"]), (&json!(2), &json!(1)));
    assert_eq!(two["missing"], json!([note(2)["message_id"]]));
    assert_eq!(numbers(&world.receive(&room, "")), [1, 2, 3]);
}

#[test]
fn a_replay_takes_a_half_open_range() {
    let world = World::new();
    let room = world.room();
    let mut times = Vec::new();
    for n in 1..=4 {
        times.push(world.time());
        world.note(&room, n);
        world.clock.advance(Duration::from_secs(10));
    }
    let handles: Vec<Value> = world
        .receive(&room, "")
        .iter()
        .map(|m| m["receipt_handle"].clone())
        .collect();
    let body = json!({ "receipt_handles": handles });
    world
        .send(ask("POST", room.pull("ack")).of(&room.consumer).json(&body))
        .is_ok();
    let job = world.job(&room, "replays", json!({"from": times[1], "to": times[3]}));
    assert_eq!(
        (&job["kind"], &job["moved"]),
        (&json!("replay"), &json!(2)),
        "{job}"
    );
    let got = world.receive(&room, "");
    assert_eq!(numbers(&got), [2, 3]);
    assert_eq!(
        got[0]["redelivery"],
        format!("replay:{}", job["job_id"].as_str().unwrap_or_default())
    );
}

#[test]
fn a_replay_selects() {
    let world = World::new();
    let room = world.room();
    let from = world.time();
    for n in 1..=3 {
        world.note(&room, n);
    }
    let story = snapshot(9, 1);
    let answer = world.send(ask("POST", room.publish()).of(&room.producer).json(&story));
    assert_eq!(answer.status, 202, "{}", answer.json);
    world.clock.advance(Duration::from_secs(1));
    let all = json!({"from": from, "to": "2999-01-01T00:00:00Z"});
    let moved = |members: Value| {
        let mut asked = all.clone();
        for (name, value) in members.as_object().into_iter().flatten() {
            asked[name.as_str()] = value.clone();
        }
        world.job(&room, "replays", asked)["moved"].as_u64()
    };
    assert_eq!(moved(json!({})), Some(4));
    assert_eq!(moved(json!({"message_types": ["story.*"]})), Some(1));
    assert_eq!(moved(json!({"story_ids": ["story-1"]})), Some(1));
    assert_eq!(moved(json!({"story_ids": ["story-2"]})), Some(0));
    assert_eq!(
        moved(json!({"correlation_ids": [note(2)["correlation_id"], note(3)["correlation_id"]]})),
        Some(2)
    );
    assert_eq!(
        moved(json!({"message_types": ["asset.note"], "correlation_ids": [story["correlation_id"]]})),
        Some(0)
    );
    // the consumer's own filter applies as well
    let consumer = format!("/v1/admin/tenants/{}/consumers/{}", room.tenant, room.consumer.id);
    world
        .operate("PATCH", &consumer, Some(json!({"message_types": ["telling.*"]})))
        .is_ok();
    assert_eq!(moved(json!({})), Some(0));
}

#[test]
fn bad_ranges_are_refused() {
    let mut world = World::new();
    let room = world.room();
    world.clock.advance(40 * DAY);
    world.operator = world.logged_in(&world.operator.id, &world.operator.secret);
    let now = world.clock.now();
    let (past, future) = (now.minus(DAY).to_rfc3339(), now.plus(DAY).to_rfc3339());
    let ask = |members: Value| world.operate("POST", &room.operated("replays"), Some(members));
    ask(json!({})).is_invalid_at(&["/from", "/to"]);
    ask(json!({"from": past, "to": past})).is_invalid_at(&["/from"]);
    ask(json!({"from": future, "to": past})).is_invalid_at(&["/from"]);
    ask(json!({"from": future, "to": "2999-01-01T00:00:00Z"})).is_invalid_at(&["/from"]);
    ask(json!({"from": now.minus(31 * DAY).to_rfc3339(), "to": past})).is_invalid_at(&["/from"]);
    ask(json!({"from": "yesterday", "to": 7})).is_invalid_at(&["/to", "/from"]);
    ask(json!({
        "from": past, "to": future, "message_types": ["Bad Type"], "story_ids": [""],
        "correlation_ids": ["x", note(1)["correlation_id"]], "surprise": 1
    }))
    .is_invalid_at(&[
        "/surprise",
        "/message_types/0",
        "/story_ids/0",
        "/correlation_ids/0",
    ]);
    let redrive = |members: Value| world.operate("POST", &room.operated("redrives"), Some(members));
    redrive(json!({"message_ids": "all"})).is_invalid_at(&["/message_ids"]);
    redrive(json!({"message_ids": []})).is_invalid_at(&["/message_ids"]);
    redrive(json!({"message_ids": ["x"]})).is_invalid_at(&["/message_ids/0"]);
    assert_eq!(
        world.operate("GET", &room.of_tenant("jobs"), None).json["jobs"],
        json!([]),
        "what is refused makes no job"
    );
}

#[test]
fn jobs_are_listed_and_cancelled() {
    let (world, room) = with_dead_letters();
    let begin = || {
        world
            .operate("POST", &room.operated("redrives"), Some(json!({})))
            .json
    };
    let first = world.work(&room, &begin());
    world.clock.advance(Duration::from_secs(1));
    let second = begin();
    let path = |job: &Value| room.of_tenant(&format!("jobs/{}", job["job_id"].as_str().unwrap_or_default()));
    world
        .operate("DELETE", &path(&first), None)
        .is_refused(409, "job.finished");
    let cancelled = world.operate("DELETE", &path(&second), None);
    assert_eq!(cancelled.status, 202);
    assert_eq!(cancelled.json["cancel_requested"], true);
    assert_eq!(
        world.operate("DELETE", &path(&second), None).status,
        202,
        "once more is no fault"
    );
    assert_eq!(world.work(&room, &second)["state"], "cancelled");
    let page = world.operate("GET", &room.of_tenant("jobs?limit=1"), None);
    assert_eq!(page.json["jobs"][0]["job_id"], second["job_id"]);
    let next = page.text("/next");
    let page = world.operate("GET", &room.of_tenant(&format!("jobs?after={next}")), None);
    assert_eq!(page.json["jobs"], json!([first]));
    world
        .operate("GET", &room.of_tenant("jobs?after=x"), None)
        .is_invalid_at(&["/after"]);
    for unknown in ["jobs/j1", "jobs/x"] {
        world
            .operate("GET", &room.of_tenant(unknown), None)
            .is_refused(404, "job.not_found");
    }
    let other = world.room_of("desk-2");
    let foreign = other.of_tenant(&format!("jobs/{}", first["job_id"].as_str().unwrap_or_default()));
    world
        .operate("GET", &foreign, None)
        .is_refused(404, "job.not_found");
    world
        .operate("DELETE", &foreign, None)
        .is_refused(404, "job.not_found");
}

#[test]
fn a_job_on_a_deleted_consumer_fails_and_says_so() {
    let (world, room) = with_dead_letters();
    let job = world.operate("POST", &room.operated("redrives"), None).json;
    let consumer = format!("/v1/admin/tenants/{}/consumers/{}", room.tenant, room.consumer.id);
    assert_eq!(world.operate("DELETE", &consumer, None).status, 204);
    let job = world.work(&room, &job);
    assert_eq!(
        (&job["state"], &job["error"]["rule"]),
        (&json!("failed"), &json!("consumer.not_found"))
    );
    world
        .operate("POST", &room.operated("redrives"), None)
        .is_refused(404, "consumer.not_found");
}

#[test]
fn so_many_jobs_and_no_more() {
    let (world, room) = with_dead_letters();
    for _ in 0..100 {
        assert_eq!(
            world.operate("POST", &room.operated("redrives"), None).status,
            202
        );
    }
    let refused = world.operate("POST", &room.operated("redrives"), None);
    refused.is_refused(429, "rate.exceeded");
    let other = world.room_of("desk-2");
    assert_eq!(
        world.operate("POST", &other.operated("redrives"), None).status,
        202
    );
}

#[test]
fn a_purge_empties_the_queue_alone() {
    let (world, room) = with_dead_letters();
    for n in 4..=6 {
        world.note(&room, n);
    }
    let hidden = world.receive(&room, "?max=1");
    let purged = world.operate("POST", &room.operated("purge"), None);
    assert_eq!(purged.is_ok().json, json!({"purged": 3}));
    let queue = world.operate("GET", &room.operated("queue"), None).json;
    assert_eq!(queue, json!({"visible": 0, "in_flight": 0, "dead_lettered": 3}));
    let body = json!({"receipt_handles": [hidden[0]["receipt_handle"]]});
    let late = world.send(ask("POST", room.pull("ack")).of(&room.consumer).json(&body));
    assert_eq!(late.json["failed"][0]["rule"], "receipt_handle.invalid");
    let audit = world.operate("GET", "/v1/admin/audit?limit=1", None).json;
    assert_eq!(audit["entries"][0]["action"], "consumer.purge");
    world
        .operate("POST", &room.operated("purge"), Some(json!({"all": true})))
        .is_invalid_at(&["/all"]);
}
