//! The relay's loop: steps and attempts side by side, in one task.
//!
//! While a step runs, and in a short pause after it, attempts end; the next step settles them together. So the more there is to do, the more a transaction
//! carries.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};

use super::Relay;
use super::attempt::{Made, Standing, millis};
use super::goal::Goal;
use super::observer::{Ended, StepTaken};
use super::policy::{Policy, Rounds};
use crate::outbox::step::{self, Claim, Step, Stepped, Want};
use crate::outbox::{OutboxError, Own, State, Trouble};

/// How long the first that came back waits for others before it is settled, while more are under way.
const GATHER: Duration = Duration::from_millis(2);
/// The longest rest between two steps on SQLite.
const LONGEST_REST: Duration = Duration::from_millis(50);
/// How long a step may take before its connection is given up.
const STEP: Duration = Duration::from_secs(60);
/// The pause after a step that failed; doubled each time, up to [`LONGEST_PAUSE`].
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a failing database is waited for when there is an end to wait for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is known of a target.
#[derive(Debug, Default)]
struct Traffic {
    under_way: usize,
    bytes: u64,
    /// It pauses until then, by this process's clock.
    paused_until: Option<Duration>,
    /// It has refused the sender, and not been seen to take a message since: one at a time.
    probing: bool,
}

/// What the loop holds.
struct Work {
    session: Option<Own>,
    traffic: BTreeMap<String, Traffic>,
    /// What came back and is not settled.
    back: Vec<Made>,
    /// The ids of what is claimed and not settled.
    busy: BTreeSet<i64>,
    failures: u32,
    failing_since: Option<Duration>,
    /// Each row for itself, since a step failed for what was written.
    singly: bool,
    /// The ids of what cannot be written, as far as it was told.
    stuck: BTreeSet<i64>,
}

impl Relay {
    pub(super) async fn work(
        &self,
        goal: &mut Goal,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), OutboxError> {
        let mut stop = pin!(stop.fuse());
        let mut stopping = false;
        // What lies ahead of the given messages is not theirs to park.
        let foreign = Policy {
            rounds: match self.policy.rounds {
                Rounds::One => Rounds::DAY,
                rounds @ Rounds::For { .. } => rounds,
            },
            ..self.policy.clone()
        };
        let mut running = FuturesUnordered::new();
        let mut work = Work {
            session: None,
            traffic: self
                .transports
                .keys()
                .map(|target| (target.clone(), Traffic::default()))
                .collect(),
            back: Vec::new(),
            busy: BTreeSet::new(),
            failures: 0,
            failing_since: None,
            singly: false,
            stuck: BTreeSet::new(),
        };
        loop {
            // Also when the loop never had to wait since.
            stopping = stopping || stop.as_mut().now_or_never().is_some();
            let over = stopping || goal.is_over();
            if over && running.is_empty() && work.back.is_empty() {
                break;
            }
            let began = self.clock.elapsed();
            let settling = std::mem::take(&mut work.back);
            let asked = if over { Some(Vec::new()) } else { goal.window() };
            let mut session = work.session.take();
            let stepped = {
                let wants = self.wants(&work, &settling, began, over);
                let settle: Vec<_> = settling.iter().map(|made| made.settling.clone()).collect();
                let step = Step {
                    owner: &self.owner,
                    lease: millis(self.lease_of_a_claim()),
                    settle: &settle,
                    wants: &wants,
                    only: asked.as_deref(),
                    offset: self.outbox.offset(),
                    singly: work.singly,
                    far: millis(self.far()),
                };
                let mut step = pin!(self.step(&mut session, &step));
                loop {
                    tokio::select! {
                        biased;
                        () = &mut stop, if !stopping => stopping = true,
                        stepped = &mut step => break stepped,
                        Some(made) = running.next(), if !running.is_empty() => work.came_back(self, made),
                    }
                }
            };
            let mut rested = began;
            let wait = match stepped {
                Ok(stepped) => {
                    work.session = session;
                    work.failures = 0;
                    work.failing_since = None;
                    let now = self.clock.elapsed();
                    let took = now.saturating_sub(began);
                    rested = now + rest_after(took, self.outbox.file().is_some());
                    let more = stepped.more;
                    work.singly = !stepped.stuck.is_empty();
                    let wait = stepped.due_in.map_or(self.poll, |due_in| {
                        self.poll.min(Duration::from_millis(due_in.max(0).unsigned_abs()))
                    });
                    let claims = self.learn(&mut work, goal, asked.as_deref(), &settling, stepped);
                    self.observer.stepped(&StepTaken {
                        took,
                        under_way: work.busy.len(),
                    });
                    for claim in claims {
                        let Some(transport) = self.transports.get(&claim.target) else {
                            continue;
                        };
                        let policy = if goal.wants(claim.id) {
                            &self.policy
                        } else {
                            &foreign
                        };
                        running.push(self.attempt(claim, &**transport, policy, began));
                    }
                    // What is stuck is due, and stays so.
                    match (more, work.singly) {
                        (_, true) => LONGEST_PAUSE,
                        (true, false) => Duration::ZERO,
                        (false, false) => wait,
                    }
                }
                // No waiting mends that.
                Err(error @ OutboxError::Encoding { .. }) if running.is_empty() => return Err(error),
                Err(error) => {
                    if let OutboxError::Database(trouble) = &error {
                        work.singly = work.singly || trouble.is_of_a_row();
                    }
                    self.observer.troubled(&error);
                    work.back.splice(0..0, settling);
                    let now = self.clock.elapsed();
                    let since = *work.failing_since.get_or_insert(now);
                    let waited_for = stopping || matches!(goal, Goal::These(_));
                    if waited_for && running.is_empty() && now.saturating_sub(since) >= PATIENCE {
                        return Err(error);
                    }
                    let pause = (PAUSE * 2_u32.saturating_pow(work.failures.min(10))).min(LONGEST_PAUSE);
                    work.failures += 1;
                    pause
                }
            };
            // Until there is something to do: something came back, something is due, or somebody says so.
            let failing = work.failures > 0;
            let mut timer = self.clock.sleep(wait);
            let mut gathering = false;
            loop {
                let over = stopping || goal.is_over();
                if !failing {
                    let enough = work.back.len() * 4 >= running.len() + work.back.len();
                    if (over && running.is_empty()) || (!work.back.is_empty() && enough) {
                        break;
                    }
                    if !work.back.is_empty() && !gathering {
                        gathering = true;
                        timer = self.clock.sleep(GATHER);
                    }
                }
                tokio::select! {
                    biased;
                    () = &mut stop, if !stopping => stopping = true,
                    Some(made) = running.next(), if !running.is_empty() => work.came_back(self, made),
                    () = &mut timer => break,
                    () = self.outbox.woken(), if !failing && !over => {
                        if running.is_empty() {
                            break;
                        }
                        if !gathering {
                            gathering = true;
                            timer = self.clock.sleep(GATHER);
                        }
                    }
                }
            }
            let mut timer = self.clock.sleep(rested.saturating_sub(self.clock.elapsed()));
            while !stopping && self.clock.elapsed() < rested {
                tokio::select! {
                    biased;
                    () = &mut stop => stopping = true,
                    Some(made) = running.next(), if !running.is_empty() => work.came_back(self, made),
                    () = &mut timer => break,
                }
            }
        }
        if let Some(session) = work.session {
            session.close().await;
        }
        Ok(())
    }

    /// What is to be claimed of each target.
    fn wants(&self, work: &Work, settling: &[Made], now: Duration, over: bool) -> Vec<Want<'_>> {
        let share = self.bytes / u64::try_from(self.transports.len().max(1)).unwrap_or(1);
        self.transports
            .iter()
            .filter(|_| !over)
            .filter_map(|(target, transport)| {
                let traffic = work.traffic.get(target)?;
                if traffic.paused_until.is_some_and(|until| until > now) {
                    return None;
                }
                let most = if traffic.probing { 1 } else { self.concurrency };
                // What the same step settles leaves its slot to what it claims.
                let settled = settling.iter().filter(|made| made.target == **target);
                let (count, bytes) =
                    settled.fold((0, 0), |(count, bytes), made| (count + 1, bytes + made.bytes));
                let under_way = traffic.under_way.saturating_sub(count);
                Some(Want {
                    target,
                    slots: most.saturating_sub(under_way),
                    bytes: if under_way == 0 {
                        share.max(1)
                    } else {
                        share.saturating_sub(traffic.bytes.saturating_sub(bytes))
                    },
                    memory: millis(transport.memory().saturating_sub(self.limits.timeout)),
                    deserted_after: i64::from(self.limits.max_attempts) * 2,
                    given_up_after: millis(self.policy.span()),
                    parked_turn: self.policy.parked_turn(),
                })
            })
            .filter(|want| want.slots > 0 && want.bytes > 0)
            .collect()
    }

    async fn step(&self, session: &mut Option<Own>, step: &Step<'_>) -> Result<Stepped, OutboxError> {
        let work = async {
            let mut own = match session.take() {
                Some(own) => own,
                None => self.outbox.connect().await?,
            };
            let stepped = step::step(own.conn(), step).await?;
            *session = Some(own);
            Ok(stepped)
        };
        tokio::select! {
            biased;
            stepped = work => stepped,
            () = self.clock.sleep(STEP) => Err(OutboxError::Unreachable(Trouble::new("the database did not answer within a minute"))),
        }
    }

    /// Takes note of what a step did. What it claimed.
    fn learn(
        &self,
        work: &mut Work,
        goal: &mut Goal,
        asked: Option<&[i64]>,
        settling: &[Made],
        mut stepped: Stepped,
    ) -> Vec<Claim> {
        for made in settling {
            let image = &made.settling.image;
            work.busy.remove(&image.id);
            if let Some(traffic) = work.traffic.get_mut(&made.target) {
                traffic.under_way = traffic.under_way.saturating_sub(1);
                traffic.bytes = traffic.bytes.saturating_sub(made.bytes);
            }
            if let Some(stuck) = stepped.stuck.get_mut(&image.id) {
                stuck.name = Some((made.target.clone(), made.key.clone()));
            } else if !stepped.settled.contains(&image.id) {
                self.observer.taken_over(&made.target, &made.key);
            } else if image.state != State::Pending {
                self.observer.ended(&Ended {
                    id: image.id,
                    target: &made.target,
                    key: &made.key,
                    state: image.state,
                    attempts: u64::try_from(image.attempts).unwrap_or(0),
                    rule: image.last.rule.as_deref(),
                    detail: image.last.detail.as_deref(),
                });
            }
        }
        for parked in &stepped.parked {
            self.observer.ended(&Ended {
                id: parked.id,
                target: &parked.target,
                key: &parked.key,
                state: State::Parked,
                attempts: u64::try_from(parked.attempts).unwrap_or(0),
                rule: parked.last.rule.as_deref(),
                detail: parked.last.detail.as_deref(),
            });
        }
        self.learn_stuck(work, goal, &stepped);
        for claim in &stepped.claims {
            work.busy.insert(claim.id);
            if let Some(traffic) = work.traffic.get_mut(&claim.target) {
                traffic.under_way += 1;
                traffic.bytes += claim.body.len() as u64;
            }
        }
        if let (Goal::These(these), Some(asked)) = (goal, asked) {
            let now = self.clock.elapsed();
            let paused = work
                .traffic
                .iter()
                .filter(|(_, traffic)| traffic.paused_until.is_some_and(|until| until > now))
                .map(|(target, _)| target.clone())
                .collect();
            these.learn(
                asked,
                &stepped.standings,
                &work.busy,
                &paused,
                self.limits.max_delay,
            );
        }
        stepped.claims
    }
}

impl Relay {
    /// Tells once of what cannot be written. It rests until its lease is over, and is tried again then; nobody waits for it.
    fn learn_stuck(&self, work: &mut Work, goal: &mut Goal, stepped: &Stepped) {
        if stepped.stuck.is_empty() {
            work.stuck.clear();
        }
        for (id, stuck) in &stepped.stuck {
            if let Goal::These(these) = goal {
                these.give_up(*id);
            }
            let Some((target, key)) = stuck.name.clone() else {
                continue;
            };
            if work.stuck.insert(*id) {
                let trouble = stuck.trouble.clone();
                self.observer
                    .troubled(&OutboxError::Stuck { target, key, trouble });
            }
        }
    }
}

impl Work {
    fn came_back(&mut self, relay: &Relay, made: Made) {
        if let Some(traffic) = self.traffic.get_mut(&made.target) {
            match made.sender {
                Some(Standing::Good) => {
                    traffic.probing = false;
                    traffic.paused_until = None;
                }
                Some(Standing::Refused) => {
                    let pause = relay.policy.target_pause;
                    if !pause.is_zero() {
                        traffic.probing = true;
                        traffic.paused_until = Some(relay.clock.elapsed() + pause);
                        relay.observer.paused(&made.target, pause);
                    }
                }
                None => {}
            }
        }
        self.back.push(made);
    }
}

/// How long a step is followed by none. SQLite has no queue for its write lock: who wants it looks again after a while, and would hardly ever find it
/// free beside a relay at full load. So the producers' own transactions have a quarter of the time for themselves; measured, the longest of a
/// hundred waited 57 and 83 ms instead of 330 and 104. A step of a second or more has waited for others itself, or the process was stopped.
fn rest_after(took: Duration, on_a_file: bool) -> Duration {
    if on_a_file && took < LONGEST_REST * 20 {
        (took / 3).min(LONGEST_REST)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_on_a_file_leave_time_for_the_producers() {
        let millis = Duration::from_millis;
        assert_eq!(rest_after(millis(30), true), millis(10));
        assert_eq!(rest_after(millis(900), true), LONGEST_REST);
        assert_eq!(rest_after(millis(60_000), true), Duration::ZERO);
        assert_eq!(rest_after(Duration::ZERO, true), Duration::ZERO);
        assert_eq!(rest_after(millis(30), false), Duration::ZERO);
    }
}
