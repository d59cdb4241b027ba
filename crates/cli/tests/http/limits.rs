//! Clients that are slow, and clients that are many.

use std::time::Duration;

use storybus_cli::server::Limits;
use tokio::time::Instant;

use crate::backend::{Running, pause, short};
use crate::client::Client;

/// A client that does well while others do not.
async fn stays_served(bus: &Running) {
    let mut client = Client::connect(bus.address).await;
    assert_eq!(client.post("/echo", b"well").await.unwrap().body, "well");
}

#[tokio::test]
async fn a_slow_head_is_given_up() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    let began = Instant::now();
    for byte in "GET /x HTTP/1.1\r\nhost: xxxxxxxxxxxxxxxxxxxxxxxxxxxx".bytes() {
        if !client.try_send([byte]).await {
            break;
        }
        pause(20).await;
    }
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.rule().as_str()), (408, "request.invalid"));
    assert!(client.is_closed().await && began.elapsed() < Duration::from_secs(3));
    stays_served(&bus).await;
}

#[tokio::test]
async fn a_slow_body_is_given_up() {
    let bus = Running::start(short()).await;
    for framing in ["content-length: 100000", "transfer-encoding: chunked"] {
        let mut client = Client::connect(bus.address).await;
        client
            .send(format!("POST /echo HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n"))
            .await;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(600) && client.try_send("1\r\nx\r\n").await {
            pause(20).await;
        }
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status, answer.rule().as_str()), (408, "request.invalid"));
        assert!(client.is_closed().await);
    }
    stays_served(&bus).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let bus = Running::start(short()).await;
    let mut silent = Client::connect(bus.address).await;
    let mut idle = Client::connect(bus.address).await;
    idle.get("/x").await.unwrap();
    let mut busy = Client::connect(bus.address).await;
    let mut polling = Client::connect(bus.address).await;
    polling
        .send("GET /v1/tenants/w1/consumers/c1/messages?wait=5 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    for _ in 0..10 {
        pause(100).await;
        assert_eq!(busy.get("/x").await.unwrap().status, 200);
    }
    assert!(silent.is_closed().await && idle.is_closed().await);
    assert_eq!(
        bus.backend.finished.load(std::sync::atomic::Ordering::SeqCst),
        11,
        "the receive still waits"
    );
    assert_eq!(bus.stop().await, storybus_cli::server::Stopped::Clean);
    assert_eq!(polling.answer().await.unwrap().body, "{\"messages\":[]}");
}

#[tokio::test]
async fn who_does_not_read_is_given_up() {
    let bus = Running::start(short()).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = Client::connect(bus.address).await;
        client.send("GET /big HTTP/1.1\r\nhost: x\r\n\r\n").await;
        clients.push(client);
    }
    stays_served(&bus).await;
    pause(1000).await;
    let page = Client::connect(bus.address)
        .await
        .get("/metrics")
        .await
        .unwrap()
        .body;
    assert!(
        page.contains("storybus_connections 1\n"),
        "only this one is left: {page}"
    );
    let mut reader = Client::connect(bus.address).await;
    assert_eq!(
        reader.get("/big").await.unwrap().body.len(),
        8 << 20,
        "who reads gets all"
    );
}

#[tokio::test]
async fn answers_that_nobody_takes_give_way() {
    let patient = Limits {
        answers_bytes: 30 << 20,
        idle_time: Duration::from_secs(60),
        write_stall: Duration::from_secs(60),
        write_time: Duration::from_secs(60),
        ..short()
    };
    let bus = Running::start(patient).await;
    let ask = "GET /big HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(bus.address).await;
        client.send(ask).await;
        clients.push(client);
    }
    pause(200).await;
    let mut late = Client::connect(bus.address).await;
    let answer = late.get("/big").await.unwrap();
    assert_eq!((answer.status, answer.rule().as_str()), (503, "bus.unavailable"));
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    assert_eq!(
        late.get("/small").await.unwrap().body,
        "ok",
        "small ones are free"
    );
    pause(1200).await;
    assert_eq!(late.get("/big").await.unwrap().body.len(), 8 << 20);
    assert_eq!(bus.metrics.connections_evicted.get(), 1);
    assert!(clients[0].is_closed().await, "the first was stalled longest");
    for client in &mut clients[1..] {
        assert_eq!(client.answer().await.unwrap().body.len(), 8 << 20);
    }
}

#[tokio::test]
async fn who_asks_again_and_does_not_read_is_given_up() {
    let bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    client
        .send("GET /big HTTP/1.1\r\nhost: x\r\n\r\nGET /big HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    pause(1000).await;
    let page = Client::connect(bus.address)
        .await
        .get("/metrics")
        .await
        .unwrap()
        .body;
    assert!(page.contains("storybus_connections 1\n"), "{page}");
}

#[tokio::test]
async fn connections_are_bounded_and_a_client_at_work_keeps_its_own() {
    let bus = Running::start(Limits {
        connections: 20,
        idle_time: Duration::from_secs(60),
        head_time: Duration::from_secs(60),
        ..short()
    })
    .await;
    let mut good = Client::connect(bus.address).await;
    assert_eq!(good.post("/echo", b"1").await.unwrap().body, "1");
    let mut crowd = Vec::new();
    for n in 0..60 {
        let mut client = Client::connect(bus.address).await;
        if n % 2 == 0 {
            client.try_send("GET /x HTT").await;
        }
        crowd.push(client);
        // Each gets its time to prove itself; then it is worth less than a client that is known.
        pause(if n % 18 == 17 { 600 } else { 0 }).await;
        assert_eq!(
            good.post("/echo", b"good")
                .await
                .expect("the known client stays connected")
                .body,
            "good"
        );
    }
    let page = good.get("/metrics").await.unwrap().body;
    let connections: u32 = page
        .lines()
        .find_map(|l| l.strip_prefix("storybus_connections "))
        .unwrap()
        .parse()
        .unwrap();
    assert!(connections <= 20, "{connections}");
    assert!(bus.metrics.connections_evicted.get() > 0);
}

#[tokio::test]
async fn when_all_are_at_work_one_more_is_told_to_come_again() {
    let bus = Running::start(Limits {
        connections: 3,
        ..short()
    })
    .await;
    let mut at_work = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(bus.address).await;
        client
            .send("GET /v1/tenants/w1/consumers/c1/messages?wait=5 HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        at_work.push(client);
    }
    pause(100).await;
    let mut late = Client::connect(bus.address).await;
    let answer = late.answer().await.unwrap();
    assert_eq!((answer.status, answer.rule().as_str()), (503, "bus.unavailable"));
    assert!(answer.head.contains("retry-after: 1"));
    drop(at_work.pop());
    pause(100).await;
    stays_served(&bus).await;
}

#[tokio::test]
async fn receives_that_wait_are_bounded() {
    let bus = Running::start(Limits {
        receives: 3,
        receives_of_consumer: 2,
        ..short()
    })
    .await;
    let mut waiting = Vec::new();
    for consumer in ["c1", "c1", "c2"] {
        let mut client = Client::connect(bus.address).await;
        client
            .send(format!(
                "GET /v1/tenants/w1/consumers/{consumer}/messages?wait=5 HTTP/1.1\r\nhost: x\r\n\r\n"
            ))
            .await;
        waiting.push(client);
    }
    pause(100).await;
    for consumer in ["c1", "c3"] {
        let mut client = Client::connect(bus.address).await;
        let answer = client
            .get(&format!("/v1/tenants/w1/consumers/{consumer}/messages?wait=5"))
            .await
            .unwrap();
        assert_eq!((answer.status, answer.rule().as_str()), (429, "rate.exceeded"));
        assert!(answer.head.contains("retry-after: 1"));
        assert_eq!(
            client.post("/echo", b"same connection").await.unwrap().status,
            200
        );
    }
    drop(waiting);
    pause(100).await;
    let page = Client::connect(bus.address)
        .await
        .get("/metrics")
        .await
        .unwrap()
        .body;
    assert!(page.contains("storybus_receives_under_way 0"));
}

#[tokio::test]
async fn large_bodies_share_their_memory_and_small_ones_need_none() {
    let bus = Running::start(Limits {
        bodies_bytes: 600_000,
        body_time: Duration::from_secs(20),
        ..short()
    })
    .await;
    let mut holders = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(bus.address).await;
        client
            .send("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 240000\r\n\r\n")
            .await;
        client.send(vec![b'x'; 239_000]).await;
        holders.push(client);
    }
    pause(100).await;
    let mut client = Client::connect(bus.address).await;
    client
        .send("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 240000\r\n\r\n")
        .await;
    client.try_send(vec![b'x'; 240_000]).await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.rule().as_str()), (503, "bus.unavailable"));
    stays_served(&bus).await;
    holders[0].send(vec![b'y'; 1000]).await;
    assert_eq!(holders[0].answer().await.unwrap().body.len(), 240_000);
    drop(holders);
    pause(100).await;
    let mut client = Client::connect(bus.address).await;
    assert_eq!(
        client.post("/echo", &vec![b'x'; 240_000]).await.unwrap().status,
        200
    );
}
