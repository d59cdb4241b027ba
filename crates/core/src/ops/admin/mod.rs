//! ADMIN: the operators' work (contract §7): workspaces, connections, their secrets, queues' counts, the audit.
//!
//! One file a noun, functions noun first. What an operator gives comes as a `…Members` value, in which what was not
//! given is `None`; the same type serves a creation and a change. Its `faults` lists everything that is wrong with it,
//! each with its place, before anything is looked up.
//!
//! Every write carries an [`AuditEntry`] of who did what to which, without secrets. A change is read, changed and
//! written as the next version; when somebody else was faster it is read again, a few times.
//!
//! **Nobody is locked out by accident**: the last operator that can log in (enabled, with a secret) cannot be disabled,
//! deleted, or lose its last secret. The registry sees to it within the write, so that two operators cannot remove each
//! other in the same instant.
//!
//! A token that was issued stays what it is until it expires, but each call asks the registry: a connection that was
//! disabled or deleted is refused at once. Deleting a secret only keeps it from getting new tokens.

mod arn;
pub mod audit;
mod connections;
pub mod consumers;
mod gathering;
mod ids;
pub mod limits;
pub mod operators;
pub mod producers;
pub mod queue;
pub mod secrets;
pub mod tenants;

use storybus_protocol::id::ConnectionId;
use storybus_protocol::{Violation, rule};

use super::refused_by_store;
use crate::bus::Bus;
use crate::domain::connection::Connection;
use crate::domain::refusal::{Refusal, RefusalKind};
use crate::ports::StoreError;
use crate::ports::audit::AuditEntry;
use crate::ports::workspaces::RegistryError;

pub use audit::AuditPage;
pub use consumers::{ConsumerMembers, Settling};
pub(crate) use gathering::Gathering;
pub use operators::OperatorMembers;
pub use producers::{ProducerMembers, RateMembers};
pub use queue::QueueStatus;
pub use secrets::{ConnectionPath, Issued, NewSecret};
pub use tenants::TenantMembers;

/// How many entries a page of a list has unless asked for otherwise.
pub const DEFAULT_PAGE: usize = 100;
/// The most entries of a page.
pub const MAX_PAGE: usize = 1000;
/// How often a change is tried when others are faster.
const MAX_ATTEMPTS: usize = 8;

/// Whether members are those of something new or of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Something new: what it cannot be without must be there.
    Create,
    /// A change: what is not there stays.
    Change,
}

/// Who does it, for the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(String);

impl Actor {
    /// The bus itself: what it does on its own behalf, as on its first start.
    #[must_use]
    pub fn bus() -> Self {
        Self("storybus".to_owned())
    }

    /// Its name in the audit.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// An operator.
    #[must_use]
    pub fn operator(operator: &ConnectionId) -> Self {
        Self(operator.as_str().to_owned())
    }
}

/// A part of a list, in the order of the ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Its entries.
    pub entries: Vec<T>,
    /// Give it back as `after` to read on; `None` when there is no more.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page from one entry more than it may hold.
    pub(crate) fn of(mut entries: Vec<T>, limit: usize, place: impl Fn(&T) -> String) -> Self {
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = if more { entries.last().map(&place) } else { None };
        Self { entries, next }
    }
}

/// `400 request.invalid` for all faults at once; `Ok` when there are none.
pub(crate) fn refuse_faults(faults: Vec<Violation>) -> Result<(), Refusal> {
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Refusal::of(RefusalKind::Invalid, faults))
    }
}

/// The place a list goes on from.
fn after<T: std::str::FromStr>(text: Option<&str>) -> Result<Option<T>, Refusal> {
    text.map(str::parse).transpose().map_err(|_| not_a_place())
}

/// `400 request.invalid` at `/after`.
pub(crate) fn not_a_place() -> Refusal {
    Refusal::request_invalid(
        "/after",
        "not a place in this list; give back what `next` said, or leave it out",
    )
}

/// `404 tenant.not_found`.
fn tenant_not_found() -> Refusal {
    Refusal::policy(
        RefusalKind::NotFound,
        rule::TENANT_NOT_FOUND,
        "there is no such workspace",
    )
}

/// Others change the same entry all the time.
pub(crate) fn overtaken() -> Refusal {
    let mut refusal = Refusal::unavailable();
    if let Some(first) = refusal.violations.first_mut() {
        "others keep changing the same entry; nothing was written: send the same request again later"
            .clone_into(&mut first.message);
    }
    refusal
}

/// A store that fails during a write: an unknown outcome must not be told as "nothing was written".
pub(crate) fn refused_by_registry(operation: &'static str, error: &StoreError) -> Refusal {
    let mut refusal = refused_by_store(operation, error);
    if let (StoreError::Unknown { .. }, Some(first)) = (error, refusal.violations.first_mut()) {
        "the store's answer was lost: the write may have been done or not; look before you repeat it"
            .clone_into(&mut first.message);
    }
    refusal
}

/// What the registry says about a connection, as a refusal.
fn refused_connection(operation: &'static str, connection: &Connection, error: &RegistryError) -> Refusal {
    match error {
        RegistryError::NotFound => connections::not_found(connection.kind()),
        RegistryError::Changed => overtaken(),
        RegistryError::SystemIdTaken(taken) => producers::system_id_taken(connection, taken),
        RegistryError::RoleTaken => producers::role_taken(),
        RegistryError::NoSuchReader => Refusal::request_invalid("/reader_role_arn", "AWS knows no such role"),
        RegistryError::ConsumerLimit => Refusal::policy(
            RefusalKind::Conflict,
            rule::CONSUMER_LIMIT,
            "this workspace has as many consumers as the bus can serve; delete one, or use another workspace",
        ),
        RegistryError::LastOperator => connections::last_operator(connection),
        RegistryError::Store(error) => refused_by_registry(operation, error),
        RegistryError::NotEmpty | RegistryError::WorkspaceLimit => {
            tracing::error!(operation, %error, "an answer that connections do not give");
            Refusal::internal()
        }
    }
}

impl Bus {
    /// Adds what is wrong with the place of a role, if one is given.
    fn role_place(&self, faults: &mut Vec<Violation>, path: &str, arn: Option<&str>) {
        if let (Some(arn), Some(account)) = (arn, self.ports.connections.account_of_roles()) {
            limits::role_in(faults, path, arn, account);
        }
    }

    pub(crate) fn audit_entry(
        &self,
        actor: &Actor,
        action: &str,
        subject: Vec<String>,
        details: serde_json::Value,
    ) -> AuditEntry {
        AuditEntry {
            at: self.ports.clock.now(),
            actor: actor.0.clone(),
            action: action.to_owned(),
            subject,
            details,
        }
    }
}

/// The members that were given, for the audit.
pub(crate) fn details(members: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(members).unwrap_or_else(|error| {
        tracing::error!(%error, "members not written into the audit");
        serde_json::Value::Null
    })
}
