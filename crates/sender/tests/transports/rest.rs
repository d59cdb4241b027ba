//! A REST partner: what it is sent, what its answers mean, and which settings it takes.

use std::sync::Arc;
use std::time::Duration;

use storybus_sender::answer::{About, Left, Outcome, Retry};
use storybus_sender::ports::SystemClock;
use storybus_sender::transport::{Outgoing, RestConfig, RestConfigError, RestTransport, Transport};

use super::support::{AMPLE, Reaction, Server, answer, answer_with, hasty};

const PASSWORD: &str = "correct-horse-battery-staple";

fn variable(name: &str) -> Option<String> {
    (name == "PARTNER_TOKEN").then(|| PASSWORD.to_owned())
}

fn made(toml: &str) -> Result<RestTransport, RestConfigError> {
    let config: RestConfig = toml::from_str(toml).unwrap();
    RestTransport::with_variables(config, Arc::new(SystemClock), &variable)
}

fn order() -> Outgoing<'static> {
    Outgoing {
        key: "send-1042-to-acme",
        body: b"<order number='1042'/>",
        content_type: None,
    }
}

async fn partner(reaction: Reaction) -> (Server, RestTransport) {
    let server = Server::start(move |_| reaction.clone()).await;
    let config = RestConfig::new(server.url("/orders"));
    let transport = RestTransport::new(config, Arc::new(SystemClock)).unwrap();
    (server, transport)
}

#[tokio::test]
async fn the_exact_bytes_are_posted_with_the_key_in_quotes() {
    let (server, transport) = partner(answer(201, "")).await;
    let answer = transport.attempt(order(), AMPLE).await;
    assert_eq!(
        (answer.outcome, answer.status, answer.rule),
        (Outcome::Accepted, Some(201), None)
    );
    let seen = server.seen().pop().unwrap();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/orders"));
    assert_eq!(seen.body, order().body);
    assert_eq!(seen.header("idempotency-key"), Some("\"send-1042-to-acme\""));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.header("user-agent"),
        Some(concat!("storybus/", env!("CARGO_PKG_VERSION")))
    );
    let awkward = Outgoing {
        key: r#"a"b\c"#,
        content_type: Some("application/xml"),
        ..order()
    };
    transport.attempt(awkward, AMPLE).await;
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.header("idempotency-key"), Some(r#""a\"b\\c""#));
    assert_eq!(seen.header("content-type"), Some("application/xml"));
}

#[tokio::test]
async fn everything_of_a_request_can_be_set() {
    let server = Server::start(|_| answer(208, "")).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("api-key");
    std::fs::write(&path, "k3y\n").unwrap();
    let transport = made(&format!(
        r#"
        url = "{}?ref={{key}}"
        method = "put"
        content_type = "application/xml"
        key_header = "X-Request-Id"
        key_form = "bare"
        memory = "7d"
        [headers]
        Accept = "application/problem+json"
        Authorization = {{ env = "PARTNER_TOKEN", prefix = "Bearer " }}
        X-Api-Key = {{ file = {path:?} }}
        [answers]
        duplicate = [208]
        "#,
        server.url("/orders/{key}")
    ))
    .unwrap();
    assert_eq!(transport.memory(), Duration::from_secs(604_800));
    // A library's caller may bring a key that no outbox would have taken.
    let message = Outgoing {
        key: "a\nx-injected: yes",
        ..order()
    };
    let refused = transport.attempt(message, AMPLE).await;
    assert_eq!(
        (refused.outcome, refused.about, refused.left),
        (Outcome::Refused, About::Message, Left::Nothing)
    );
    assert!(server.seen().is_empty());
    let message = Outgoing {
        key: "a/b?c",
        ..order()
    };
    assert_eq!(
        transport.attempt(message, AMPLE).await.outcome,
        Outcome::Duplicate
    );
    let seen = server.seen().pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str()),
        ("PUT", "/orders/a%2Fb%3Fc?ref=a%2Fb%3Fc")
    );
    for (name, value) in [
        ("accept", "application/problem+json"),
        ("authorization", "Bearer correct-horse-battery-staple"),
        ("content-type", "application/xml"),
        ("x-api-key", "k3y"),
        ("x-request-id", "a/b?c"),
    ] {
        assert_eq!(seen.header(name), Some(value));
    }
    assert_eq!(seen.header("idempotency-key"), None);
}

#[tokio::test]
async fn a_status_has_its_usual_meaning() {
    use About::{Message, Moment, Sender};
    use Left::{Maybe, Nothing};
    use Outcome::{Accepted, Refused};
    use Retry::{Backoff, No};
    for (status, outcome, retry, about, left) in [
        (200, Accepted, No, Message, Maybe),
        (202, Accepted, No, Message, Maybe),
        (204, Accepted, No, Message, Maybe),
        (307, Refused, No, Sender, Maybe),
        (400, Refused, No, Message, Nothing),
        (401, Refused, No, Sender, Nothing),
        (403, Refused, No, Sender, Nothing),
        (404, Refused, No, Sender, Nothing),
        (408, Refused, Backoff, Moment, Maybe),
        (409, Refused, Backoff, Moment, Maybe),
        (413, Refused, No, Message, Nothing),
        (422, Refused, No, Message, Maybe),
        (425, Refused, Backoff, Moment, Maybe),
        (429, Refused, Backoff, Moment, Nothing),
        (500, Refused, Backoff, Moment, Maybe),
        (503, Refused, Backoff, Moment, Maybe),
    ] {
        let (_server, transport) = partner(answer_with(status, &[("retry-after", "7")], "")).await;
        let answer = transport.attempt(order(), AMPLE).await;
        assert_eq!((answer.outcome, answer.status), (outcome, Some(status)));
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (retry, about, left),
            "{status}"
        );
        let no = outcome == Refused;
        assert_eq!(answer.rule, no.then(|| format!("http.{status}")));
        assert_eq!(answer.retry_after, no.then_some(Duration::from_secs(7)));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(|_| answer(200, "")).await;
    let (_server, transport) = partner(answer_with(308, &[("location", &elsewhere.url("/"))], "")).await;
    let answer = transport.attempt(order(), AMPLE).await;
    assert_eq!((answer.outcome, answer.about), (Outcome::Refused, About::Sender));
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_problem_is_told_by_its_title_and_type_without_secrets_or_details() {
    let problem = format!(
        r#"{{"type":"https://partner.example/problems/used","title":"Key used by {PASSWORD}","detail":"<order>","status":422}}"#
    );
    let server = Server::start(move |_| {
        answer_with(
            422,
            &[("content-type", "Application/Problem+json; charset=utf-8")],
            &problem,
        )
    })
    .await;
    let transport = made(&format!(
        "url = {:?}\n[headers]\nX-Key = {{ env = \"PARTNER_TOKEN\" }}",
        server.url("/")
    ))
    .unwrap();
    let answer = transport.attempt(order(), AMPLE).await;
    assert_eq!(
        answer.detail.as_deref(),
        Some("the partner answers 422: Key used by [hidden] (https://partner.example/problems/used)")
    );
    assert!(!format!("{answer:?} {transport:?}").contains(PASSWORD));

    let (_server, transport) = partner(super::support::answer(422, r#"{"title":"not a problem"}"#)).await;
    let answer = transport.attempt(order(), AMPLE).await;
    assert_eq!(answer.detail.as_deref(), Some("the partner answers 422"));
}

#[tokio::test]
async fn no_answer_is_a_network_error() {
    for (reaction, told) in [
        (Reaction::Cut, "ended before an answer came"),
        (Reaction::Hang, "no answer within 0.3 s"),
        (
            Reaction::Raw(b"HTTP/1.1 201 X\r\ncontent-length: 9\r\n\r\nhalf".to_vec()),
            "broke off",
        ),
    ] {
        let (_server, transport) = partner(reaction).await;
        let answer = transport.attempt(order(), hasty(300)).await;
        assert_eq!((answer.outcome, answer.status), (Outcome::NetworkError, None));
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (Retry::Backoff, About::Moment, Left::Maybe)
        );
        assert!(answer.detail.unwrap().contains(told));
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let transport = RestTransport::new(RestConfig::new(url), Arc::new(SystemClock)).unwrap();
    let answer = transport.attempt(order(), AMPLE).await;
    assert_eq!(
        (answer.outcome, answer.left),
        (Outcome::NetworkError, Left::Nothing)
    );
}

#[test]
fn what_is_wrong_with_settings_is_told() {
    for (toml, told) in [
        (
            "url = \"partner.example\"",
            "url: not one like https://partner.example/orders",
        ),
        ("url = \"ftp://a.example/\"", "neither https:// nor http://"),
        ("url = \"https://u:hunter2@a.example/\"", "put them into a header"),
        (
            "url = \"https://{key}.example/\"",
            "{key} can stand in its path and its query alone",
        ),
        ("url = \"https://a.example/#x\"", "fragment"),
        (
            "url = \"https://a.example/\"\nmethod = \"GET\"",
            "method: \"GET\" is none of POST, PUT and PATCH",
        ),
        (
            "url = \"https://a.example/\"\nkey_header = \"\"",
            "key_header: it may be empty only where the URL holds {key}",
        ),
        (
            "url = \"https://a.example/\"\nkey_header = \"a b\"",
            "headers: \"a b\" is no header's name",
        ),
        (
            "url = \"https://a.example/\"\ncontent_type = \"a\\nb\"",
            "cannot stand in a header",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nHost = \"b\"",
            "headers: \"Host\" is set by the connection itself",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nContent-Type = \"b\"",
            "is told by content_type",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nidempotency-key = \"b\"",
            "carries the key",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nX-A = \"1\"\nx-a = \"2\"",
            "is there twice",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nX-A = \"hunter2\\r\\nX-B: c\"",
            "a line break, perhaps",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nX-A = { env = \"NOWHERE\" }",
            "headers: \"X-A\": the environment variable NOWHERE is not set",
        ),
        (
            "url = \"https://a.example/\"\n[headers]\nX-A = { file = \"/no/such/file\" }",
            "/no/such/file cannot be read",
        ),
        (
            "url = \"https://a.example/\"\n[answers]\nagain = [409]\nrefused = [409]",
            "the status 409 is both in",
        ),
    ] {
        let error = made(toml).unwrap_err().to_string();
        assert!(error.contains(told), "{toml}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_file_with_what_nobody_knows_is_refused() {
    for (toml, told) in [
        ("", "missing field `url`"),
        (
            "url = \"https://a.example/\"\nretries = 3",
            "unknown field `retries`",
        ),
        (
            "url = \"https://a.example/\"\nmemory = \"long\"",
            "such as \"24h\"",
        ),
        (
            "url = \"https://a.example/\"\nkey_form = \"none\"",
            "unknown variant `none`",
        ),
        (
            "url = \"https://a.example/\"\n[answers]\nagain = [42]",
            "a status of 200 to 599",
        ),
    ] {
        let error = toml::from_str::<RestConfig>(toml).unwrap_err().to_string();
        assert!(error.contains(told), "{toml}: {error}");
    }
}

#[test]
fn settings_do_not_show_their_values() {
    let config: RestConfig =
        toml::from_str("url = \"https://a.example/\"\n[headers]\nX-A = \"hunter2\"").unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    assert_eq!(config.memory.0, Duration::from_secs(86_400));
}
