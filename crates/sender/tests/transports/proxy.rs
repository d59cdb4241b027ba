//! A proxy is taken from the environment, which a test cannot change for itself: another process does it.

use std::process::{Command, Stdio};
use std::sync::Arc;

use storybus_sender::answer::Outcome;
use storybus_sender::ports::SystemClock;
use storybus_sender::transport::{BusConfig, BusTransport, Secret};

use super::support::{SECRET, Server, accepted, attempt, bus, token};

/// Where the other process sends to.
const TO: &str = "STORYBUS_TEST_SEND_TO";

/// Sends one message to a URL in a process with this proxy. Run as a test of its own, it does so; run among the others, it has
/// nothing to send to.
#[tokio::test]
async fn sends_as_it_is_told_by_its_environment() {
    let Ok(url) = std::env::var(TO) else { return };
    let transport = BusTransport::new(
        BusConfig::new(url, "p1", Secret::new(SECRET)),
        Arc::new(SystemClock),
    )
    .unwrap();
    let answer = attempt(&transport).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
}

async fn send_by(proxy: String, to: String) {
    let ended = tokio::task::spawn_blocking(move || {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "proxy::sends_as_it_is_told_by_its_environment",
                "--nocapture",
            ])
            .env("HTTP_PROXY", &proxy)
            .env("http_proxy", &proxy)
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env_remove("REQUEST_METHOD")
            .env(TO, to)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let told = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success() && told.contains("1 passed"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_used() {
    let proxy = Server::start(|seen| {
        if seen.target.ends_with("/oauth/token") {
            token(1, 3_600)
        } else {
            accepted()
        }
    })
    .await;
    // This host is nowhere: only the proxy can have answered.
    send_by(proxy.url(""), "http://bus.invalid/v1/".to_owned()).await;
    let targets: Vec<_> = proxy.seen().into_iter().map(|seen| seen.target).collect();
    assert_eq!(
        targets,
        [
            "http://bus.invalid/v1/oauth/token",
            "http://bus.invalid/v1/jwt/messages"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_proxy_stands_between_a_machine_and_itself() {
    let proxy = Server::start(|_| accepted()).await;
    let server = bus(vec![accepted()]).await;
    send_by(proxy.url(""), server.url("/v1/")).await;
    assert!(proxy.seen().is_empty());
    assert_eq!(server.count("/jwt/messages"), 1);
}
