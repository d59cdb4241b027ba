//! Producers.

use serde::Serialize;
use storybus_protocol::id::ConnectionKind;
use storybus_protocol::{Violation, rule};

use super::connections::Write;
use super::secrets::{ConnectionPath, Issued};
use super::{Actor, Page, Purpose, details, limits, refuse_faults};
use crate::bus::Bus;
use crate::domain::connection::{Connection, Producer, Rate, Role};
use crate::domain::refusal::{Refusal, RefusalKind};

/// What an operator says of a producer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ProducerMembers {
    /// 1–200 characters; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The systems it speaks for, at most 50 of 1–256 characters; a new one must have the list, which may be empty. Each
    /// belongs to one producer on the whole bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_ids: Option<Vec<String>>,
    /// The types it may publish, at most 150: exact, `family.*` or `*`; a new one must have the list. An empty one grants
    /// nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_types: Option<Vec<String>>,
    /// Its AWS role. Kept by every engine, used on AWS alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<Option<String>>,
    /// How often it may publish; `null` for as often as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<RateMembers>>,
    /// Whether it is shut out; only in a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}

/// A token bucket as given: both 1–1,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RateMembers {
    /// Refill, requests a second.
    pub per_second: i64,
    /// Size of the bucket.
    pub burst: i64,
}

impl ProducerMembers {
    /// Everything that is wrong with them.
    #[must_use]
    pub fn faults(&self, purpose: Purpose) -> Vec<Violation> {
        let mut faults = Vec::new();
        let absent = |path: &str| (purpose == Purpose::Create).then(|| limits::missing(path));
        match &self.name {
            Some(name) => limits::name(&mut faults, name),
            None => faults.extend(absent("/name")),
        }
        match &self.system_ids {
            Some(ids) => limits::texts(&mut faults, "/system_ids", ids, limits::MAX_SYSTEM_IDS),
            None => faults.extend(absent("/system_ids")),
        }
        match &self.message_types {
            Some(types) => limits::patterns(&mut faults, "/message_types", types, limits::MAX_GRANTS),
            None => faults.extend(absent("/message_types")),
        }
        if let Some(Some(arn)) = &self.role_arn {
            limits::role_arn(&mut faults, "/role_arn", arn);
        }
        if let Some(Some(rate)) = &self.rate {
            limits::number(
                &mut faults,
                "/rate/per_second",
                rate.per_second,
                1..=limits::MAX_RATE,
            );
            limits::number(&mut faults, "/rate/burst", rate.burst, 1..=limits::MAX_RATE);
        }
        faults
    }

    fn apply(&self, producer: &mut Producer) {
        if let Some(ids) = &self.system_ids {
            producer.system_ids.clone_from(ids);
        }
        if let Some(types) = &self.message_types {
            producer.message_types = limits::parsed(types);
        }
        if let Some(arn) = &self.role_arn {
            producer.role_arn.clone_from(arn);
        }
        if let Some(rate) = self.rate {
            producer.rate = rate.map(|r| Rate {
                per_second: clamped(r.per_second),
                burst: clamped(r.burst),
            });
        }
    }
}

/// A number whose range was checked.
fn clamped(number: i64) -> u32 {
    u32::try_from(number.max(1)).unwrap_or(u32::MAX)
}

/// `409 system_id.taken`, at its place in the list.
pub(super) fn system_id_taken(connection: &Connection, taken: &str) -> Refusal {
    let place = match &connection.role {
        Role::Producer(producer) => producer.system_ids.iter().position(|id| id == taken),
        Role::Consumer(_) | Role::Operator => None,
    };
    let path = place.map_or_else(|| "/system_ids".to_owned(), |n| format!("/system_ids/{n}"));
    Refusal::policy(
        RefusalKind::Conflict,
        rule::SYSTEM_ID_TAKEN,
        "this system_id belongs to another producer; one system has one producer on the whole bus",
    )
    .at(path)
}

/// `409 request.invalid`: the AWS role is another producer's.
pub(super) fn role_taken() -> Refusal {
    Refusal::policy(
        RefusalKind::Conflict,
        rule::REQUEST_INVALID,
        "this AWS role belongs to another producer of this workspace; a role has one producer in a workspace",
    )
    .at("/role_arn")
}

fn path<'a>(tenant: &'a str, id: &'a str) -> ConnectionPath<'a> {
    ConnectionPath {
        kind: ConnectionKind::Producer,
        tenant: Some(tenant),
        id,
    }
}

impl Bus {
    fn producer_faults(&self, members: &ProducerMembers, purpose: Purpose) -> Vec<Violation> {
        let mut faults = members.faults(purpose);
        let arn = members.role_arn.as_ref().and_then(Option::as_deref);
        self.role_place(&mut faults, "/role_arn", arn);
        faults
    }

    /// Makes a producer with its first secret.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, `404 tenant.not_found`, `409 system_id.taken`, `409 request.invalid` when the role is taken.
    pub async fn producer_create(
        &self,
        actor: &Actor,
        tenant: &str,
        members: &ProducerMembers,
    ) -> Result<Issued, Refusal> {
        refuse_faults(self.producer_faults(members, Purpose::Create))?;
        let mut producer = Producer {
            system_ids: vec![],
            message_types: vec![],
            role_arn: None,
            rate: None,
        };
        members.apply(&mut producer);
        let name = members.name.clone().unwrap_or_default();
        self.connection_create(
            actor,
            Some(tenant),
            &name,
            &Role::Producer(producer),
            details(members),
        )
        .await
    }

    /// One producer.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 producer.not_found`.
    pub async fn producer_get(&self, tenant: &str, id: &str) -> Result<Connection, Refusal> {
        self.connection_find(&path(tenant, id)).await
    }

    /// Up to `limit` producers of a workspace behind the id `after`.
    ///
    /// # Errors
    ///
    /// `400 request.invalid` when `after` is not an id; `404 tenant.not_found`.
    pub async fn producer_list(
        &self,
        tenant: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Connection>, Refusal> {
        self.connection_list(ConnectionKind::Producer, Some(tenant), after, limit)
            .await
    }

    /// Changes a producer; what is not given stays, a list that is given replaces the former. A change that changes
    /// nothing writes nothing.
    ///
    /// # Errors
    ///
    /// `400 request.invalid`, `404 tenant.not_found`, `404 producer.not_found`, `409 system_id.taken`, `409 request.invalid`
    /// when the role is taken.
    pub async fn producer_update(
        &self,
        actor: &Actor,
        tenant: &str,
        id: &str,
        members: &ProducerMembers,
    ) -> Result<Connection, Refusal> {
        refuse_faults(self.producer_faults(members, Purpose::Change))?;
        let write = Write {
            action: "producer.update".to_owned(),
            part: None,
            details: details(members),
        };
        self.connection_change(actor, &path(tenant, id), &write, |connection| {
            if let Some(name) = &members.name {
                connection.name.clone_from(name);
            }
            if let Some(disabled) = members.disabled {
                connection.disabled = disabled;
            }
            if let Role::Producer(producer) = &mut connection.role {
                members.apply(producer);
            }
            Ok(())
        })
        .await
    }

    /// Deletes a producer and frees its `system_id`s. What it published stays.
    ///
    /// # Errors
    ///
    /// `404 tenant.not_found`, `404 producer.not_found`.
    pub async fn producer_delete(&self, actor: &Actor, tenant: &str, id: &str) -> Result<(), Refusal> {
        self.connection_delete(actor, &path(tenant, id)).await
    }
}
