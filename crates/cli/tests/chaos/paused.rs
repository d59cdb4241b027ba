//! A relay that is stopped, and goes on after another took its messages over, changes nothing.

use std::time::Duration;

use rustix::process::Signal;

use crate::consumer;
use crate::desk::Desk;
use crate::dice::Dice;
use crate::processes::{Bus, Home, LEASE, PATIENCE, RelaySetup};
use crate::proxy::{Fate, Mode, Proxy};
use crate::{pause, until};

const STORIES: u32 = 12;

/// Half of what the stopped relay sends has reached the bus, whose answers wait for it; the other half reaches the bus only after the relay
/// that took over is done.
pub(crate) async fn wakes_up_after_another_took_over(home: &Home, url: &str) {
    let mut dice = Dice::of_this_run();
    let mut desk = Desk::found(url, STORIES).await;
    let bus = Bus::first(home).await;
    let proxy = Proxy::start(&bus.address, PATIENCE, Mode::Hold, dice.fork()).await;
    desk.run("BEGIN").await;
    for story in 0..STORIES {
        for _ in 0..3 {
            desk.tell(i64::from(story), &mut dice).await;
        }
    }
    desk.run("COMMIT").await;
    let stopped = RelaySetup::new(home, "stopped", url, proxy.url(), &bus).start();
    proxy
        .until(|tally| {
            tally
                .get(&Fate::Held)
                .is_some_and(|held| *held >= u64::from(STORIES))
        })
        .await;
    stopped.signal(Signal::STOP);
    proxy.set(Mode::Fair);
    let other = RelaySetup::new(home, "other", url, proxy.url(), &bus).start();
    let delivered = "SELECT count(*) FROM sender_log WHERE state = 'delivered'";
    let expected = i64::from(STORIES) * 3;
    until(
        "a delivery by the other",
        LEASE + Duration::from_secs(30),
        async || (desk.number(delivered).await == expected).then_some(()),
    )
    .await;
    let rows = desk.rows().await;
    // What was held reaches the bus, or the answers reach the connections of the relay, which has not woken up yet.
    proxy.let_go();
    pause(Duration::from_millis(200)).await;
    stopped.signal(Signal::CONT);
    // It learns what became of its attempts, and wants to write that down before it ends.
    assert!(stopped.stop().await.success());
    assert_eq!(desk.rows().await, rows);
    let told = std::fs::read_to_string(home.path("stopped.log")).expect("its log");
    let taken_over = told.matches("has taken this message over").count();
    assert_eq!(taken_over, STORIES as usize, "it found that its leases were over");
    assert!(other.stop().await.success());
    assert_eq!(desk.rows().await, rows);
    consumer::compare(&desk.written().await, &consumer::drain(&bus).await);
}
