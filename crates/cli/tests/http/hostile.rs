//! Bytes that are no requests, and requests that are meant to be read in two ways.

use crate::backend::{Running, short};
use crate::client::Client;

async fn answer_to(bytes: impl AsRef<[u8]>) -> (Option<crate::client::Answer>, bool) {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client.try_send(bytes).await;
    let answer = client.answer().await;
    let closed = client.is_closed().await;
    // The server goes on, whatever that was.
    assert_eq!(
        Client::connect(bus.address).await.get("/x").await.unwrap().body,
        "ok"
    );
    (answer, closed)
}

#[tokio::test]
async fn garbage_is_refused_in_the_bus_s_own_format() {
    for garbage in [
        "\u{0}\u{1}\u{2}garbage\r\n\r\n",
        "GET\r\n\r\n",
        "GET /x HTTP/9.9\r\n\r\n",
        "GET /x HTTP/1.1\r\nno colon\r\n\r\n",
        "GET /x HTTP/1.1\r\nhost: x\r\nbad\u{0}: y\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: two\r\n\r\nhi",
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\nhi",
    ] {
        let (answer, closed) = answer_to(garbage).await;
        let answer = answer.unwrap_or_else(|| panic!("{garbage:?} got no answer"));
        assert_eq!(
            (answer.status, answer.rule().as_str()),
            (400, "request.invalid"),
            "{garbage:?}"
        );
        assert!(answer.head.contains("connection: close") && closed);
    }
}

#[tokio::test]
async fn a_request_names_one_host() {
    for unnamed in [
        "GET /x HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        "GET /x HTTP/1.0\r\nhost: a\r\nhost: a\r\n\r\n",
        "POST /x HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc",
    ] {
        let (answer, closed) = answer_to(unnamed).await;
        let answer = answer.unwrap();
        assert_eq!((answer.status, answer.rule().as_str()), (400, "request.invalid"));
        assert!(answer.body.contains("Host") && closed, "{unnamed:?}: {answer:?}");
        assert!(answer.head.contains("cache-control: no-store"), "{answer:?}");
    }
}

#[tokio::test]
async fn the_token_route_refuses_in_its_own_form() {
    for (status, request) in [
        (400, "POST /v1/oauth/token HTTP/1.1\r\n\r\n"),
        (
            400,
            "POST /v1/oauth/token HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        ),
        (
            408,
            "POST /v1/oauth/token HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\ngrant",
        ),
    ] {
        let (answer, closed) = answer_to(request).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(
            answer
                .body
                .starts_with("{\"error\":\"invalid_request\",\"error_description\":\"")
                && answer.head.contains("cache-control: no-store")
                && closed,
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn a_body_has_one_length() {
    for smuggled in [
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ncontent-length: 30\r\n\r\nabcd",
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    ] {
        let (answer, closed) = answer_to(smuggled).await;
        assert!(
            answer.as_ref().is_none_or(|a| a.status == 400) && closed,
            "{smuggled:?}: {answer:?}"
        );
    }
    // Both: RFC 9112 §6.3 lets a server take the chunks, and then the connection must end: what follows is not a request.
    let smuggled = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /panic HTTP/1.1\r\nhost: x\r\n\r\n";
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client.send(smuggled).await;
    let answer = client.answer().await;
    let next = client.answer().await;
    assert!(
        answer
            .as_ref()
            .is_some_and(|a| a.status == 400 || a.status == 200 && next.is_none()),
        "{answer:?} then {next:?}"
    );
    assert!(bus.backend.begun.load(std::sync::atomic::Ordering::SeqCst) <= 1);
}

#[tokio::test]
async fn broken_chunks_are_refused() {
    for broken in [
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        "POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\nabc\r\n",
    ] {
        let (answer, closed) = answer_to(broken).await;
        let answer = answer.unwrap_or_else(|| panic!("{broken:?} got no answer"));
        assert_eq!(
            (answer.status, answer.rule().as_str()),
            (400, "request.invalid"),
            "{broken:?}"
        );
        assert!(closed);
    }
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let long = format!("GET /x HTTP/1.1\r\nhost: x\r\na: {}\r\n\r\n", "a".repeat(20_000));
    let endless = format!("GET /x HTTP/1.1\r\nhost: x\r\na: {}", "a".repeat(100_000));
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(17_000));
    let many: String = (0..200).map(|n| format!("a{n}: b\r\n")).collect();
    for head in [long, endless, long_path, format!("GET /x HTTP/1.1\r\n{many}\r\n")] {
        let (answer, closed) = answer_to(&head).await;
        let answer = answer.unwrap_or_else(|| panic!("{:.40} got no answer", head));
        assert_eq!(
            (answer.status, answer.rule().as_str()),
            (431, "request.invalid"),
            "{:.40}",
            head
        );
        assert!(closed);
    }
    let (answer, _) = answer_to(format!(
        "GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\na: {}\r\n\r\n",
        "a".repeat(15_000)
    ))
    .await;
    assert_eq!(answer.unwrap().status, 200, "15,000 bytes are fine");
}

#[tokio::test]
async fn http_2_is_turned_away() {
    let (answer, closed) = answer_to("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(answer.is_none_or(|a| a.status == 400) && closed);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_and_the_answer_arrives() {
    let bus = Running::start(short()).await;
    for head in ["content-length: 3000000", "transfer-encoding: chunked"] {
        let mut client = Client::connect(bus.address).await;
        client
            .send(format!("POST /echo HTTP/1.1\r\nhost: x\r\n{head}\r\n\r\n"))
            .await;
        let chunk = [b'x'; 10_000];
        for _ in 0..300 {
            if head.starts_with("transfer") && !client.try_send(format!("{:x}\r\n", chunk.len())).await {
                break;
            }
            if !client.try_send(chunk).await || head.starts_with("transfer") && !client.try_send("\r\n").await
            {
                break;
            }
        }
        assert_eq!(
            client.answer().await.expect("no reset before the answer").status,
            413,
            "{head}"
        );
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn random_bytes_never_break_the_server() {
    let bus = Running::start(short()).await;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let whole =
        "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\nexpect: 100-continue\r\n\r\n0123456789";
    for _ in 0..300 {
        let mut bytes = whole.as_bytes().to_vec();
        for _ in 0..1 + random() % 4 {
            let at = usize::try_from(random()).unwrap() % bytes.len();
            bytes[at] = u8::try_from(random() % 256).unwrap();
        }
        bytes.truncate(1 + usize::try_from(random()).unwrap() % bytes.len());
        let mut client = Client::connect(bus.address).await;
        client.try_send(&bytes).await;
    }
    assert_eq!(
        Client::connect(bus.address)
            .await
            .post("/echo", b"still")
            .await
            .unwrap()
            .body,
        "still"
    );
}
