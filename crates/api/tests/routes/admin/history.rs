//! Activity, stories, a message's way.

use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Room, World, ask, note, snapshot};

fn publish(world: &World, room: &Room, message: &Value) -> u16 {
    world
        .send(ask("POST", room.publish()).of(&room.producer).json(message))
        .status
}

#[test]
fn activity_has_what_was_accepted_and_refused() {
    let world = World::new();
    let room = world.room();
    let mut expected = Vec::new();
    for n in 1..=6_u64 {
        world.clock.advance(Duration::from_millis(5));
        let mut message = note(n);
        if n % 2 == 0 {
            message["originating_system"]["system_id"] = json!("desk-2");
            message["payload"]["secret"] = json!("xyzzy");
        }
        let status = publish(&world, &room, &message);
        expected.insert(0, (message["message_id"].clone(), json!(status)));
    }
    let shown = |answer: &Value| -> Vec<(Value, Value)> {
        let entries = answer["activity"].as_array().expect("a list");
        entries
            .iter()
            .map(|e| (e["message_id"].clone(), e["status"].clone()))
            .collect()
    };
    let all = world.operate("GET", &room.of_tenant("activity"), None).json;
    assert_eq!(shown(&all), expected);
    assert!(!all.to_string().contains("xyzzy"), "a payload is shown: {all}");
    assert_eq!(all["activity"][0]["rule"], "producer.system_id_not_allowed");
    assert_eq!(all.get("next"), None);
    // in pages, while more comes
    let (mut paged, mut before) = (Vec::new(), String::new());
    loop {
        let page = world
            .operate("GET", &room.of_tenant(&format!("activity?limit=2{before}")), None)
            .json;
        paged.extend(shown(&page));
        match page["next"].as_str() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
        world.clock.advance(Duration::from_millis(5));
        world.note(&room, 100 + paged.len() as u64);
    }
    assert_eq!(paged, expected);
    let by = |query: &str| {
        world
            .operate("GET", &room.of_tenant(&format!("activity?{query}")), None)
            .json
    };
    assert_eq!(shown(&by("rule=producer.system_id_not_allowed")).len(), 3);
    assert_eq!(shown(&by("rule=message.not_json")).len(), 0);
    assert_eq!(shown(&by(&format!("producer={}", room.producer.id))).len(), 8);
    assert_eq!(shown(&by("producer=p1")).len(), 0);
    for bad in ["before=x", "before=1~2", "before=~~"] {
        world
            .operate("GET", &room.of_tenant(&format!("activity?{bad}")), None)
            .is_invalid_at(&["/before"]);
    }
    for nobody in ["", "c1", "the planning desk"] {
        let path = room.of_tenant(&format!("activity?producer={}", nobody.replace(' ', "%20")));
        world.operate("GET", &path, None).is_invalid_at(&["/producer"]);
    }
    let other = world.room_of("desk-2");
    let none = world.operate("GET", &other.of_tenant("activity"), None).json;
    assert_eq!(
        none["activity"],
        json!([]),
        "another workspace's activity is shown"
    );
}

#[test]
fn a_message_that_cannot_be_read_is_there_without_its_members() {
    let world = World::new();
    let room = world.room();
    let refused = world.send(ask("POST", room.publish()).of(&room.producer).body("{"));
    refused.is_refused(400, "message.not_json");
    let all = world.operate("GET", &room.of_tenant("activity"), None).json;
    let entry = &all["activity"][0];
    assert_eq!(
        (&entry["status"], &entry["rule"]),
        (&json!(400), &json!("message.not_json"))
    );
    assert_eq!(entry.get("message_id"), None);
}

#[test]
fn a_story_has_its_snapshots_and_what_is_about_it() {
    let world = World::new();
    let room = world.room();
    let mut sent = Vec::new();
    for n in 1..=3 {
        let mut message = snapshot(n, n);
        message["correlation_id"] = note(1)["correlation_id"].clone();
        sent.push(message);
    }
    // by its correlation id alone, and by its story id alone
    let mut correlated = note(20);
    correlated["correlation_id"] = note(1)["correlation_id"].clone();
    let mut about = note(21);
    about["payload"]["story_id"] = json!("story-1");
    sent.extend([correlated, about]);
    for message in &sent {
        assert_eq!(publish(&world, &room, message), 202);
        world.clock.advance(Duration::from_millis(1));
    }
    assert_eq!(publish(&world, &room, &note(30)), 202);
    let stories = world.operate("GET", &room.of_tenant("stories"), None).json;
    let story = &stories["stories"][0];
    assert_eq!(stories["stories"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (
            &story["story_id"],
            &story["head"],
            &story["sequence_number"],
            &story["story_type"]
        ),
        (
            &json!("story-1"),
            &sent[2]["message_id"],
            &json!("3"),
            &json!("ACTIVE")
        )
    );
    let ids: Vec<_> = sent.iter().map(|m| m["message_id"].clone()).collect();
    let (mut shown, mut after) = (Vec::new(), String::new());
    loop {
        let page = world
            .operate(
                "GET",
                &room.of_tenant(&format!("stories/story-1?limit=2{after}")),
                None,
            )
            .json;
        assert_eq!(page["head"], sent[2]["message_id"]);
        let messages = page["messages"].as_array().expect("a list");
        shown.extend(messages.iter().map(|m| m["message_id"].clone()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(shown, ids);
    world
        .operate("GET", &room.of_tenant("stories/nothing"), None)
        .is_refused(404, "story.not_found");
    let other = world.room_of("desk-2");
    world
        .operate("GET", &other.of_tenant("stories/story-1"), None)
        .is_refused(404, "story.not_found");
}

#[test]
fn a_messages_way_goes_to_each_consumer() {
    let world = World::new();
    let room = world.room();
    let picky = json!({"name": "picky", "message_types": ["story.*"]});
    world.client(&room.of_tenant("consumers"), picky);
    let message = world.note(&room, 1);
    let path = room.of_tenant(&format!(
        "messages/{}",
        message["message_id"].as_str().unwrap_or_default()
    ));
    world.clock.advance(Duration::from_millis(1));
    world.client(&room.of_tenant("consumers"), json!({"name": "late"}));
    let states = || {
        let way = world.operate("GET", &path, None);
        assert_eq!(
            (&way.json["state"], &way.json["archived"]),
            (&json!("published"), &json!(true))
        );
        let consumers = way.json["consumers"].as_array().expect("a list").clone();
        let mut states: Vec<(String, Vec<String>)> = consumers
            .iter()
            .map(|c| {
                let deliveries = c["deliveries"].as_array().expect("a list");
                let states = deliveries
                    .iter()
                    .map(|d| d["state"].as_str().unwrap_or_default().to_owned());
                (
                    c["name"].as_str().unwrap_or_default().to_owned(),
                    states.collect(),
                )
            })
            .collect();
        states.sort();
        states
    };
    let expected = |state: &[&str]| {
        [
            ("c", state),
            ("late", &["not_routed"]),
            ("picky", &["not_routed"]),
        ]
        .map(|(name, states)| {
            (
                name.to_owned(),
                states.iter().map(|&s| s.to_owned()).collect::<Vec<_>>(),
            )
        })
    };
    assert_eq!(states(), expected(&["waiting"]));
    let taken = world.receive(&room, "");
    assert_eq!(states(), expected(&["in_flight"]));
    let settle = |call: &str, taken: &[Value]| {
        let mut body = json!({"receipt_handles": [taken[0]["receipt_handle"]]});
        if call == "reject" {
            body["reason"] = json!("why");
        }
        world
            .send(ask("POST", room.pull(call)).of(&room.consumer).json(&body))
            .is_ok();
    };
    settle("reject", &taken);
    assert_eq!(states(), expected(&["dead_lettered"]));
    world.job(&room, "redrives", json!({}));
    assert_eq!(states(), expected(&["waiting"]));
    settle("ack", &world.receive(&room, ""));
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(states(), expected(&["acknowledged"]));
    world.operate("POST", &room.operated("purge"), None).is_ok();
    assert_eq!(states(), expected(&["gone"]));
    let unknown = room.of_tenant(&format!(
        "messages/{}",
        note(9)["message_id"].as_str().unwrap_or_default()
    ));
    for path in [unknown, room.of_tenant("messages/x")] {
        world
            .operate("GET", &path, None)
            .is_refused(404, "message.not_found");
    }
}
