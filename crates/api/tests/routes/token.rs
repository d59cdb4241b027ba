//! `POST /oauth/token`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use insta::assert_json_snapshot;
use serde_json::json;
use storybus_api::Api;
use storybus_core::Bus;
use storybus_core::ports::keys::SigningKey;
use storybus_core::ports::secret_hasher::Busy;
use storybus_core::ports::{SecretHasher, SigningKeys, StoreError};
use storybus_testkit::{FixedKeys, PlainHasher};

use crate::world::{Answer, Ask, World, ask};

const GRANT: &str = "grant_type=client_credentials";

fn token() -> Ask {
    ask("POST", "/v1/oauth/token")
}

#[track_caller]
fn is_error(answer: &Answer, status: u16, error: &str) {
    assert_eq!(
        (answer.status, answer.json["error"].as_str()),
        (status, Some(error)),
        "{}",
        answer.json
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("pragma"), Some("no-cache"));
    let description = answer.text("/error_description");
    let allowed = |b: u8| matches!(b, 0x20..=0x21 | 0x23..=0x5B | 0x5D..=0x7E);
    assert!(
        description.bytes().all(allowed),
        "RFC 6749 section 5.2: {description}"
    );
}

#[test]
fn by_basic_and_by_form() {
    let world = World::new();
    let p = world.room().producer;
    let answer = world.send(token().basic(&p.id, &p.secret).form(GRANT));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("pragma"), Some("no-cache"));
    assert_eq!(
        answer.outcome.connection.as_ref().map(|c| c.as_str()),
        Some(p.id.as_str())
    );
    assert_json_snapshot!(answer.is_ok().redacted(), @r#"
    {
      "access_token": "[token]",
      "expires_in": 3600,
      "scope": "sombus/publish",
      "token_type": "Bearer"
    }
    "#);
    let form = format!("client_id={}&client_secret={}&{GRANT}", p.id, p.secret);
    world.send(token().form(form)).is_ok();
}

#[test]
fn clients_differ_in_how_they_write_it() {
    let world = World::new();
    let p = world.room().producer;
    let encoded = |text: &str| text.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
    world
        .send(token().basic(&encoded(&p.id), &encoded(&p.secret)).form(GRANT))
        .is_ok();
    let beside = format!("{GRANT}&client_id={}&client_secret=&unknown=1", p.id);
    world.send(token().basic(&p.id, &p.secret).form(beside)).is_ok();
    let with_charset = "Application/X-WWW-Form-Urlencoded; charset=UTF-8";
    world
        .send(
            token()
                .basic(&p.id, &p.secret)
                .header("content-type", with_charset)
                .body(GRANT),
        )
        .is_ok();
    let credentials = STANDARD_NO_PAD.encode(format!("{}:{}", p.id, p.secret));
    world
        .send(
            token()
                .header("authorization", format!("bAsIc  {credentials}"))
                .form(GRANT),
        )
        .is_ok();
}

#[test]
fn what_is_no_token_request() {
    let world = World::new();
    let p = world.room().producer;
    let basic = || token().basic(&p.id, &p.secret);
    let secret = format!("client_secret={}", p.secret);
    let cases: Vec<(&str, Ask, u16, &str)> = vec![
        ("no content type", basic().body(GRANT), 400, "invalid_request"),
        (
            "JSON",
            basic().header("content-type", "application/json").body(GRANT),
            400,
            "invalid_request",
        ),
        (
            "two content types",
            basic().header("content-type", "text/plain").form(GRANT),
            400,
            "invalid_request",
        ),
        (
            "compressed",
            basic().header("content-encoding", "gzip").form(GRANT),
            400,
            "invalid_request",
        ),
        (
            "too large",
            basic().form("x".repeat(16_385)),
            400,
            "invalid_request",
        ),
        (
            "far too large",
            basic().form(GRANT).too_large(),
            400,
            "invalid_request",
        ),
        ("empty", basic().form(""), 400, "invalid_request"),
        (
            "not UTF-8",
            basic().form(&b"grant_type=client_credentials&a=\xff"[..]),
            400,
            "invalid_request",
        ),
        (
            "bad escape",
            basic().form("grant_type=client_credentials&a=%zz"),
            400,
            "invalid_request",
        ),
        (
            "repeated",
            basic().form(format!("{GRANT}&{GRANT}")),
            400,
            "invalid_request",
        ),
        (
            "repeated, unknown",
            basic().form(format!("{GRANT}&a=1&a=2")),
            400,
            "invalid_request",
        ),
        (
            "grant type without a value",
            basic().form("grant_type="),
            400,
            "invalid_request",
        ),
        (
            "another grant type",
            basic().form("grant_type=password"),
            400,
            "unsupported_grant_type",
        ),
        (
            "another grant type, nobody",
            token().form("grant_type=password"),
            400,
            "unsupported_grant_type",
        ),
        (
            "both ways",
            basic().form(format!("{GRANT}&client_id={}&{secret}", p.id)),
            400,
            "invalid_request",
        ),
        (
            "two clients",
            basic().form(format!("{GRANT}&client_id=p2")),
            400,
            "invalid_request",
        ),
        (
            "two headers",
            basic().basic(&p.id, &p.secret).form(GRANT),
            400,
            "invalid_request",
        ),
        (
            "a secret of nobody",
            token().form(format!("{GRANT}&{secret}")),
            400,
            "invalid_request",
        ),
        ("no credentials", token().form(GRANT), 401, "invalid_client"),
        (
            "no secret",
            token().form(format!("{GRANT}&client_id={}", p.id)),
            401,
            "invalid_client",
        ),
        ("bearer", token().of(&p).form(GRANT), 401, "invalid_client"),
        (
            "bearer and form",
            token()
                .of(&p)
                .form(format!("{GRANT}&client_id={}&{secret}", p.id)),
            400,
            "invalid_request",
        ),
        (
            "no base64",
            token().header("authorization", "Basic %%%").form(GRANT),
            401,
            "invalid_client",
        ),
        (
            "no colon",
            token().header("authorization", "Basic YWJj").form(GRANT),
            401,
            "invalid_client",
        ),
        (
            "not ASCII",
            token().header("authorization", b"Basic \xff").form(GRANT),
            401,
            "invalid_client",
        ),
        (
            "wrong secret",
            token().basic(&p.id, "wrong").form(GRANT),
            401,
            "invalid_client",
        ),
        (
            "unknown client",
            token().basic("pnobody", "wrong").form(GRANT),
            401,
            "invalid_client",
        ),
        (
            "no client id at all",
            token().basic("", "").form(GRANT),
            401,
            "invalid_client",
        ),
        (
            "a scope that is none",
            basic().form(format!("{GRANT}&scope=all")),
            400,
            "invalid_scope",
        ),
        (
            "a producer as operator",
            basic().form(format!("{GRANT}&scope=sombus/admin")),
            400,
            "invalid_scope",
        ),
    ];
    for (name, ask, status, error) in cases {
        let answer = world.send(ask);
        assert_eq!(
            (name, answer.status, answer.json["error"].as_str()),
            (name, status, Some(error))
        );
        is_error(&answer, status, error);
    }
}

#[test]
fn the_kind_decides_the_scope() {
    let world = World::new();
    let room = world.room();
    for (who, asked, granted) in [
        (&room.producer, "", "sombus/publish"),
        (&room.consumer, "&scope=sombus%2Fpublish", "sombus/consume"),
        (
            &room.consumer,
            "&scope=sombus/publish+sombus/consume",
            "sombus/consume",
        ),
        (&world.operator, "&scope=sombus/publish", "sombus/admin"),
        (&world.operator, "&scope=sombus/admin", "sombus/admin"),
        (&world.operator, "&scope=", "sombus/admin"),
    ] {
        let answer = world.send(
            token()
                .basic(&who.id, &who.secret)
                .form(format!("{GRANT}{asked}")),
        );
        assert_eq!(answer.is_ok().text("/scope"), granted, "{asked}");
    }
}

#[test]
fn a_disabled_or_deleted_client_is_unknown() {
    let world = World::new();
    let room = world.room();
    let path = format!("/v1/admin/tenants/{}/producers/{}", room.tenant, room.producer.id);
    let log_in = || {
        world.send(
            token()
                .basic(&room.producer.id, &room.producer.secret)
                .form(GRANT),
        )
    };
    world
        .operate("PATCH", &path, Some(json!({"disabled": true})))
        .is_ok();
    is_error(&log_in(), 401, "invalid_client");
    world
        .operate("PATCH", &path, Some(json!({"disabled": false})))
        .is_ok();
    log_in().is_ok();
    assert_eq!(world.operate("DELETE", &path, None).status, 204);
    is_error(&log_in(), 401, "invalid_client");
}

#[test]
fn failed_attempts_are_limited_by_client_and_address() {
    let world = World::new();
    let p = world.room().producer;
    for _ in 0..10 {
        is_error(
            &world.send(token().basic(&p.id, "wrong").form(GRANT)),
            401,
            "invalid_client",
        );
    }
    let answer = world.send(token().basic(&p.id, &p.secret).form(GRANT));
    is_error(&answer, 429, "slow_down");
    assert_eq!(answer.header("retry-after"), Some("1"));
    world
        .send(token().basic(&p.id, &p.secret).form(GRANT).from("192.0.2.2"))
        .is_ok();
    world.clock.advance(Duration::from_secs(1));
    world.send(token().basic(&p.id, &p.secret).form(GRANT)).is_ok();
}

/// Counts what it is asked to do.
struct Counting(AtomicUsize);

#[async_trait]
impl SecretHasher for Counting {
    async fn hash(&self, secret: &str) -> Result<String, Busy> {
        PlainHasher.hash(secret).await
    }

    async fn verify(&self, secret: &str, hash: &str) -> Result<bool, Busy> {
        self.0.fetch_add(1, Ordering::Relaxed);
        PlainHasher.verify(secret, hash).await
    }
}

#[test]
fn a_secret_is_checked_only_for_a_whole_form() {
    let world = World::new();
    let counting = Arc::new(Counting(AtomicUsize::new(0)));
    let api = world.with(|ports| ports.hasher = counting.clone());
    let o = &world.operator;
    let basic = || token().basic(&o.id, &o.secret);
    let malformed = [
        basic().body(GRANT),
        basic().form("grant_type=password"),
        basic().form(format!("{GRANT}&{GRANT}")),
        basic().form(format!("{GRANT}&client_secret=x")),
        token().form(GRANT),
    ];
    for ask in malformed {
        assert!(world.send_to(&api, ask).status >= 400);
    }
    assert_eq!(counting.0.load(Ordering::Relaxed), 0);
    world.send_to(&api, basic().form(GRANT)).is_ok();
    assert_eq!(counting.0.load(Ordering::Relaxed), 1);
}

/// Has no time for anybody.
struct Overrun;

#[async_trait]
impl SecretHasher for Overrun {
    async fn hash(&self, _secret: &str) -> Result<String, Busy> {
        Err(Busy)
    }

    async fn verify(&self, _secret: &str, _hash: &str) -> Result<bool, Busy> {
        Err(Busy)
    }
}

#[test]
fn more_attempts_than_can_be_checked() {
    let world = World::new();
    let api = world.with(|ports| ports.hasher = Arc::new(Overrun));
    let o = &world.operator;
    is_error(
        &world.send_to(&api, token().basic(&o.id, &o.secret).form(GRANT)),
        429,
        "slow_down",
    );
    let answer = world.send_to(
        &api,
        ask("POST", "/v1/admin/operators")
            .of(o)
            .json(&json!({"name": "x"})),
    );
    answer.is_refused(503, "bus.unavailable");
}

/// Keys that an operator changes.
struct Changing(Mutex<Vec<SigningKey>>);

#[async_trait]
impl SigningKeys for Changing {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        Ok(self.0.lock().expect("the keys").clone())
    }
}

/// A token that was checked before ends with its key, within the 5 minutes for which keys are kept; whoever signs takes a new key
/// within a minute.
#[test]
fn a_token_ends_with_its_key() {
    let world = World::new();
    let keys = Arc::new(Changing(Mutex::new(vec![FixedKeys::example("test-1")])));
    let api = world.with(|ports| ports.keys = keys.clone());
    let list = |token: &str| {
        let asked = ask("GET", "/v1/admin/tenants").header("authorization", format!("Bearer {token}"));
        world.send_to(&api, asked).status
    };
    let old = world.operator.token.clone();
    assert_eq!(list(&old), 200);
    *keys.0.lock().expect("the keys") = vec![FixedKeys::example("test-2")];
    world.clock.advance(Duration::from_secs(61));
    let form = token()
        .basic(&world.operator.id, &world.operator.secret)
        .form(GRANT);
    let new = world.send_to(&api, form).text("/access_token").to_owned();
    assert_eq!(list(&new), 200);
    // asked for all the time, so that nothing is prolonged by being used
    for _ in 0..6 {
        world.clock.advance(Duration::from_secs(50));
        list(&old);
    }
    assert_eq!((list(&old), list(&new)), (401, 200));
}

/// A key may be made right after a function has read the others: the first token that it signs holds there all the same. Unknown keys
/// that somebody makes up have no more than one look in ten seconds.
#[test]
fn a_key_that_was_just_made_is_known_at_once() {
    let world = World::new();
    let keys = Arc::new(Changing(Mutex::new(vec![FixedKeys::example("test-1")])));
    // functions of their own, which share no memory
    let function = || {
        let bus = world.with(|ports| ports.keys = keys.clone());
        let bus = bus.bus();
        Api::new(Bus::new(bus.ports().clone(), bus.settings().clone()))
    };
    let checks = function();
    let list = |token: &str| {
        let asked = ask("GET", "/v1/admin/tenants").header("authorization", format!("Bearer {token}"));
        world.send_to(&checks, asked).status
    };
    assert_eq!(list(&world.operator.token), 200);
    let signed_with = |kid: &str| {
        keys.0
            .lock()
            .expect("the keys")
            .insert(0, FixedKeys::example(kid));
        let form = token()
            .basic(&world.operator.id, &world.operator.secret)
            .form(GRANT);
        world.send_to(&function(), form).text("/access_token").to_owned()
    };
    let second = signed_with("test-2");
    assert_eq!(list(&second), 200);
    let third = signed_with("test-3");
    assert_eq!(list(&third), 401);
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(
        (list(&third), list(&second), list(&world.operator.token)),
        (200, 200, 200)
    );
}
