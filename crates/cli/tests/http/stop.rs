//! The end of the server.

use std::sync::atomic::Ordering;

use storybus_cli::server::Stopped;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::backend::{Running, pause, short};
use crate::client::Client;

#[tokio::test]
async fn running_requests_finish_and_receives_come_back() {
    let bus = Running::start(short()).await;
    let (address, began) = (bus.address, Instant::now());
    let mut idle = Client::connect(address).await;
    idle.get("/x").await.unwrap();
    let mut silent = Client::connect(address).await;
    let mut running = Client::connect(address).await;
    running
        .send("POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        .await;
    let mut gone = Client::connect(address).await;
    gone.send("POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
        .await;
    let mut waiting = Client::connect(address).await;
    waiting
        .send("GET /v1/tenants/w1/consumers/c1/messages?wait=5 HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    pause(100).await;
    drop(gone);
    let backend = bus.backend.clone();
    let stopping = tokio::spawn(bus.stop());
    assert_eq!(waiting.answer().await.unwrap().body, "{\"messages\":[]}");
    assert_eq!(running.answer().await.unwrap().body, "slow");
    for client in [&mut idle, &mut silent, &mut running, &mut waiting] {
        assert!(client.is_closed().await);
    }
    assert_eq!(stopping.await.unwrap(), Stopped::Clean);
    assert_eq!(
        backend.finished.load(Ordering::SeqCst),
        4,
        "also the one whose client is gone"
    );
    assert!(TcpStream::connect(address).await.is_err());
    assert!(began.elapsed().as_millis() < 1500);
}

#[tokio::test]
async fn who_takes_too_long_is_cut_off() {
    let bus = Running::start(short()).await;
    let mut never_reads = Client::connect(bus.address).await;
    never_reads.send("GET /big HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut half = Client::connect(bus.address).await;
    half.send("POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab")
        .await;
    pause(50).await;
    let began = Instant::now();
    let _ = bus.stop().await;
    assert!(began.elapsed().as_millis() < 1000);
}

#[tokio::test]
async fn after_a_failed_disk_nothing_is_promised() {
    let mut bus = Running::start(short()).await;
    let mut client = Client::connect(bus.address).await;
    assert_eq!(client.post("/echo", b"x").await.unwrap().status, 200);
    bus.backend.disk_failed.store(true, Ordering::SeqCst);
    let answer = client.post("/echo", b"x").await.unwrap();
    assert_eq!((answer.status, answer.rule().as_str()), (503, "bus.unavailable"));
    assert!(answer.head.contains("retry-after"));
    assert_eq!(
        Client::connect(bus.address)
            .await
            .get("/healthz")
            .await
            .unwrap()
            .status,
        503
    );
    assert_eq!(bus.server.broken().await, "the disk failed");
}
