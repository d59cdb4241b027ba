//! The ports on AWS: records, stories, registry, jobs, dead letters and the archive on DynamoDB, publication on SNS FIFO, queues on
//! SQS FIFO.
//!
//! One file a port, named as in the core. `call` says what a failed request means and when it may be made again, `config` names
//! everything of a deployment, `keys` the items of its tables. What DynamoDB, SNS and SQS do and do not promise is told where it
//! decides something, with its source.

mod arrived;
mod call;
pub mod clients;
pub mod config;
pub mod dead_letters;
mod item;
mod keys;
mod ledger;
mod pace;
pub mod queue_control;
pub mod queues;
mod rates;
pub mod resources;
mod signing_keys;
mod stories;
mod topic;
mod writes;

pub use arrived::{Arrived, REDELIVERY};
pub use clients::Aws;
pub use config::Config;
pub use dead_letters::{DynamoDeadLetters, Mover};
pub use ledger::DynamoLedger;
pub use queue_control::SqsQueueControl;
pub use queues::SqsQueues;
pub use rates::DynamoRates;
pub use signing_keys::{DynamoKeys, SecretKeys};
pub use stories::DynamoStories;
pub use topic::SnsTopic;
