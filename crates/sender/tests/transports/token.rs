//! Tokens: one for all, fetched once at a time, replaced early, and once when refused.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use storybus_sender::answer::{About, Answer, Left, Outcome, Retry};
use storybus_sender::ports::{Clock, SystemClock};
use storybus_sender::transport::{Attempt, BusTransport, Secret, SecretSource, Transport};
use tokio::sync::Notify;

use super::support::{
    AMPLE, Ahead, Reaction, SECRET, Server, accepted, answer, answer_with, attempt, config, hasty, outgoing,
    refusal, token, transport, transport_by, until,
};

/// A bus that takes exactly the tokens whose number is `valid`, and answers the n-th log-in as told.
async fn bus(valid: Arc<AtomicUsize>, log_in: impl Fn(usize) -> Reaction + Send + Sync + 'static) -> Server {
    let log_ins = AtomicUsize::new(0);
    Server::start(move |seen| {
        if seen.target.ends_with("/oauth/token") {
            return log_in(log_ins.fetch_add(1, Ordering::SeqCst) + 1);
        }
        let wanted = format!("Bearer token-number-{}", valid.load(Ordering::SeqCst));
        if seen.header("authorization") == Some(&wanted) {
            accepted()
        } else {
            answer(401, &refusal("producer.unauthenticated"))
        }
    })
    .await
}

fn valid(number: usize) -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(number))
}

async fn many(transport: &dyn Transport, how: Attempt) -> Vec<Answer> {
    join_all((0..100).map(|_| transport.attempt(outgoing(), how))).await
}

fn all(answers: &[Answer], outcome: Outcome) -> bool {
    answers.iter().all(|answer| answer.outcome == outcome)
}

#[tokio::test]
async fn a_hundred_attempts_fetch_one_token() {
    let server = bus(valid(1), |n| token(n, 3_600)).await;
    let transport = transport(&server);
    assert!(all(&many(&transport, AMPLE).await, Outcome::Accepted));
    assert_eq!(
        (server.count("/oauth/token"), server.count("/jwt/messages")),
        (1, 100)
    );
}

#[tokio::test]
async fn a_hundred_refusals_fetch_one_new_token() {
    let now_valid = valid(1);
    let server = bus(Arc::clone(&now_valid), |n| token(n, 3_600)).await;
    let transport = transport(&server);
    assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
    now_valid.store(2, Ordering::SeqCst);
    let refused = many(&transport, AMPLE).await;
    // While they were on their way, the first that was refused may have led later ones to a new token already.
    let refused: Vec<_> = refused.into_iter().filter(|a| !a.outcome.is_yes()).collect();
    assert!(!refused.is_empty());
    for answer in &refused {
        assert_eq!((answer.retry, answer.about), (Retry::NewToken, About::Sender));
        assert_eq!(answer.rule.as_deref(), Some("producer.unauthenticated"));
    }
    let again = Attempt {
        new_credentials: true,
        ..AMPLE
    };
    assert!(all(&many(&transport, again).await, Outcome::Accepted));
    // And late ones, too.
    assert!(all(&many(&transport, again).await, Outcome::Accepted));
    assert_eq!(server.count("/oauth/token"), 2);
}

#[tokio::test]
async fn a_waiter_that_goes_away_takes_nothing_with_it() {
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let server = bus(valid(1), move |n| {
        Reaction::After(Arc::clone(&held), Box::new(token(n, 3_600)))
    })
    .await;
    let transport = Arc::new(transport(&server));
    let start = || {
        let transport = Arc::clone(&transport);
        tokio::spawn(async move { attempt(&*transport).await })
    };
    let (first, second, third) = (start(), start(), start());
    until(|| server.count("/oauth/token") >= 1).await;
    // The one that began the fetch, and another.
    first.abort();
    second.abort();
    assert!(first.await.unwrap_err().is_cancelled() && second.await.unwrap_err().is_cancelled());
    gate.notify_one();
    assert_eq!(third.await.unwrap().outcome, Outcome::Accepted);
    assert_eq!(server.count("/oauth/token"), 1);
}

#[tokio::test]
async fn a_fetch_that_everybody_has_left_still_brings_its_token() {
    let gate = Arc::new(Notify::new());
    let held = Arc::clone(&gate);
    let server = bus(valid(1), move |n| {
        Reaction::After(Arc::clone(&held), Box::new(token(n, 3_600)))
    })
    .await;
    let transport = Arc::new(transport(&server));
    let waiter = tokio::spawn({
        let transport = Arc::clone(&transport);
        async move { attempt(&*transport).await }
    });
    until(|| server.count("/oauth/token") >= 1).await;
    waiter.abort();
    assert!(waiter.await.unwrap_err().is_cancelled());
    gate.notify_one();
    assert_eq!(attempt(&*transport).await.outcome, Outcome::Accepted);
    assert_eq!(server.count("/oauth/token"), 1);
}

#[tokio::test]
async fn a_token_is_replaced_before_its_end_while_it_still_serves() {
    let clock = Arc::new(Ahead::default());
    let now_valid = valid(1);
    let server = bus(Arc::clone(&now_valid), |n| token(n, 1_000)).await;
    let transport = transport_by(&server, Arc::clone(&clock) as Arc<dyn Clock>);
    attempt(&transport).await;
    clock.forward(Duration::from_secs(890));
    assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
    assert_eq!(server.count("/oauth/token"), 1);
    // A tenth of its life is left: it is used, and another is fetched beside.
    clock.forward(Duration::from_secs(20));
    assert!(all(&many(&transport, AMPLE).await, Outcome::Accepted));
    until(|| server.count("/oauth/token") >= 2).await;
    now_valid.store(2, Ordering::SeqCst);
    // The answer to the log-in may still be on its way.
    let end = SystemClock.elapsed() + Duration::from_secs(30);
    while !attempt(&transport).await.outcome.is_yes() {
        assert!(SystemClock.elapsed() < end);
    }
    assert!(server.count("/oauth/token") <= 3);
}

#[tokio::test]
async fn an_early_replacement_that_fails_does_no_harm_until_the_end() {
    let clock = Arc::new(Ahead::default());
    let server = bus(
        valid(1),
        |n| if n == 1 { token(n, 1_000) } else { answer(503, "") },
    )
    .await;
    let transport = transport_by(&server, Arc::clone(&clock) as Arc<dyn Clock>);
    attempt(&transport).await;
    clock.forward(Duration::from_secs(950));
    for _ in 0..5 {
        assert!(all(&many(&transport, AMPLE).await, Outcome::Accepted));
    }
    // After a failure it rests.
    assert_eq!(server.count("/oauth/token"), 2);
    clock.forward(Duration::from_secs(6));
    assert!(all(&many(&transport, AMPLE).await, Outcome::Accepted));
    until(|| server.count("/oauth/token") >= 3).await;
    clock.forward(Duration::from_secs(50));
    let answer = attempt(&transport).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::TokenError, Some(503)));
}

#[tokio::test]
async fn an_expired_token_is_not_sent() {
    let clock = Arc::new(Ahead::default());
    let now_valid = valid(1);
    let server = bus(Arc::clone(&now_valid), |n| token(n, 100)).await;
    let transport = transport_by(&server, Arc::clone(&clock) as Arc<dyn Clock>);
    attempt(&transport).await;
    clock.forward(Duration::from_secs(101));
    now_valid.store(2, Ordering::SeqCst);
    assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
    assert_eq!(server.count("/jwt/messages"), 2, "no attempt with the old one");
}

#[tokio::test]
async fn a_refused_log_in_is_about_the_sender_and_not_tried_again() {
    for (status, error) in [
        (401, "invalid_client"),
        (400, "invalid_scope"),
        (400, "unauthorized_client"),
    ] {
        let server = bus(valid(1), move |_| {
            answer(status, &format!(r#"{{"error":"{error}"}}"#))
        })
        .await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(
            (answer.outcome, answer.status),
            (Outcome::TokenError, Some(status))
        );
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (Retry::No, About::Sender, Left::Nothing)
        );
        assert_eq!(answer.rule.as_deref(), Some(error));
        let detail = answer.detail.unwrap();
        assert!(
            detail.contains("client p1") && !detail.contains(SECRET),
            "{detail}"
        );
        assert_eq!(server.count("/jwt/messages"), 0);
    }
}

#[tokio::test]
async fn where_there_is_no_log_in_the_url_is_wrong() {
    for status in [302, 403, 404, 405] {
        let server = bus(valid(1), move |_| {
            answer_with(status, &[("location", "/elsewhere")], "<html>")
        })
        .await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(
            (answer.outcome, answer.rule),
            (Outcome::TokenError, Some(format!("http.{status}")))
        );
        assert_eq!((answer.retry, answer.about), (Retry::No, About::Sender));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_failing_log_in_is_of_the_moment() {
    for reaction in [
        answer(503, ""),
        answer(500, "<html>"),
        answer(408, ""),
        answer(200, "<html>Welcome to our hotel</html>"),
        answer(200, "{}"),
        answer(200, r#"["token-number-1","Bearer",3600]"#),
        answer(204, ""),
        answer(200, r#"{"access_token":"two words"}"#),
        answer(200, "{\"access_token\":\"a\\r\\nx-injected: y\"}"),
        answer(200, r#"{"access_token":"abc","token_type":"mac"}"#),
        answer(200, &format!(r#"{{"access_token":"{}"}}"#, "a".repeat(10_000))),
        Reaction::Cut,
        Reaction::Raw(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{\"access_token\":\"a\"}".to_vec()),
        Reaction::Forever(
            b"HTTP/1.1 200 X\r\ncontent-length: 1000000000\r\n\r\n".to_vec(),
            vec![b' '; 0x4000],
            Duration::ZERO,
        ),
    ] {
        let told = format!("{reaction:?}");
        let server = bus(valid(1), move |_| reaction.clone()).await;
        let answer = attempt(&transport(&server)).await;
        assert_eq!(answer.outcome, Outcome::TokenError, "{told:.80}");
        assert_eq!(
            (answer.retry, answer.about, answer.left),
            (Retry::Backoff, About::Moment, Left::Nothing)
        );
        assert_eq!(server.count("/jwt/messages"), 0);
    }
}

#[tokio::test]
async fn a_silent_log_in_ends_with_the_attempts_time() {
    let server = bus(valid(1), |_| Reaction::Hang).await;
    let transport = transport(&server);
    let began = SystemClock.elapsed();
    for answer in many(&transport, hasty(200)).await {
        assert_eq!(
            (answer.outcome, answer.left),
            (Outcome::TokenError, Left::Nothing)
        );
        assert!(answer.detail.unwrap().contains("within 0.2 s"));
    }
    assert!(SystemClock.elapsed() - began < Duration::from_secs(5));
    assert_eq!(server.count("/oauth/token"), 1);
}

#[tokio::test]
async fn while_log_ins_are_to_wait_nobody_asks() {
    let clock = Arc::new(Ahead::default());
    let server = bus(valid(2), |n| match n {
        1 => answer_with(429, &[("retry-after", "20")], r#"{"error":"slow_down"}"#),
        n => token(n, 3_600),
    })
    .await;
    let transport = transport_by(&server, Arc::clone(&clock) as Arc<dyn Clock>);
    for _ in 0..3 {
        let answer = attempt(&transport).await;
        assert_eq!((answer.outcome, answer.status), (Outcome::TokenError, Some(429)));
        assert_eq!((answer.retry, answer.about), (Retry::Backoff, About::Moment));
        assert_eq!(answer.rule.as_deref(), Some("slow_down"));
        let wait = answer.retry_after.unwrap();
        assert!(
            wait > Duration::from_secs(15) && wait <= Duration::from_secs(20),
            "{wait:?}"
        );
    }
    assert_eq!(server.count("/oauth/token"), 1);
    clock.forward(Duration::from_secs(21));
    assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
}

#[tokio::test]
async fn a_log_in_is_not_put_off_for_longer_than_half_a_minute() {
    let clock = Arc::new(Ahead::default());
    let server = bus(valid(2), |n| match n {
        1 => answer_with(503, &[("retry-after", "86400")], ""),
        n => token(n, 3_600),
    })
    .await;
    let transport = transport_by(&server, Arc::clone(&clock) as Arc<dyn Clock>);
    assert_eq!(attempt(&transport).await.outcome, Outcome::TokenError);
    clock.forward(Duration::from_secs(31));
    assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
}

#[tokio::test]
async fn a_life_is_taken_from_whatever_says_it() {
    // What it says, how long it is used, in seconds.
    for (life, holds, ended) in [
        ("3600", 3_000, 3_601),
        ("\"3600\"", 3_000, 3_601),
        ("3600.9", 3_000, 3_602),
        ("null", 200, 301),
        ("\"soon\"", 200, 301),
        ("-5", 0, 1),
        ("1e300", 70_000, 86_401),
    ] {
        let clock = Arc::new(Ahead::default());
        let now_valid = valid(1);
        let server = bus(Arc::clone(&now_valid), move |n| {
            answer(
                200,
                &format!(r#"{{"access_token":"token-number-{n}","expires_in":{life}}}"#),
            )
        })
        .await;
        let transport = transport_by(&server, Arc::clone(&clock) as Arc<dyn Clock>);
        assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted, "{life}");
        if holds > 0 {
            clock.forward(Duration::from_secs(holds));
            assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
            assert_eq!(server.count("/oauth/token"), 1, "{life}");
        }
        clock.forward(Duration::from_secs(ended - holds));
        now_valid.store(2, Ordering::SeqCst);
        assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted, "{life}");
        assert_eq!(server.count("/oauth/token"), 2, "{life}");
    }
}

/// A place that a person keeps the id and the secret in.
#[derive(Debug)]
struct Place(Mutex<Result<&'static str, &'static str>>);

impl SecretSource for Place {
    fn read(&self) -> Result<(String, Secret), String> {
        let kept = *self.0.lock().unwrap();
        kept.map(|secret| ("p1".to_owned(), Secret::new(secret)))
            .map_err(str::to_owned)
    }
}

#[tokio::test]
async fn a_secret_that_is_mended_where_it_is_kept_is_taken_without_a_restart() {
    // "p1:right", in base 64.
    let server = Server::start(|seen| match seen.header("authorization") {
        Some("Basic cDE6cmlnaHQ=") => token(1, 3_600),
        Some("Bearer token-number-1") => accepted(),
        _ => answer(401, r#"{"error":"invalid_client"}"#),
    })
    .await;
    let place = Arc::new(Place(Mutex::new(Ok("wrong"))));
    let keep = |kept| *place.0.lock().unwrap() = kept;
    let with_source = |secret| {
        let mut config = config(&server);
        config.client_secret = Secret::new(secret);
        config.source = Some(Arc::clone(&place) as Arc<dyn SecretSource>);
        BusTransport::new(config, Arc::new(SystemClock)).unwrap()
    };
    let transport = with_source("wrong");
    let told = attempt(&transport).await.detail.unwrap();
    assert!(
        told.contains("read again before each try") && !told.contains("wrong;"),
        "{told}"
    );
    assert_eq!(
        server.count("/oauth/token"),
        1,
        "nothing is asked twice with the same"
    );
    keep(Err("the file is away"));
    let told = attempt(&transport).await;
    assert!(told.detail.unwrap().contains("the file is away"));
    assert_eq!(
        (told.about, told.rule.as_deref()),
        (About::Sender, Some("invalid_client"))
    );
    keep(Ok("right"));
    assert_eq!(attempt(&transport).await.outcome, Outcome::Accepted);
    assert_eq!(server.count("/oauth/token"), 3, "once with the right one");
    // One that was mended between the start and the first attempt costs no failed attempt.
    assert_eq!(attempt(&with_source("wrong")).await.outcome, Outcome::Accepted);
}

#[tokio::test]
async fn a_secret_that_was_read_once_asks_for_a_new_start() {
    let server = bus(valid(1), |_| answer(401, r#"{"error":"invalid_client"}"#)).await;
    let told = attempt(&transport(&server)).await.detail.unwrap();
    assert!(told.contains("start it again with the right one"), "{told}");
}
