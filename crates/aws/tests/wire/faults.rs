//! What the ledger says when requests are lost, late, refused or throttled: each of its calls, with each of these faults.

use std::time::Duration;

use futures::future::join_all;
use storybus_aws::{Aws, DynamoLedger};
use storybus_core::domain::record::{
    ContentHash, RECORD_LIFETIME, Record, RecordKey, RecordState, Story, StoryKey, Token,
};
use storybus_core::domain::time::Millis;
use storybus_core::ports::ledger::{
    GiveBack, Marking, NewClaim, NewRecord, PutBack, Reading, Recorded, Removal, StoryMove, Supersession,
    Written,
};
use storybus_core::ports::{Ledger, StoreError};
use storybus_testkit::suite::sample;

use crate::proxy::{Fault, Proxy};
use crate::{Wire, engine};

const NOW: Millis = Millis(1_789_144_860_000);
const WINDOW: Duration = Duration::from_secs(30);
/// Longer than one try waits.
const TOO_LATE: Duration = Duration::from_millis(2_300);

/// A call of the ledger that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    RecordEvent,
    RecordFirstSnapshot,
    RecordNextSnapshot,
    ClaimEvent,
    ClaimSnapshot,
    Supersede,
    RemoveEvent,
    RemoveFirstSnapshot,
    RemoveNextSnapshot,
    GiveBack,
    Mark,
}

use Call::{
    ClaimEvent, ClaimSnapshot, Mark, RecordEvent, RecordFirstSnapshot, RecordNextSnapshot, RemoveEvent,
    RemoveFirstSnapshot, RemoveNextSnapshot, Supersede,
};

const CALLS: [Call; 11] = [
    RecordEvent,
    RecordFirstSnapshot,
    RecordNextSnapshot,
    ClaimEvent,
    ClaimSnapshot,
    Supersede,
    RemoveEvent,
    RemoveFirstSnapshot,
    RemoveNextSnapshot,
    Call::GiveBack,
    Mark,
];

fn token(n: u8) -> Token {
    Token([n; 16])
}

fn key(n: u64) -> RecordKey {
    RecordKey {
        workspace: "w1".parse().unwrap(),
        message_id: sample::message_id(n),
    }
}

fn story() -> StoryKey {
    StoryKey {
        workspace: "w1".parse().unwrap(),
        digest: [9; 16],
    }
}

/// Message `n`, recorded at this time by attempt `n`; snapshots move the story from version `100 + n - 1` to `100 + n`.
fn new(n: u8, snapshot: bool, now: Millis) -> NewRecord {
    let moved = StoryMove {
        key: story(),
        story_id: "s".to_owned(),
        read: (n > 1).then(|| (token(100 + n - 1), sample::message_id(u64::from(n) - 1))),
        state: sample::story_state(u64::from(n)),
        version: token(100 + n),
    };
    NewRecord {
        key: key(n.into()),
        record: Record {
            content_hash: ContentHash([7; 32]),
            state: RecordState::Recorded,
            recorded_at: now,
            attempt: token(n),
            story: snapshot.then_some([9; 16]),
            producer: "p1".parse().unwrap(),
            published_at: None,
            expires_at: now.plus(RECORD_LIFETIME),
        },
        story: snapshot.then_some(moved),
        now,
        window: WINDOW,
    }
}

impl Call {
    /// What must be there before. The last message of it is the one the call is about.
    async fn prepare(self, ledger: &DynamoLedger) {
        let record = async |n, snapshot, now| {
            let recorded = ledger.record(&new(n, snapshot, now)).await.unwrap();
            assert_eq!(recorded, Recorded::Done);
        };
        let before = Millis(NOW.0 - 60_000);
        match self {
            RecordEvent | RecordFirstSnapshot => {}
            RecordNextSnapshot | ClaimSnapshot => record(1, true, before).await,
            ClaimEvent => record(1, false, before).await,
            Supersede | RemoveNextSnapshot => {
                record(1, true, before).await;
                record(2, true, NOW).await;
            }
            RemoveFirstSnapshot => record(1, true, NOW).await,
            RemoveEvent | Call::GiveBack | Mark => record(1, false, NOW).await,
        }
    }

    async fn make(self, ledger: &DynamoLedger) -> Result<Made, StoreError> {
        let recorded = |recorded| match recorded {
            Recorded::Done => Made::Done,
            Recorded::Known(_) | Recorded::StoryMoved => Made::Lost,
        };
        let written = |written| match written {
            Written::Done => Made::Done,
            Written::Lost => Made::Lost,
        };
        match self {
            RecordEvent => ledger.record(&new(1, false, NOW)).await.map(recorded),
            RecordFirstSnapshot => ledger.record(&new(1, true, NOW)).await.map(recorded),
            RecordNextSnapshot => ledger.record(&new(2, true, NOW)).await.map(recorded),
            ClaimEvent | ClaimSnapshot => {
                let claim = NewClaim {
                    key: key(1),
                    read: token(1),
                    attempt: token(50),
                    story: (self == ClaimSnapshot).then(|| (story(), token(101))),
                    now: NOW,
                    expires_at: NOW.plus(RECORD_LIFETIME),
                };
                ledger.claim(&claim).await.map(written)
            }
            Supersede => {
                let supersession = Supersession {
                    key: key(1),
                    read: token(1),
                    story: (story(), token(102)),
                    version: token(150),
                    now: NOW,
                };
                ledger.supersede(&supersession).await.map(written)
            }
            RemoveEvent | RemoveFirstSnapshot => {
                let back = PutBack {
                    key: story(),
                    version: token(101),
                    story: None,
                };
                let removal = removal(1, (self == RemoveFirstSnapshot).then_some(back));
                ledger.remove(&removal).await.map(written)
            }
            RemoveNextSnapshot => {
                let back = PutBack {
                    key: story(),
                    version: token(102),
                    story: Some(Story {
                        state: sample::story_state(1),
                        head: sample::message_id(1),
                        version: token(150),
                    }),
                };
                ledger.remove(&removal(2, Some(back))).await.map(written)
            }
            Call::GiveBack => {
                let back = GiveBack {
                    key: key(1),
                    attempt: token(1),
                    new_attempt: token(50),
                    recorded_at: Millis(NOW.0 - 60_000),
                    now: NOW,
                };
                ledger.give_back(&back).await.map(written)
            }
            Mark => {
                let marking = Marking {
                    key: key(1),
                    attempt: token(1),
                    now: NOW,
                    expires_at: NOW.plus(RECORD_LIFETIME),
                };
                ledger.mark(&marking).await.map(written)
            }
        }
    }
}

fn removal(n: u8, story: Option<PutBack>) -> Removal {
    Removal {
        key: key(n.into()),
        attempt: token(n),
        story,
        now: NOW,
        window: WINDOW,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Done,
    Lost,
}

/// All that the calls may change.
async fn all(aws: &Aws) -> Vec<Reading> {
    let ledger = aws.ledger();
    let story = story();
    let read = async |n| ledger.read(&key(n), Some(&story), NOW).await.unwrap();
    vec![read(1).await, read(2).await]
}

/// What the call leaves behind when nothing goes wrong.
async fn after(call: Call) -> Vec<Reading> {
    let aws = engine::deployment().await;
    call.prepare(&aws.ledger()).await;
    assert_eq!(call.make(&aws.ledger()).await.unwrap(), Made::Done, "{call:?}");
    all(&aws).await
}

/// What came back: done, lost, or an error by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Done,
    Lost,
    Unavailable,
    Unknown,
    Internal,
}

fn told(made: &Result<Made, StoreError>) -> Told {
    match made {
        Ok(Made::Done) => Told::Done,
        Ok(Made::Lost) => Told::Lost,
        Err(StoreError::Unavailable { .. } | StoreError::QueueGone { .. }) => Told::Unavailable,
        Err(StoreError::Unknown { .. }) => Told::Unknown,
        Err(StoreError::Internal { .. }) => Told::Internal,
    }
}

/// Whether it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    Written,
    NotWritten,
}

/// Makes each call with the proxy set up so, on a deployment of its own, and looks at what it says and at what is there then.
async fn each(set_up: impl AsyncFn(&Proxy), expected: Told, is: Is) {
    each_of(&CALLS, set_up, expected, is).await;
}

async fn each_of(calls: &[Call], set_up: impl AsyncFn(&Proxy), expected: Told, is: Is) {
    join_all(calls.iter().map(async |&call| {
        let wire = Wire::new().await;
        call.prepare(&wire.direct.ledger()).await;
        let before = all(&wire.direct).await;
        set_up(&wire.proxy).await;
        let made = call.make(&wire.aws.ledger()).await;
        assert_eq!(told(&made), expected, "{call:?}: {made:?}");
        let wanted = match is {
            Is::Written => after(call).await,
            Is::NotWritten => before,
        };
        assert_eq!(all(&wire.direct).await, wanted, "{call:?}");
    }))
    .await;
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_finds_itself() {
    each(
        async |proxy| proxy.plan([Fault::AnswerLost]),
        Told::Done,
        Is::Written,
    )
    .await;
    each(
        async |proxy| proxy.plan([Fault::AnswerLost, Fault::AnswerLost]),
        Told::Done,
        Is::Written,
    )
    .await;
}

#[tokio::test]
async fn a_write_whose_answer_came_too_late_finds_itself() {
    each(
        async |proxy| proxy.plan([Fault::Late(TOO_LATE)]),
        Told::Done,
        Is::Written,
    )
    .await;
}

#[tokio::test]
async fn a_write_that_was_done_and_answered_as_failed_finds_itself() {
    for (status, code) in [(500, "InternalServerError"), (503, "ServiceUnavailable")] {
        each(
            async |proxy| proxy.plan([Fault::DeliveredBut(status, code)]),
            Told::Done,
            Is::Written,
        )
        .await;
    }
}

#[tokio::test]
async fn a_write_that_never_arrived_is_made_again() {
    for fault in [
        Fault::RequestLost,
        Fault::Answered(500, "InternalServerError"),
        Fault::Answered(400, "ThrottlingException"),
        Fault::Answered(400, "ProvisionedThroughputExceededException"),
        Fault::Answered(400, "TransactionConflictException"),
        Fault::Answered(400, "TransactionInProgressException"),
    ] {
        each(async |proxy| proxy.plan([fault]), Told::Done, Is::Written).await;
    }
}

#[tokio::test]
async fn a_write_that_may_have_arrived_is_unknown_when_the_time_is_over() {
    each(
        async |proxy| proxy.always(Fault::AnswerLost),
        Told::Unknown,
        Is::Written,
    )
    .await;
    each(
        async |proxy| proxy.always(Fault::Answered(500, "InternalServerError")),
        Told::Unknown,
        Is::NotWritten,
    )
    .await;
    each(
        async |proxy| proxy.always(Fault::RequestLost),
        Told::Unknown,
        Is::NotWritten,
    )
    .await;
}

/// Whatever the last try came to: an earlier one may have arrived.
#[tokio::test]
async fn one_uncertain_try_makes_a_write_unknown() {
    for (status, code) in [
        (400, "ThrottlingException"),
        (400, "AccessDeniedException"),
        (400, "IdempotentParameterMismatchException"),
    ] {
        let set_up = async |proxy: &Proxy| {
            proxy.always(Fault::Answered(status, code));
            proxy.first(Fault::AnswerLost);
        };
        each(set_up, Told::Unknown, Is::Written).await;
    }
}

#[tokio::test]
async fn a_write_that_surely_never_arrived_is_unavailable() {
    each(
        async |proxy| proxy.refuse().await,
        Told::Unavailable,
        Is::NotWritten,
    )
    .await;
    for code in ["ThrottlingException", "TransactionConflictException"] {
        each(
            async |proxy| proxy.always(Fault::Answered(400, code)),
            Told::Unavailable,
            Is::NotWritten,
        )
        .await;
    }
}

#[tokio::test]
async fn what_may_not_be_done_is_our_own_fault() {
    for code in [
        "AccessDeniedException",
        "ResourceNotFoundException",
        "ValidationException",
    ] {
        each(
            async |proxy| proxy.always(Fault::Answered(400, code)),
            Told::Internal,
            Is::NotWritten,
        )
        .await;
    }
}

#[tokio::test]
async fn a_table_that_is_not_there_is_our_own_fault() {
    let wire = Wire::new().await;
    let mut config = wire.direct.config().clone();
    config.table = "none".to_owned();
    let ledger = Aws::new(&engine::shared(), config).ledger();
    for call in CALLS {
        let made = call.make(&ledger).await;
        assert_eq!(told(&made), Told::Internal, "{call:?}: {made:?}");
    }
    let read = ledger.read(&key(1), Some(&story()), NOW).await;
    assert!(matches!(read, Err(StoreError::Internal { .. })), "{read:?}");
    let read = ledger.read(&key(1), None, NOW).await;
    assert!(matches!(read, Err(StoreError::Internal { .. })), "{read:?}");
}

/// A read changes nothing: it is made again, and is unavailable when the time is over.
#[tokio::test]
async fn a_read_is_made_again() {
    let wire = Wire::new().await;
    Supersede.prepare(&wire.direct.ledger()).await;
    let (ledger, story) = (wire.aws.ledger(), story());
    let read = async || ledger.read(&key(1), Some(&story), NOW).await;
    let expected = read().await.unwrap();
    assert_eq!(wire.proxy.seen(), ["TransactGetItems", "GetItem"]);
    for at in 0..2 {
        for fault in [
            Fault::AnswerLost,
            Fault::RequestLost,
            Fault::Late(TOO_LATE),
            Fault::Answered(500, "InternalServerError"),
            Fault::Answered(400, "ThrottlingException"),
        ] {
            wire.proxy
                .plan(std::iter::repeat_n(Fault::None, at).chain([fault]));
            assert_eq!(read().await.unwrap(), expected, "{fault:?} at {at}");
            assert_eq!(wire.proxy.seen().len(), 3);
        }
    }
    wire.proxy.always(Fault::Answered(400, "AccessDeniedException"));
    assert!(matches!(read().await, Err(StoreError::Internal { .. })));
    wire.proxy.always(Fault::AnswerLost);
    assert!(matches!(read().await, Err(StoreError::Unavailable { .. })));
    wire.proxy.refuse().await;
    assert!(matches!(read().await, Err(StoreError::Unavailable { .. })));
}

/// A call that lost to a rival says so, though its own first answer was lost, too.
#[tokio::test]
async fn a_repetition_does_not_hide_a_rival() {
    let wire = Wire::new().await;
    ClaimEvent.prepare(&wire.direct.ledger()).await;
    let rival = NewClaim {
        key: key(1),
        read: token(1),
        attempt: token(60),
        story: None,
        now: NOW,
        expires_at: NOW.plus(RECORD_LIFETIME),
    };
    assert_eq!(wire.direct.ledger().claim(&rival).await.unwrap(), Written::Done);
    for call in [ClaimEvent, Mark, Call::GiveBack, RemoveEvent, RecordEvent] {
        wire.proxy.plan([Fault::AnswerLost]);
        assert_eq!(
            call.make(&wire.aws.ledger()).await.unwrap(),
            Made::Lost,
            "{call:?}"
        );
    }
    let record = all(&wire.direct).await[0].record.clone().unwrap();
    assert_eq!(record.attempt, token(60));
}
