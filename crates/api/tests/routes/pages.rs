//! The examples of `docs/errors/` are what the bus answers: each is asked for here, and compared word by word.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use storybus_protocol::rule::{SCHEMA_KEYWORDS, TABLE};

use crate::messages::Mute;
use crate::world::{Answer, Ask, Room, World, ask, note, snapshot};

/// Not provoked here: what takes a store that fails, a rival, or AWS.
const ELSEWHERE: [&str; 7] = [
    "bus.internal_error",
    "bus.publish_failed",
    "bus.unavailable",
    "commit.contention",
    "consumer.limit",
    "message.not_archived",
    "message.superseded",
];

/// What a page shows: the status, and the list of reasons.
fn shown(page: &str) -> (u16, Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/errors/{page}.md"));
    let text = std::fs::read_to_string(file).expect("a page");
    let block = |language: &str| {
        let (_, rest) = text.split_once(&format!("```{language}\n")).expect("a block");
        rest.split_once("\n```").expect("its end").0
    };
    let status = block("http")["HTTP/1.1 ".len()..][..3].parse().expect("a status");
    let body: Value = serde_json::from_str(block("json")).expect("JSON");
    (status, reasons(&body))
}

fn reasons(body: &Value) -> Value {
    let lists = ["violations", "tolerated", "failed"];
    lists
        .iter()
        .map(|name| body[name].clone())
        .find(|list| !list.is_null())
        .unwrap_or_default()
}

/// The pages that were compared.
#[derive(Default)]
struct Compared(BTreeSet<String>);

impl Compared {
    fn see(&mut self, page: &str, answer: &Answer) {
        assert_eq!(
            (answer.status, reasons(&answer.json)),
            shown(page),
            "docs/errors/{page}.md"
        );
        assert!(self.0.insert(page.to_owned()), "{page} is compared twice");
    }

    /// All pages but those that cannot be compared here.
    fn is_all(&self, of: impl Iterator<Item = String>) {
        let wanted: BTreeSet<String> = of.filter(|page| !ELSEWHERE.contains(&page.as_str())).collect();
        assert_eq!(self.0, wanted);
    }
}

/// An event that SOM has a schema for, with some members changed.
fn audit(change: impl FnOnce(&mut Value)) -> Value {
    let mut message = note(1);
    message["message_type"] = json!("system.audit");
    message["payload"] = json!({
        "audit_id": "0199b3d0-7777-7000-8000-000000000007",
        "action": "CLEARED",
        "target": {"kind": "ASSET", "id": "a1"},
        "actor": {"actor_id": "desk-1", "actor_type": "HUMAN"},
        "recorded_at": "2026-10-05T06:30:00Z",
    });
    change(&mut message);
    message
}

/// A snapshot with some members of its payload changed.
fn story(sequence: u64, change: impl FnOnce(&mut Value)) -> Value {
    let mut message = snapshot(sequence, sequence);
    let payload = &mut message["payload"];
    payload["story_type"] = json!("PLANNED");
    payload.as_object_mut().expect("an object").remove("lifecycle");
    payload["assets"] = json!([{"asset_id": "harbour-cam", "asset_type": "VIDEO", "status": "READY"}]);
    payload["tags"] = json!([{"scheme": "newsroom", "value": "transport"}]);
    change(payload);
    message
}

fn publish(room: &Room, message: &Value) -> Ask {
    ask("POST", room.publish()).of(&room.producer).json(message)
}

#[test]
fn of_every_keyword() {
    let world = World::new();
    let room = world.room();
    let mut compared = Compared::default();
    let mut see = |keyword: &str, message: Value| {
        compared.see(
            &format!("schema/{keyword}"),
            &world.send(publish(&room, &message)),
        );
    };
    see("additionalProperties", audit(|m| m["priority"] = json!("HIGH")));
    see("const", audit(|m| m["payload"]["message_type"] = json!(7)));
    see("enum", audit(|m| m["payload"]["action"] = json!("DELETED")));
    see("false_schema", audit(|m| m["signature"] = json!("x")));
    see(
        "format.date-time",
        audit(|m| m["timestamp"] = json!("2026-10-05 06:30:00")),
    );
    see(
        "format.uuid",
        audit(|m| m["correlation_id"] = json!("ferry-strike")),
    );
    see("pattern", audit(|m| m["topic"] = json!("story.context")));
    see("type", audit(|m| m["_actors"] = json!([])));
    see(
        "required",
        audit(|m| {
            m["payload"].as_object_mut().expect("an object").remove("actor");
        }),
    );
    see(
        "anyOf",
        story(1, |p| p["assets"][0]["asset_type"] = json!("HOLOGRAM")),
    );
    see(
        "maxLength",
        story(1, |p| p["story_meaning"] = json!({"what": "x".repeat(300)})),
    );
    see(
        "maximum",
        story(1, |p| p["story_meaning"] = json!({"confidence": 1.5})),
    );
    see("minLength", story(1, |p| p["tags"][0]["value"] = json!("")));
    see("minimum", story(1, |p| p["sequence_number"] = json!(-1)));
    see(
        "uniqueItems",
        story(1, |p| p["tags"] = json!([p["tags"][0], p["tags"][0]])),
    );
    see(
        "not",
        story(1, |p| {
            p["lifecycle"] = json!({"phase": "DEVELOPING", "phase_entered_at": "2026-10-05T06:30:00Z"});
        }),
    );
    compared.is_all(
        SCHEMA_KEYWORDS
            .iter()
            .map(|known| format!("schema/{}", known.rule)),
    );
}

#[test]
fn of_every_rule() {
    let world = World::new();
    let room = world.room();
    let mut compared = Compared::default();
    credentials(&world, &room, &mut compared);
    requests(&world, &room, &mut compared);
    bytes(&world, &room, &mut compared);
    messages(&world, &room, &mut compared);
    grants(&world, &room, &mut compared);
    order(&world, &room, &mut compared);
    registry(&world, &room, &mut compared);
    in_flight(&mut compared);
    compared.is_all(TABLE.iter().map(|known| known.rule.to_owned()));
}

fn credentials(world: &World, room: &Room, compared: &mut Compared) {
    let publish = || ask("POST", "/v1/tenants/w1/messages");
    let receive = || {
        ask(
            "GET",
            format!("/v1/tenants/{}/consumers/c1/messages", room.tenant),
        )
    };
    let list = || ask("GET", "/v1/admin/tenants");
    compared.see("producer.unauthenticated", &world.send(publish()));
    compared.see("consumer.unauthenticated", &world.send(receive()));
    compared.see("operator.unauthenticated", &world.send(list()));
    compared.see(
        "producer.not_registered",
        &world.send(publish().of(&room.producer)),
    );
    compared.see(
        "consumer.not_registered",
        &world.send(receive().of(&room.consumer)),
    );
    compared.see("operator.not_registered", &world.send(list().of(&room.producer)));
}

fn requests(world: &World, room: &Room, compared: &mut Compared) {
    let compressed = publish(room, &note(1)).header("content-encoding", "gzip");
    compared.see("request.unsupported", &world.send(compressed));
    let receive = ask("GET", room.pull("messages?max=50&wait=x")).of(&room.consumer);
    compared.see("request.invalid", &world.send(receive));
    compared.see("route.not_found", &world.send(ask("GET", "/v1/tenant")));
    compared.see("method.not_allowed", &world.send(ask("PUT", "/v1/admin/tenants")));
    let ack = ask("POST", room.pull("ack"))
        .of(&room.consumer)
        .json(&json!({"receipt_handles": ["nonsense"]}));
    compared.see("receipt_handle.invalid", &world.send(ack));
    let members = json!({"name": "p", "system_ids": ["desk-8"], "message_types": ["*"], "rate": {"per_second": 1, "burst": 1}});
    let slow = world.client(&format!("/v1/admin/tenants/{}/producers", room.tenant), members);
    let often = || world.send(ask("POST", room.publish()).of(&slow).json(&note(1)));
    often();
    compared.see("rate.exceeded", &often());
}

fn bytes(world: &World, room: &Room, compared: &mut Compared) {
    let send = |body: Vec<u8>| world.send(ask("POST", room.publish()).of(&room.producer).body(body));
    compared.see(
        "message.too_large",
        &world.send(publish(room, &note(1)).too_large()),
    );
    compared.see(
        "message.not_json",
        &send(br#"{"som_version": "1.0.0",}"#.to_vec()),
    );
    let repeated = br#"{"payload":{"slug":"A","slug":"B"}}"#;
    compared.see("message.duplicate_member", &send(repeated.to_vec()));
    let topic = audit(|m| m["topic"] = json!("som.\u{1}"));
    compared.see("message.illegal_character", &send(topic.to_string().into_bytes()));
    compared.see(
        "message.too_deep",
        &send([b"[".repeat(129), b"]".repeat(129)].concat()),
    );
}

fn messages(world: &World, room: &Room, compared: &mut Compared) {
    let send = |message: &Value| world.send(publish(room, message));
    compared.see(
        "som_version.pre_1_0",
        &send(&audit(|m| m["som_version"] = json!("0.9.0"))),
    );
    compared.see(
        "som_version.unsupported_major",
        &send(&audit(|m| m["som_version"] = json!("2.0.0"))),
    );
    compared.see(
        "message_type.unknown",
        &send(&audit(|m| m["message_type"] = json!("story.rumour"))),
    );
    let mut other = note(1);
    other["payload"]["message_type"] = json!("story.context");
    compared.see("payload.message_type_mismatch", &send(&other));
    let keyed = publish(room, &note(1)).header("idempotency-key", "other");
    compared.see("idempotency_key.mismatch", &world.send(keyed));
    compared.see("payload.unvalidated", &send(&note(900)));
    let mut changed = note(900);
    changed["timestamp"] = json!("2026-10-05T06:31:00Z");
    compared.see("message_id.reused", &send(&changed));
    let unknown = format!("{}/0199b3d0-1111-7000-8000-0000000000ff", room.publish());
    compared.see(
        "message.not_found",
        &world.send(ask("GET", unknown).of(&room.producer)),
    );
}

fn grants(world: &World, room: &Room, compared: &mut Compared) {
    let members = json!({"name": "p", "system_ids": ["desk-9"], "message_types": ["asset.*"]});
    let limited = world.client(&format!("/v1/admin/tenants/{}/producers", room.tenant), members);
    let send = |message: &Value| world.send(ask("POST", room.publish()).of(&limited).json(message));
    compared.see("producer.system_id_not_allowed", &send(&note(1)));
    let audit = audit(|m| m["originating_system"]["system_id"] = json!("desk-9"));
    compared.see("producer.message_type_not_allowed", &send(&audit));
}

fn order(world: &World, room: &Room, compared: &mut Compared) {
    let send = |message: &Value| world.send(publish(room, message));
    let assertion = |state: &str| {
        json!([{"assertion_id": "as1", "assertion_type": "DETECTION", "target": {"kind": "STORY", "id": "story-1"},
                "claim": {"detection_class": "x", "verdict": "y"}, "asserted_at": "2026-10-05T06:00:00Z",
                "provenance": {"author": "HUMAN"}, "review": {"state": state}}])
    };
    let next = |number: u64, change: &dyn Fn(&mut Value)| {
        let mut message = story(number, |p| {
            p["assertions"] = assertion("CONFIRMED");
            change(p);
        });
        message["correlation_id"] = json!("0199b3d0-0000-7000-8000-00000000feed");
        message
    };
    assert_eq!(send(&next(7, &|_| ())).status, 202);
    let dry = |message: &Value| {
        let path = format!("/v1/tenants/{}/validate", room.tenant);
        world.send(ask("POST", path).of(&room.producer).json(message))
    };
    let mut see = |rule: &str, message: Value| compared.see(rule, &dry(&message));
    see(
        "sequence_number.not_increasing",
        next(8, &|p| p["sequence_number"] = json!(7)),
    );
    see("sequence_number.gap", next(10, &|_| ()));
    see(
        "updated_at.backwards",
        next(8, &|p| p["updated_at"] = json!("2026-09-11T10:01:00Z")),
    );
    see(
        "snapshot.members_missing",
        next(8, &|p| {
            p.as_object_mut().expect("an object").remove("tags");
        }),
    );
    see("snapshot.assets_dropped", next(8, &|p| p["assets"] = json!([])));
    see(
        "asset.type_changed",
        next(8, &|p| p["assets"][0]["asset_type"] = json!("STILL")),
    );
    let mut moved = next(8, &|_| ());
    moved["correlation_id"] = json!("0199b3d0-0000-7000-8000-00000000beef");
    see("correlation_id.changed", moved);
    see(
        "assertion.review_regressed",
        next(8, &|p| p["assertions"] = assertion("PENDING")),
    );
    assert_eq!(send(&next(8, &|p| p["story_type"] = json!("KILLED"))).status, 202);
    see("story_type.left_terminal", next(9, &|_| ()));
}

fn registry(world: &World, room: &Room, compared: &mut Compared) {
    let tenant = format!("/v1/admin/tenants/{}", room.tenant);
    let mut see = |rule: &str, method: &'static str, path: &str, body: Option<Value>| {
        compared.see(rule, &world.operate(method, path, body));
    };
    see("tenant.not_found", "GET", "/v1/admin/tenants/w1", None);
    see("tenant.not_empty", "DELETE", &tenant, None);
    see(
        "producer.not_found",
        "GET",
        &format!("{tenant}/producers/p1"),
        None,
    );
    see(
        "consumer.not_found",
        "GET",
        &format!("{tenant}/consumers/c1"),
        None,
    );
    see("operator.not_found", "GET", "/v1/admin/operators/o1", None);
    see("story.not_found", "GET", &format!("{tenant}/stories/none"), None);
    see("job.not_found", "GET", &format!("{tenant}/jobs/j1"), None);
    let redrives = format!("{tenant}/consumers/{}/redrives", room.consumer.id);
    let job = world.work(room, &world.operate("POST", &redrives, None).json);
    let job = job["job_id"].as_str().expect("an id");
    see("job.finished", "DELETE", &format!("{tenant}/jobs/{job}"), None);
    let secrets = format!("{tenant}/producers/{}/secrets", room.producer.id);
    see("secret.not_found", "DELETE", &format!("{secrets}/s1"), None);
    world.operate("POST", &secrets, None);
    see("secret.limit", "POST", &secrets, None);
    let taken = json!({"name": "x", "system_ids": ["desk-7", "desk-1"], "message_types": []});
    see(
        "system_id.taken",
        "POST",
        &format!("{tenant}/producers"),
        Some(taken),
    );
}

/// A publish whose outcome is not certain leaves its record for 30 s.
fn in_flight(compared: &mut Compared) {
    let world = World::new();
    let room = world.room();
    let mute = world.with(|ports| ports.topic = Arc::new(Mute));
    assert_eq!(world.send_to(&mute, publish(&room, &note(1))).status, 503);
    world.clock.advance(Duration::from_secs(3));
    compared.see("message.in_flight", &world.send(publish(&room, &note(1))));
}
