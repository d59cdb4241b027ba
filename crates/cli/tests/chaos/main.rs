//! The whole way from a producer's transaction to a consumer, while everything on it fails: relays and the bus are processes that are killed and
//! stopped, and between them is a proxy that drops answers, delays, cuts connections and answers by itself.
//!
//! The tests are short. `STORYBUS_CHAOS=whole cargo test --test chaos -- --nocapture` runs them at length, and `STORYBUS_CHAOS_SEED=…`
//! draws what an earlier run drew.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that meets the unexpected ends there, and tells with what it began"
)]

mod consumer;
mod desk;
mod dice;
mod http;
mod paused;
mod processes;
mod proxy;
mod storm;

use std::time::Duration;

use processes::Home;
use storm::Storm;

/// So long something may take that takes a moment.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_relays_on_postgresql_in_a_storm() {
    let home = Home::new();
    Storm::of_length(2)
        .rage(&home, storybus_testpg::database().await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_on_sqlite_in_a_storm() {
    let home = Home::new();
    let outbox = home.path("business.db").display().to_string();
    Storm::of_length(1).rage(&home, outbox).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_relay_changes_nothing_when_it_goes_on() {
    let home = Home::new();
    paused::wakes_up_after_another_took_over(&home, &storybus_testpg::database().await).await;
}

/// Waits for real time: what is waited for are processes, which know no clock of ours.
#[expect(clippy::disallowed_methods, reason = "processes know no clock of ours")]
async fn pause(span: Duration) {
    tokio::time::sleep(span).await;
}

/// Asks again and again, for at most so long.
async fn until<T>(what: &str, longest: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                break answer;
            }
            pause(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(longest, asking)
        .await
        .unwrap_or_else(|_| panic!("no {what} within {} s", longest.as_secs()))
}
