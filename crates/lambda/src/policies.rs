//! What each function asks of AWS, part by part: the ports of [`wiring`](crate::wiring), and what it has beside them.
//!
//! The roles in the template allow exactly this: `tests/policies.rs` reads the template, and fails when it grants more and when it grants
//! less. That the lists of the parts are right is for the local stack to say, which holds every role to its policy
//! (`local-aws/policies`).

use storybus_aws::grants::{self, Grants};

/// Each function with its parts. A part that is no port of it says in its name what it is for.
pub const PARTS: &[(&str, &[(&str, Grants)])] = &[
    (
        "publish",
        &[
            ("ledger", grants::LEDGER),
            ("topic", grants::TOPIC),
            ("activity", grants::ACTIVITY_NOTE),
            ("workspaces", grants::REGISTRY_LOOK),
            ("connections", grants::REGISTRY_LOOK),
            ("rates", grants::RATES),
            ("keys", grants::PUBLIC_KEYS),
        ],
    ),
    (
        "pull",
        &[
            ("queues", grants::QUEUES),
            ("archive, for what is rejected", grants::ARCHIVE_ONE),
            ("workspaces", grants::REGISTRY_LOOK),
            ("connections", grants::REGISTRY_LOOK),
            ("keys", grants::PUBLIC_KEYS),
        ],
    ),
    (
        "token",
        &[
            ("connections", grants::REGISTRY_LOOK),
            ("rates", grants::RATES),
            ("hasher", grants::HASHER),
            ("keys", grants::SECRET_KEYS),
        ],
    ),
    (
        "admin",
        &[
            ("ledger", grants::LEDGER_READ),
            ("queues", grants::QUEUES_COUNT),
            ("queue_control", grants::QUEUE_CONTROL),
            ("dead_letters", grants::DEAD_LETTERS_READ),
            ("archive", grants::ARCHIVE_LISTS),
            ("stories", grants::STORIES),
            ("jobs", grants::JOBS),
            ("activity", grants::ACTIVITY_READ),
            ("workspaces", grants::REGISTRY),
            ("connections", grants::REGISTRY),
            ("audit", grants::AUDIT),
            ("hasher", grants::HASHER),
            ("keys", grants::PUBLIC_KEYS),
        ],
    ),
    (
        "replay",
        &[
            ("queue_control", grants::QUEUE_DELIVER),
            ("archive", grants::ARCHIVE_RANGES),
            ("jobs", grants::JOBS_STEP),
            ("connections", grants::REGISTRY_LOOK),
            ("messages of its queue", grants::FED_BY_REPLAYS),
            ("its next message", grants::REPLAY_ONWARD),
        ],
    ),
    (
        "redrive",
        &[
            ("queue_control", grants::QUEUE_DELIVER),
            ("dead_letters", grants::DEAD_LETTERS_TAKE),
            ("jobs", grants::JOBS_STEP),
            ("connections", grants::REGISTRY_LOOK),
            ("messages of its queue", grants::FED_BY_REDRIVES),
            ("its next message", grants::REDRIVE_ONWARD),
        ],
    ),
    (
        "archive",
        &[
            ("archiver", grants::ARCHIVE_WRITE),
            ("messages of its queue", grants::FED_BY_ARCHIVE),
        ],
    ),
    (
        "dead-letters",
        &[
            ("mover", grants::DEAD_LETTERS_MOVE),
            ("messages of its queue", grants::FED_BY_DEAD_LETTERS),
        ],
    ),
    ("activity", &[("refusals of a log", grants::ACTIVITY_STORE)]),
    (
        "setup",
        &[
            ("the first keys", grants::SECRET_KEYS_MAKE),
            ("sweeper and teardown", grants::SWEEPER),
            ("how far the archive is whole", grants::ARCHIVE_WATERMARK),
        ],
    ),
];
