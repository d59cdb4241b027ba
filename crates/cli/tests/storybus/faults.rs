//! The fault switch, in a build that has it.

use serde_json::Value;

use crate::bus::{Bus, Home, pause};
use crate::client::{Answer, snapshot};

const FLAGS: [&str; 4] = ["--demo", "--in-flight-seconds", "1", "--faults"];

fn with_fault(bus: &Bus, first: &Value, message: &Value, fault: &str) -> Option<Answer> {
    bus.log_in(first, "producer").try_post(
        "/v1/jwt/messages",
        message,
        &format!("x-storybus-fault: {fault}\r\n"),
    )
}

#[test]
fn a_stop_leaves_what_a_kill_would_leave() {
    for (fault, rule) in [
        ("stop-after-record", "message.in_flight"),
        ("stop-after-publish", "message.in_flight"),
    ] {
        let home = Home::new();
        let mut bus = home.serve_with(&FLAGS);
        let first = bus.credentials.clone();
        let message = snapshot("s", 1);
        assert!(with_fault(&bus, &first, &message, fault).is_none());
        assert!(!bus.end().success());
        let bus = home.serve_with(&FLAGS);
        let mut producer = bus.log_in(&first, "producer");
        let answer = producer.publish(&message);
        assert_eq!((answer.status, answer.rule()), (503, rule), "{fault}");
        pause(1100);
        assert_eq!(producer.publish(&message).status, 202, "{fault}");
        let (tenant, consumer) = (
            first["tenant"].as_str().unwrap(),
            first["consumer"]["client_id"].as_str().unwrap(),
        );
        assert_eq!(
            bus.log_in(&first, "consumer").drain(tenant, consumer).len(),
            1,
            "{fault}"
        );
    }
}

#[test]
fn a_publication_fails_when_asked_to() {
    let home = Home::new();
    let bus = home.serve_with(&FLAGS);
    let first = bus.credentials.clone();
    let message = snapshot("s", 1);
    for fault in ["fail-publish", "fail-publish"] {
        let answer = with_fault(&bus, &first, &message, fault).unwrap();
        assert_eq!((answer.status, answer.rule()), (503, "bus.publish_failed"));
    }
    assert_eq!(
        bus.log_in(&first, "producer").publish(&message).status,
        202,
        "a first attempt again"
    );
    let metrics = bus.connect().get("/metrics").text;
    assert!(metrics.contains("storybus_publications_total 1\n"));
}

#[test]
fn without_the_flag_the_header_means_nothing() {
    let home = Home::new();
    let bus = home.serve();
    let first = bus.credentials.clone();
    assert_eq!(
        with_fault(&bus, &first, &snapshot("s", 1), "stop-after-record")
            .unwrap()
            .status,
        202
    );
}
