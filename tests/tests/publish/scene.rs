//! Where a trial begins, and what is tried.

use std::time::Duration;

use serde_json::json;
use storybus_tests::{Fault, Freeze, Plan, Stack, Where};

/// A message, as its producer sends it each time.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: String,
    /// The number of a snapshot.
    pub(crate) sequence: Option<u64>,
    pub(crate) body: String,
}

/// What became of a message before the attempt that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// It was published.
    Published,
    /// An attempt recorded it and ended; its window is over.
    LeftOver,
}

/// Where a trial begins: which messages there are, and which of them is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    /// The numbers of the snapshots; none for events.
    pub(crate) snapshots: &'static [u64],
    /// What came before, in this order, by the place of the message.
    pub(crate) before: &'static [(usize, Before)],
    /// The place of the message that is attempted.
    pub(crate) subject: usize,
    /// The place of the other message of its story that is sent beside the retries.
    pub(crate) rival: Option<usize>,
    /// What happens to every call of a name besides.
    pub(crate) always: Option<(&'static str, Fault)>,
}

const fn scene(name: &'static str, snapshots: &'static [u64], before: &'static [(usize, Before)]) -> Scene {
    Scene {
        name,
        snapshots,
        before,
        subject: before.len(),
        rival: None,
        always: None,
    }
}

const DENIED: Option<(&str, Fault)> = Some(("Publish", Fault::Answered(403, "AuthorizationError")));
const FAILS: Option<(&str, Fault)> = Some(("Publish", Fault::Answered(500, "InternalError")));

const UNSURE: Option<(&str, Fault)> = Some(("PutItem", Fault::AnswerLost));

/// Every way in which an attempt can begin.
pub(crate) const SCENES: &[Scene] = &[
    scene("an event", &[], &[]),
    Scene {
        always: DENIED,
        ..scene("an event that the topic refuses", &[], &[])
    },
    Scene {
        always: UNSURE,
        ..scene("an event of which it is never sure that it is recorded", &[], &[])
    },
    Scene {
        subject: 0,
        ..scene("an event left over", &[], &[(0, Before::LeftOver)])
    },
    Scene {
        subject: 0,
        always: DENIED,
        ..scene(
            "an event left over that the topic refuses",
            &[],
            &[(0, Before::LeftOver)],
        )
    },
    Scene {
        subject: 0,
        ..scene("an event published", &[], &[(0, Before::Published)])
    },
    Scene {
        rival: Some(1),
        ..scene("a story's first snapshot", &[1, 2], &[])
    },
    Scene {
        rival: Some(2),
        ..scene("a snapshot", &[1, 2, 3], &[(0, Before::Published)])
    },
    Scene {
        rival: Some(2),
        always: DENIED,
        ..scene(
            "a snapshot that the topic refuses",
            &[1, 2, 3],
            &[(0, Before::Published)],
        )
    },
    Scene {
        rival: Some(2),
        always: FAILS,
        ..scene(
            "a snapshot that the topic fails on",
            &[1, 2, 3],
            &[(0, Before::Published)],
        )
    },
    Scene {
        subject: 1,
        rival: Some(2),
        ..scene(
            "a snapshot left over",
            &[1, 2, 3],
            &[(0, Before::Published), (1, Before::LeftOver)],
        )
    },
    Scene {
        subject: 1,
        rival: Some(2),
        always: DENIED,
        ..scene(
            "a snapshot left over that the topic refuses",
            &[1, 2, 3],
            &[(0, Before::Published), (1, Before::LeftOver)],
        )
    },
    Scene {
        subject: 0,
        rival: Some(2),
        ..scene(
            "a snapshot left over and overtaken",
            &[1, 2, 3],
            &[(0, Before::LeftOver), (1, Before::Published)],
        )
    },
    Scene {
        rival: Some(1),
        ..scene(
            "a snapshot after one left over",
            &[1, 2, 3],
            &[(0, Before::Published), (1, Before::LeftOver)],
        )
    },
];

/// How the retries come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retries {
    /// One client after the other.
    InTurn,
    /// Two clients with the message and one with its rival, all at once.
    AtOnce,
}

/// Everything that can happen to a call, at this window.
pub(crate) fn faults(window: Duration, call: &str) -> Vec<(&'static str, Fault)> {
    // the topic's calls have the publish time-out, the table's two seconds
    let (timeout, topic) = match call {
        "Publish" => (window / 6, true),
        _ => (Duration::from_secs(2), false),
    };
    let late = timeout + Duration::from_millis(150);
    let (brief, long) = (window / 2, window + Duration::from_millis(1500));
    let mut all = vec![
        ("killed before", Fault::KillBefore),
        ("killed after", Fault::KillAfter),
        ("request lost", Fault::RequestLost),
        ("answer lost", Fault::AnswerLost),
        ("answer late", Fault::LateAnswer(late)),
        ("request late", Fault::LateRequest(late)),
        ("never answered", Fault::Hang),
        ("failed", Fault::Answered(500, "InternalServerError")),
        (
            "failed though done",
            Fault::DeliveredBut(500, "InternalServerError"),
        ),
        ("denied", Fault::Answered(400, "AccessDeniedException")),
        ("throttled", Fault::Answered(400, "ThrottlingException")),
        ("frozen briefly, done", Fault::Frozen(Freeze::Delivered, brief)),
        ("frozen long, done", Fault::Frozen(Freeze::Delivered, long)),
        ("frozen briefly, lost", Fault::Frozen(Freeze::Lost, brief)),
        ("frozen long, lost", Fault::Frozen(Freeze::Lost, long)),
    ];
    if !topic {
        // that a request to the topic arrives soon or never is what the bus assumes
        all.push(("frozen long, held", Fault::Frozen(Freeze::Held, long)));
    }
    all
}

/// One trial.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) scene: Scene,
    pub(crate) call: usize,
    pub(crate) place: Where,
    pub(crate) call_name: String,
    pub(crate) fault_name: &'static str,
    pub(crate) fault: Fault,
    pub(crate) retries: Retries,
}

impl Trial {
    pub(crate) fn name(&self) -> String {
        format!(
            "{}: call {} ({}) {}, retries {:?}",
            self.scene.name, self.call, self.call_name, self.fault_name, self.retries
        )
    }

    /// What happens to the attempt.
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            always: self.scene.always,
            ..Plan::at(self.place, self.fault)
        }
    }
}

/// The messages of a trial: ids that no other trial has.
pub(crate) fn messages(scene: &Scene, number: u32) -> Vec<Message> {
    let id = |n: u64| format!("{number:08x}-0000-4000-8000-{n:012x}");
    let correlation = id(0xfff);
    if scene.snapshots.is_empty() {
        let body = Stack::envelope(&id(1), &correlation, "desk.note", &json!({ "text": "one" }));
        return vec![Message {
            id: id(1),
            sequence: None,
            body,
        }];
    }
    let snapshots = scene.snapshots.iter().map(|n| {
        let payload = json!({
            "story_id": format!("story {number}"),
            "slug": "S",
            "headline": format!("headline {n}"),
            "story_type": "PLANNED",
            "sequence_number": n,
            "updated_at": "2026-09-11T16:41:00Z",
        });
        Message {
            id: id(*n),
            sequence: Some(*n),
            body: Stack::envelope(&id(*n), &correlation, "story.context", &payload),
        }
    });
    snapshots.collect()
}
