//! Answers that are cut off, do not end, or are made to do harm. None of them is a yes, none costs much, each ends in time.

use std::time::Duration;

use storybus_sender::answer::{About, Answer, Left, Outcome, Retry};
use storybus_sender::ports::{Clock, SystemClock};
use storybus_sender::transport::Transport;

use super::support::{
    ID, Reaction, SECRET, accepted, answer, attempt, bus, hasty, outgoing, refusal, transport,
};

fn raw(text: &str) -> Reaction {
    Reaction::Raw(text.as_bytes().to_vec())
}

/// One attempt with little time; it must not take much longer.
async fn in_time(reaction: Reaction, millis: u64) -> Answer {
    let server = bus(vec![reaction]).await;
    let transport = transport(&server);
    let began = SystemClock.elapsed();
    let answer = transport.attempt(outgoing(), hasty(millis)).await;
    let took = SystemClock.elapsed() - began;
    assert!(took < Duration::from_millis(millis + 5_000), "{took:?}");
    answer
}

fn assert_unknown(answer: &Answer, told: &str) {
    assert_eq!((answer.outcome, answer.status), (Outcome::NetworkError, None));
    assert_eq!(
        (answer.retry, answer.about, answer.left),
        (Retry::Backoff, About::Moment, Left::Maybe)
    );
    let detail = answer.detail.as_deref().unwrap();
    assert!(detail.contains(told), "{detail}");
}

#[tokio::test]
async fn a_connection_that_is_cut_is_no_answer() {
    assert_unknown(
        &in_time(Reaction::Cut, 20_000).await,
        "ended before an answer came",
    );
    let half = raw("HTTP/1.1 202 Acc");
    assert_unknown(&in_time(half, 20_000).await, "ended before an answer came");
    for garbage in ["SSH-2.0-OpenSSH_9.2\r\n", "\0\0\0\0", "HTTP/1.1 two\r\n\r\n"] {
        assert_unknown(
            &in_time(raw(garbage), 20_000).await,
            "ended before an answer came",
        );
    }
}

#[tokio::test]
async fn half_an_answer_is_none_even_when_it_begins_with_yes() {
    let body =
        format!(r#"{{"accepted":true,"message_id":"{ID}","message_type":"story.context","family":null}}"#);
    let short = raw(&format!(
        "HTTP/1.1 202 X\r\ncontent-length: {}\r\n\r\n{body}",
        body.len() + 1
    ));
    assert_unknown(
        &in_time(short, 20_000).await,
        "broke off: its head came (status 202)",
    );
    let chunk = raw(&format!(
        "HTTP/1.1 202 X\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
        body.len()
    ));
    assert_unknown(
        &in_time(chunk, 20_000).await,
        "broke off: its head came (status 202)",
    );
}

#[tokio::test]
async fn silence_ends_with_the_time() {
    assert_unknown(&in_time(Reaction::Hang, 300).await, "no answer within 0.3 s");
}

#[tokio::test]
async fn a_slow_drip_ends_with_the_time() {
    let pause = Duration::from_millis(20);
    let head = b"HTTP/1.1 202 X\r\ncontent-length: 100000\r\n\r\n{".to_vec();
    let drip = Reaction::Forever(head, b" ".to_vec(), pause);
    assert_unknown(&in_time(drip, 300).await, "no answer within 0.3 s");
    let head = Reaction::Forever(b"HTTP/1.1 202 X\r\n".to_vec(), b"x: y\r\n".to_vec(), pause);
    assert_unknown(&in_time(head, 300).await, "no answer within 0.3 s");
}

#[tokio::test]
async fn an_answer_without_end_is_read_to_a_bound() {
    let again = format!("4000\r\n{}\r\n", "x".repeat(0x4000)).into_bytes();
    let head = b"HTTP/1.1 503 X\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let answer = in_time(Reaction::Forever(head, again, Duration::ZERO), 30_000).await;
    assert_eq!(answer.rule.as_deref(), Some("http.503"));

    let head = b"HTTP/1.1 200 X\r\ncontent-length: 1000000000\r\n\r\n".to_vec();
    let answer = in_time(
        Reaction::Forever(head, vec![b'x'; 0x4000], Duration::ZERO),
        30_000,
    )
    .await;
    assert_eq!(
        (answer.rule.as_deref(), answer.retry),
        (Some("http.200"), Retry::Backoff)
    );

    let head = b"HTTP/1.1 202 X\r\n".to_vec();
    let many = "x-header: y\r\n".repeat(1_000).into_bytes();
    let answer = in_time(Reaction::Forever(head, many, Duration::ZERO), 30_000).await;
    assert_unknown(&answer, "ended before an answer came");
}

#[tokio::test]
async fn a_gigabyte_that_never_comes_takes_no_memory_and_no_time() {
    let head = "HTTP/1.1 202 X\r\ncontent-length: 1000000000\r\n\r\n{\"accepted\":true";
    let stalls = Reaction::Forever(head.into(), Vec::new(), Duration::from_secs(3_600));
    assert_unknown(&in_time(stalls, 300).await, "no answer within 0.3 s");
}

#[tokio::test]
async fn a_refusal_with_very_many_reasons_is_known_by_its_first() {
    let one =
        r#"{"source":"schema","rule":"story-context.type","message":"must be a text","path":"/payload/a/0"}"#;
    let many = [one; 20_000].join(",");
    let server = bus(vec![answer(
        400,
        &format!(r#"{{"accepted":false,"violations":[{many}]}}"#),
    )])
    .await;
    let refused = attempt(&transport(&server)).await;
    assert_eq!(refused.rule.as_deref(), Some("story-context.type"));
    assert_eq!((refused.retry, refused.about), (Retry::No, About::Message));

    let few = [one; 3].join(",");
    let server = bus(vec![answer(
        400,
        &format!(r#"{{"accepted":false,"violations":[{few}]}}"#),
    )])
    .await;
    let detail = attempt(&transport(&server)).await.detail.unwrap();
    let next = "; story-context.type: must be a text (at /payload/a/0)";
    assert_eq!(detail, format!("must be a text (at /payload/a/0){next}{next}"));

    let more = [one; 40].join(",");
    let server = bus(vec![answer(
        400,
        &format!(r#"{{"accepted":false,"violations":[{more}]}}"#),
    )])
    .await;
    let detail = attempt(&transport(&server)).await.detail.unwrap();
    let told = detail.matches("must be a text").count();
    assert!(
        detail.len() <= 1_000 && told > 15 && detail.ends_with(&format!("; and {} more reasons", 40 - told)),
        "{detail}"
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_are_no_answer_of_a_bus() {
    let yes =
        format!(r#"{{"accepted":true,"message_id":"{ID}","message_type":"x","family":"@","note":"@"}}"#);
    let no = refusal("a.b").replace("said so", "@");
    for (status, body) in [(202, yes), (502, no)] {
        let (before, after) = body.split_once('@').unwrap();
        let reaction = Reaction::Answer {
            status,
            headers: Vec::new(),
            body: [before.as_bytes(), b"\xff\xfe", after.as_bytes()].concat(),
        };
        let answer = in_time(reaction, 20_000).await;
        assert_eq!(answer.rule, Some(format!("http.{status}")));
        assert_eq!(answer.retry, Retry::Backoff);
    }
}

#[tokio::test]
async fn what_is_told_to_people_does_no_harm() {
    let told = format!("\\u001b[2Jhello\\nworld {}", "long ".repeat(1_000));
    let server = bus(vec![answer(400, &refusal("a.b").replace("said so", &told))]).await;
    let detail = attempt(&transport(&server)).await.detail.unwrap();
    assert!(detail.starts_with(" [2Jhello world long"), "{detail}");
    assert_eq!(detail.chars().count(), 1_000);
}

#[tokio::test]
async fn a_rule_that_could_break_a_log_is_none() {
    for rule in ["a\\nb", "", &"r".repeat(101)] {
        let server = bus(vec![answer(400, &refusal(rule))]).await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(answer.rule.as_deref(), Some("http.400"));
    }
}

#[tokio::test]
async fn an_answer_that_sends_the_secrets_back_gives_nothing_away() {
    let echo = format!("you sent Bearer token-number-1 and {SECRET}");
    let server = bus(vec![answer(400, &refusal("a.b").replace("said so", &echo))]).await;
    let transport = transport(&server);
    let answer = attempt(&transport).await;
    assert_eq!(
        answer.detail.as_deref(),
        Some("you sent Bearer [hidden] and [hidden]")
    );
    let shown = format!("{answer:?} {transport:?} {:?}", super::support::config(&server));
    assert!(
        !shown.contains(SECRET) && !shown.contains("token-number"),
        "{shown}"
    );

    // In a rule, written in another way, and cut in half by the length of a detail.
    let spelled: String = SECRET
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let long = format!("{}{SECRET}", "x".repeat(990));
    let spellings = [
        refusal(&format!("x.{SECRET}")),
        refusal("a.b").replace("said so", &spelled),
        refusal("a.b").replace("said so", &long),
    ];
    for body in spellings.map(|body| super::support::answer(400, &body)) {
        let server = bus(vec![body]).await;
        let shown = format!("{:?}", attempt(&super::support::transport(&server)).await);
        assert!(!shown.contains(&SECRET[..8]), "{shown}");
    }
}

#[tokio::test]
async fn an_attempt_after_a_cut_one_goes_through() {
    let server = bus(vec![Reaction::Cut, raw("HTTP/1.1 202 "), accepted()]).await;
    let transport = transport(&server);
    let outcomes = [
        attempt(&transport).await.outcome,
        attempt(&transport).await.outcome,
        attempt(&transport).await.outcome,
    ];
    assert_eq!(
        outcomes,
        [Outcome::NetworkError, Outcome::NetworkError, Outcome::Accepted]
    );
    assert_eq!(server.count("/oauth/token"), 1);
}
