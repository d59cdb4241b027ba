//! Everything fails at once, again and again, while messages are enqueued; afterwards nothing is lost, doubled, changed or out of order.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::consumer;
use crate::desk::{self, Desk};
use crate::dice::Dice;
use crate::processes::{Bus, Home, LEASE, PATIENCE, Process, RelaySetup};
use crate::proxy::{Fate, Mode, Proxy};
use crate::{pause, until};

/// The length of the storms, by environment: `whole`, or short.
const LENGTH: &str = "STORYBUS_CHAOS";
/// The bus drops what it has published before for so long. No message may be retried for longer, or a consumer may see it twice.
const REMEMBERED: i64 = 300_000;

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storm {
    messages: u32,
    stories: u32,
    writers: u32,
    /// So long messages are enqueued,
    over: Duration,
    /// while so many times a process is killed, stopped or cut off.
    kills: u32,
    /// So long a relay is stopped at most.
    frozen: Duration,
    relays: usize,
    /// So long it may take after that.
    patience: Duration,
}

impl Storm {
    pub(crate) fn of_length(relays: usize) -> Self {
        let short = Self {
            messages: 400,
            stories: 20,
            writers: 4,
            over: Duration::from_secs(8),
            kills: 12,
            frozen: Duration::from_secs(2),
            relays,
            patience: Duration::from_secs(60),
        };
        match std::env::var(LENGTH).as_deref() {
            Ok("whole") => Self {
                messages: 10_000,
                stories: 200,
                writers: 8,
                over: Duration::from_secs(90),
                kills: 80,
                frozen: LEASE * 2,
                patience: Duration::from_secs(180),
                ..short
            },
            _ => short,
        }
    }

    /// Lets it rage over an outbox at `url`.
    pub(crate) async fn rage(self, home: &Home, url: String) {
        let began = Instant::now();
        let mut dice = Dice::of_this_run();
        let mut desk = Desk::found(&url, self.stories).await;
        let mut bus = Bus::first(home).await;
        let proxy = Proxy::start(&bus.address, PATIENCE, Mode::Chaos, dice.fork()).await;
        let setups: Vec<_> = (0..self.relays)
            .map(|number| RelaySetup::new(home, &format!("relay-{number}"), &url, proxy.url(), &bus))
            .collect();
        let mut relays: Vec<_> = setups.iter().map(RelaySetup::start).collect();
        let mut writing = JoinSet::new();
        for writer in 0..self.writers {
            let share = self.messages / self.writers + u32::from(writer < self.messages % self.writers);
            writing.spawn(desk::write(
                url.clone(),
                share,
                self.stories,
                self.over,
                dice.fork(),
            ));
        }
        self.kill(&mut dice, &mut desk, &mut bus, &setups, &mut relays)
            .await;
        while let Some(written) = writing.join_next().await {
            written.expect("a writer");
        }
        until("an end of what is pending", self.patience, async || {
            for relay in &mut relays {
                assert_eq!(relay.ended(), None, "a relay ended by itself");
            }
            let pending = desk
                .number("SELECT count(*) FROM sender_log WHERE state = 'pending'")
                .await;
            (pending == 0).then_some(())
        })
        .await;
        for relay in relays {
            let ended = relay.stop().await;
            assert!(ended.success(), "a relay that is stopped ends well: {ended}");
        }
        self.check(&mut desk, &bus, &proxy.tally(), began.elapsed()).await;
    }

    /// Does something to one process after another, at any instant: most are killed, and started again a little later.
    async fn kill(
        &self,
        dice: &mut Dice,
        desk: &mut Desk,
        bus: &mut Bus,
        setups: &[RelaySetup],
        relays: &mut [Process],
    ) {
        for _ in 0..self.kills {
            pause(dice.span(self.over * 2 / self.kills)).await;
            let rest = dice.span(Duration::from_millis(300));
            let victim = usize::try_from(dice.below(setups.len() as u64 + 1)).unwrap_or(0);
            let Some(setup) = setups.get(victim) else {
                bus.kill(rest).await;
                continue;
            };
            match dice.below(10) {
                // A machine that sleeps, or a container that is frozen: perhaps for longer than its leases.
                0 => {
                    relays[victim].signal(Signal::STOP);
                    pause(dice.span(self.frozen)).await;
                    relays[victim].signal(Signal::CONT);
                }
                1 => desk.cut_relays_off().await,
                2 => {
                    let ended = std::mem::replace(&mut relays[victim], setup.start()).stop().await;
                    assert!(ended.success(), "a relay that is stopped ends well: {ended}");
                }
                _ => {
                    relays[victim].kill();
                    pause(rest).await;
                    relays[victim] = setup.start();
                }
            }
        }
    }

    async fn check(&self, desk: &mut Desk, bus: &Bus, tally: &BTreeMap<Fate, u64>, took: Duration) {
        let written = desk.written().await;
        let messages: usize = written.values().map(Vec::len).sum();
        assert_eq!(messages, self.messages as usize);
        let count = "SELECT count(*) FROM sender_log";
        let delivered = "SELECT count(*) FROM sender_log WHERE state = 'delivered' AND turn IS NULL AND lease_owner IS NULL";
        assert_eq!(desk.number(count).await, i64::from(self.messages));
        assert_eq!(desk.number(delivered).await, i64::from(self.messages));
        let longest = desk
            .number("SELECT max(finished_at - first_attempt_at) FROM sender_log")
            .await;
        assert!(longest < REMEMBERED, "a message was tried for {longest} ms");
        consumer::compare(&written, &consumer::drain(bus).await);
        // There was a storm.
        let attempts = desk
            .number("SELECT CAST(sum(attempts) AS BIGINT) FROM sender_log")
            .await;
        println!(
            "{} messages of {} stories, {attempts} attempts, {} kills, in {:.1} s; the longest was tried for {:.1} s; {tally:?}",
            self.messages,
            self.stories,
            self.kills,
            took.as_secs_f64(),
            Duration::from_millis(longest.unsigned_abs()).as_secs_f64(),
        );
        assert!(attempts > i64::from(self.messages), "nothing was tried twice");
        for fate in [
            Fate::AnswerDropped,
            Fate::RequestCut,
            Fate::OwnAnswer,
            Fate::Late,
            Fate::Slow,
        ] {
            assert!(tally.contains_key(&fate), "no {fate:?} in {tally:?}");
        }
    }
}
