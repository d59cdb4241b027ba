//! Whatever is sent: an answer in the format of the contract, never a panic. What holds for every answer is checked where
//! requests are sent, in `World::send`.

use std::cell::OnceCell;

use bytes::Bytes;
use http::{HeaderValue, Uri};
use proptest::prelude::*;

use crate::world::{Ask, Room, World, ask};

thread_local! {
    /// One bus for all cases of a thread: what they write does not matter.
    static BUS: OnceCell<(World, Room)> = const { OnceCell::new() };
}

fn on_the_bus(test: impl FnOnce(&World, &Room)) {
    BUS.with(|bus| {
        let (world, room) = bus.get_or_init(|| {
            let world = World::new();
            let room = world.room();
            (world, room)
        });
        test(world, room);
    });
}

/// Every route that reads a body, with credentials that hold.
fn with_bodies(world: &World, room: &Room) -> Vec<Ask> {
    let t = format!("/v1/admin/tenants/{}", room.tenant);
    let admin = |method, path: String| ask(method, path).of(&world.operator);
    vec![
        ask("POST", room.publish()).of(&room.producer),
        ask("POST", format!("/v1/tenants/{}/validate", room.tenant)).of(&room.producer),
        ask("POST", "/v1/jwt/messages").of(&room.producer),
        ask("POST", room.pull("ack")).of(&room.consumer),
        ask("POST", room.pull("nack")).of(&room.consumer),
        ask("POST", room.pull("reject")).of(&room.consumer),
        ask("POST", "/v1/oauth/token").header("content-type", "application/x-www-form-urlencoded"),
        admin("POST", "/v1/admin/tenants".to_owned()),
        admin("PATCH", t.clone()),
        admin("POST", format!("{t}/producers")),
        admin("PATCH", format!("{t}/producers/{}", room.producer.id)),
        admin("POST", format!("{t}/producers/{}/secrets", room.producer.id)),
        admin("POST", format!("{t}/consumers")),
        admin("PATCH", format!("{t}/consumers/{}", room.consumer.id)),
        admin("POST", "/v1/admin/operators".to_owned()),
        admin("PATCH", format!("/v1/admin/operators/{}", world.operator.id)),
    ]
}

/// JSON that is near to what the routes read: their names, values of every type.
fn near_json() -> impl Strategy<Value = serde_json::Value> {
    let text = || prop_oneof!["\\PC{0,12}", "[a-z.*]{0,12}", Just("*".to_owned()), "\\x00{1,3}"];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        (-2i64..20).prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text().prop_map(Into::into),
    ];
    let name = prop_oneof![
        3 => prop::sample::select(vec![
            "name", "strict_message_types", "system_ids", "message_types", "role_arn", "rate", "per_second", "burst",
            "topic_prefixes", "sources", "max_receives", "visibility_seconds", "reader_role_arn", "paused",
            "receipt_handles", "delay_seconds", "reason", "som_version", "message_id", "correlation_id", "message_type",
            "timestamp", "originating_system", "system_id", "system_type", "topic", "payload",
        ]).prop_map(str::to_owned),
        1 => text(),
    ];
    leaf.prop_recursive(4, 64, 12, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..12).prop_map(Into::into),
            3 => prop::collection::btree_map(name.clone(), inner, 0..12)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bodies(body in prop::collection::vec(any::<u8>(), 0..200)) {
        on_the_bus(|world, room| {
            for ask in with_bodies(world, room) {
                let answer = world.send(ask.body(body.clone()));
                assert!(answer.status >= 400 || body.is_empty() || body == b"{}", "{}", answer.status);
            }
        });
    }

    #[test]
    fn bodies_that_are_nearly_right(body in near_json()) {
        on_the_bus(|world, room| {
            for ask in with_bodies(world, room) {
                world.send(ask.json(&body));
            }
        });
    }

    #[test]
    fn random_queries(query in "[ -~]{0,40}", value in "\\PC{0,10}") {
        on_the_bus(|world, room| {
            let encoded: String = value.bytes().map(|b| format!("%{b:02x}")).collect();
            for query in [query, format!("max={encoded}&wait={encoded}"), format!("attempt={encoded}&limit={encoded}")] {
                let path = |p: String| format!("{p}?{query}");
                if path(String::new()).parse::<Uri>().is_err() {
                    continue;
                }
                // a clock that stands still makes every wait short
                world.send(ask("GET", path(room.pull("messages"))).of(&room.consumer));
                world.send(ask("GET", path("/v1/admin/tenants".to_owned())).of(&world.operator));
                world.send(ask("GET", path("/v1/admin/audit".to_owned())).of(&world.operator));
            }
        });
    }

    #[test]
    fn random_paths(path in "[!-~]{0,60}", segment in "\\PC{1,10}") {
        on_the_bus(|world, room| {
            let encoded: String = segment.bytes().map(|b| format!("%{b:02X}")).collect();
            for path in [
                format!("/{path}"),
                format!("/v1/{path}"),
                format!("/v1/tenants/{encoded}/messages"),
                format!("/v1/tenants/{}/messages/{encoded}", room.tenant),
                format!("/v1/admin/tenants/{encoded}/producers/{encoded}/secrets/{encoded}"),
            ] {
                if path.parse::<Uri>().is_err() {
                    continue;
                }
                for method in ["GET", "POST", "DELETE"] {
                    for who in [&room.producer, &world.operator] {
                        let answer = world.send(ask(method, path.clone()).of(who));
                        assert!(answer.status >= 400, "{method} {path}: {}", answer.status);
                    }
                }
            }
        });
    }

    #[test]
    fn random_headers(value in prop::collection::vec(any::<u8>(), 0..60), form in "[ -~]{0,40}") {
        on_the_bus(|world, room| {
            if HeaderValue::from_bytes(&value).is_err() {
                return;
            }
            let body = || Bytes::from(crate::world::note(1).to_string());
            let basic = [b"Basic ", &value[..]].concat();
            let bearer = [b"Bearer ", &value[..]].concat();
            for header in [&value, &basic, &bearer] {
                let ask = ask("POST", room.publish()).header("authorization", header).body(body());
                world.send(ask).is_refused(401, "producer.unauthenticated");
                let token = ask_token().header("authorization", header).body(form.clone());
                assert!(world.send(token).status >= 400);
            }
            for name in ["content-encoding", "content-type", "idempotency-key"] {
                world.send(ask("POST", room.publish()).of(&room.producer).header(name, &value).body(body()));
                world.send(ask_token().header(name, &value).body(form.clone()));
            }
        });
    }
}

fn ask_token() -> Ask {
    ask("POST", "/v1/oauth/token").header("content-type", "application/x-www-form-urlencoded")
}
