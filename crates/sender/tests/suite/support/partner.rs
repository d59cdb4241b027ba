//! A partner that answers as a test tells it to, and remembers what it was sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use storybus_sender::answer::{About, Answer, Left, Outcome, Retry};
use storybus_sender::transport::{Attempt, Outgoing, Transport};
use tokio::sync::{Semaphore, watch};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) key: String,
    pub(crate) body: Vec<u8>,
    pub(crate) new_credentials: bool,
}

/// A partner that says yes unless a test has told it otherwise.
pub(crate) struct Partner {
    script: Mutex<BTreeMap<String, VecDeque<Answer>>>,
    always: Mutex<Option<Answer>>,
    got: watch::Sender<Vec<Got>>,
    /// An attempt is answered when it gets a permit.
    gate: Semaphore,
    memory: Duration,
}

impl Partner {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(Semaphore::MAX_PERMITS, DAY * 7)
    }

    /// One that answers so many attempts, until [`Partner::open`].
    pub(crate) fn closed() -> Arc<Self> {
        Self::with(0, DAY * 7)
    }

    pub(crate) fn with(permits: usize, memory: Duration) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::default(),
            always: Mutex::default(),
            got: watch::Sender::default(),
            gate: Semaphore::new(permits),
            memory,
        })
    }

    /// Lets so many attempts be answered.
    pub(crate) fn open(&self, answers: usize) {
        self.gate.add_permits(answers);
    }

    /// The next answers for a key, one after another.
    pub(crate) fn says(&self, key: &str, answers: impl IntoIterator<Item = Answer>) {
        self.script
            .lock()
            .expect("the script")
            .entry(key.to_owned())
            .or_default()
            .extend(answers);
    }

    /// The answer where there is none in the script.
    pub(crate) fn always(&self, answer: Option<Answer>) {
        *self.always.lock().expect("the answer") = answer;
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.borrow().clone()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.got.borrow().iter().map(|got| got.key.clone()).collect()
    }

    /// Comes back when it has been sent so much.
    pub(crate) async fn has_got(&self, count: usize) {
        let mut got = self.got.subscribe();
        let waited = tokio::time::timeout(super::SOON, got.wait_for(|got| got.len() >= count)).await;
        assert!(
            waited.is_ok(),
            "the partner got {} messages, not {count}",
            self.got().len()
        );
    }
}

#[async_trait]
impl Transport for Partner {
    async fn attempt(&self, message: Outgoing<'_>, how: Attempt) -> Answer {
        self.got.send_modify(|got| {
            got.push(Got {
                key: message.key.to_owned(),
                body: message.body.to_vec(),
                new_credentials: how.new_credentials,
            });
        });
        assert!(!message.body.starts_with(b"panic"), "a fault of the transport's");
        self.gate.acquire().await.expect("the gate").forget();
        let scripted = self
            .script
            .lock()
            .expect("the script")
            .get_mut(message.key)
            .and_then(VecDeque::pop_front);
        let always = self.always.lock().expect("the answer").clone();
        scripted.or(always).unwrap_or_else(yes)
    }

    fn memory(&self) -> Duration {
        self.memory
    }
}

pub(crate) fn yes() -> Answer {
    Answer {
        outcome: Outcome::Accepted,
        status: Some(202),
        rule: None,
        detail: None,
        retry: Retry::No,
        retry_after: None,
        about: About::Message,
        left: Left::Maybe,
    }
}

fn no(status: u16, rule: &str, about: About, retry: Retry, left: Left) -> Answer {
    Answer {
        outcome: Outcome::Refused,
        status: Some(status),
        rule: Some(rule.to_owned()),
        detail: Some(format!("{rule}: said the partner")),
        retry,
        retry_after: None,
        about,
        left,
    }
}

/// A final no to the message.
pub(crate) fn refused() -> Answer {
    no(400, "envelope.required", About::Message, Retry::No, Left::Nothing)
}

/// A no to the sender.
pub(crate) fn sender_refused() -> Answer {
    no(
        403,
        "producer.not_registered",
        About::Sender,
        Retry::No,
        Left::Nothing,
    )
}

/// Credentials that the partner does not take.
pub(crate) fn unauthenticated() -> Answer {
    no(
        401,
        "producer.unauthenticated",
        About::Sender,
        Retry::NewToken,
        Left::Nothing,
    )
}

/// Nothing was recorded for it; again in a moment. Final for one call.
pub(crate) fn contention() -> Answer {
    no(409, "commit.contention", About::Moment, Retry::No, Left::Nothing)
}

/// Not now.
pub(crate) fn busy() -> Answer {
    no(
        503,
        "bus.unavailable",
        About::Moment,
        Retry::Backoff,
        Left::Nothing,
    )
}

/// No answer: the message may have arrived.
pub(crate) fn cut_off() -> Answer {
    Answer {
        outcome: Outcome::NetworkError,
        status: None,
        rule: None,
        detail: Some(String::from("the connection was cut")),
        retry: Retry::Backoff,
        retry_after: None,
        about: About::Moment,
        left: Left::Maybe,
    }
}
