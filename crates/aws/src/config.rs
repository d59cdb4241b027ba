//! Where the bus lies: names of one deployment, from which every ARN and URL follows without a lookup.

use std::time::Duration;

use storybus_protocol::id::{ConnectionId, WorkspaceId};

/// What [`Config::archive_settle`] is unless a deployment knows better: SQS's counts lag by up to a minute.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html>
pub const ARCHIVE_SETTLE: Duration = Duration::from_secs(60);

/// The names of a deployment. Everything that belongs to it begins with its prefix, so that its policies can name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The first part of every name: the stack's name, at most 40 of `[A-Za-z0-9-]`, so that a queue's name stays under 80.
    pub prefix: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// Such as `eu-central-1`.
    pub region: String,
    /// Twelve digits.
    pub account: String,
    /// What queue URLs begin with, without a slash at the end: `https://sqs.<region>.amazonaws.com`, or a local endpoint.
    pub queue_endpoint: String,
    /// The table of records, stories, registry, jobs and dead letters.
    pub table: String,
    /// The table of the archive.
    pub archive_table: String,
    /// How long the archive keeps a message, and how far back a replay reaches.
    pub archive_retention: Duration,
    /// How long after a publication it is certainly in the archive's queue, and in its counts.
    pub archive_settle: Duration,
    /// The secret with the keys that sign tokens: its name or ARN.
    pub signing_keys: String,
    /// The SNS topic that a consumer's alarms tell; none: alarms are only shown.
    pub alarm_topic: Option<String>,
}

impl Config {
    /// A workspace's topic.
    #[must_use]
    pub fn topic_arn(&self, workspace: &WorkspaceId) -> String {
        self.arn("sns", &self.topic_name(workspace))
    }

    /// Its name.
    #[must_use]
    pub fn topic_name(&self, workspace: &WorkspaceId) -> String {
        format!("{}-{workspace}.fifo", self.prefix)
    }

    /// The name of a consumer's queue.
    #[must_use]
    pub fn queue_name(&self, consumer: &ConnectionId) -> String {
        format!("{}-{consumer}.fifo", self.prefix)
    }

    /// The name of the queue for what the topic could not deliver to a consumer.
    #[must_use]
    pub fn undelivered_name(&self, consumer: &ConnectionId) -> String {
        format!("{}-{consumer}-undelivered.fifo", self.prefix)
    }

    /// The one queue into which every consumer's queue drops what was received too often.
    #[must_use]
    pub fn dead_letters_name(&self) -> String {
        format!("{}-dead-letters.fifo", self.prefix)
    }

    /// The queue that feeds the archive.
    #[must_use]
    pub fn archive_queue_name(&self) -> String {
        format!("{}-archive.fifo", self.prefix)
    }

    /// The queue for what a topic could not deliver to the archive's.
    #[must_use]
    pub fn archive_undelivered_name(&self) -> String {
        format!("{}-archive-undelivered.fifo", self.prefix)
    }

    /// The queue that drives the jobs of a kind: `replay` or `redrive`.
    #[must_use]
    pub fn job_queue_name(&self, kind: &str) -> String {
        format!("{}-{kind}.fifo", self.prefix)
    }

    /// The URL of a queue of this account.
    #[must_use]
    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.queue_endpoint, self.account)
    }

    /// The ARN of a queue of this account.
    #[must_use]
    pub fn queue_arn(&self, name: &str) -> String {
        self.arn("sqs", name)
    }

    fn arn(&self, service: &str, name: &str) -> String {
        let Self {
            partition,
            region,
            account,
            ..
        } = self;
        format!("arn:{partition}:{service}:{region}:{account}:{name}")
    }
}
