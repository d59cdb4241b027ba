//! `Retry-After` over the wire: what is taken from it is bounded, and nonsense is nothing.

use std::time::Duration;

use storybus_sender::answer::{About, Outcome, Retry};

use super::support::{Reaction, answer_with, attempt, bus, refusal, transport};

async fn told(header: &str) -> Option<Duration> {
    let server = bus(vec![answer_with(
        503,
        &[("retry-after", header)],
        &refusal("message.in_flight"),
    )])
    .await;
    let answer = attempt(&transport(&server)).await;
    assert_eq!(answer.rule.as_deref(), Some("message.in_flight"), "{header}");
    assert_eq!((answer.retry, answer.about), (Retry::Backoff, About::Moment));
    answer.retry_after
}

#[tokio::test]
async fn seconds_and_dates_are_understood() {
    assert_eq!(told("23").await, Some(Duration::from_secs(23)));
    let date = std::time::UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    let day = Some(Duration::from_secs(86_400));
    assert_eq!(told(&httpdate::fmt_http_date(date)).await, day);
    assert_eq!(told("999999999999999999999999").await, day);
}

#[tokio::test]
async fn nonsense_and_the_past_are_nothing() {
    for header in [
        "-5",
        "soon",
        "1.5",
        "5 seconds",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "",
    ] {
        assert_eq!(told(header).await, None, "{header}");
    }
}

#[tokio::test]
async fn a_folded_header_is_no_answer() {
    let head = "HTTP/1.1 503 X\r\nretry-after: 2\r\n x-injected: yes\r\ncontent-length: 0\r\n\r\n";
    let server = bus(vec![Reaction::Raw(head.as_bytes().to_vec())]).await;
    let answer = attempt(&transport(&server)).await;
    assert_eq!(answer.outcome, Outcome::NetworkError);
    assert_eq!(answer.retry_after, None);
}
