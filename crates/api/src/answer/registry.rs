//! Workspaces and connections as the operator API shows them: all members, `null` where nothing is set, no secret.

use serde::Serialize;
use storybus_core::domain::connection::{Connection, Rate, Role, Secret, Workspace};
use storybus_core::domain::filter::TypePattern;
use storybus_core::domain::time::Millis;
use storybus_core::ops::admin::{Issued, NewSecret, Page, QueueStatus, Settling};
use storybus_core::ports::audit::AuditEntry;
use storybus_protocol::id::{ConnectionId, SecretId, WorkspaceId};

/// A workspace.
#[derive(Serialize)]
pub(crate) struct Tenant<'a> {
    tenant: &'a WorkspaceId,
    name: &'a str,
    strict_message_types: bool,
    created_at: String,
}

impl<'a> From<&'a Workspace> for Tenant<'a> {
    fn from(workspace: &'a Workspace) -> Self {
        Self {
            tenant: &workspace.id,
            name: &workspace.name,
            strict_message_types: workspace.strict_message_types,
            created_at: workspace.created_at.to_rfc3339(),
        }
    }
}

/// A connection.
#[derive(Serialize)]
pub(crate) struct Client<'a> {
    client_id: &'a ConnectionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a WorkspaceId>,
    name: &'a str,
    #[serde(flatten)]
    role: ClientRole<'a>,
    disabled: bool,
    created_at: String,
}

/// What only one kind has.
#[derive(Serialize)]
#[serde(untagged)]
enum ClientRole<'a> {
    Producer {
        system_ids: &'a [String],
        message_types: &'a [TypePattern],
        role_arn: Option<&'a str>,
        rate: Option<Rate>,
    },
    Consumer {
        message_types: &'a [TypePattern],
        topic_prefixes: &'a [String],
        sources: &'a [String],
        max_receives: u32,
        visibility_seconds: u32,
        reader_role_arn: Option<&'a str>,
        paused: bool,
    },
    Operator {},
}

impl<'a> From<&'a Connection> for Client<'a> {
    fn from(connection: &'a Connection) -> Self {
        let role = match &connection.role {
            Role::Producer(producer) => ClientRole::Producer {
                system_ids: &producer.system_ids,
                message_types: &producer.message_types,
                role_arn: producer.role_arn.as_deref(),
                rate: producer.rate,
            },
            Role::Consumer(consumer) => ClientRole::Consumer {
                message_types: &consumer.filter.message_types,
                topic_prefixes: &consumer.filter.topic_prefixes,
                sources: &consumer.filter.sources,
                max_receives: consumer.max_receives,
                visibility_seconds: consumer.visibility_seconds,
                reader_role_arn: consumer.reader_role_arn.as_deref(),
                paused: consumer.paused,
            },
            Role::Operator => ClientRole::Operator {},
        };
        Self {
            client_id: &connection.id,
            tenant: connection.workspace.as_ref(),
            name: &connection.name,
            role,
            disabled: connection.disabled,
            created_at: connection.created_at.to_rfc3339(),
        }
    }
}

/// A new connection with its first secret: the only answer that shows it.
#[derive(Serialize)]
pub(crate) struct NewClient<'a> {
    client_secret: &'a str,
    secret_id: &'a SecretId,
    #[serde(flatten)]
    client: Client<'a>,
}

impl<'a> From<&'a Issued> for NewClient<'a> {
    fn from(issued: &'a Issued) -> Self {
        Self {
            client_secret: &issued.secret.secret,
            secret_id: &issued.secret.id,
            client: Client::from(&issued.connection),
        }
    }
}

/// A consumer that was made or changed, with when its filter has settled.
#[derive(Serialize)]
pub(crate) struct Settled<V> {
    #[serde(flatten)]
    client: V,
    #[serde(skip_serializing_if = "Option::is_none")]
    settled_by: Option<String>,
}

impl<'a, T, V: From<&'a T>> From<&'a Settling<T>> for Settled<V> {
    fn from(settling: &'a Settling<T>) -> Self {
        Self {
            client: V::from(&settling.written),
            settled_by: settling.settled_by.map(Millis::to_rfc3339),
        }
    }
}

/// A new secret: the only answer that shows it.
#[derive(Serialize)]
pub(crate) struct ShownSecret<'a> {
    secret_id: &'a SecretId,
    client_secret: &'a str,
    created_at: String,
}

impl<'a> From<&'a NewSecret> for ShownSecret<'a> {
    fn from(new: &'a NewSecret) -> Self {
        Self {
            secret_id: &new.id,
            client_secret: &new.secret,
            created_at: new.created_at.to_rfc3339(),
        }
    }
}

/// A secret that is live.
#[derive(Serialize)]
pub(crate) struct LiveSecret<'a> {
    secret_id: &'a SecretId,
    created_at: String,
}

impl<'a> From<&'a Secret> for LiveSecret<'a> {
    fn from(secret: &'a Secret) -> Self {
        Self {
            secret_id: &secret.id,
            created_at: secret.created_at.to_rfc3339(),
        }
    }
}

/// How full a queue is.
#[derive(Serialize)]
pub(crate) struct Queue {
    visible: u64,
    in_flight: u64,
    dead_lettered: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_age_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_url: Option<String>,
}

impl From<QueueStatus> for Queue {
    fn from(status: QueueStatus) -> Self {
        Self {
            visible: status.visible,
            in_flight: status.in_flight,
            dead_lettered: status.dead_lettered,
            oldest_age_seconds: status.oldest_age.map(|age| age.as_secs()),
            queue_url: status.url,
        }
    }
}

/// A write.
#[derive(Serialize)]
pub(crate) struct Audited<'a> {
    at: String,
    actor: &'a str,
    action: &'a str,
    subject: &'a [String],
    details: &'a serde_json::Value,
}

impl<'a> From<&'a AuditEntry> for Audited<'a> {
    fn from(entry: &'a AuditEntry) -> Self {
        Self {
            at: entry.at.to_rfc3339(),
            actor: &entry.actor,
            action: &entry.action,
            subject: &entry.subject,
            details: &entry.details,
        }
    }
}

/// A list as it is shown: a member of the list's name, and `next` when there is more.
pub(crate) fn list<'a, T: 'a, V: Serialize + From<&'a T>>(
    name: &'static str,
    entries: &'a [T],
    next: Option<&str>,
) -> impl Serialize {
    let entries: Vec<V> = entries.iter().map(V::from).collect();
    ListOf {
        name,
        entries,
        next: next.map(str::to_owned),
    }
}

/// A page as it is shown.
pub(crate) fn page<'a, T: 'a, V: Serialize + From<&'a T>>(
    name: &'static str,
    page: &'a Page<T>,
) -> impl Serialize {
    list::<T, V>(name, &page.entries, page.next.as_deref())
}

struct ListOf<V> {
    name: &'static str,
    entries: Vec<V>,
    next: Option<String>,
}

impl<V: Serialize> Serialize for ListOf<V> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            [(self.name, Member::Entries(&self.entries))]
                .into_iter()
                .chain(self.next.as_deref().map(|next| ("next", Member::Next(next)))),
        )
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Member<'a, V> {
    Entries(&'a [V]),
    Next(&'a str),
}
