//! Stores that do not answer: what is told, and that nothing else is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use storybus_core::Ports;
use storybus_core::domain::connection::{Connection, Rate, Workspace};
use storybus_core::domain::delivery::{Delivery, QueueCounts, QueueKey, Settled};
use storybus_core::domain::time::Millis;
use storybus_core::ports::audit::{AuditCursor, AuditEntry};
use storybus_core::ports::keys::SigningKey;
use storybus_core::ports::queues::Receive;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{AuditLog, Connections, Queues, Rates, SigningKeys, StoreError, Workspaces};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};
use storybus_testkit::Memory;

use crate::world::{Answer, Ask, World, ask, note};

/// Fails in everything, but for what an operator's credentials need.
struct Broken {
    error: StoreError,
    memory: Memory,
}

type Listed<T> = Result<Vec<T>, StoreError>;

#[async_trait]
impl Workspaces for Broken {
    async fn create(&self, _: &Workspace, _: &AuditEntry) -> Result<(), RegistryError> {
        Err(self.error.clone().into())
    }
    async fn get(&self, _: &WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        Err(self.error.clone())
    }
    async fn list(&self, _: Option<&WorkspaceId>, _: usize) -> Listed<Workspace> {
        Err(self.error.clone())
    }
    async fn update(&self, _: &Workspace, _: &AuditEntry) -> Result<(), RegistryError> {
        Err(self.error.clone().into())
    }
    async fn delete(&self, _: &WorkspaceId, _: &AuditEntry) -> Result<(), RegistryError> {
        Err(self.error.clone().into())
    }
}

#[async_trait]
impl Connections for Broken {
    async fn create(&self, _: &Connection, _: &AuditEntry) -> Result<(), RegistryError> {
        Err(self.error.clone().into())
    }
    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        Connections::get(&self.memory, id).await
    }
    async fn list(
        &self,
        _: Option<&WorkspaceId>,
        _: ConnectionKind,
        _: Option<&ConnectionId>,
        _: usize,
    ) -> Listed<Connection> {
        Err(self.error.clone())
    }
    async fn update(&self, _: &Connection, _: &AuditEntry) -> Result<(), RegistryError> {
        Err(self.error.clone().into())
    }
    async fn delete(&self, _: &ConnectionId, _: &AuditEntry) -> Result<(), RegistryError> {
        Err(self.error.clone().into())
    }
}

#[async_trait]
impl Queues for Broken {
    async fn receive(&self, _: &QueueKey, _: &Receive) -> Listed<Delivery> {
        Err(self.error.clone())
    }
    async fn acknowledge(&self, _: &QueueKey, _: &[String]) -> Listed<Settled> {
        Err(self.error.clone())
    }
    async fn release(&self, _: &QueueKey, _: &[String], _: Duration) -> Listed<Settled> {
        Err(self.error.clone())
    }
    async fn reject(&self, _: &QueueKey, _: &[String], _: &str) -> Listed<Settled> {
        Err(self.error.clone())
    }
    async fn counts(&self, _: &QueueKey) -> Result<QueueCounts, StoreError> {
        Err(self.error.clone())
    }
}

#[async_trait]
impl AuditLog for Broken {
    async fn list(
        &self,
        _: Option<&AuditCursor>,
        _: usize,
    ) -> Result<Option<(Vec<AuditEntry>, Option<AuditCursor>)>, StoreError> {
        Err(self.error.clone())
    }
}

#[async_trait]
impl Rates for Broken {
    async fn take(&self, _: &str, _: Rate, _: Millis) -> Result<Option<Millis>, StoreError> {
        Err(self.error.clone())
    }
    async fn peek(&self, _: &str, _: Rate, _: Millis) -> Result<Option<Millis>, StoreError> {
        Err(self.error.clone())
    }
}

#[async_trait]
impl SigningKeys for Broken {
    async fn load(&self) -> Result<Vec<SigningKey>, StoreError> {
        Err(self.error.clone())
    }
}

const REASON: &str = "the disk of node 7 is on fire";

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        reason: REASON.to_owned(),
    }
}

fn unknown() -> StoreError {
    StoreError::Unknown {
        reason: REASON.to_owned(),
    }
}

fn internal() -> StoreError {
    StoreError::Internal {
        reason: REASON.to_owned(),
    }
}

/// Sends to a bus some of whose ports are broken.
fn broken(
    world: &World,
    error: StoreError,
    ask: Ask,
    change: impl FnOnce(&mut Ports, Arc<Broken>),
) -> Answer {
    let broken = Arc::new(Broken {
        error,
        memory: world.memory.clone(),
    });
    let answer = world.send_to(&world.with(|ports| change(ports, broken)), ask);
    assert!(!answer.json.to_string().contains(REASON), "{}", answer.json);
    answer
}

#[test]
fn reads_that_fail_are_503_or_500() {
    let world = World::new();
    let room = world.room();
    let admin = |path: &str| ask("GET", format!("/v1/admin{path}")).of(&world.operator);
    let queue = format!("/tenants/{}/consumers/{}/queue", room.tenant, room.consumer.id);
    type Change = fn(&mut Ports, Arc<Broken>);
    let workspaces: Change = |ports, broken| ports.workspaces = broken;
    let connections: Change = |ports, broken| ports.connections = broken;
    let queues: Change = |ports, broken| ports.queues = broken;
    let audit: Change = |ports, broken| ports.audit = broken;
    let handles = json!({"receipt_handles": ["h"], "reason": "r"});
    let pull = |call: &str| ask("POST", room.pull(call)).of(&room.consumer);
    type Made<'a> = Box<dyn Fn() -> Ask + 'a>;
    let cases: Vec<(Made<'_>, Change)> = vec![
        (Box::new(|| admin("/tenants")), workspaces),
        (Box::new(|| admin("/operators")), connections),
        (Box::new(|| admin("/audit")), audit),
        (Box::new(|| admin(&queue)), queues),
        (
            Box::new(|| ask("GET", room.pull("messages")).of(&room.consumer)),
            queues,
        ),
        (
            Box::new(|| pull("ack").json(&json!({"receipt_handles": ["h"]}))),
            queues,
        ),
        (
            Box::new(|| pull("nack").json(&json!({"receipt_handles": ["h"]}))),
            queues,
        ),
        (Box::new(|| pull("reject").json(&handles)), queues),
        (
            Box::new(|| ask("POST", room.publish()).of(&room.producer).json(&note(1))),
            workspaces,
        ),
    ];
    for (ask, change) in cases {
        broken(&world, unavailable(), ask(), change).is_refused(503, "bus.unavailable");
        broken(&world, internal(), ask(), change).is_refused(500, "bus.internal_error");
    }
}

#[test]
fn writes_that_fail_say_whether_they_may_have_been_done() {
    let world = World::new();
    let create = || {
        ask("POST", "/v1/admin/operators")
            .of(&world.operator)
            .json(&json!({"name": "x"}))
    };
    let told = |error| {
        let answer = broken(&world, error, create(), |ports, broken| {
            ports.connections = broken
        });
        (answer.status, answer.text("/violations/0/message"))
    };
    let (status, message) = told(unavailable());
    assert!(
        status == 503 && message.contains("nothing was written"),
        "{message}"
    );
    let (status, message) = told(unknown());
    assert!(
        status == 503 && message.contains("may have been done"),
        "{message}"
    );
    assert_eq!(told(internal()).0, 500);
}

#[test]
fn the_token_route_speaks_its_rfc() {
    let world = World::new();
    let o = &world.operator;
    for (error, status, code) in [
        (unavailable(), 503, "temporarily_unavailable"),
        (internal(), 500, "server_error"),
    ] {
        let ask = ask("POST", "/v1/oauth/token")
            .basic(&o.id, &o.secret)
            .form("grant_type=client_credentials");
        let answer = broken(&world, error, ask, |ports, broken| ports.rates = broken);
        assert_eq!(
            (answer.status, answer.json["error"].as_str()),
            (status, Some(code))
        );
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
}

#[test]
fn keys_that_cannot_be_loaded() {
    let world = World::new();
    // the keys are kept for five minutes
    world.clock.advance(Duration::from_secs(301));
    let ask = || ask("GET", "/v1/.well-known/jwks.json");
    broken(&world, unavailable(), ask(), |ports, broken| ports.keys = broken)
        .is_refused(503, "bus.unavailable");
    broken(&world, internal(), ask(), |ports, broken| ports.keys = broken)
        .is_refused(500, "bus.internal_error");
}
