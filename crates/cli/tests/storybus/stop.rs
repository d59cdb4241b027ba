//! Ends: asked for, and not.

use rustix::process::Signal;

use crate::bus::{Home, pause};
use crate::client::snapshot;

#[test]
fn a_stop_lets_receives_come_back_at_once() {
    let home = Home::new();
    let mut bus = home.serve();
    let first = bus.credentials.clone();
    let (tenant, consumer) = (
        bus.text("/tenant").to_owned(),
        bus.text("/consumer/client_id").to_owned(),
    );
    let mut waiting = bus.log_in(&first, "consumer");
    waiting.begin(&format!(
        "/v1/tenants/{tenant}/consumers/{consumer}/messages?wait=20"
    ));
    let mut idle = bus.connect();
    assert_eq!(idle.get("/healthz").status, 200);
    pause(200);
    bus.signal(Signal::TERM);
    let answer = waiting.answer().unwrap();
    assert_eq!((answer.status, answer.text.as_str()), (200, "{\"messages\":[]}"));
    assert!(idle.answer().is_none(), "an idle connection ends");
    assert!(bus.end().success());
    assert!(home.read("err").contains("stopped"));
    assert!(
        !home.path("data").join("bus.db-wal").exists(),
        "the store was closed"
    );
}

#[test]
fn interrupt_stops_it_too_and_a_second_signal_ends_it() {
    let home = Home::new();
    let mut bus = home.serve();
    bus.signal(Signal::INT);
    assert!(bus.end().success());
    let mut bus = home.serve();
    // A client that never sends all of its request holds a clean stop up.
    let mut half = bus.connect();
    std::io::Write::write_all(
        &mut half.stream,
        b"POST /v1/jwt/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab",
    )
    .unwrap();
    pause(200);
    bus.signal(Signal::TERM);
    pause(300);
    assert!(bus.child.try_wait().unwrap().is_none());
    bus.signal(Signal::TERM);
    assert_eq!(bus.end().code(), Some(1));
}

#[test]
fn killed_at_any_instant_it_keeps_what_it_answered() {
    let home = Home::new();
    let mut bus = home.serve_with(&["--demo", "--in-flight-seconds", "1"]);
    let first = bus.credentials.clone();
    let mut accepted = Vec::new();
    let mut unanswered: Option<serde_json::Value> = None;
    let mut n = 0;
    for round in 0..4 {
        let killer = bus.child.id();
        let (mut client, kill_at) = (bus.log_in(&first, "producer"), 20 + round * 17);
        let mut sent = 0;
        loop {
            let message = unanswered.take().unwrap_or_else(|| {
                n += 1;
                snapshot("killed", n)
            });
            sent += 1;
            if sent == kill_at {
                let pid = rustix::process::Pid::from_raw(killer.cast_signed()).unwrap();
                // Kills while the request is on its way.
                let killing = std::thread::spawn(move || rustix::process::kill_process(pid, Signal::KILL));
                let answer = client.try_post("/v1/jwt/messages", &message, "");
                killing.join().unwrap().unwrap();
                match answer {
                    Some(answer) if matches!(answer.status, 200 | 202) => accepted.push(message),
                    _ => unanswered = Some(message),
                }
                break;
            }
            let answer = client.publish(&message);
            match answer.status {
                200 | 202 => accepted.push(message),
                503 => {
                    pause(300);
                    unanswered = Some(message);
                }
                _ => panic!("{answer:?}"),
            }
        }
        bus.end();
        bus = home.serve_with(&["--demo", "--in-flight-seconds", "1"]);
    }
    let (tenant, consumer) = (
        first["tenant"].as_str().unwrap(),
        first["consumer"]["client_id"].as_str().unwrap(),
    );
    let got = bus.log_in(&first, "consumer").drain(tenant, consumer);
    let expected: Vec<&str> = accepted
        .iter()
        .map(|m| m["message_id"].as_str().unwrap())
        .collect();
    let of_accepted: Vec<&str> = got
        .iter()
        .map(String::as_str)
        .filter(|id| expected.contains(id))
        .collect();
    assert_eq!(of_accepted, expected, "all, once each, in order");
    assert!(got.len() <= expected.len() + 1);
}
