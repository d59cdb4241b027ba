//! What a bus is sent, and what its answers mean.

use std::sync::Arc;
use std::time::Duration;

use storybus_sender::answer::{About, Left, Outcome, Retry};
use storybus_sender::ports::SystemClock;
use storybus_sender::transport::{BusConfig, BusTransport, Outgoing, Secret, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{
    AMPLE, ENVELOPE, ID, SECRET, Server, accepted, answer, answer_with, attempt, bus, outgoing, refusal,
    transport,
};

#[tokio::test]
async fn the_exact_bytes_are_sent_with_a_token_and_the_key() {
    let server = bus(vec![accepted()]).await;
    let answer = attempt(&transport(&server)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Accepted, Some(202)));
    assert_eq!((answer.rule, answer.detail), (None, None));

    let seen = server.seen();
    let [token, message] = seen.as_slice() else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (token.method.as_str(), token.target.as_str()),
        ("POST", "/v1/oauth/token")
    );
    // p1:correct-horse-battery-staple
    let basic = "Basic cDE6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ==";
    assert_eq!(token.header("authorization"), Some(basic));
    assert_eq!(
        token.body,
        b"grant_type=client_credentials&scope=sombus%2Fpublish"
    );
    assert_eq!(
        token.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );

    assert_eq!(
        (message.method.as_str(), message.target.as_str()),
        ("POST", "/v1/jwt/messages")
    );
    assert_eq!(message.body, ENVELOPE.as_bytes());
    for (name, value) in [
        ("authorization", "Bearer token-number-1"),
        ("idempotency-key", ID),
        ("content-type", "application/json"),
        ("user-agent", concat!("storybus/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(message.header(name), Some(value));
    }
}

#[tokio::test]
async fn the_key_is_repeated_as_it_stands_in_the_message_or_not_at_all() {
    let upper = ENVELOPE.replace(ID, &ID.to_uppercase());
    for (key, body, header) in [
        (ID, upper.as_str(), Some(ID.to_uppercase())),
        (ID, "{\"message_id\":5}", None),
        (ID, "not json", None),
    ] {
        let server = bus(vec![accepted()]).await;
        let message = Outgoing {
            key,
            body: body.as_bytes(),
            content_type: None,
        };
        transport(&server).attempt(message, AMPLE).await;
        let sent = server.seen().pop().unwrap();
        assert_eq!(sent.body, body.as_bytes());
        assert_eq!(sent.header("idempotency-key"), header.as_deref(), "{key} {body}");
    }
}

#[tokio::test]
async fn a_rows_media_type_is_no_header_of_a_request_to_a_bus() {
    let long = format!("application/json; x={}", "a".repeat(200_000));
    for content_type in ["application/som+json", "two\nlines", "é", &long] {
        let server = bus(vec![accepted()]).await;
        let message = Outgoing {
            content_type: Some(content_type),
            ..outgoing()
        };
        let answer = transport(&server).attempt(message, AMPLE).await;
        assert_eq!(answer.outcome, Outcome::Accepted);
        let sent = server.seen().pop().unwrap();
        assert_eq!(sent.header("content-type"), Some("application/json"));
    }
}

#[tokio::test]
async fn a_message_under_another_key_than_its_own_is_not_sent() {
    for key in ["send-1042-to-acme", "0199a1c4-7a2e-7b31-8c55-000000000000"] {
        let server = bus(vec![accepted()]).await;
        let message = Outgoing {
            key,
            body: ENVELOPE.as_bytes(),
            content_type: None,
        };
        let answer = transport(&server).attempt(message, AMPLE).await;
        assert!(server.seen().is_empty(), "nothing is sent, not even a log-in");
        assert_eq!(
            (answer.outcome, answer.status, answer.rule.as_deref()),
            (Outcome::Refused, None, Some("sender.key_mismatch"))
        );
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (Retry::No, About::Message, Left::Nothing)
        );
        let detail = answer.detail.unwrap();
        assert!(detail.contains(key) && detail.contains(ID), "{detail}");
    }
}

#[tokio::test]
async fn a_port_without_tls_is_told_in_plain_words() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0; 1024];
            let _ = stream.read(&mut hello).await;
            let _ = stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
    });
    let config = BusConfig::new(format!("https://{address}/v1/"), "p1", Secret::new(SECRET));
    let transport = BusTransport::new(config, Arc::new(SystemClock)).unwrap();
    let answer = attempt(&transport).await;
    assert_eq!((answer.about, answer.left), (About::Moment, Left::Nothing));
    let detail = answer.detail.unwrap();
    assert!(detail.contains("speaks no TLS"), "{detail}");
}

#[tokio::test]
async fn every_refusal_of_a_bus_is_about_something_and_may_leave_something() {
    use About::{Message, Moment, Sender};
    use Left::{Maybe, Nothing};
    use Retry::{Backoff, NewToken, No};
    for (status, rule, retry, about, left) in [
        (400, "envelope.required", No, Message, Nothing),
        (400, "message.not_json", No, Message, Nothing),
        (400, "request.invalid", No, Sender, Nothing),
        (401, "producer.unauthenticated", NewToken, Sender, Nothing),
        (403, "producer.not_registered", No, Sender, Nothing),
        (403, "producer.system_id_not_allowed", No, Message, Nothing),
        (403, "grant.expired", No, Message, Nothing),
        (404, "route.not_found", No, Sender, Nothing),
        (405, "method.not_allowed", No, Sender, Nothing),
        (409, "commit.contention", No, Moment, Nothing),
        (409, "sequence_number.not_increasing", No, Message, Nothing),
        (409, "message_id.reused", No, Message, Maybe),
        (409, "message.superseded", No, Message, Maybe),
        (413, "message.too_large", No, Message, Nothing),
        (415, "request.unsupported", No, Sender, Nothing),
        (408, "request.invalid", Backoff, Moment, Maybe),
        (429, "rate.exceeded", Backoff, Moment, Nothing),
        (431, "request.invalid", No, Moment, Nothing),
        (500, "bus.internal_error", Backoff, Moment, Maybe),
        (503, "bus.unavailable", Backoff, Moment, Nothing),
        (503, "bus.publish_failed", Backoff, Moment, Maybe),
        (503, "message.in_flight", Backoff, Moment, Maybe),
    ] {
        let server = bus(vec![answer(status, &refusal(rule))]).await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(answer.outcome, Outcome::Refused, "{rule}");
        assert_eq!(
            (answer.status, answer.rule.as_deref()),
            (Some(status), Some(rule))
        );
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (retry, about, left),
            "{status} {rule}"
        );
        assert_eq!(answer.detail.as_deref(), Some("said so"));
    }
}

#[tokio::test]
async fn what_is_not_the_buss_own_is_the_transports() {
    use About::{Message, Moment, Sender};
    use Left::{Maybe, Nothing};
    use Retry::{Backoff, NewToken, No};
    let page = "<html>You are not logged in</html>";
    for (status, body, retry, about, left) in [
        (200, page, Backoff, Moment, Maybe),
        (202, "", Backoff, Moment, Maybe),
        (204, "", Backoff, Moment, Maybe),
        (
            202,
            r#"[true,false,false,"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07",null,[],[]]"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (202, r#"{"accepted":true}"#, Backoff, Moment, Maybe),
        (
            202,
            r#"{"accepted":"true","message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"}"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (
            202,
            r#"{"accepted":true,"message_id":"0199a1c4-7a2e-7b31-8c55-000000000000"}"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (
            202,
            r#"{"accepted":true,"dry_run":true,"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"}"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (
            200,
            r#"{"accepted":true,"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"}"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (
            201,
            r#"{"accepted":true,"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"}"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (
            200,
            r#"{"accepted":false,"violations":[{"source":"policy","rule":"a.b"}]}"#,
            Backoff,
            Moment,
            Maybe,
        ),
        (400, page, No, Moment, Maybe),
        (400, r#"{"accepted":false,"violations":[]}"#, No, Moment, Maybe),
        (
            400,
            r#"{"accepted":false,"violations":[{"source":"policy","rule":"not a rule"}]}"#,
            No,
            Moment,
            Maybe,
        ),
        (
            400,
            r#"{"accepted":true,"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"}"#,
            No,
            Moment,
            Maybe,
        ),
        (401, r#"{"message":"Unauthorized"}"#, NewToken, Sender, Nothing),
        (403, r#"{"message":"Forbidden"}"#, No, Moment, Maybe),
        (404, page, No, Sender, Maybe),
        (406, page, No, Moment, Maybe),
        (407, page, No, Sender, Nothing),
        (413, r#"{"message":"Request Too Long"}"#, No, Message, Nothing),
        (
            429,
            r#"{"message":"Too Many Requests"}"#,
            Backoff,
            Moment,
            Nothing,
        ),
        (431, page, No, Moment, Maybe),
        (502, "Bad Gateway", Backoff, Moment, Maybe),
        (503, "", Backoff, Moment, Maybe),
        (
            504,
            r#"{"message":"Endpoint request timed out"}"#,
            Backoff,
            Moment,
            Maybe,
        ),
    ] {
        let server = bus(vec![answer(status, body)]).await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(answer.outcome, Outcome::Refused, "{status} {body}");
        assert_eq!(answer.rule, Some(format!("http.{status}")), "{body}");
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (retry, about, left),
            "{status} {body}"
        );
        let detail = answer.detail.unwrap();
        assert!(!detail.contains("logged"), "{detail}");
    }
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    let elsewhere = Server::start(|_| accepted()).await;
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.url("/v1/jwt/messages");
        let server = bus(vec![answer_with(status, &[("location", &location)], "")]).await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(answer.rule, Some(format!("http.{status}")));
        assert_eq!((answer.retry, answer.about), (Retry::No, About::Sender));
        assert!(answer.detail.unwrap().contains("correct the base URL"));
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn a_duplicate_is_a_yes_about_this_message() {
    let upper = ID.to_uppercase();
    let server = bus(vec![answer(
        200,
        &format!(r#"{{"accepted":true,"duplicate":true,"message_id":"{upper}"}}"#),
    )])
    .await;
    let answer = attempt(&transport(&server)).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Duplicate, Some(200)));
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    drop(listener);
    let transport = BusTransport::new(
        BusConfig::new(url, "p1", Secret::new(SECRET)),
        Arc::new(SystemClock),
    )
    .unwrap();
    let answer = attempt(&transport).await;
    assert_eq!(
        (answer.outcome, answer.left),
        (Outcome::TokenError, Left::Nothing)
    );
    assert_eq!((answer.retry, answer.about), (Retry::Backoff, About::Moment));
    assert!(answer.detail.unwrap().contains("refused"));
}

#[tokio::test]
async fn a_message_for_which_there_was_no_connection_was_not_sent() {
    // It gives a token, and is gone.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let once = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        drop(listener);
        let body = r#"{"access_token":"token-number-1","token_type":"Bearer","expires_in":3600}"#;
        let head = format!(
            "HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream
            .write_all(&[head.as_bytes(), body.as_bytes()].concat())
            .await
            .unwrap();
    });
    let answer = attempt(&to(url)).await;
    once.await.unwrap();
    assert_eq!(
        (answer.outcome, answer.left),
        (Outcome::NetworkError, Left::Nothing)
    );
    assert_eq!((answer.retry, answer.about), (Retry::Backoff, About::Moment));
    assert!(answer.detail.unwrap().contains("the connection was refused"));
}

#[tokio::test]
async fn a_host_that_does_not_speak_tls_gets_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1/", listener.local_addr().unwrap());
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        let mut all = Vec::new();
        drop(stream.read_to_end(&mut all).await);
        all
    });
    let answer = attempt(&to(url)).await;
    assert_eq!(
        (answer.outcome, answer.left),
        (Outcome::TokenError, Left::Nothing)
    );
    assert_eq!((answer.retry, answer.about), (Retry::Backoff, About::Moment));
    assert!(answer.detail.unwrap().contains("no connection"));
    let heard = String::from_utf8_lossy(&plain.await.unwrap()).into_owned();
    assert!(!heard.contains("oauth"), "{heard}");
}

fn to(url: String) -> BusTransport {
    BusTransport::new(
        BusConfig::new(url, "p1", Secret::new(SECRET)),
        Arc::new(SystemClock),
    )
    .unwrap()
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = bus(vec![accepted()]).await;
    let transport = transport(&server);
    for _ in 0..20 {
        assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
    }
    assert_eq!(
        (server.count("/oauth/token"), server.count("/jwt/messages")),
        (1, 20)
    );
}

#[tokio::test]
async fn the_bus_remembers_for_seven_days() {
    let server = bus(vec![accepted()]).await;
    assert_eq!(transport(&server).memory(), Duration::from_secs(604_800));
}
