//! Clients that do not behave, against the binary, while one that does is served.

use std::io::Write;
use std::net::TcpStream;

use crate::bus::{Home, pause};
use crate::client::snapshot;

#[test]
fn a_client_that_behaves_is_served_while_others_do_not() {
    let home = Home::new();
    let bus = home.serve_with(&["--demo", "--connections", "50"]);
    let first = bus.credentials.clone();
    let mut producer = bus.log_in(&first, "producer");
    let address = bus.address().to_owned();
    let mut crowd: Vec<TcpStream> = Vec::new();
    let openings: [&[u8]; 8] = [
        b"",
        b"GET /v1/",
        b"POST /v1/jwt/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 240000\r\n\r\n{",
        b"POST /v1/jwt/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1/x HTTP/1.1\r\nhost: x\r\n\r\nGET /v1/y HTTP/1.1\r\nhost: x\r\n\r\nGET /v1/z",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/oauth/token HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 50\r\n\r\n",
    ];
    for n in 1..=120_u32 {
        let mut hostile = TcpStream::connect(&address).unwrap();
        let _ = hostile.write_all(openings[n as usize % openings.len()]);
        crowd.push(hostile);
        if n % 30 == 0 {
            pause(600);
        }
        for slow in &mut crowd {
            let _ = slow.write_all(b"a");
        }
        assert_eq!(producer.publish(&snapshot("calm", n)).status, 202, "{n}");
    }
    drop(crowd);
    let mut late = bus.connect();
    assert_eq!(late.get("/healthz").status, 200);
    assert_eq!(producer.publish(&snapshot("calm", 121)).status, 202);
    assert!(bus.stop().success());
}

#[test]
fn a_flood_of_log_ins_does_not_hold_up_publishing() {
    let home = Home::new();
    let bus = home.serve();
    let first = bus.credentials.clone();
    let mut producer = bus.log_in(&first, "producer");
    bus.log_in(&first, "consumer");
    let address = bus.address().to_owned();
    let flood: Vec<_> = (0..40)
        .map(|n| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut client = crate::client::Client::connect(&address);
                (0..5)
                    .map(|m| client.try_log_in(&format!("p{n}x{m}"), "wrong").status)
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    for n in 1..=50 {
        assert_eq!(producer.publish(&snapshot("calm", n)).status, 202);
    }
    let answers: Vec<u16> = flood.into_iter().flat_map(|t| t.join().unwrap()).collect();
    assert!(answers.iter().all(|s| matches!(s, 401 | 429)), "{answers:?}");
    assert!(answers.contains(&429), "they are limited");
    let metrics = bus.connect().get("/metrics").text;
    let failures: f64 = metrics
        .lines()
        .find_map(|l| l.strip_prefix("storybus_login_failures_total "))
        .unwrap()
        .parse()
        .unwrap();
    assert!((failures - 200.0).abs() < 0.5, "{failures}");
    // Who has logged in from there before still can.
    bus.log_in(&first, "consumer");
}
