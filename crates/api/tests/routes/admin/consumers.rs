//! `/admin/tenants/{tenant}/consumers`.

use std::time::Duration;

use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::World;

const ROLE: &str = "arn:aws:iam::123456789012:role/reader";

#[test]
fn made_shown_changed_deleted() {
    let world = World::new();
    let list = format!("/v1/admin/tenants/{}/consumers", world.tenant());
    let made = world.operate("POST", &list, Some(json!({"name": "of everything"})));
    assert_eq!(made.status, 201);
    assert_json_snapshot!(made.redacted());
    let members = json!({
        "name": "MAM", "message_types": ["story.context", "telling.*"], "topic_prefixes": ["som.desk."],
        "sources": ["desk-1"], "max_receives": 1000, "visibility_seconds": 43_200, "reader_role_arn": ROLE,
    });
    let made = world.operate("POST", &list, Some(members));
    assert_eq!(made.status, 201);
    let path = format!("{list}/{}", made.text("/client_id"));
    assert_json_snapshot!(world.operate("GET", &path, None).is_ok().redacted());

    let members = json!({
        "sources": [], "max_receives": null, "visibility_seconds": null, "reader_role_arn": null, "paused": true,
        "disabled": true,
    });
    let changed = world.operate("PATCH", &path, Some(members));
    assert_json_snapshot!(changed.is_ok().redacted());
    assert_eq!(world.operate("GET", &path, None).json, changed.json);
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    for method in ["GET", "DELETE"] {
        world
            .operate(method, &path, None)
            .is_refused(404, "consumer.not_found");
    }
    world
        .operate("PATCH", &path, Some(json!({})))
        .is_refused(404, "consumer.not_found");
    world
        .operate("GET", &format!("{path}/queue"), None)
        .is_refused(404, "consumer.not_found");
}

#[test]
fn its_filter_decides_what_it_gets() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}/consumers/{}", room.tenant, room.consumer.id);
    let changes = [
        (json!({"message_types": ["story.*"]}), 0),
        (json!({"message_types": ["asset.*"], "sources": ["desk-2"]}), 0),
        (
            json!({"sources": ["desk-2", "desk-1"], "topic_prefixes": ["som.asset."]}),
            1,
        ),
    ];
    for (n, (members, expected)) in (1..).zip(changes) {
        world.operate("PATCH", &path, Some(members)).is_ok();
        world.note(&room, n);
        assert_eq!(world.receive(&room, "").len(), expected, "{n}");
    }
}

#[test]
fn its_settings_are_those_of_its_receives() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}/consumers/{}", room.tenant, room.consumer.id);
    world
        .operate(
            "PATCH",
            &path,
            Some(json!({"max_receives": 1, "visibility_seconds": 2})),
        )
        .is_ok();
    world.note(&room, 1);
    let queue = || {
        world
            .operate("GET", &format!("{path}/queue"), None)
            .is_ok()
            .json
            .clone()
    };
    world.clock.advance(Duration::from_millis(1500));
    assert_eq!(
        queue(),
        json!({"visible": 1, "in_flight": 0, "dead_lettered": 0, "oldest_age_seconds": 1})
    );
    assert_eq!(world.receive(&room, "").len(), 1);
    assert_eq!(
        queue(),
        json!({"visible": 0, "in_flight": 1, "dead_lettered": 0, "oldest_age_seconds": 1})
    );
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(world.receive(&room, "").len(), 0);
    assert_eq!(queue(), json!({"visible": 0, "in_flight": 0, "dead_lettered": 1}));
}

#[test]
fn every_fault_is_listed() {
    let world = World::new();
    let list = format!("/v1/admin/tenants/{}/consumers", world.tenant());
    let types = |n: usize| (0..n).map(|n| format!("a.b{n}")).collect::<Vec<_>>();
    for (body, paths) in [
        (json!({}), vec!["/name"]),
        (json!({"name": "x", "max_receives": 0}), vec!["/max_receives"]),
        (json!({"name": "x", "max_receives": 1001}), vec!["/max_receives"]),
        (json!({"name": "x", "max_receives": "5"}), vec!["/max_receives"]),
        (
            json!({"name": "x", "visibility_seconds": 50_000}),
            vec!["/visibility_seconds"],
        ),
        (
            json!({"name": "x", "visibility_seconds": 0.5}),
            vec!["/visibility_seconds"],
        ),
        (
            json!({"name": "x", "message_types": ["Bad Type"]}),
            vec!["/message_types/0"],
        ),
        (json!({"name": "x", "surprise": 1}), vec!["/surprise"]),
        (json!({"name": "x", "paused": true}), vec!["/paused"]),
        (
            json!({"name": "x", "topic_prefixes": ["", "a", "a", "é".repeat(257)]}),
            vec!["/topic_prefixes/0", "/topic_prefixes/2", "/topic_prefixes/3"],
        ),
        (json!({"name": "x", "sources": "desk-1"}), vec!["/sources"]),
        (
            json!({"name": "x", "message_types": null}),
            vec!["/message_types"],
        ),
        (
            json!({"name": "x", "reader_role_arn": "x"}),
            vec!["/reader_role_arn"],
        ),
        (
            json!({"name": "x", "message_types": types(151)}),
            vec!["/message_types"],
        ),
        (
            json!({"name": "x", "message_types": types(76), "sources": ["a", "b"]}),
            vec!["/message_types"],
        ),
        (
            json!({"name": "x", "topic_prefixes": ["a", "b"], "sources": types(76)}),
            vec!["/sources"],
        ),
        (
            json!({"message_types": [1, "B"], "max_receives": -1, "x": 1}),
            vec![
                "/message_types/0",
                "/x",
                "/name",
                "/message_types/1",
                "/max_receives",
            ],
        ),
    ] {
        world.operate("POST", &list, Some(body)).is_invalid_at(&paths);
    }
    let made = |members: Value| {
        let answer = world.operate("POST", &list, Some(members));
        assert_eq!(answer.status, 201, "{}", answer.json);
        format!("{list}/{}", answer.text("/client_id"))
    };
    made(json!({"name": "x", "message_types": types(150)}));
    let path = made(json!({"name": "x", "message_types": types(75), "sources": ["a", "b"]}));
    let answer = world.operate(
        "PATCH",
        &path,
        Some(json!({"topic_prefixes": ["som.a", "som.b"]})),
    );
    answer.is_invalid_at(&["/message_types"]);
    assert!(
        answer.text("/violations/0/message").contains("300"),
        "{}",
        answer.json
    );
    world
        .operate(
            "PATCH",
            &path,
            Some(json!({"topic_prefixes": ["som.a", "som.b"], "sources": []})),
        )
        .is_ok();
}
