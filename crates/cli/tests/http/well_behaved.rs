//! Clients that do what they should, each in its way.

use tokio::io::AsyncWriteExt;

use crate::backend::{Running, pause, short};
use crate::client::Client;

#[tokio::test]
async fn requests_follow_each_other_on_one_connection() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    for n in 0..20 {
        let body = format!("body {n}");
        let answer = client.post("/echo", body.as_bytes()).await.unwrap();
        assert_eq!((answer.status, answer.body), (200, body));
    }
    assert_eq!(client.get("/other").await.unwrap().body, "ok");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    let requests: String = (0..50)
        .map(|n| {
            format!(
                "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\n{n:03}",
                if n == 0 { "/slow" } else { "/echo" }
            )
        })
        .collect();
    client.send(&requests).await;
    for n in 0..50 {
        let expected = if n == 0 {
            "slow".to_owned()
        } else {
            format!("{n:03}")
        };
        assert_eq!(client.answer().await.unwrap().body, expected);
    }
}

#[tokio::test]
async fn chunked_bodies_and_continue() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client
        .send("POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .await;
    client.send("2\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().body, "abcde");
    client
        .send("POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        .await;
    assert_eq!(client.answer().await.unwrap().status, 100);
    client.send("hi").await;
    assert_eq!(client.answer().await.unwrap().body, "hi");
    client
        .send("POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 999999\r\n\r\n")
        .await;
    assert_eq!(
        client.answer().await.unwrap().status,
        413,
        "refused before any of it was sent"
    );
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn http_1_0() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client
        .send("POST /echo HTTP/1.0\r\ncontent-length: 2\r\n\r\nhi")
        .await;
    assert_eq!(client.answer().await.unwrap().body, "hi");
    assert!(client.is_closed().await, "without keep-alive the connection ends");
}

#[tokio::test]
async fn a_client_that_has_said_all_still_gets_its_answer() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client
        .send("POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi")
        .await;
    client.stream.shutdown().await.unwrap();
    assert_eq!(client.answer().await.unwrap().body, "slow");
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn what_has_begun_goes_on_when_its_client_is_gone() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client
        .send("POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi")
        .await;
    pause(100).await;
    drop(client);
    pause(400).await;
    assert_eq!(bus.backend.finished.load(std::sync::atomic::Ordering::SeqCst), 1);
    let mut client = Client::connect(bus.address).await;
    client
        .send("GET /v1/tenants/w1/consumers/c1/messages?wait=20 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    pause(100).await;
    drop(client);
    pause(100).await;
    let begun = bus.backend.begun.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(
        (
            begun,
            bus.backend.finished.load(std::sync::atomic::Ordering::SeqCst)
        ),
        (2, 1)
    );
    let metrics = Client::connect(bus.address)
        .await
        .get("/metrics")
        .await
        .unwrap()
        .body;
    assert!(
        metrics.contains("storybus_receives_under_way 0"),
        "a receive ends with its client: {metrics}"
    );
}

#[tokio::test]
async fn a_handler_that_breaks_off_is_a_500_and_nothing_else() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    let answer = client.post("/panic", b"x").await.unwrap();
    assert_eq!(
        (answer.status, answer.rule().as_str()),
        (500, "bus.internal_error")
    );
    assert_eq!(client.post("/echo", b"next").await.unwrap().body, "next");
    assert!(
        client
            .get("/metrics")
            .await
            .unwrap()
            .body
            .contains("storybus_panics_total 1")
    );
}

#[tokio::test]
async fn health_and_metrics() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    let answer = client.get("/healthz").await.unwrap();
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (200, "{\"status\":\"ok\"}")
    );
    client.post("/echo", b"x").await.unwrap();
    let answer = client.get("/metrics").await.unwrap();
    assert!(
        answer.head.contains("content-type: text/plain; version=0.0.4"),
        "{answer:?}"
    );
    assert!(
        answer.body.contains(
            "storybus_requests_total{route=\"/healthz\",method=\"GET\",status=\"200\",rule=\"\"} 1"
        )
    );
    assert!(answer.body.contains("storybus_connections 1\n"));
    let answer = client.post("/metrics", b"").await.unwrap();
    assert_eq!(
        (answer.status, answer.rule().as_str()),
        (405, "method.not_allowed")
    );
    assert!(answer.head.contains("allow: GET, HEAD"));
}

#[tokio::test]
async fn only_a_known_proxy_is_believed() {
    let ask = "GET /source HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 203.0.113.9, 198.51.100.7\r\n\r\n";
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client.send(ask).await;
    assert_eq!(client.answer().await.unwrap().body, "127.0.0.1");
    let bus = Running::behind(short(), vec!["127.0.0.1".parse().unwrap()]).await;
    let mut client = Client::connect(bus.address).await;
    client.send(ask).await;
    assert_eq!(
        client.answer().await.unwrap().body,
        "198.51.100.7",
        "what the client itself says comes first and does not count"
    );
    assert_eq!(client.get("/source").await.unwrap().body, "127.0.0.1");
}
