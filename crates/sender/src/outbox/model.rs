//! The state machine against a model of it: whatever callers, relays and operators do, in whatever order, the table says what a few lines over plain
//! values say. Two relays claim and settle, also with claims that they have lost; time passes; and each message is looked at after each
//! step.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::step::{self, Claim, Step, Want};
use super::write::Turn;
use super::{Confirmed, EnqueueError, Enqueued, Filter, OperatorError, Outbox, State};
use crate::answer::{About, Answer, Left, Outcome, Retry};
use crate::message::{Group, Key, Message, PayloadHash, Target};
use crate::relay::attempt::settle;
use crate::relay::{Policy, Verdict};

const KEYS: usize = 7;
const LEASE: i64 = 30_000;
const WEEK: i64 = 7 * 24 * 3_600_000;

/// What somebody does.
#[derive(Debug, Clone)]
enum Act {
    Enqueue {
        key: usize,
        content: usize,
    },
    Claim {
        node: usize,
        slots: usize,
    },
    Settle {
        node: usize,
        which: usize,
        verdict: Verdict,
        left: bool,
        more: i64,
    },
    Wait {
        millis: i64,
    },
    Resend {
        key: usize,
        confirmed: bool,
    },
    Drop {
        key: usize,
    },
    Purge,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let verdict = prop_oneof![
        3 => Just(Verdict::Delivered),
        1 => Just(Verdict::Refused),
        2 => Just(Verdict::Parked),
        1 => Just(Verdict::Kept),
        3 => (prop::sample::select(vec![0_u64, 10, 60]), any::<bool>()).prop_map(|(seconds, new_round)| Verdict::Again {
            after: Duration::from_secs(seconds),
            new_round,
        }),
    ];
    // No sum of these is a week exactly, so that the milliseconds which really pass decide nothing.
    let wait = prop::sample::select(vec![15_000, 40_000, 3 * 24 * 3_600_000 + 1_000]);
    let act = prop_oneof![
        5 => (0..KEYS, prop::sample::select(vec![0, 0, 0, 1])).prop_map(|(key, content)| Act::Enqueue { key, content }),
        6 => (0..2_usize, 1..4_usize).prop_map(|(node, slots)| Act::Claim { node, slots }),
        6 => (0..2_usize, 0..8_usize, verdict, any::<bool>(), 0..2_i64)
            .prop_map(|(node, which, verdict, left, more)| Act::Settle { node, which, verdict, left, more }),
        3 => wait.prop_map(|millis| Act::Wait { millis }),
        2 => (0..KEYS, any::<bool>()).prop_map(|(key, confirmed)| Act::Resend { key, confirmed }),
        1 => (0..KEYS).prop_map(|key| Act::Drop { key }),
        1 => Just(Act::Purge),
    ];
    prop::collection::vec(act, 1..60)
}

/// A message as the model sees it.
#[derive(Debug, Clone)]
struct Row {
    id: i64,
    content: usize,
    state: State,
    attempts: i64,
    due: i64,
    unsure_since: Option<i64>,
    finished: Option<i64>,
    /// The claim that may settle it, and until when nobody else may have it.
    claim: Option<(u64, i64)>,
}

#[derive(Debug, Default)]
struct Model {
    rows: BTreeMap<usize, Row>,
    now: i64,
    claims: u64,
}

/// A key's group: none, or one of two.
fn group(key: usize) -> Option<usize> {
    Some(key % 3).filter(|group| *group > 0)
}

impl Model {
    /// Whether nothing earlier holds it: what is pending or parked holds its group.
    fn is_first(&self, key: usize) -> bool {
        let row = &self.rows[&key];
        group(key).is_none()
            || !self.rows.iter().any(|(other, earlier)| {
                group(*other) == group(key) && earlier.id < row.id && !earlier.state.is_final()
            })
    }

    fn due(&self) -> Vec<usize> {
        self.rows
            .iter()
            .filter(|(key, row)| row.state == State::Pending && row.due <= self.now && self.is_first(**key))
            .map(|(key, _)| *key)
            .collect()
    }

    fn forgotten(&self, key: usize) -> bool {
        self.rows[&key]
            .unsure_since
            .is_some_and(|since| self.now - since >= WEEK)
    }
}

/// The real thing, beside the model.
struct World {
    outbox: Outbox,
    model: Model,
    held: [Vec<(usize, u64, Claim)>; 2],
    /// Attempts seen, ever, per number.
    seen: BTreeMap<i64, (u64, State)>,
}

fn name(key: usize) -> Key {
    Key::new(format!("key-{key}")).expect("a key")
}

fn target() -> Target {
    Target::new("bus").expect("a target")
}

fn message(key: usize, content: usize) -> Message {
    Message {
        target: target(),
        key: name(key),
        group: group(key).map(|group| Group::new(format!("group-{group}")).expect("a group")),
        body: format!("content {content} of {key}").into_bytes(),
        content_type: None,
    }
}

fn of_key(name: &str) -> usize {
    name.strip_prefix("key-")
        .and_then(|key| key.parse().ok())
        .expect("one of ours")
}

impl World {
    async fn act(&mut self, act: Act) {
        match act {
            Act::Enqueue { key, content } => self.enqueue(key, content).await,
            Act::Claim { node, slots } => self.claim(node, slots).await,
            Act::Settle {
                node,
                which,
                verdict,
                left,
                more,
            } => self.settle(node, which, verdict, left, more).await,
            Act::Wait { millis } => {
                self.model.now += millis;
                self.outbox.advance(Duration::from_millis(millis.unsigned_abs()));
            }
            Act::Resend { key, confirmed } => self.resend(key, confirmed).await,
            Act::Drop { key } => self.drop(key).await,
            Act::Purge => {
                let purged = self.outbox.purge(Duration::ZERO).await.expect("purged");
                let before = self.model.rows.len();
                let now = self.model.now;
                self.model.rows.retain(|_, row| {
                    !(row.state.is_final() && row.finished.is_some_and(|at| at + WEEK < now))
                });
                assert_eq!(purged, (before - self.model.rows.len()) as u64);
            }
        }
        self.compare().await;
    }

    async fn enqueue(&mut self, key: usize, content: usize) {
        let result = self.outbox.enqueue(&message(key, content)).await;
        match (self.model.rows.get(&key), result) {
            (None, Ok(Enqueued::New { id })) => {
                assert!(
                    self.seen.keys().all(|seen| *seen < id),
                    "numbers go up, and none is used twice"
                );
                let row = Row {
                    id,
                    content,
                    state: State::Pending,
                    attempts: 0,
                    // By the database's own clock, which no test moves.
                    due: 0,
                    unsure_since: None,
                    finished: None,
                    claim: None,
                };
                self.model.rows.insert(key, row);
            }
            (Some(row), Ok(Enqueued::Known { id, state })) => {
                assert_eq!((row.id, row.state, row.content), (id, state, content));
            }
            (Some(row), Err(EnqueueError::KeyReused { kept, given, .. })) => {
                assert_ne!(row.content, content);
                assert_eq!(kept, PayloadHash::of(&message(key, row.content).body));
                assert_eq!(given, PayloadHash::of(&message(key, content).body));
            }
            (row, result) => panic!("{row:?}, but {result:?}"),
        }
    }

    async fn step(&mut self, owner: &str, settle: &[step::Settling], slots: usize) -> step::Stepped {
        let want = Want {
            target: "bus",
            slots,
            bytes: 1 << 20,
            memory: WEEK,
            deserted_after: i64::MAX,
            given_up_after: i64::MAX,
            parked_turn: Some(Turn::First),
        };
        let mut own = self.outbox.connect().await.expect("connected");
        let step = Step {
            owner,
            lease: LEASE,
            settle,
            wants: &[want],
            only: None,
            offset: self.outbox.offset(),
            singly: false,
            far: i64::MAX,
        };
        let stepped = step::step(own.conn(), &step).await.expect("a step");
        own.close().await;
        stepped
    }

    async fn claim(&mut self, node: usize, slots: usize) {
        let stepped = self.step(&format!("node-{node}"), &[], slots).await;
        let now = self.model.now;
        let due = self.model.due();
        let (forgotten, good): (Vec<_>, Vec<_>) = due.into_iter().partition(|key| self.model.forgotten(*key));
        let claimed: Vec<_> = stepped.claims.iter().map(|claim| of_key(&claim.key)).collect();
        assert!(
            claimed.iter().all(|key| good.contains(key)),
            "first in its line, and due: {claimed:?} of {good:?}"
        );
        assert_eq!(
            claimed.len(),
            good.len().min(slots),
            "as many as there are slots for"
        );
        let parked: Vec<_> = stepped.parked.iter().map(|parked| of_key(&parked.key)).collect();
        assert!(
            parked.iter().all(|key| forgotten.contains(key)),
            "{parked:?} of {forgotten:?}"
        );
        assert!(
            claimed.len() == slots || parked.len() == forgotten.len(),
            "none of them is left"
        );
        for key in parked {
            let row = self.model.rows.get_mut(&key).expect("it is there");
            (row.state, row.finished, row.claim) = (State::Parked, Some(now), None);
        }
        for claim in stepped.claims {
            let key = of_key(&claim.key);
            self.model.claims += 1;
            let token = self.model.claims;
            let row = self.model.rows.get_mut(&key).expect("it is there");
            row.attempts += 1;
            row.due = now + LEASE;
            row.claim = Some((token, now + LEASE));
            row.unsure_since.get_or_insert(now);
            assert_eq!(&claim.body[..], &message(key, row.content).body[..]);
            assert_eq!(claim.attempts, row.attempts);
            self.held[node].push((key, token, claim));
        }
    }

    async fn settle(&mut self, node: usize, which: usize, verdict: Verdict, left: bool, more: i64) {
        if self.held[node].is_empty() {
            return;
        }
        let which = which % self.held[node].len();
        let (key, token, claim) = self.held[node].swap_remove(which);
        let answer = Answer {
            outcome: Outcome::Refused,
            status: Some(503),
            rule: Some(String::from("a.rule")),
            detail: Some(String::from("a detail")),
            retry: Retry::Backoff,
            retry_after: None,
            about: About::Moment,
            left: if left { Left::Maybe } else { Left::Nothing },
        };
        let owner = format!("node-{node}");
        let settling = settle(
            &claim,
            &owner,
            more,
            left || claim.unsure_before,
            &answer,
            verdict,
            &Policy::default(),
        );
        // Twice, as a step is repeated whose commit got through without an answer: the second time changes nothing.
        let stepped = self.step(&owner, std::slice::from_ref(&settling), 0).await;
        let again = self.step(&owner, &[settling], 0).await;
        let now = self.model.now;
        let row = self
            .model
            .rows
            .get_mut(&key)
            .filter(|row| row.claim.is_some_and(|(mine, _)| mine == token));
        assert_eq!(
            stepped.settled.contains(&claim.id),
            row.is_some(),
            "settled if it was still this node's"
        );
        let Some(row) = row else { return };
        assert!(
            again.settled.contains(&claim.id),
            "a repetition knows that it was settled"
        );
        row.claim = None;
        row.attempts += more;
        row.due = now;
        if !left && !claim.unsure_before {
            row.unsure_since = None;
        }
        match verdict {
            Verdict::Delivered => row.state = State::Delivered,
            Verdict::Refused => row.state = State::Refused,
            Verdict::Parked => row.state = State::Parked,
            Verdict::Kept => row.due = now,
            Verdict::Again { after, .. } => row.due = now + i64::try_from(after.as_millis()).expect("short"),
        }
        if row.state != State::Pending {
            row.finished = Some(now);
        }
    }

    async fn resend(&mut self, key: usize, confirmed: bool) {
        let result = self
            .outbox
            .resend(&target(), &name(key), confirmed.then_some(Confirmed))
            .await;
        let now = self.model.now;
        let forgotten = self.model.rows.contains_key(&key) && self.model.forgotten(key);
        match (self.model.rows.get_mut(&key), result) {
            (None, Err(OperatorError::NotFound { .. })) => {}
            (Some(row), Err(OperatorError::UnderWay { .. })) => {
                assert!(row.state == State::Pending && row.claim.is_some_and(|(_, until)| until > now));
            }
            (Some(row), Err(OperatorError::Final { state, .. })) => {
                assert!(state == row.state && state.is_final());
            }
            (Some(row), Err(OperatorError::MayRepeat { .. })) => {
                assert!(!row.state.is_final() && forgotten && !confirmed);
            }
            (Some(row), Ok(())) => {
                assert!(!row.state.is_final() && (confirmed || !forgotten));
                assert!(row.state == State::Parked || row.claim.is_none_or(|(_, until)| until <= now));
                (row.state, row.due, row.finished, row.claim) = (State::Pending, now, None, None);
                if confirmed {
                    row.unsure_since = None;
                }
            }
            (row, result) => panic!("{row:?}, but {result:?}"),
        }
    }

    async fn drop(&mut self, key: usize) {
        let result = self.outbox.drop(&target(), &name(key)).await;
        let now = self.model.now;
        match (self.model.rows.get_mut(&key), result) {
            (None, Err(OperatorError::NotFound { .. })) => {}
            (Some(row), Err(OperatorError::UnderWay { .. })) => {
                assert!(row.claim.is_some_and(|(_, until)| until > now));
            }
            (Some(row), Err(OperatorError::Final { state, .. })) => {
                assert!(state == row.state && state.is_final());
            }
            (Some(row), Ok(())) => {
                assert!(!row.state.is_final() && row.claim.is_none_or(|(_, until)| until <= now));
                (row.state, row.finished, row.claim) = (State::Refused, Some(now), None);
            }
            (row, result) => panic!("{row:?}, but {result:?}"),
        }
    }

    /// The table says what the model says, and nothing that must never happen has happened.
    async fn compare(&mut self) {
        let entries = self.outbox.list(&Filter::default(), 1_000).await.expect("listed");
        assert_eq!(entries.len(), self.model.rows.len());
        for entry in entries {
            let (key, row) = self
                .model
                .rows
                .iter()
                .find(|(_, row)| row.id == entry.id)
                .expect("it is in the model");
            assert_eq!(entry.key, name(*key).as_str());
            assert_eq!(
                entry.payload_hash,
                Some(PayloadHash::of(&message(*key, row.content).body).to_string())
            );
            assert_eq!(
                (entry.state, entry.attempts),
                (row.state, row.attempts.unsigned_abs()),
                "{entry:?} {row:?}"
            );
            assert_eq!(
                entry.unsure_since.is_some(),
                row.unsure_since.is_some(),
                "{entry:?} {row:?}"
            );
            assert_eq!(
                entry.finished_at.is_some(),
                row.finished.is_some(),
                "{entry:?} {row:?}"
            );
            let under_way = row.claim.is_some_and(|(_, until)| until > self.model.now);
            assert_eq!(entry.under_way, under_way, "{entry:?} {row:?}");
            if let Some((attempts, state)) = self.seen.insert(entry.id, (entry.attempts, entry.state)) {
                assert!(attempts <= entry.attempts, "attempts never shrink");
                assert!(!state.is_final() || state == entry.state, "what is final stays");
            }
        }
    }
}

fn explore(cases: u32, outbox: impl AsyncFn() -> Outbox) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let result = runner.run(&acts(), |acts| {
        runtime.block_on(async {
            let mut world = World {
                outbox: outbox().await,
                model: Model::default(),
                held: [Vec::new(), Vec::new()],
                seen: BTreeMap::new(),
            };
            for act in acts {
                world.act(act).await;
            }
            world.outbox.close().await;
        });
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn sqlite_does_what_the_model_does() {
    let dir = tempfile::tempdir().expect("a directory");
    let number = std::sync::atomic::AtomicU32::new(0);
    explore(96, async || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = dir.path().join(format!("{number}.db"));
        let outbox = Outbox::open(&format!("sqlite:{}", path.display())).expect("an address");
        outbox.migrate().await.expect("migrated");
        outbox
    });
}

#[test]
fn postgres_does_what_the_model_does() {
    let url = tokio::sync::OnceCell::new();
    explore(48, async || {
        let url = url.get_or_init(storybus_testpg::database).await;
        let outbox = Outbox::open(url).expect("an address");
        outbox.migrate().await.expect("migrated");
        let mut own = outbox.connect().await.expect("connected");
        let empty = "TRUNCATE sender_log";
        own.conn().script(empty, empty).await.expect("emptied");
        own.close().await;
        outbox
    });
}
