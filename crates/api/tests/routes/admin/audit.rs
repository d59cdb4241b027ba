//! `/admin/audit`.

use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::World;

#[test]
fn every_write_is_there() {
    let world = World::new();
    let tenant = world.tenant();
    let t = format!("/v1/admin/tenants/{tenant}");
    world
        .operate("PATCH", &t, Some(json!({"strict_message_types": true})))
        .is_ok();
    let p = world.producer(&tenant, "desk-1").id;
    world
        .operate(
            "PATCH",
            &format!("{t}/producers/{p}"),
            Some(json!({"rate": null, "disabled": true})),
        )
        .is_ok();
    let secret = world
        .operate("POST", &format!("{t}/producers/{p}/secrets"), None)
        .text("/secret_id");
    assert_eq!(
        world
            .operate("DELETE", &format!("{t}/producers/{p}/secrets/{secret}"), None)
            .status,
        204
    );
    assert_eq!(
        world
            .operate("DELETE", &format!("{t}/producers/{p}"), None)
            .status,
        204
    );
    assert_eq!(world.operate("DELETE", &t, None).status, 204);
    let audit = world.operate("GET", "/v1/admin/audit", None);
    assert_json_snapshot!(audit.is_ok().redacted());
}

#[test]
fn what_writes_nothing_is_not() {
    let world = World::new();
    let room = world.room();
    let before = world.operate("GET", "/v1/admin/audit", None).json;
    let t = format!("/v1/admin/tenants/{}", room.tenant);
    let p = format!("{t}/producers/{}", room.producer.id);
    let c = format!("{t}/consumers/{}", room.consumer.id);
    for (path, members) in [
        (&t, json!({})),
        (&t, json!({"name": "room"})),
        (&p, json!({"rate": null, "system_ids": ["desk-1"]})),
        (&c, json!({"max_receives": 5, "paused": false})),
    ] {
        world.operate("PATCH", path, Some(members)).is_ok();
    }
    world
        .operate("PATCH", &p, Some(json!({"name": ""})))
        .is_invalid_at(&["/name"]);
    world
        .operate("DELETE", &t, None)
        .is_refused(409, "tenant.not_empty");
    world.note(&room, 1);
    assert_eq!(world.operate("GET", "/v1/admin/audit", None).json, before);
}

#[test]
fn read_page_by_page_newest_first() {
    let world = World::new();
    for _ in 0..6 {
        world.tenant();
    }
    let all = world.operate("GET", "/v1/admin/audit", None).json["entries"]
        .as_array()
        .expect("a list")
        .clone();
    assert_eq!((all.len(), &all[6]["actor"]), (7, &json!("storybus")));
    let (mut read, mut query): (Vec<Value>, _) = (Vec::new(), "?limit=3".to_owned());
    loop {
        let page = world
            .operate("GET", &format!("/v1/admin/audit{query}"), None)
            .is_ok()
            .json
            .clone();
        read.extend(page["entries"].as_array().expect("a list").clone());
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?limit=3&before={next}");
    }
    assert_eq!(read, all);
    for (query, paths) in [
        ("before=nowhere", &["/before"][..]),
        ("before=", &["/before"]),
        ("limit=0&before=%zz", &["/before", "/limit"]),
        ("before=1&before=2", &["/before"]),
    ] {
        world
            .operate("GET", &format!("/v1/admin/audit?{query}"), None)
            .is_invalid_at(paths);
    }
}
