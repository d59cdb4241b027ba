//! `/admin/tenants/{tenant}/producers`.

use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{World, ask, note};

const ROLE: &str = "arn:aws:iam::123456789012:role/newsroom/producer";

#[test]
fn made_shown_changed_deleted() {
    let world = World::new();
    let list = format!("/v1/admin/tenants/{}/producers", world.tenant());
    let members = json!({
        "name": "NCS", "system_ids": ["ncs-1", "ncs-2"], "message_types": ["story.context", "telling.*", "*"],
        "role_arn": ROLE, "rate": {"per_second": 5, "burst": 10},
    });
    let made = world.operate("POST", &list, Some(members));
    assert_eq!(made.status, 201);
    assert_json_snapshot!(made.redacted());
    let path = format!("{list}/{}", made.text("/client_id"));
    let shown = world.operate("GET", &path, None);
    assert_json_snapshot!(shown.is_ok().redacted());
    assert!(!shown.json.to_string().contains(&made.text("/client_secret")));

    let changed = world.operate(
        "PATCH",
        &path,
        Some(json!({"name": "x", "role_arn": null, "rate": null})),
    );
    assert_json_snapshot!(changed.is_ok().redacted());
    let changed = world.operate(
        "PATCH",
        &path,
        Some(json!({"system_ids": [], "message_types": [], "disabled": true})),
    );
    assert_json_snapshot!(changed.is_ok().redacted());
    assert_eq!(world.operate("GET", &path, None).json, changed.json);
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    for method in ["GET", "DELETE"] {
        world
            .operate(method, &path, None)
            .is_refused(404, "producer.not_found");
    }
    world
        .operate("PATCH", &path, Some(json!({})))
        .is_refused(404, "producer.not_found");
}

#[test]
fn ids_and_secrets_need_no_encoding() {
    let world = World::new();
    let producer = world.room().producer;
    assert!(producer.id.len() == 21 && producer.id.starts_with('p'));
    assert!(producer.secret.len() == 43);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    assert!(producer.id.bytes().chain(producer.secret.bytes()).all(plain));
}

#[test]
fn of_another_workspace_or_kind_it_is_unknown() {
    let world = World::new();
    let room = world.room();
    let (other, id) = (world.tenant(), &room.producer.id);
    for (path, rule) in [
        (format!("{other}/producers/{id}"), "producer.not_found"),
        (format!("{}/consumers/{id}", room.tenant), "consumer.not_found"),
        (
            format!("{}/producers/{}", room.tenant, room.consumer.id),
            "producer.not_found",
        ),
        (format!("{}/producers/no-such", room.tenant), "producer.not_found"),
        (
            format!("{}/producers/{}", room.tenant, "p".repeat(500)),
            "producer.not_found",
        ),
        (format!("wnone/producers/{id}"), "tenant.not_found"),
        (format!("none/producers/{id}"), "tenant.not_found"),
        ("wnone/producers".to_owned(), "tenant.not_found"),
    ] {
        world
            .operate("GET", &format!("/v1/admin/tenants/{path}"), None)
            .is_refused(404, rule);
    }
    let members = json!({"name": "x", "system_ids": ["y"], "message_types": ["*"]});
    world
        .operate("POST", "/v1/admin/tenants/wnone/producers", Some(members))
        .is_refused(404, "tenant.not_found");
    let answer = world.operate("GET", &format!("/v1/admin/operators/{id}"), None);
    answer.is_refused(404, "operator.not_found");
}

#[test]
fn a_system_id_has_one_producer() {
    let world = World::new();
    let room = world.room();
    let other = format!("/v1/admin/tenants/{}/producers", world.tenant());
    let members = |ids: Value| json!({"name": "x", "system_ids": ids, "message_types": ["*"]});
    let answer = world.operate("POST", &other, Some(members(json!(["free", "desk-1"]))));
    answer.is_refused(409, "system_id.taken");
    assert_eq!(answer.paths(), ["/system_ids/1"]);
    let second = world.client(&other, members(json!(["free"])));
    let path = format!("{other}/{}", second.id);
    let answer = world.operate("PATCH", &path, Some(json!({"system_ids": ["desk-1"]})));
    answer.is_refused(409, "system_id.taken");
    assert_eq!(answer.paths(), ["/system_ids/0"]);
    let first = format!("/v1/admin/tenants/{}/producers/{}", room.tenant, room.producer.id);
    world
        .operate("PATCH", &first, Some(json!({"system_ids": ["desk-9"]})))
        .is_ok();
    world
        .operate("PATCH", &path, Some(json!({"system_ids": ["desk-1"]})))
        .is_ok();
    let answer = world.send(ask("POST", room.publish()).of(&room.producer).json(&note(1)));
    answer.is_refused(403, "producer.system_id_not_allowed");
}

#[test]
fn every_fault_is_listed() {
    let world = World::new();
    let list = format!("/v1/admin/tenants/{}/producers", world.tenant());
    let with = |name: &str, value: Value| {
        let mut members = json!({"name": "x", "system_ids": ["a"], "message_types": ["*"]});
        members[name] = value;
        members
    };
    let many = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>();
    for (body, paths) in [
        (json!({}), vec!["/name", "/system_ids", "/message_types"]),
        (
            json!({"name": null, "system_ids": null, "message_types": {}}),
            vec!["/name", "/system_ids", "/message_types"],
        ),
        (
            with(
                "system_ids",
                json!(["", "a", "a", 5, "b\u{0}", "é".repeat(257), "é".repeat(256)]),
            ),
            vec![
                "/system_ids/3",
                "/system_ids/0",
                "/system_ids/2",
                "/system_ids/4",
                "/system_ids/5",
            ],
        ),
        (with("system_ids", json!(many(51))), vec!["/system_ids"]),
        (
            with("message_types", json!(["Bad Type", "", "a.*", "a.*", ".*", "**"])),
            vec![
                "/message_types/0",
                "/message_types/1",
                "/message_types/3",
                "/message_types/4",
                "/message_types/5",
            ],
        ),
        (
            with("message_types", json!(vec!["a"; 151])),
            vec!["/message_types"],
        ),
        (
            with("role_arn", json!("arn:aws:iam::1:role/x")),
            vec!["/role_arn"],
        ),
        (with("role_arn", json!(["x"])), vec!["/role_arn"]),
        (with("rate", json!(5)), vec!["/rate"]),
        (with("rate", json!({})), vec!["/rate/per_second", "/rate/burst"]),
        (
            with("rate", json!({"per_second": 0, "burst": -1})),
            vec!["/rate/per_second", "/rate/burst"],
        ),
        (
            with("rate", json!({"per_second": 1.5, "burst": null, "x": 1})),
            vec!["/rate/per_second", "/rate/burst", "/rate/x"],
        ),
        (
            with("rate", json!({"per_second": 1_000_001, "burst": 1e300})),
            vec!["/rate/per_second", "/rate/burst"],
        ),
        (with("disabled", json!(true)), vec!["/disabled"]),
        (with("kind", json!("operator")), vec!["/kind"]),
    ] {
        world.operate("POST", &list, Some(body)).is_invalid_at(&paths);
    }
    let made = world.operate(
        "POST",
        &list,
        Some(with("rate", json!({"per_second": 1, "burst": 1e6}))),
    );
    assert_eq!(made.status, 201, "{}", made.json);
    let path = format!("{list}/{}", made.text("/client_id"));
    let body = json!({"name": "", "rate": {"per_second": 0}, "disabled": "x", "client_secret": "x"});
    let paths = [
        "/rate/burst",
        "/disabled",
        "/client_secret",
        "/name",
        "/rate/per_second",
    ];
    world.operate("PATCH", &path, Some(body)).is_invalid_at(&paths);
}
