//! The engine against the one in memory: the same calls at the same times, the same answers.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[expect(dead_code, reason = "each test takes what it needs")]
mod engine;

use std::time::Duration;

use engine::SqliteEngine;
use storybus_core::domain::delivery::{Delivery, QueueKey};
use storybus_core::domain::record::{RECORD_LIFETIME, RecordKey, Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::Random as _;
use storybus_core::ports::ledger::{GiveBack, Marking, NewClaim, PutBack, Removal, StoryMove, Supersession};
use storybus_core::ports::queues::Receive;
use storybus_protocol::id::WorkspaceId;
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample::{self, Letter};
use storybus_testkit::suite::{Factory as _, MemoryFactory, World};
use storybus_testkit::{FakeClock, SeededRandom};

/// How many calls one history has.
const STEPS: usize = 400;

struct Dice(SeededRandom);

impl Dice {
    fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_be_bytes(bytes) % bound
    }

    fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(u64::try_from(choices.len()).unwrap())).unwrap()]
    }
}

/// Both engines, each with the handles it gave, in the same order.
struct Pair {
    clock: FakeClock,
    worlds: [World; 2],
    held: Vec<[Delivery; 2]>,
    queue: QueueKey,
}

/// What must be equal of two deliveries.
fn seen(delivery: &Delivery) -> impl PartialEq + std::fmt::Debug + use<> {
    (
        delivery.message_id,
        delivery.receive_count,
        delivery.enqueued_at,
        delivery.body.clone(),
    )
}

impl Pair {
    async fn new() -> Self {
        let clock = FakeClock::new();
        let memory = World::new(MemoryFactory.engine(clock.clone()).await, clock.clone());
        let sqlite = World::new(Box::new(SqliteEngine::new(&clock)), clock.clone());
        let queue = memory.queue().await;
        assert_eq!(sqlite.queue().await, queue);
        Self {
            clock,
            worlds: [memory, sqlite],
            held: Vec::new(),
            queue,
        }
    }

    async fn step(&mut self, n: u64, dice: &Dice) -> String {
        let [memory, sqlite] = &self.worlds;
        match dice.below(20) {
            0..5 => {
                let group = dice.below(4);
                memory.send_to(&self.queue, n, group).await;
                sqlite.send_to(&self.queue, n, group).await;
                format!("send {n} to {group}")
            }
            5..11 => {
                let receive = Receive {
                    max: dice.of(&[1, 2, 3, 10]),
                    wait: Duration::ZERO,
                    visibility: Duration::from_secs(dice.of(&[1, 20, 60, 43_200])),
                    max_receives: dice.of(&[1, 3, 5]),
                    attempt: dice.of(&[None, None, Some("a"), Some("b")]).map(str::to_owned),
                };
                let ours = sqlite.receive_as(&self.queue, &receive).await;
                let theirs = memory.receive_as(&self.queue, &receive).await;
                let said = format!("{receive:?}");
                assert_eq!(
                    ours.iter().map(seen).collect::<Vec<_>>(),
                    theirs.iter().map(seen).collect::<Vec<_>>(),
                    "{said}"
                );
                self.held
                    .extend(theirs.into_iter().zip(ours).map(|(theirs, ours)| [theirs, ours]));
                said
            }
            11..16 if !self.held.is_empty() => {
                // mostly a recent one
                let back = dice.below(12).min(u64::try_from(self.held.len() - 1).unwrap());
                let [theirs, ours] = &self.held[self.held.len() - 1 - usize::try_from(back).unwrap()];
                let (theirs, ours) = (std::slice::from_ref(theirs), std::slice::from_ref(ours));
                let how = dice.below(4);
                let delay = Duration::from_secs(dice.of(&[0, 0, 5, 43_200]));
                let answers = match how {
                    0 => [
                        memory.release(&self.queue, theirs, delay).await,
                        sqlite.release(&self.queue, ours, delay).await,
                    ],
                    1 => [
                        memory.reject(&self.queue, theirs, "bad").await,
                        sqlite.reject(&self.queue, ours, "bad").await,
                    ],
                    _ => [
                        memory.acknowledge(&self.queue, theirs).await,
                        sqlite.acknowledge(&self.queue, ours).await,
                    ],
                };
                assert_eq!(
                    answers[0], answers[1],
                    "settling ({how}, {delay:?}) {:?}",
                    theirs[0].message_id
                );
                format!("settle {how} {delay:?} {:?}", theirs[0].message_id)
            }
            16..19 => {
                let span = Duration::from_millis(dice.of(&[1, 500, 1000, 5000, 20_000, 60_000, 300_000]));
                let span = if dice.below(60) == 0 {
                    Duration::from_secs(7 * 24 * 3600)
                } else {
                    span
                };
                self.clock.advance(span);
                format!("{span:?} pass")
            }
            _ if dice.below(8) == 0 => {
                for world in &mut self.worlds {
                    world.reopen().await;
                }
                "reopen".to_owned()
            }
            _ => "nothing".to_owned(),
        }
    }

    async fn compare(&self, history: &[String]) {
        let [memory, sqlite] = &self.worlds;
        let counts = [memory.counts(&self.queue).await, sqlite.counts(&self.queue).await];
        assert_eq!(counts[0], counts[1], "after\n{}", history.join("\n"));
    }
}

fn histories(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        run(async {
            let dice = Dice(SeededRandom::new(seed));
            let mut pair = Pair::new().await;
            let mut history = vec![format!("seed {seed}")];
            for n in 0..STEPS {
                history.push(pair.step(u64::try_from(n).unwrap(), &dice).await);
                if dice.below(4) == 0 {
                    pair.compare(&history).await;
                }
            }
        });
    }
}

#[test]
fn queues_answer_as_the_engine_in_memory_does() {
    // the last two held messages that were kept no longer in front of others
    let threads =
        [0..20, 20..40, 1080..1084, 1380..1384].map(|seeds| std::thread::spawn(move || histories(seeds)));
    for thread in threads {
        thread.join().unwrap();
    }
}

/// One call of the ledger or the topic, out of so few keys, tokens and times that they often meet.
struct Call<'a> {
    dice: &'a Dice,
    workspace: WorkspaceId,
    now: Millis,
}

impl Call<'_> {
    fn token(&self) -> Token {
        Token([u8::try_from(self.dice.below(6)).unwrap(); 16])
    }

    fn letter(&self) -> Letter {
        Letter::new(self.dice.below(3), 1)
    }

    fn key(&self) -> RecordKey {
        RecordKey {
            workspace: self.workspace.clone(),
            message_id: self.letter().message_id,
        }
    }

    fn story(&self) -> StoryKey {
        let digest = [u8::try_from(self.dice.below(2)).unwrap(); 16];
        StoryKey {
            workspace: self.workspace.clone(),
            digest,
        }
    }

    fn sometimes<T>(&self, value: T) -> Option<T> {
        (self.dice.below(2) == 0).then_some(value)
    }

    /// Makes the call at both, and says what it was and what each answered.
    async fn make(&self, worlds: &[World; 2]) -> (String, [String; 2]) {
        let expires_at = self.now.plus(RECORD_LIFETIME);
        let window = Duration::from_secs(30);
        macro_rules! both {
            ($method:ident $call:expr) => {{
                let call = $call;
                let mut answers = Vec::new();
                for world in worlds {
                    answers.push(format!(
                        "{:?}",
                        world.ledger().$method(&call).await.unwrap()
                    ));
                }
                (
                    format!("{call:?}"),
                    [answers[0].clone(), answers[1].clone()],
                )
            }};
        }
        match self.dice.below(8) {
            0 | 1 => {
                let letter = self.letter();
                let mut new = worlds[0].record_of(&self.workspace, &letter);
                new.record.attempt = self.token();
                new.story = self.sometimes(StoryMove {
                    key: self.story(),
                    story_id: "s".to_owned(),
                    read: self.sometimes((self.token(), self.key().message_id)),
                    state: sample::story_state(self.dice.below(4)),
                    version: self.token(),
                });
                new.record.story = new.story.as_ref().map(|story| story.key.digest);
                both!(record new)
            }
            2 => both!(claim NewClaim {
                key: self.key(),
                read: self.token(),
                attempt: self.token(),
                story: self.sometimes((self.story(), self.token())),
                now: self.now,
                expires_at,
            }),
            3 => both!(supersede Supersession {
                key: self.key(),
                read: self.token(),
                story: (self.story(), self.token()),
                version: self.token(),
                now: self.now,
            }),
            4 => {
                let was = Story {
                    state: sample::story_state(self.dice.below(4)),
                    head: self.key().message_id,
                    version: self.token(),
                };
                let story = PutBack {
                    key: self.story(),
                    version: self.token(),
                    story: self.sometimes(was),
                };
                let story = self.sometimes(story);
                both!(remove Removal { key: self.key(), attempt: self.token(), story, now: self.now, window })
            }
            5 => both!(give_back GiveBack {
                key: self.key(),
                attempt: self.token(),
                new_attempt: self.token(),
                recorded_at: Millis(self.now.0 - 31_000),
                now: self.now,
            }),
            6 => both!(mark Marking { key: self.key(), attempt: self.token(), now: self.now, expires_at }),
            _ => {
                let letter = self.letter();
                let publication = worlds[0].publication(&self.workspace, &letter, self.token());
                let mut answers = Vec::new();
                for world in worlds {
                    answers.push(format!("{:?}", world.publish(&publication).await.is_ok()));
                }
                (
                    format!("publish {:?}", publication.claim),
                    [answers[0].clone(), answers[1].clone()],
                )
            }
        }
    }
}

#[test]
fn the_ledger_answers_as_the_engine_in_memory_does() {
    for seed in 0..30 {
        run(async {
            let dice = Dice(SeededRandom::new(seed));
            let mut pair = Pair::new().await;
            let mut done = 0;
            for _ in 0..STEPS {
                let call = Call {
                    dice: &dice,
                    workspace: pair.queue.workspace.clone(),
                    now: pair.worlds[0].now(),
                };
                let (said, [theirs, ours]) = call.make(&pair.worlds).await;
                assert_eq!(ours, theirs, "seed {seed}: {said}");
                done += usize::from(ours.contains("Done") || ours == "true");
                let (key, story) = (call.key(), call.story());
                let mut readings = Vec::new();
                for world in &pair.worlds {
                    readings.push(world.ledger().read(&key, Some(&story), call.now).await.unwrap());
                }
                assert_eq!(readings[1], readings[0], "seed {seed}: {said}");
                let span = dice.of(&[0, 0, 0, 1000, 10_000, 31_000]);
                let span = if dice.below(100) == 0 { 608_400_000 } else { span };
                pair.clock.advance(Duration::from_millis(span));
                if dice.below(50) == 0 {
                    for world in &mut pair.worlds {
                        world.reopen().await;
                    }
                }
            }
            pair.compare(&[format!("seed {seed}")]).await;
            assert!(done > STEPS / 40, "{done} calls did something");
        });
    }
}
