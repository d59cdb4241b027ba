//! Consumers.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use storybus_protocol::Violation;
use storybus_protocol::id::ConnectionKind;

use super::connections::Write;
use super::secrets::{ConnectionPath, Issued};
use super::{Actor, Page, Purpose, details, limits, refuse_faults};
use crate::bus::Bus;
use crate::domain::connection::{Connection, Consumer, Role};
use crate::domain::filter::Filter;
use crate::domain::refusal::Refusal;
use crate::domain::time::Millis;
use crate::ports::queues::MAX_VISIBILITY;

/// After so many receives a message goes to the dead letters, unless the operator says otherwise.
pub const DEFAULT_MAX_RECEIVES: u32 = 5;
/// The most receives.
pub const MAX_MAX_RECEIVES: u32 = 1000;
/// How long a received message stays hidden, in seconds, unless the operator or the receive says otherwise.
pub const DEFAULT_VISIBILITY_SECONDS: u32 = 60;

/// What an operator says of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ConsumerMembers {
    /// 1–200 characters; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The types it wants: exact, `family.*` or `*`. Empty, or not given for a new one: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_types: Option<Vec<String>>,
    /// Beginnings of `topic`, of 1–256 characters. Empty, or not given for a new one: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic_prefixes: Option<Vec<String>>,
    /// `system_id`s, of 1–256 characters. Empty, or not given for a new one: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<String>>,
    /// 1–1000; `null` for 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_receives: Option<Option<i64>>,
    /// 1–43,200 s; `null` for 60.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility_seconds: Option<Option<i64>>,
    /// Its AWS role. Kept by every engine, used on AWS alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader_role_arn: Option<Option<String>>,
    /// Whether it is shut out; only in a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Whether receives answer an empty list while messages wait; only in a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A consumer that was written, and when its filter holds for everything that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settling<T> {
    /// What was written.
    pub written: T,
    /// When the filter has settled at the latest; `None` when it holds already, or was not changed.
    pub settled_by: Option<Millis>,
}

impl ConsumerMembers {
    /// Everything that is wrong with them.
    #[must_use]
    pub fn faults(&self, purpose: Purpose) -> Vec<Violation> {
        let mut faults = Vec::new();
        match &self.name {
            Some(name) => limits::name(&mut faults, name),
            None if purpose == Purpose::Create => faults.push(limits::missing("/name")),
            None => {}
        }
        if let Some(types) = &self.message_types {
            limits::patterns(&mut faults, "/message_types", types, limits::MAX_FILTER_LIST);
        }
        if let Some(prefixes) = &self.topic_prefixes {
            limits::texts(&mut faults, "/topic_prefixes", prefixes, limits::MAX_FILTER_LIST);
        }
        if let Some(sources) = &self.sources {
            limits::texts(&mut faults, "/sources", sources, limits::MAX_FILTER_LIST);
        }
        if let Some(Some(receives)) = self.max_receives {
            limits::number(
                &mut faults,
                "/max_receives",
                receives,
                1..=i64::from(MAX_MAX_RECEIVES),
            );
        }
        if let Some(Some(seconds)) = self.visibility_seconds {
            let longest = i64::try_from(MAX_VISIBILITY.as_secs()).unwrap_or(i64::MAX);
            limits::number(&mut faults, "/visibility_seconds", seconds, 1..=longest);
        }
        if let Some(Some(arn)) = &self.reader_role_arn {
            limits::role_arn(&mut faults, "/reader_role_arn", arn);
        }
        if purpose == Purpose::Create {
            let mut consumer = new_consumer();
            self.apply(&mut consumer);
            combinations_once(&mut faults, &consumer.filter);
        }
        faults
    }

    fn apply(&self, consumer: &mut Consumer) {
        if let Some(types) = &self.message_types {
            consumer.filter.message_types = limits::parsed(types);
        }
        if let Some(prefixes) = &self.topic_prefixes {
            consumer.filter.topic_prefixes.clone_from(prefixes);
        }
        if let Some(sources) = &self.sources {
            consumer.filter.sources.clone_from(sources);
        }
        if let Some(receives) = self.max_receives {
            consumer.max_receives = in_range(receives, DEFAULT_MAX_RECEIVES);
        }
        if let Some(seconds) = self.visibility_seconds {
            consumer.visibility_seconds = in_range(seconds, DEFAULT_VISIBILITY_SECONDS);
        }
        if let Some(arn) = &self.reader_role_arn {
            consumer.reader_role_arn.clone_from(arn);
        }
        if let Some(paused) = self.paused {
            consumer.paused = paused;
        }
    }
}

/// The filter as a whole, unless one of its lists is too long by itself, which says it all.
fn combinations_once(faults: &mut Vec<Violation>, filter: &Filter) {
    let lists = ["/message_types", "/topic_prefixes", "/sources"];
    if !faults
        .iter()
        .any(|f| f.path.as_deref().is_some_and(|p| lists.contains(&p)))
    {
        limits::combinations(faults, filter);
    }
}

/// A number whose range was checked, or its default.
fn in_range(number: Option<i64>, default: u32) -> u32 {
    number.and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
}

fn new_consumer() -> Consumer {
    Consumer {
        filter: Filter::default(),
        max_receives: DEFAULT_MAX_RECEIVES,
        visibility_seconds: DEFAULT_VISIBILITY_SECONDS,
        reader_role_arn: None,
        paused: false,
    }
}

fn path<'a>(tenant: &'a str, id: &'a str) -> ConnectionPath<'a> {
    ConnectionPath {
        kind: ConnectionKind::Consumer,
        tenant: Some(tenant),
        id,
    }
}

impl Bus {
    fn consumer_faults(&self, members: &ConsumerMembers, purpose: Purpose) -> Vec<Violation> {
        let mut faults = members.faults(purpose);
        let arn = members.reader_role_arn.as_ref().and_then(Option::as_deref);
        self.role_place(&mut faults, "/reader_role_arn", arn);
        faults
    }

    /// Makes a consumer with its queue and its first secret. Every message that is accepted from when this came back goes
    /// to it if its filter matches.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, `404 tenant.not_found`, `409 consumer.limit`.
    pub async fn consumer_create(
        &self,
        actor: &Actor,
        tenant: &str,
        members: &ConsumerMembers,
    ) -> Result<Settling<Issued>, Refusal> {
        refuse_faults(self.consumer_faults(members, Purpose::Create))?;
        let mut consumer = new_consumer();
        members.apply(&mut consumer);
        let name = members.name.clone().unwrap_or_default();
        let issued = self
            .connection_create(
                actor,
                Some(tenant),
                &name,
                &Role::Consumer(consumer),
                details(members),
            )
            .await?;
        Ok(Settling {
            written: issued,
            settled_by: self.filter_settled_by(),
        })
    }

    /// When a filter that was written just now has settled, if that takes time.
    fn filter_settled_by(&self) -> Option<Millis> {
        let span = self.ports.connections.filter_settles_in();
        (!span.is_zero()).then(|| self.ports.clock.now().plus(span))
    }

    /// One consumer.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 consumer.not_found`.
    pub async fn consumer_get(&self, tenant: &str, id: &str) -> Result<Connection, Refusal> {
        self.connection_find(&path(tenant, id)).await
    }

    /// Up to `limit` consumers of a workspace behind the id `after`.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` when `after` is not an id; `404 tenant.not_found`.
    pub async fn consumer_list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Connection>, Refusal> {
        self.connection_list(ConnectionKind::Consumer, Some(tenant), after, limit)
            .await
    }

    /// Changes a consumer; what is not given stays, a list that is given replaces the former. A change that changes
    /// nothing writes nothing. A filter holds for what is accepted from then on.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, `404 tenant.not_found`, `404 consumer.not_found`.
    pub async fn consumer_update(
        &self,
        actor: &Actor,
        tenant: &str,
        id: &str,
        members: &ConsumerMembers,
    ) -> Result<Settling<Connection>, Refusal> {
        refuse_faults(self.consumer_faults(members, Purpose::Change))?;
        let write = Write {
            action: "consumer.update".to_owned(),
            part: None,
            details: details(members),
        };
        let filter_changed = AtomicBool::new(false);
        let connection = self
            .connection_change(actor, &path(tenant, id), &write, |connection| {
                if let Some(name) = &members.name {
                    connection.name.clone_from(name);
                }
                if let Some(disabled) = members.disabled {
                    connection.disabled = disabled;
                }
                if let Role::Consumer(consumer) = &mut connection.role {
                    let before = consumer.filter.clone();
                    members.apply(consumer);
                    filter_changed.store(before != consumer.filter, Ordering::Relaxed);
                    let mut faults = Vec::new();
                    combinations_once(&mut faults, &consumer.filter);
                    refuse_faults(faults)?;
                }
                Ok(())
            })
            .await?;
        Ok(Settling {
            written: connection,
            settled_by: self
                .filter_settled_by()
                .filter(|_| filter_changed.load(Ordering::Relaxed)),
        })
    }

    /// Deletes a consumer, its queue and what waits in it.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 consumer.not_found`.
    pub async fn consumer_delete(&self, actor: &Actor, tenant: &str, id: &str) -> Result<(), Refusal> {
        self.connection_delete(actor, &path(tenant, id)).await
    }
}
