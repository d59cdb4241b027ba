//! Who may use it: operators, as long as they are enabled.

use std::time::Duration;

use serde_json::json;

use crate::world::{World, ask};

#[test]
fn operators_alone() {
    let world = World::new();
    let room = world.room();
    let (t, p, c) = (&room.tenant, &room.producer.id, &room.consumer.id);
    for (methods, path) in [
        (&["GET", "POST"][..], "/admin/tenants".to_owned()),
        (&["GET", "PATCH", "DELETE"], format!("/admin/tenants/{t}")),
        (&["GET", "POST"], format!("/admin/tenants/{t}/producers")),
        (
            &["GET", "PATCH", "DELETE"],
            format!("/admin/tenants/{t}/producers/{p}"),
        ),
        (
            &["GET", "POST"],
            format!("/admin/tenants/{t}/producers/{p}/secrets"),
        ),
        (
            &["DELETE"],
            format!("/admin/tenants/{t}/producers/{p}/secrets/s1"),
        ),
        (&["GET", "POST"], format!("/admin/tenants/{t}/consumers")),
        (
            &["GET", "PATCH", "DELETE"],
            format!("/admin/tenants/{t}/consumers/{c}"),
        ),
        (&["GET"], format!("/admin/tenants/{t}/consumers/{c}/queue")),
        (
            &["GET", "POST"],
            format!("/admin/tenants/{t}/consumers/{c}/secrets"),
        ),
        (
            &["DELETE"],
            format!("/admin/tenants/{t}/consumers/{c}/secrets/s1"),
        ),
        (&["GET", "POST"], "/admin/operators".to_owned()),
        (&["GET", "PATCH", "DELETE"], "/admin/operators/o1".to_owned()),
        (&["GET", "POST"], "/admin/operators/o1/secrets".to_owned()),
        (&["DELETE"], "/admin/operators/o1/secrets/s1".to_owned()),
        (&["GET"], "/admin/audit".to_owned()),
    ] {
        for method in methods {
            // a body that is wrong is not looked at
            let ask = || ask(method, format!("/v1{path}")).body("{");
            world.send(ask()).is_refused(401, "operator.unauthenticated");
            world
                .send(ask().too_large())
                .is_refused(401, "operator.unauthenticated");
            for who in [&room.producer, &room.consumer] {
                world
                    .send(ask().of(who))
                    .is_refused(403, "operator.not_registered");
            }
        }
    }
}

#[test]
fn a_disabled_or_deleted_operator_is_refused_at_once() {
    let world = World::new();
    let second = world.client("/v1/admin/operators", json!({"name": "second"}));
    let list = || world.send(ask("GET", "/v1/admin/tenants").of(&second));
    list().is_ok();
    let path = format!("/v1/admin/operators/{}", second.id);
    world
        .operate("PATCH", &path, Some(json!({"disabled": true})))
        .is_ok();
    list().is_refused(403, "operator.not_registered");
    world
        .operate("PATCH", &path, Some(json!({"disabled": false})))
        .is_ok();
    list().is_ok();
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    list().is_refused(403, "operator.not_registered");
}

#[test]
fn a_token_holds_for_an_hour() {
    let world = World::new();
    world.clock.advance(Duration::from_millis(3_599_999));
    world.operate("GET", "/v1/admin/tenants", None).is_ok();
    world.clock.advance(Duration::from_millis(1));
    world
        .operate("GET", "/v1/admin/tenants", None)
        .is_refused(401, "operator.unauthenticated");
}
