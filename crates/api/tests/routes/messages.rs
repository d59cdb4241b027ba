//! Publishing, dry runs, and what became of a message.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use insta::assert_json_snapshot;
use serde_json::{Value, json};
use storybus_core::domain::message::Publication;
use storybus_core::ports::Topic;
use storybus_core::ports::topic::PublishError;

use crate::world::{Answer, Ask, Room, World, ask, note, snapshot};

fn publish(room: &Room) -> Ask {
    ask("POST", room.publish()).of(&room.producer)
}

fn state(world: &World, room: &Room, id: &str) -> Answer {
    world.send(ask("GET", format!("{}/{id}", room.publish())).of(&room.producer))
}

#[test]
fn accepted_then_a_duplicate() {
    let world = World::new();
    let room = world.room();
    let message = snapshot(1, 1);
    let answer = world.send(publish(&room).json(&message));
    assert_eq!(answer.status, 202);
    assert_eq!(
        answer.outcome.message_id.as_deref(),
        message["message_id"].as_str()
    );
    assert_eq!(
        answer.outcome.connection.as_ref().map(|c| c.as_str()),
        Some(room.producer.id.as_str())
    );
    assert_eq!(answer.outcome.route, Some("/tenants/{tenant}/messages"));
    assert_json_snapshot!(answer.json, @r#"
    {
      "accepted": true,
      "family": "story-context",
      "message_id": "0199a1c4-7a2e-7b31-8c55-000000000001",
      "message_type": "story.context"
    }
    "#);
    let again = world.send(ask("POST", "/v1/jwt/messages").of(&room.producer).json(&message));
    assert_json_snapshot!(again.is_ok().json, @r#"
    {
      "accepted": true,
      "duplicate": true,
      "message_id": "0199a1c4-7a2e-7b31-8c55-000000000001"
    }
    "#);
    assert_eq!(world.receive(&room, "").len(), 1);
}

#[test]
fn a_dry_run_says_so_and_writes_nothing() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/tenants/{}/validate", room.tenant);
    let dry = |body: &Value| world.send(ask("POST", &path).of(&room.producer).json(body));
    let answer = dry(&note(1));
    assert_eq!(answer.status, 202);
    assert_json_snapshot!(answer.json);
    assert_eq!(
        state(&world, &room, "0199a1c4-7a2e-7b31-8c55-000000000001").status,
        404
    );
    world.note(&room, 1);
    assert_eq!(dry(&note(1)).is_ok().json["duplicate"], json!(true));
    let mut other = note(1);
    other["payload"] = json!({});
    dry(&other).is_refused(409, "message_id.reused");
}

#[test]
fn credentials_come_first() {
    let world = World::new();
    let room = world.room();
    let (other, operator) = (world.tenant(), &world.operator);
    let stranger = world.producer(&other, "desk-2");
    let body = || note(1).to_string();
    let path = room.publish();
    let bare = || ask("POST", &path).body(body());
    let with = |value: &str| bare().header("authorization", value);
    let tampered = format!("Bearer {}x", room.producer.token);
    for (name, ask) in [
        ("nothing", bare()),
        ("garbage", with("Bearer x.y.z")),
        ("another scheme", with("Basic eDp5")),
        ("no token", with("Bearer")),
        ("tampered", with(&tampered)),
        ("two", bare().of(&room.producer).of(&room.producer)),
        ("not ASCII", bare().header("authorization", b"Bearer \xff")),
        ("nothing, and too large", bare().too_large()),
        (
            "nothing, and compressed",
            bare().header("content-encoding", "gzip"),
        ),
    ] {
        let answer = world.send(ask);
        assert_eq!((name, answer.status), (name, 401));
        answer.is_refused(401, "producer.unauthenticated");
        assert_eq!(answer.outcome.connection, None);
    }
    for who in [&room.consumer, &stranger, operator] {
        world
            .send(bare().of(who))
            .is_refused(403, "producer.not_registered");
        world
            .send(bare().of(who).too_large())
            .is_refused(403, "producer.not_registered");
    }
    world.send(with(&format!("bearer  {}", room.producer.token))).json["accepted"]
        .as_bool()
        .expect("accepted");
    world.clock.advance(Duration::from_secs(3600));
    world
        .send(bare().of(&room.producer))
        .is_refused(401, "producer.unauthenticated");
}

#[test]
fn a_disabled_or_deleted_producer_is_refused_at_once() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}/producers/{}", room.tenant, room.producer.id);
    world.note(&room, 1);
    world
        .operate("PATCH", &path, Some(json!({"disabled": true})))
        .is_ok();
    world
        .send(publish(&room).json(&note(2)))
        .is_refused(403, "producer.not_registered");
    state(&world, &room, "0199a1c4-7a2e-7b31-8c55-000000000001").is_refused(403, "producer.not_registered");
    world
        .operate("PATCH", &path, Some(json!({"disabled": false})))
        .is_ok();
    world.note(&room, 2);
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    world
        .send(publish(&room).json(&note(3)))
        .is_refused(403, "producer.not_registered");
}

#[test]
fn then_the_encoding_then_the_rate_then_the_size() {
    let world = World::new();
    let room = world.room();
    for coding in ["gzip", "br, identity", "x", "\u{e9}"] {
        let ask = publish(&room).header("content-encoding", coding).too_large();
        world.send(ask).is_refused(415, "request.unsupported");
    }
    for coding in ["identity", "Identity", ""] {
        let ask = publish(&room).header("content-encoding", coding).too_large();
        world.send(ask).is_refused(413, "message.too_large");
    }
    let members = json!({"rate": {"per_second": 1, "burst": 2}});
    let path = format!("/v1/admin/tenants/{}/producers/{}", room.tenant, room.producer.id);
    world.operate("PATCH", &path, Some(members)).is_ok();
    let answer = world.send(publish(&room).too_large());
    answer.is_refused(413, "message.too_large");
    assert_eq!(
        answer.json["violations"][0]["message"],
        "the body has more than 240000 bytes; no more are carried"
    );
    world
        .send(publish(&room).body("{"))
        .is_refused(400, "message.not_json");
    let answer = world.send(publish(&room).too_large());
    answer.is_refused(429, "rate.exceeded");
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[test]
fn the_size_is_counted_in_bytes() {
    let world = World::new();
    let room = world.room();
    let body = |length: usize| {
        let mut message = note(1);
        message["payload"] = json!({"text": ""});
        let empty = message.to_string().len();
        message["payload"] = json!({"text": "y".repeat(length - empty)});
        message.to_string()
    };
    world
        .send(publish(&room).body(body(240_001)))
        .is_refused(413, "message.too_large");
    assert_eq!(world.send(publish(&room).body(body(240_000))).status, 202);
}

#[test]
fn a_refusal_of_each_stage() {
    let world = World::new();
    let room = world.room();
    let text = note(1).to_string();
    for (body, rule) in [
        (String::new(), "message.not_json"),
        ("\u{feff}{}".to_owned(), "message.not_json"),
        (format!("{text}{{}}"), "message.not_json"),
        (
            text.replace("{\"n\":1}", "{\"n\":1,\"n\":1}"),
            "message.duplicate_member",
        ),
        (
            text.replace("{\"n\":1}", "{\"n\":\"\u{ffff}\"}"),
            "message.illegal_character",
        ),
        (
            text.replace(
                "{\"n\":1}",
                &format!("{{\"n\":{}{}}}", "[".repeat(200), "]".repeat(200)),
            ),
            "message.too_deep",
        ),
        ("[]".to_owned(), "envelope.type"),
        (text.replace("1.0.0", "2.0.0"), "som_version.unsupported_major"),
        (text.replace("1.0.0", "0.9.0"), "som_version.pre_1_0"),
    ] {
        world.send(publish(&room).body(body)).is_refused(400, rule);
    }
    let mut message = snapshot(1, 1);
    message["payload"] = json!({"story_id": 5});
    let answer = world.send(publish(&room).json(&message));
    assert_eq!(
        answer.outcome.message_id.as_deref(),
        message["message_id"].as_str()
    );
    assert_json_snapshot!(answer.json);
    let mut message = note(1);
    message["originating_system"]["system_id"] = json!("desk-2");
    world
        .send(publish(&room).json(&message))
        .is_refused(403, "producer.system_id_not_allowed");
    assert_eq!(world.send(publish(&room).json(&snapshot(2, 2))).status, 202);
    let answer = world.send(publish(&room).json(&snapshot(3, 1)));
    assert_eq!(
        (answer.status, answer.json["violations"][0]["source"].as_str()),
        (409, Some("sequence"))
    );
}

#[test]
fn the_idempotency_key_must_be_the_message_id() {
    let world = World::new();
    let room = world.room();
    let id = "0199a1c4-7a2e-7b31-8c55-000000000001";
    let with = |keys: &[&[u8]]| {
        let ask = publish(&room).json(&note(1));
        world.send(
            keys.iter()
                .fold(ask, |ask, key| ask.header("idempotency-key", key)),
        )
    };
    let quoted = format!("\"{id}\"");
    let upper = id.to_uppercase();
    assert_eq!(with(&[id.as_bytes()]).status, 202);
    for agreeing in [
        &[quoted.as_bytes()][..],
        &[upper.as_bytes()],
        &[id.as_bytes(), id.as_bytes()],
    ] {
        with(agreeing).is_ok();
    }
    let list = format!("{id}, {id}");
    for differing in [
        &[&b"x"[..]][..],
        &[&b""[..]],
        &[&b"\xff"[..]],
        &[list.as_bytes()],
        &[id.as_bytes(), b"x"],
        &[b"x", id.as_bytes()],
    ] {
        with(differing).is_refused(400, "idempotency_key.mismatch");
    }
}

#[test]
fn what_became_of_a_message() {
    let world = World::new();
    let room = world.room();
    world.note(&room, 1);
    let id = "0199a1c4-7a2e-7b31-8c55-000000000001";
    let answer = state(&world, &room, id);
    assert_eq!(answer.outcome.message_id.as_deref(), Some(id));
    assert_json_snapshot!(answer.is_ok().json, @r#"
    {
      "message_id": "0199a1c4-7a2e-7b31-8c55-000000000001",
      "published_at": "2026-09-11T16:41:00.000Z",
      "recorded_at": "2026-09-11T16:41:00.000Z",
      "state": "published"
    }
    "#);
    state(&world, &room, &id.to_uppercase()).is_ok();
    for unknown in [
        "0199a1c4-7a2e-7b31-8c55-000000000002",
        "x",
        "%00",
        "{0199a1c4-7a2e-7b31-8c55-00000000000}",
    ] {
        let unknown = unknown.replace('{', "%7B").replace('}', "%7D");
        state(&world, &room, &unknown).is_refused(404, "message.not_found");
    }
    let other = world.producer(&room.tenant, "desk-2");
    let answer = world.send(ask("GET", format!("{}/{id}", room.publish())).of(&other));
    answer.is_refused(404, "message.not_found");
    let answer = world.send(ask("GET", format!("{}/{id}", room.publish())).of(&room.consumer));
    answer.is_refused(403, "producer.not_registered");
    world
        .send(ask("GET", format!("{}/{id}", room.publish())))
        .is_refused(401, "producer.unauthenticated");
}

/// A topic whose answers are lost.
pub(crate) struct Mute;

#[async_trait]
impl Topic for Mute {
    async fn publish(&self, _publication: &Publication, _timeout: Duration) -> Result<(), PublishError> {
        Err(PublishError::Unknown {
            reason: "lost".to_owned(),
        })
    }
}

#[test]
fn a_publication_that_is_not_certain() {
    let world = World::new();
    let room = world.room();
    let mute = world.with(|ports| ports.topic = Arc::new(Mute));
    let (old, new) = (snapshot(1, 1), snapshot(2, 2));
    let answer = world.send_to(&mute, publish(&room).json(&old));
    answer.is_refused(503, "bus.publish_failed");
    assert_eq!(answer.outcome.message_id.as_deref(), old["message_id"].as_str());
    let old_id = old["message_id"].as_str().expect("an id");
    let answer = state(&world, &room, old_id);
    assert_eq!(answer.is_ok().json["state"], "in_flight");
    assert_eq!(answer.json.get("published_at"), None);
    let answer = world.send(publish(&room).json(&old));
    answer.is_refused(503, "message.in_flight");
    let seconds: u64 = answer
        .header("retry-after")
        .and_then(|s| s.parse().ok())
        .expect("seconds");
    assert!((1..=30).contains(&seconds), "{seconds}");
    let answer = world.send(publish(&room).json(&new));
    answer.is_refused(409, "commit.contention");
    assert_eq!(answer.paths(), ["-"]);
    world.clock.advance(Duration::from_secs(30));
    assert_eq!(world.send(publish(&room).json(&new)).status, 202);
    world
        .send(publish(&room).json(&old))
        .is_refused(409, "message.superseded");
    assert_eq!(state(&world, &room, old_id).json["state"], "superseded");
}

#[test]
fn a_body_that_was_altered_on_the_way_is_not_json() {
    let world = World::new();
    let room = world.room();
    let answer = world.send(publish(&room).altered());
    answer.is_refused(400, "message.not_json");
    assert!(answer.text("/violations/0/message").contains("Content-Length"));
    world
        .send(ask("POST", room.pull("ack")).of(&room.consumer).altered())
        .is_refused(400, "request.invalid");
    world
        .send(ask("POST", room.publish()).altered())
        .is_refused(401, "producer.unauthenticated");
}

#[test]
fn a_role_publishes_where_signatures_are_checked() {
    const ROLE: &str = "arn:aws:iam::123456789012:role/desk/newsroom";
    const SESSION: &str = "arn:aws:sts::123456789012:assumed-role/newsroom/s-1";
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/tenants/{}/iam/messages", room.tenant);
    let signed = |by| ask("POST", &path).json(&note(1)).signed(by);
    let producers = format!("/v1/admin/tenants/{}/producers", room.tenant);
    let other = |ask: Ask| world.send(ask);
    other(ask("POST", &path).json(&note(1))).is_refused(404, "route.not_found");
    other(signed(None)).is_refused(401, "producer.unauthenticated");
    other(signed(Some(SESSION))).is_refused(403, "producer.not_registered");
    let producer = format!("{producers}/{}", room.producer.id);
    world
        .operate("PATCH", &producer, Some(json!({"role_arn": ROLE})))
        .is_ok();
    for stranger in [
        ROLE,
        "arn:aws:sts::123456789012:assumed-role/other/s-1",
        "arn:aws:sts::210987654321:assumed-role/newsroom/s-1",
        "arn:aws:iam::123456789012:user/newsroom",
    ] {
        other(signed(Some(stranger))).is_refused(403, "producer.not_registered");
    }
    let answer = other(signed(Some(SESSION)));
    assert_eq!(answer.status, 202, "{}", answer.json);
    assert_eq!(answer.outcome.route, Some("/tenants/{tenant}/iam/messages"));
    assert_eq!(
        answer.outcome.connection.as_ref().map(|c| c.as_str()),
        Some(room.producer.id.as_str())
    );
    other(ask("GET", &path).signed(Some(SESSION))).is_refused(405, "method.not_allowed");
    let elsewhere = format!("/v1/tenants/{}/iam/messages", world.tenant());
    other(ask("POST", &elsewhere).json(&note(1)).signed(Some(SESSION)))
        .is_refused(403, "producer.not_registered");
    world
        .operate("PATCH", &producer, Some(json!({"disabled": true})))
        .is_ok();
    other(signed(Some(SESSION))).is_refused(403, "producer.not_registered");
}
