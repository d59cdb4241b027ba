//! What the bus needs from an engine, one trait a role.
//!
//! A method says what is atomic, which order holds, what a repeated call does and which errors come back. What a caller
//! may rely on is what the suites of the testkit check, over every engine alike.

pub mod activity;
pub mod archive;
pub mod audit;
pub mod clock;
pub mod connections;
pub mod dead_letters;
pub mod error;
pub mod jobs;
pub mod keys;
pub mod ledger;
pub mod queue_control;
pub mod queues;
pub mod random;
pub mod rates;
pub mod secret_hasher;
pub mod stories;
pub mod topic;
pub mod workspaces;

pub use activity::ActivityLog;
pub use archive::Archive;
pub use audit::AuditLog;
pub use clock::Clock;
pub use connections::Connections;
pub use dead_letters::DeadLetters;
pub use error::StoreError;
pub use jobs::Jobs;
pub use keys::SigningKeys;
pub use ledger::Ledger;
pub use queue_control::QueueControl;
pub use queues::Queues;
pub use random::Random;
pub use rates::Rates;
pub use secret_hasher::SecretHasher;
pub use stories::Stories;
pub use topic::Topic;
pub use workspaces::Workspaces;
