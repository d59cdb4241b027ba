//! What a start creates, and how its secrets reach the one who started it, whatever happens in between.
//!
//! A secret is shown once and stored only as a hash. Were the process to end after it created an operator and before the
//! credentials file was written, nobody could ever log in. So a note in the data directory is written ahead of each
//! step:
//!
//! 1. *Begun*: from now on a client may exist that this note does not name.
//! 2. The client is created; the note gets its id and its secret.
//! 3. The credentials file is written.
//! 4. The note loses the secrets.
//!
//! A start that finds secrets in the note hands them out (again: the same ones). One that finds a step begun and no id looks
//! for what was created, and gives it a new secret: the former one nobody has ever seen.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use storybus_core::Bus;
use storybus_core::domain::connection::{Connection, MAX_SECRETS, Role};
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_core::ops::admin::{
    Actor, ConnectionPath, ConsumerMembers, OperatorMembers, ProducerMembers, TenantMembers,
};
use storybus_protocol::rule;

use super::credentials::{Client, Clients};
use crate::private_file;

/// The system that the demo's producer speaks for.
pub(super) const DEMO_SYSTEM: &str = "demo-ncs";
const DEMO_WORKSPACE: &str = "demo";
const DEMO_PRODUCER: &str = "demo producer";
const DEMO_CONSUMER: &str = "demo consumer";
const FIRST_OPERATOR: &str = "first operator";
const NEW_OPERATOR: &str = "operator made with --new-operator";
/// How many entries of a list are looked through.
const PAGE: usize = 1000;

/// The note in the data directory.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Note {
    /// Whether the operator's step has begun.
    #[serde(default)]
    operator_begun: bool,
    /// Whether the demo's steps have begun.
    #[serde(default)]
    demo_begun: bool,
    /// What was created, with secrets until they are handed out.
    #[serde(flatten)]
    clients: Clients,
}

/// The first start of a data directory, or a later one that finds it done.
pub(super) struct FirstStart<'a, B> {
    bus: &'a Bus,
    /// Comes back when everything that was created so far is on disk.
    durable: B,
    path: PathBuf,
    note: Note,
}

/// A refusal as an error of the command line.
fn said(refusal: Refusal) -> anyhow::Error {
    let why: Vec<String> = refusal
        .violations
        .iter()
        .map(|v| format!("{}: {}", v.rule, v.message))
        .collect();
    anyhow::anyhow!("{}", why.join("; "))
}

impl<'a, B: AsyncFn() -> Result<()>> FirstStart<'a, B> {
    /// With the note at `path`.
    pub(super) fn open(bus: &'a Bus, durable: B, path: PathBuf) -> Result<Self> {
        let content = private_file::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let note = match content {
            None => Note::default(),
            Some(content) => serde_json::from_slice(&content).map_err(|e| {
                anyhow::anyhow!(
                    "{} is damaged (line {}, column {})",
                    path.display(),
                    e.line(),
                    e.column()
                )
            })?,
        };
        Ok(Self {
            bus,
            durable,
            path,
            note,
        })
    }

    /// Writes the note, when all that it tells of is on disk.
    async fn save(&self) -> Result<()> {
        (self.durable)().await?;
        let content = serde_json::to_vec_pretty(&self.note)?;
        private_file::write(&self.path, &content)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Creates what is missing. Returns the clients, with the secrets that are still to be handed out.
    pub(super) async fn run(&mut self, demo: bool, new_operator: bool) -> Result<Clients> {
        self.operator().await.context("cannot make the first operator")?;
        if new_operator {
            self.new_operator().await.context("cannot make a new operator")?;
        }
        if demo {
            self.demo().await.context("cannot make the demo's clients")?;
        }
        self.present().await
    }

    /// The clients that are still there: operators may have deleted some since.
    async fn present(&self) -> Result<Clients> {
        let mut clients = self.note.clients.clone();
        let is_there = |found: Result<Connection, Refusal>| match found {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.kind == RefusalKind::NotFound => Ok(false),
            Err(refusal) => Err(said(refusal)),
        };
        if let Some(operator) = &clients.operator
            && !is_there(self.bus.operator_get(&operator.client_id).await)?
        {
            let others = self.bus.operator_list(None, 1).await.map_err(said)?;
            clients.operator = others.entries.first().map(known);
        }
        let tenant = clients.tenant.clone().unwrap_or_default();
        if let Some(producer) = &clients.producer
            && !is_there(self.bus.producer_get(&tenant, &producer.client_id).await)?
        {
            clients.producer = None;
        }
        if let Some(consumer) = &clients.consumer
            && !is_there(self.bus.consumer_get(&tenant, &consumer.client_id).await)?
        {
            clients.consumer = None;
        }
        Ok(clients)
    }

    /// The secrets have been handed out.
    pub(super) async fn done(&mut self) -> Result<()> {
        if self.note.clients.holds_secrets() {
            self.note.clients = self.note.clients.shut();
            self.save().await?;
        }
        Ok(())
    }

    async fn operator(&mut self) -> Result<()> {
        if self.note.clients.operator.is_some() {
            return Ok(());
        }
        let found = self
            .bus
            .operator_list(None, 1)
            .await
            .map_err(said)?
            .entries
            .into_iter()
            .next();
        let client = match found {
            // Operators, and no note of them: this directory has been somebody's before. Their secrets are theirs.
            Some(operator) if !self.note.operator_begun => known(&operator),
            Some(operator) => self.reissue(&operator).await?,
            None => {
                self.note.operator_begun = true;
                self.save().await?;
                match self.bus.operator_bootstrap(FIRST_OPERATOR).await.map_err(said)? {
                    Some(issued) => with_secret(&issued.connection, issued.secret.secret),
                    None => bail!("another operator came up meanwhile"),
                }
            }
        };
        self.note.clients.operator = Some(client);
        self.save().await
    }

    /// One more operator, unless this start hands one out anyway. Were the process to end before the note of it, there would
    /// be an operator whose secret nobody has, which the next start with the flag leaves to the operators to delete.
    async fn new_operator(&mut self) -> Result<()> {
        if self
            .note
            .clients
            .operator
            .as_ref()
            .is_some_and(|o| o.client_secret.is_some())
        {
            return Ok(());
        }
        let members = OperatorMembers {
            name: Some(NEW_OPERATOR.to_owned()),
            ..OperatorMembers::default()
        };
        let issued = self
            .bus
            .operator_create(&Actor::bus(), &members)
            .await
            .map_err(said)?;
        self.note.clients.operator = Some(with_secret(&issued.connection, issued.secret.secret));
        self.save().await
    }

    async fn demo(&mut self) -> Result<()> {
        let tenant = match self.note.clients.tenant.clone() {
            Some(tenant) => tenant,
            None => {
                let found = if self.note.demo_begun {
                    self.demo_workspace().await?
                } else {
                    None
                };
                if found.is_none() {
                    self.note.demo_begun = true;
                    self.save().await?;
                }
                let tenant = match found {
                    Some(tenant) => tenant,
                    None => {
                        let members = TenantMembers {
                            name: Some(DEMO_WORKSPACE.to_owned()),
                            ..TenantMembers::default()
                        };
                        let made = self
                            .bus
                            .tenant_create(&Actor::bus(), &members)
                            .await
                            .map_err(said)?;
                        made.id.as_str().to_owned()
                    }
                };
                self.note.clients.tenant = Some(tenant.clone());
                self.save().await?;
                tenant
            }
        };
        if self.note.clients.producer.is_none() {
            let found = self
                .bus
                .producer_list(&tenant, None, PAGE)
                .await
                .map_err(said)?
                .entries;
            self.note.clients.producer = Some(match found.iter().find(|p| p.name == DEMO_PRODUCER) {
                Some(producer) => self.reissue(producer).await?,
                None => self.demo_producer(&tenant).await?,
            });
            self.save().await?;
        }
        if self.note.clients.consumer.is_none() {
            let found = self
                .bus
                .consumer_list(&tenant, None, PAGE)
                .await
                .map_err(said)?
                .entries;
            self.note.clients.consumer = Some(match found.iter().find(|c| c.name == DEMO_CONSUMER) {
                Some(consumer) => self.reissue(consumer).await?,
                None => {
                    let members = ConsumerMembers {
                        name: Some(DEMO_CONSUMER.to_owned()),
                        ..ConsumerMembers::default()
                    };
                    let issued = self
                        .bus
                        .consumer_create(&Actor::bus(), &tenant, &members)
                        .await
                        .map_err(said)?;
                    with_secret(&issued.written.connection, issued.written.secret.secret)
                }
            });
            self.save().await?;
        }
        Ok(())
    }

    /// The demo's workspace, when the process ended between its creation and the note of it.
    async fn demo_workspace(&self) -> Result<Option<String>> {
        let found = self.bus.tenant_list(None, PAGE).await.map_err(said)?.entries;
        Ok(found
            .into_iter()
            .find(|w| w.name == DEMO_WORKSPACE)
            .map(|w| w.id.as_str().to_owned()))
    }

    async fn demo_producer(&self, tenant: &str) -> Result<Client> {
        let members = ProducerMembers {
            name: Some(DEMO_PRODUCER.to_owned()),
            system_ids: Some(vec![DEMO_SYSTEM.to_owned()]),
            message_types: Some(vec!["*".to_owned()]),
            ..ProducerMembers::default()
        };
        match self.bus.producer_create(&Actor::bus(), tenant, &members).await {
            Ok(issued) => Ok(with_secret(&issued.connection, issued.secret.secret)),
            Err(refusal) if refusal.violations.iter().any(|v| v.rule == rule::SYSTEM_ID_TAKEN) => bail!(
                "the system_id {DEMO_SYSTEM} belongs to a producer that was there before; start without --demo, or take it from that one first"
            ),
            Err(refusal) => Err(said(refusal)),
        }
    }

    /// A new secret for a client whose first one nobody has seen.
    async fn reissue(&self, connection: &Connection) -> Result<Client> {
        let path = ConnectionPath {
            kind: connection.kind(),
            tenant: connection.workspace.as_ref().map(|w| w.as_str()),
            id: connection.id.as_str(),
        };
        let mut live = connection.secrets.clone();
        if live.len() >= MAX_SECRETS {
            let oldest = live.remove(0);
            self.bus
                .secret_delete(&Actor::bus(), &path, oldest.id.as_str())
                .await
                .map_err(said)?;
        }
        let new = self.bus.secret_create(&Actor::bus(), &path).await.map_err(said)?;
        for unseen in live {
            self.bus
                .secret_delete(&Actor::bus(), &path, unseen.id.as_str())
                .await
                .map_err(said)?;
        }
        Ok(with_secret(connection, new.secret))
    }
}

fn known(connection: &Connection) -> Client {
    let system_id = match &connection.role {
        Role::Producer(producer) => producer.system_ids.first().cloned(),
        Role::Consumer(_) | Role::Operator => None,
    };
    Client {
        client_id: connection.id.as_str().to_owned(),
        client_secret: None,
        system_id,
    }
}

fn with_secret(connection: &Connection, secret: String) -> Client {
    Client {
        client_secret: Some(secret),
        ..known(connection)
    }
}

#[cfg(test)]
mod tests;
