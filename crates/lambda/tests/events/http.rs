//! Requests of the HTTP API.

use std::collections::BTreeSet;

use serde_json::{Value, json as value};

use crate::files;
use crate::world::{World, json};

/// Name, text, status, rule.
type Case = (&'static str, &'static str, u16, Option<&'static str>);

macro_rules! event {
    ($name:literal) => {
        include_str!(concat!("../../../../events/http/", $name, ".json"))
    };
    ($name:literal, $status:literal, $rule:expr) => {
        ($name, event!($name), $status, $rule)
    };
}

static CASES: &[Case] = &[
    event!("publish", 202, None),
    event!("publish-snapshot", 202, None),
    event!("publish-stage-in-path", 202, None),
    event!("publish-custom-domain", 202, None),
    event!("publish-base64", 202, None),
    event!("publish-no-content-type", 202, None),
    event!("publish-by-token", 202, None),
    event!("publish-replaced-bytes", 400, Some("message.not_json")),
    event!("publish-not-utf8-base64", 400, Some("message.not_json")),
    event!("publish-too-large", 413, Some("message.too_large")),
    event!("publish-encoded", 415, Some("request.unsupported")),
    event!("publish-key-mismatch", 400, Some("idempotency_key.mismatch")),
    event!("publish-schema", 400, Some("envelope.required")),
    event!("publish-without-token", 401, Some("producer.unauthenticated")),
    event!("publish-as-consumer", 403, Some("producer.not_registered")),
    event!("publish-signed", 202, None),
    event!(
        "publish-signed-unknown-role",
        403,
        Some("producer.not_registered")
    ),
    event!("publish-signed-user", 403, Some("producer.not_registered")),
    event!("publish-unsigned", 401, Some("producer.unauthenticated")),
    event!("signed-wrong-method", 405, Some("method.not_allowed")),
    event!("validate", 202, None),
    event!("message-state", 404, Some("message.not_found")),
    event!("unknown-route", 404, Some("route.not_found")),
    event!("outside", 404, Some("route.not_found")),
    event!("wrong-method", 405, Some("method.not_allowed")),
    event!("openapi", 200, None),
    event!("pull-receive", 200, None),
    event!("pull-receive-bad-max", 400, Some("request.invalid")),
    event!("pull-ack-unknown", 200, None),
    event!("pull-ack-replaced-bytes", 400, Some("request.invalid")),
    event!("token-basic", 200, None),
    event!("token-form", 200, None),
    event!("token-wrong-secret", 401, Some("invalid_client")),
    event!("token-text-form", 400, Some("invalid_request")),
    event!("jwks", 200, None),
    event!("admin-tenant-create", 201, None),
    event!("admin-tenants", 200, None),
    event!("admin-story-with-slashes", 404, Some("story.not_found")),
    event!("admin-as-producer", 403, Some("operator.not_registered")),
];

#[tokio::test]
async fn each_event_has_its_answer() {
    for (name, text, status, rule) in CASES {
        let world = World::new().await;
        let answer = world.answer(text).await;
        let told = format!("{name}: {answer:?}");
        assert_eq!(answer.status_code, *status, "{told}");
        let body = json(&answer);
        let found = body["violations"][0]["rule"].as_str().or(body["error"].as_str());
        assert_eq!(found, *rule, "{told}");
        assert!(answer.headers.contains_key("cache-control"), "{told}");
        assert_eq!(
            answer.headers.get("content-type").map(String::as_str),
            Some("application/json"),
            "{told}"
        );
        let line = world.line();
        assert_eq!(line["Status"], value!(status.to_string()), "{name}: {line}");
        assert_eq!(line["request_id"], value!("r-1"), "{name}: {line}");
        assert_eq!(line["rule"].as_str(), *rule, "{name}: {line}");
        assert_eq!(line["Requests"], value!(1.0), "{name}: {line}");
        let text = line.to_string();
        for secret in ["eyJ", "not-a-secret", "headline", "AWS4-HMAC"] {
            assert!(!text.contains(secret), "{name}: {line}");
        }
    }
}

#[test]
fn no_event_is_left_out() {
    let named: BTreeSet<String> = CASES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(files("http"), named);
}

#[tokio::test]
async fn a_line_says_who_and_what() {
    let world = World::new().await;
    world.answer(event!("publish")).await;
    let line = world.line();
    let dimensions = |n: usize| line["_aws"]["CloudWatchMetrics"][n]["Dimensions"].clone();
    assert_eq!(dimensions(0), value!([["Deployment", "Function"]]));
    assert_eq!(dimensions(1), value!([["Deployment", "Route", "Status"]]));
    assert_eq!(dimensions(2), Value::Null);
    assert_eq!(line["Route"], "/tenants/{tenant}/messages");
    assert_eq!(line["connection"], "p-demo");
    assert!(line["message_id"].is_string(), "{line}");
    world.answer(event!("publish-schema")).await;
    let line = world.line();
    assert_eq!(line["Rule"], "envelope.*");
    assert_eq!(
        line["_aws"]["CloudWatchMetrics"][2]["Dimensions"],
        value!([["Deployment", "Rule"]])
    );
    assert_eq!(
        line["_aws"]["CloudWatchMetrics"][2]["Metrics"],
        value!([{"Name": "Requests", "Unit": "Count"}])
    );
}

#[tokio::test]
async fn the_bytes_are_the_producers() {
    let world = World::new().await;
    assert_eq!(world.answer(event!("publish-snapshot")).await.status_code, 202);
    let again = json(&world.answer(event!("publish-snapshot")).await);
    assert_eq!(again["duplicate"], value!(true));
    let received = world.answer(event!("pull-receive")).await;
    assert_eq!(world.line()["Deliveries"], value!(1.0));
    let event: Value = serde_json::from_str(event!("publish-snapshot")).unwrap();
    let sent = event["body"].as_str().unwrap();
    assert!(received.body.contains(sent), "{}", received.body);
}

#[tokio::test]
async fn the_path_is_the_clients() {
    let world = World::new().await;
    let answer = json(&world.answer(event!("admin-story-with-slashes")).await);
    assert_eq!(answer["violations"][0]["rule"], "story.not_found");
    assert_eq!(world.line()["Route"], "/admin/tenants/{tenant}/stories/{story}");
}

#[tokio::test]
async fn what_is_no_event_is_answered_too() {
    for text in [
        "null",
        "{}",
        "[1]",
        r#"{"version":"1.0","path":"/v1/tenants"}"#,
        r#""text""#,
    ] {
        let world = World::new().await;
        let answer = world.answer(text).await;
        assert_eq!(answer.status_code, 500, "{text}");
        assert_eq!(
            json(&answer)["violations"][0]["rule"],
            "bus.internal_error",
            "{text}"
        );
    }
}

#[tokio::test]
async fn whatever_is_in_an_event_there_is_an_answer() {
    let base: Value = serde_json::from_str(event!("publish")).unwrap();
    let change = |pointer: &str, value: Value| {
        let mut event = base.clone();
        *event.pointer_mut(pointer).unwrap() = value;
        event.to_string()
    };
    for (text, status) in [
        (change("/rawPath", value!("")), 404),
        (change("/rawPath", value!("no slash")), 404),
        (change("/rawPath", value!("/v1/\u{0}\n ü?#[]")), 404),
        (
            change("/rawPath", value!(format!("/v1/{}", "x".repeat(70_000)))),
            404,
        ),
        (change("/rawQueryString", value!("a=\u{7f} &&=")), 202),
        (change("/rawQueryString", value!("x".repeat(70_000))), 202),
        (change("/requestContext/http/method", value!("")), 405),
        (change("/requestContext/http/method", value!("BREW IT")), 405),
        (change("/headers/accept", value!("line\nbreak")), 202),
        (change("/headers/content-length", value!("many")), 202),
        (change("/headers/content-length", value!("0")), 400),
        (change("/headers/authorization", value!("Bearer a,Bearer b")), 401),
        (change("/isBase64Encoded", value!(true)), 400),
        (change("/body", Value::Null), 400),
    ] {
        let world = World::new().await;
        let answer = world.answer(&text).await;
        assert_eq!(answer.status_code, status, "{text:.300} {answer:?}");
    }
}
