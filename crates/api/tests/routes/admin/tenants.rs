//! `/admin/tenants`.

use insta::assert_json_snapshot;
use serde_json::json;

use crate::world::{World, ask, note};

#[test]
fn made_shown_changed_deleted() {
    let world = World::new();
    let made = world.operate("POST", "/v1/admin/tenants", Some(json!({"name": "Newsroom é"})));
    assert_eq!(made.status, 201);
    assert_json_snapshot!(made.redacted(), @r#"
    {
      "created_at": "2026-09-11T16:41:00.000Z",
      "name": "Newsroom é",
      "strict_message_types": false,
      "tenant": "[w]"
    }
    "#);
    let path = format!("/v1/admin/tenants/{}", made.text("/tenant"));
    assert_eq!(world.operate("GET", &path, None).is_ok().json, made.json);
    let changed = world.operate("PATCH", &path, Some(json!({"strict_message_types": true})));
    assert_eq!(changed.is_ok().json["strict_message_types"], true);
    assert_eq!(changed.json["name"], "Newsroom é");
    let changed = world.operate(
        "PATCH",
        &path,
        Some(json!({"name": "x", "strict_message_types": null})),
    );
    assert_eq!(changed.is_ok().json["strict_message_types"], false);
    assert_eq!(world.operate("GET", &path, None).json, changed.json);
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    for method in ["GET", "DELETE"] {
        world
            .operate(method, &path, None)
            .is_refused(404, "tenant.not_found");
    }
    world
        .operate("PATCH", &path, Some(json!({})))
        .is_refused(404, "tenant.not_found");
}

#[test]
fn one_with_connections_stays() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}", room.tenant);
    world
        .operate("DELETE", &path, None)
        .is_refused(409, "tenant.not_empty");
    for part in [
        format!("producers/{}", room.producer.id),
        format!("consumers/{}", room.consumer.id),
    ] {
        world
            .operate("DELETE", &path, None)
            .is_refused(409, "tenant.not_empty");
        assert_eq!(
            world.operate("DELETE", &format!("{path}/{part}"), None).status,
            204
        );
    }
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
}

#[test]
fn a_strict_one_refuses_types_without_a_schema() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}", room.tenant);
    world
        .operate("PATCH", &path, Some(json!({"strict_message_types": true})))
        .is_ok();
    let answer = world.send(ask("POST", room.publish()).of(&room.producer).json(&note(1)));
    answer.is_refused(400, "message_type.unknown");
}

#[test]
fn every_fault_is_listed() {
    let world = World::new();
    let tenant = format!("/v1/admin/tenants/{}", world.tenant());
    for (body, paths) in [
        (json!({}), &["/name"][..]),
        (json!({"name": null}), &["/name"]),
        (json!({"name": 5}), &["/name"]),
        (json!({"name": ""}), &["/name"]),
        (json!({"name": "é".repeat(201)}), &["/name"]),
        (json!({"name": "a\nb"}), &["/name"]),
        (
            json!({"name": "x", "strict_message_types": "yes"}),
            &["/strict_message_types"],
        ),
        (json!({"name": "x", "tenant": "w1"}), &["/tenant"]),
        (
            json!({"strict_message_types": 1, "surprise": 1, "": 2}),
            &["/strict_message_types", "/", "/surprise", "/name"],
        ),
        (json!("x"), &[""]),
    ] {
        let answer = world.operate("POST", "/v1/admin/tenants", Some(body));
        let (mut found, mut expected) = (answer.paths(), paths.to_vec());
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected);
        answer.is_invalid_at(&answer.paths().iter().map(String::as_str).collect::<Vec<_>>());
    }
    world
        .operate("PATCH", &tenant, Some(json!({"name": ""})))
        .is_invalid_at(&["/name"]);
    world
        .operate("PATCH", &tenant, Some(json!({"disabled": true})))
        .is_invalid_at(&["/disabled"]);
    world.operate("PATCH", &tenant, Some(json!({}))).is_ok();
    assert_eq!(
        world
            .operate(
                "POST",
                "/v1/admin/tenants",
                Some(json!({"name": "é".repeat(200)}))
            )
            .status,
        201
    );
}

#[test]
fn what_is_no_object_of_members() {
    let world = World::new();
    let send = |body: &str| {
        world.send(
            ask("POST", "/v1/admin/tenants")
                .of(&world.operator)
                .body(body.to_owned()),
        )
    };
    for text in ["", "{", "{} {}", "\u{feff}{}", "{\"name\":\"\\ud800\"}", "NaN"] {
        send(text).is_invalid_at(&["-"]);
    }
    send(r#"{"name":"x","na\u006de":"y"}"#).is_invalid_at(&["/name"]);
    send(r#"{"name":"x","other":{"a":1,"a":2}}"#).is_invalid_at(&["/other/a"]);
    let answer = world.send(ask("POST", "/v1/admin/tenants").of(&world.operator).too_large());
    answer.is_invalid_at(&["-"]);
    assert!(
        answer.text("/violations/0/message").contains("240000"),
        "{}",
        answer.json
    );
    let many: String = (0..5000).map(|n| format!(",\"{n}\":0")).collect();
    let answer = send(&format!("{{\"name\":\"x\"{many}}}"));
    assert_eq!(answer.paths().len(), 100);
    let answer = send(&format!("{{\"name\":\"x\",\"{}\":1}}", "é".repeat(50_000)));
    assert!(answer.body.len() < 1000, "{}", answer.body.len());
}
