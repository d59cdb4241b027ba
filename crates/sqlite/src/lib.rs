//! The ports on SQLite: the embedded bus's engine.
//!
//! A [`Store`] is one directory with one database, opened by one process. All writes go through one thread that runs
//! whatever waits as one transaction (`writer`); reads that need no write have a thread of their own (`reader`). A
//! commit is not synced by itself: the server waits at the [barrier](Store::barrier) before an answer leaves, and one sync
//! serves everything committed meanwhile (`durability`, which says why that is enough). The write-ahead log is copied into
//! the database beside all that (`checkpoint`), and what is too old goes bit by bit (`sweep`). What was published is kept
//! in compressed blocks, which a thread of its own makes (`archive`).
//!
//! The files that carry a port are named after it.

mod activity;
mod archive;
mod audit;
mod backup;
mod check;
mod checkpoint;
mod connections;
mod dead_letters;
mod directory;
mod durability;
mod error;
mod jobs;
mod ledger;
mod messages;
mod queue_control;
mod queues;
mod reader;
mod registry;
mod rows;
mod schema;
mod store;
mod stories;
mod sweep;
mod time;
mod topic;
mod workspaces;
mod writer;

pub use activity::SqliteActivityLog;
pub use archive::{ArchiveLimits, SqliteArchive};
pub use audit::SqliteAuditLog;
pub use backup::{BackupError, Copied, backup, restore};
pub use check::{Checked, Finding, check};
pub use checkpoint::CheckpointLimits;
pub use connections::SqliteConnections;
pub use dead_letters::SqliteDeadLetters;
#[doc(hidden)]
pub use durability::Point;
pub use error::OpenError;
pub use jobs::SqliteJobs;
pub use ledger::SqliteLedger;
pub use queue_control::SqliteQueueControl;
pub use queues::SqliteQueues;
pub use store::{Store, StoreOptions};
pub use stories::SqliteStories;
pub use topic::SqliteTopic;
pub use workspaces::SqliteWorkspaces;
