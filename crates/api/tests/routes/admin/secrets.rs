//! `…/{id}/secrets`.

use insta::assert_json_snapshot;
use serde_json::{Value, json};

use crate::world::{World, ask};

#[test]
fn one_is_rotated_without_an_outage() {
    let world = World::new();
    let room = world.room();
    let o = world.client("/v1/admin/operators", json!({"name": "second"}));
    let t = format!("/v1/admin/tenants/{}", room.tenant);
    for (path, kind, who) in [
        (
            format!("{t}/producers/{}", room.producer.id),
            "producer",
            &room.producer,
        ),
        (
            format!("{t}/consumers/{}", room.consumer.id),
            "consumer",
            &room.consumer,
        ),
        (format!("/v1/admin/operators/{}", o.id), "operator", &o),
    ] {
        let secrets = format!("{path}/secrets");
        let made = world.operate("POST", &secrets, None);
        assert_eq!(made.status, 201);
        assert_json_snapshot!("made", made.redacted());
        let listed = world.operate("GET", &secrets, None);
        assert_json_snapshot!("listed", listed.is_ok().redacted());
        assert_eq!(listed.json["secrets"][1]["secret_id"], made.json["secret_id"]);
        world
            .operate("POST", &secrets, Some(json!({})))
            .is_refused(409, "secret.limit");

        world.logged_in(&who.id, &who.secret);
        world.logged_in(&who.id, &made.text("/client_secret"));
        let former = format!("{secrets}/{}", listed.text("/secrets/0/secret_id"));
        assert_eq!(world.operate("DELETE", &former, None).status, 204);
        world
            .operate("DELETE", &former, None)
            .is_refused(404, "secret.not_found");
        world.logged_in(&who.id, &made.text("/client_secret"));
        let form = "grant_type=client_credentials";
        let old = world.send(
            ask("POST", "/v1/oauth/token")
                .basic(&who.id, &who.secret)
                .form(form),
        );
        assert_eq!(old.status, 401);

        // the last one may go too: the connection is there and nobody can use it
        let last = format!("{secrets}/{}", made.text("/secret_id"));
        assert_eq!(world.operate("DELETE", &last, None).status, 204);
        assert_eq!(world.operate("GET", &secrets, None).json, json!({"secrets": []}));
        let again = world.operate("POST", &secrets, None);
        world.logged_in(&who.id, &again.text("/client_secret"));

        let unknown = format!("{path}x/secrets");
        let rule = format!("{kind}.not_found");
        world.operate("GET", &unknown, None).is_refused(404, &rule);
        world.operate("POST", &unknown, None).is_refused(404, &rule);
        world
            .operate("DELETE", &format!("{unknown}/s1"), None)
            .is_refused(404, &rule);
        world
            .operate("DELETE", &format!("{secrets}/no%20such"), None)
            .is_refused(404, "secret.not_found");
    }
}

#[test]
fn nothing_is_asked_for() {
    let world = World::new();
    let room = world.room();
    let path = format!(
        "/v1/admin/tenants/{}/producers/{}/secrets",
        room.tenant, room.producer.id
    );
    let post = |body: &str| world.send(ask("POST", &path).of(&world.operator).body(body.to_owned()));
    post(r#"{"client_secret":"mine"}"#).is_invalid_at(&["/client_secret"]);
    post("[]").is_invalid_at(&[""]);
    post(" ").is_invalid_at(&["-"]);
    world
        .send(ask("POST", &path).of(&world.operator).too_large())
        .is_invalid_at(&["-"]);
    assert_eq!(
        world.operate("GET", &path, None).json["secrets"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[test]
fn a_secret_is_nowhere_but_in_the_answer_that_made_it() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}/producers/{}", room.tenant, room.producer.id);
    let made = world
        .operate("POST", &format!("{path}/secrets"), None)
        .text("/client_secret");
    let audit = world.operate("GET", "/v1/admin/audit", None).json;
    let list = world
        .operate(
            "GET",
            &format!("/v1/admin/tenants/{}/producers", room.tenant),
            None,
        )
        .json;
    let seen: [Value; 4] = [
        audit,
        list,
        world.operate("GET", &path, None).json,
        world.operate("GET", &format!("{path}/secrets"), None).json,
    ];
    for json in seen {
        let text = json.to_string();
        assert!(
            !text.contains(&made) && !text.contains(&room.producer.secret),
            "{text}"
        );
        assert!(!text.contains("$plain$"), "not even its hash: {text}");
    }
}
