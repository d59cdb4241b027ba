//! The ports on AWS: records, stories, registry, jobs, dead letters and the archive on DynamoDB, publication on SNS FIFO, queues on
//! SQS FIFO.
//!
//! One file a port, named as in the core. `call` says what a failed request means and when it may be made again, `config` names
//! everything of a deployment, `keys` the items of its tables. What DynamoDB, SNS and SQS do and do not promise is told where it
//! decides something, with its source.

pub mod activity;
mod archive;
mod arrived;
mod audit;
pub mod cached;
mod call;
pub mod clients;
pub mod config;
mod connections;
pub mod dead_letters;
pub mod grants;
mod item;
mod jobs;
mod keys;
mod ledger;
mod mender;
mod pace;
mod pending;
mod query;
pub mod queue_control;
pub mod queues;
mod rates;
pub mod registry;
pub mod resources;
mod signing_keys;
mod stories;
pub mod sweeper;
mod teardown;
mod topic;
mod workspaces;
mod writes;

pub use activity::DynamoActivity;
pub use archive::{Archiver, DynamoArchive};
pub use arrived::{Arrived, REDELIVERY};
pub use audit::DynamoAudit;
pub use cached::{CachedConnections, CachedWorkspaces};
pub use clients::Aws;
pub use config::{ARCHIVE_SETTLE, Config};
pub use connections::DynamoConnections;
pub use dead_letters::{DynamoDeadLetters, Moved, Mover};
pub use jobs::DynamoJobs;
pub use ledger::DynamoLedger;
pub use queue_control::SqsQueueControl;
pub use queues::SqsQueues;
pub use rates::DynamoRates;
pub use signing_keys::{DynamoKeys, SecretKeys, Signs};
pub use stories::DynamoStories;
pub use sweeper::Sweeper;
pub use topic::SnsTopic;
pub use workspaces::DynamoWorkspaces;
