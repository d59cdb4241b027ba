//! Workspaces and connections: who uses the bus, and what each may do.

use serde::{Deserialize, Serialize};
use storybus_protocol::id::{ConnectionId, ConnectionKind, SecretId, WorkspaceId};

use super::filter::{Filter, TypePattern};
use super::time::Millis;

/// How many secrets of a connection may be live at a time: two, so that one can be rotated without an outage.
pub const MAX_SECRETS: usize = 2;

/// A workspace: it isolates its connections, messages, stories and queues from every other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its id, on the wire `tenant`.
    pub id: WorkspaceId,
    /// A name for people.
    pub name: String,
    /// Whether types without a schema are refused.
    pub strict_message_types: bool,
    /// When it was made.
    pub created_at: Millis,
    /// Grows with every write; an update names the one it read.
    pub version: u64,
}

/// A client of the bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its id, which is its OAuth client id.
    pub id: ConnectionId,
    /// Its workspace; operators have none.
    pub workspace: Option<WorkspaceId>,
    /// A name for people.
    pub name: String,
    /// Whether it is shut out.
    pub disabled: bool,
    /// When it was made.
    pub created_at: Millis,
    /// Its live secrets, oldest first, at most [`MAX_SECRETS`].
    pub secrets: Vec<Secret>,
    /// What it is.
    pub role: Role,
    /// Grows with every write; an update names the one it read.
    pub version: u64,
}

impl Connection {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> ConnectionKind {
        match self.role {
            Role::Producer(_) => ConnectionKind::Producer,
            Role::Consumer(_) => ConnectionKind::Consumer,
            Role::Operator => ConnectionKind::Operator,
        }
    }

    /// The AWS role that it publishes by, if it is a producer with one.
    #[must_use]
    pub fn producer_role(&self) -> Option<AwsRole<'_>> {
        match &self.role {
            Role::Producer(producer) => producer.role(),
            Role::Consumer(_) | Role::Operator => None,
        }
    }

    /// Whether it can get a token: it is enabled and has a secret.
    #[must_use]
    pub fn can_log_in(&self) -> bool {
        !self.disabled && !self.secrets.is_empty()
    }
}

/// A live secret. Only its slow salted hash is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// Its id.
    pub id: SecretId,
    /// Argon2id in the PHC string format.
    pub hash: String,
    /// When it was made.
    pub created_at: Millis,
}

/// What a connection is, with what belongs to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Role {
    /// Publishes into its workspace.
    Producer(Producer),
    /// Reads its own queue.
    Consumer(Consumer),
    /// Runs the bus.
    Operator,
}

/// What a producer may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    /// The systems it speaks for; each belongs to one producer on the whole bus.
    pub system_ids: Vec<String>,
    /// The types it may publish.
    pub message_types: Vec<TypePattern>,
    /// Its AWS role, for the IAM route (AWS engine only). A role belongs to one producer of a workspace.
    pub role_arn: Option<String>,
    /// How often it may publish.
    pub rate: Option<Rate>,
}

/// An IAM role as a signed request tells it: such a request names the session that it was assumed for, not the role's path.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AwsRole<'a> {
    /// The account, twelve digits.
    pub account: &'a str,
    /// The role's name, which is unique in the account whatever its path.
    pub name: &'a str,
}

/// An account of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwsAccount<'a> {
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: &'a str,
    /// Twelve digits.
    pub id: &'a str,
}

impl AwsAccount<'_> {
    /// Whether the role of an ARN lies in it.
    #[must_use]
    pub fn has_role(self, arn: &str) -> bool {
        let Self { partition, id } = self;
        arn.starts_with(&format!("arn:{partition}:iam::{id}:role/"))
    }
}

impl<'a> AwsRole<'a> {
    /// The role of an ARN such as `arn:aws:iam::123456789012:role/path/name`.
    #[must_use]
    pub fn of_arn(arn: &'a str) -> Option<Self> {
        let (account, path) = arn.split_once(":iam::")?.1.split_once(":role/")?;
        let name = path.rsplit('/').next()?;
        Some(Self { account, name })
    }
}

impl Producer {
    /// Its AWS role, if it has one.
    #[must_use]
    pub fn role(&self) -> Option<AwsRole<'_>> {
        self.role_arn.as_deref().and_then(AwsRole::of_arn)
    }
}

/// What a consumer gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Which messages.
    pub filter: Filter,
    /// How often a message is received before it goes to the dead letters, 1–1000.
    pub max_receives: u32,
    /// How long a received message stays hidden, 1–43,200 s.
    pub visibility_seconds: u32,
    /// Its AWS role, to read the queue itself (AWS engine only).
    pub reader_role_arn: Option<String>,
    /// Whether receives answer an empty list while messages wait.
    pub paused: bool,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Refill, requests a second.
    pub per_second: u32,
    /// Size of the bucket.
    pub burst: u32,
}
