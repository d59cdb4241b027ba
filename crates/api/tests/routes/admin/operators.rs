//! `/admin/operators`.

use insta::assert_json_snapshot;
use serde_json::json;

use crate::world::World;

#[test]
fn made_shown_changed_deleted() {
    let world = World::new();
    let made = world.operate("POST", "/v1/admin/operators", Some(json!({"name": "second"})));
    assert_eq!(made.status, 201);
    assert_json_snapshot!(made.redacted(), @r#"
    {
      "client_id": "[o]",
      "client_secret": "[secret]",
      "created_at": "2026-09-11T16:41:00.000Z",
      "disabled": false,
      "name": "second",
      "secret_id": "[s]"
    }
    "#);
    let path = format!("/v1/admin/operators/{}", made.text("/client_id"));
    assert_eq!(world.operate("GET", &path, None).is_ok().json["name"], "second");
    let changed = world.operate("PATCH", &path, Some(json!({"name": "2nd", "disabled": true})));
    assert_json_snapshot!(changed.is_ok().redacted(), @r#"
    {
      "client_id": "[o]",
      "created_at": "2026-09-11T16:41:00.000Z",
      "disabled": true,
      "name": "2nd"
    }
    "#);
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    for method in ["GET", "DELETE"] {
        world
            .operate(method, &path, None)
            .is_refused(404, "operator.not_found");
    }
    world
        .operate("PATCH", &path, Some(json!({"disabled": true})))
        .is_refused(404, "operator.not_found");
}

#[test]
fn the_last_one_that_can_log_in_stays() {
    let world = World::new();
    let first = format!("/v1/admin/operators/{}", world.operator.id);
    let secrets = world.operate("GET", &format!("{first}/secrets"), None);
    let secret = format!("{first}/secrets/{}", secrets.text("/secrets/0/secret_id"));
    let stays = || {
        world
            .operate("PATCH", &first, Some(json!({"disabled": true})))
            .is_invalid_at(&["/disabled"]);
        world.operate("DELETE", &first, None).is_invalid_at(&["-"]);
        world.operate("DELETE", &secret, None).is_invalid_at(&["-"]);
    };
    stays();
    let second = world.client("/v1/admin/operators", json!({"name": "second"}));
    let path = format!("/v1/admin/operators/{}", second.id);
    world
        .operate("PATCH", &path, Some(json!({"disabled": true})))
        .is_ok();
    stays();
    world
        .operate("PATCH", &path, Some(json!({"disabled": false})))
        .is_ok();
    let secrets = world.operate("GET", &format!("{path}/secrets"), None);
    let of_second = format!("{path}/secrets/{}", secrets.text("/secrets/0/secret_id"));
    assert_eq!(world.operate("DELETE", &of_second, None).status, 204);
    stays();
    assert_eq!(
        world.operate("POST", &format!("{path}/secrets"), None).status,
        201
    );
    world
        .operate("PATCH", &first, Some(json!({"name": "still here"})))
        .is_ok();
    assert_eq!(world.operate("DELETE", &secret, None).status, 204);
    assert_eq!(world.operate("DELETE", &first, None).status, 204);
}

#[test]
fn every_fault_is_listed() {
    let world = World::new();
    world
        .operate("POST", "/v1/admin/operators", Some(json!({})))
        .is_invalid_at(&["/name"]);
    let body = json!({"name": "\u{7f}", "disabled": false, "system_ids": []});
    let answer = world.operate("POST", "/v1/admin/operators", Some(body));
    answer.is_invalid_at(&["/disabled", "/system_ids", "/name"]);
    let path = format!("/v1/admin/operators/{}", world.operator.id);
    world
        .operate("PATCH", &path, Some(json!({"disabled": null})))
        .is_invalid_at(&["/disabled"]);
}
