//! Somebody else is faster: what is written is what both wanted, or the refusal says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use storybus_api::Api;
use storybus_core::domain::connection::{Connection, MAX_SECRETS, Secret};
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::workspaces::RegistryError;
use storybus_core::ports::{Connections, StoreError};
use storybus_protocol::id::{ConnectionId, ConnectionKind, WorkspaceId};
use storybus_testkit::Memory;

use crate::world::{Answer, Room, World, ask};

/// Before each of so many writes, somebody else does this.
struct Rival {
    memory: Memory,
    left: AtomicUsize,
    does: fn(&mut Connection),
}

impl Rival {
    fn acts(&self) -> bool {
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
            .is_ok()
    }
}

#[async_trait]
impl Connections for Rival {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        // an id that is taken
        if self.acts() {
            Err(RegistryError::Changed)
        } else {
            self.memory.create(connection, audit).await
        }
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        Connections::get(&self.memory, id).await
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        Connections::list(&self.memory, workspace, kind, after, limit).await
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        if self.acts() {
            let mut other = Connections::get(&self.memory, &connection.id)
                .await?
                .ok_or(RegistryError::NotFound)?;
            (self.does)(&mut other);
            other.version += 1;
            Connections::update(
                &self.memory,
                &other,
                &AuditEntry {
                    actor: "rival".to_owned(),
                    ..audit.clone()
                },
            )
            .await?;
        }
        Connections::update(&self.memory, connection, audit).await
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        Connections::delete(&self.memory, id, audit).await
    }

    fn filter_settles_in(&self) -> Duration {
        Duration::from_secs(900)
    }
}

fn against(world: &World, times: usize, does: fn(&mut Connection)) -> Api {
    let rival = Rival {
        memory: world.memory.clone(),
        left: AtomicUsize::new(times),
        does,
    };
    world.with(|ports| ports.connections = Arc::new(rival))
}

fn send(world: &World, api: &Api, method: &'static str, path: &str, body: &Value) -> Answer {
    world.send_to(api, ask(method, path).of(&world.operator).json(body))
}

fn producer(room: &Room) -> String {
    format!("/v1/admin/tenants/{}/producers/{}", room.tenant, room.producer.id)
}

#[test]
fn both_changes_stay() {
    let world = World::new();
    let room = world.room();
    let api = against(&world, 3, |c| c.disabled = !c.disabled);
    let answer = send(&world, &api, "PATCH", &producer(&room), &json!({"name": "mine"}));
    assert_eq!(
        (answer.is_ok().text("/name"), &answer.json["disabled"]),
        ("mine".to_owned(), &json!(true))
    );
    assert_eq!(world.operate("GET", &producer(&room), None).json, answer.json);
    let audit = world.operate("GET", "/v1/admin/audit?limit=5", None).json;
    let actors: Vec<_> = audit["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| e["actor"].as_str())
        .collect();
    let (me, rival) = (Some(world.operator.id.as_str()), Some("rival"));
    assert_eq!(actors, [me, rival, rival, rival, me]);
}

#[test]
fn a_filter_that_settles_says_until_when() {
    let world = World::new();
    let api = against(&world, 0, |_| ());
    let until = json!(world.clock.now().plus(Duration::from_secs(900)).to_rfc3339());
    let list = format!("/v1/admin/tenants/{}/consumers", world.tenant());
    let made = send(&world, &api, "POST", &list, &json!({"name": "x"}));
    assert_eq!((made.status, &made.json["settled_by"]), (201, &until));
    let path = format!("{list}/{}", made.text("/client_id"));
    for (body, settles) in [
        (json!({"sources": ["a"]}), true),
        (json!({"sources": ["a"]}), false),
        (json!({"name": "y", "paused": true, "max_receives": 7}), false),
        (json!({"name": "z", "sources": []}), true),
    ] {
        let answer = send(&world, &api, "PATCH", &path, &body);
        let said = answer.is_ok().json.get("settled_by");
        assert_eq!(said, settles.then_some(&until), "{body}");
    }
    let shown = world.operate("GET", &path, None);
    assert_eq!(shown.is_ok().json.get("settled_by"), None);
}

#[test]
fn a_role_of_another_producer_is_refused() {
    let world = World::new();
    let list = format!("/v1/admin/tenants/{}/producers", world.tenant());
    let members = |system: &str, role: &str| {
        let role = format!("arn:aws:iam::123456789012:role/{role}");
        json!({"name": "x", "system_ids": [system], "message_types": [], "role_arn": role})
    };
    assert_eq!(
        world.operate("POST", &list, Some(members("a", "ncs"))).status,
        201
    );
    let second = world.operate("POST", &list, Some(members("b", "mam")));
    let path = format!("{list}/{}", second.text("/client_id"));
    let wanted = json!({"role_arn": "arn:aws:iam::123456789012:role/desk/ncs"});
    for refused in [
        world.operate("POST", &list, Some(members("c", "ncs"))),
        world.operate("PATCH", &path, Some(wanted)),
    ] {
        refused.is_refused(409, "request.invalid");
        assert_eq!(refused.text("/violations/0/path"), "/role_arn");
    }
}

/// Both have read that there are two; then one of them is written first.
struct Duel {
    memory: Memory,
    /// Who is shut out right before the other's write.
    first: ConnectionId,
    done: AtomicBool,
}

impl Duel {
    async fn strike(&self, audit: &AuditEntry) {
        if self.done.swap(true, Ordering::Relaxed) {
            return;
        }
        let found = Connections::get(&self.memory, &self.first).await;
        let mut other = found.expect("the store").expect("an operator");
        other.disabled = true;
        other.version += 1;
        let struck = Connections::update(&self.memory, &other, audit).await;
        struck.expect("there is another operator still");
    }
}

#[async_trait]
impl Connections for Duel {
    async fn create(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        self.memory.create(connection, audit).await
    }

    async fn get(&self, id: &ConnectionId) -> Result<Option<Connection>, StoreError> {
        Connections::get(&self.memory, id).await
    }

    async fn list(
        &self,
        workspace: Option<&WorkspaceId>,
        kind: ConnectionKind,
        after: Option<&ConnectionId>,
        limit: usize,
    ) -> Result<Vec<Connection>, StoreError> {
        Connections::list(&self.memory, workspace, kind, after, limit).await
    }

    async fn update(&self, connection: &Connection, audit: &AuditEntry) -> Result<(), RegistryError> {
        self.strike(audit).await;
        Connections::update(&self.memory, connection, audit).await
    }

    async fn delete(&self, id: &ConnectionId, audit: &AuditEntry) -> Result<(), RegistryError> {
        self.strike(audit).await;
        Connections::delete(&self.memory, id, audit).await
    }
}

#[test]
fn of_operators_that_shut_each_other_out_one_stays() {
    for (method, part, body, at) in [
        ("PATCH", "", json!({"disabled": true}), "/disabled"),
        ("DELETE", "", Value::Null, "-"),
        ("DELETE", "secret", Value::Null, "-"),
    ] {
        let world = World::new();
        let second = world.client("/v1/admin/operators", json!({"name": "second"}));
        let mine = format!("/v1/admin/operators/{}", world.operator.id);
        let api = world.with(|ports| {
            ports.connections = Arc::new(Duel {
                memory: world.memory.clone(),
                first: second.id.parse().expect("an id"),
                done: AtomicBool::new(false),
            });
        });
        let path = match part {
            "" => mine.clone(),
            _ => {
                let secrets = world.operate("GET", &format!("{mine}/secrets"), None);
                format!("{mine}/secrets/{}", secrets.text("/secrets/0/secret_id"))
            }
        };
        let mut asked = ask(method, &path).of(&world.operator);
        if !body.is_null() {
            asked = asked.json(&body);
        }
        world.send_to(&api, asked).is_invalid_at(&[at]);
        assert_eq!(
            world.operate("GET", &mine, None).is_ok().json["disabled"],
            json!(false)
        );
    }
}

#[test]
fn one_that_always_loses_is_told_so() {
    let world = World::new();
    let room = world.room();
    let api = against(&world, usize::MAX, |c| c.name.push('x'));
    let answer = send(&world, &api, "PATCH", &producer(&room), &json!({"name": "mine"}));
    answer.is_refused(503, "bus.unavailable");
}

#[test]
fn a_third_secret_is_refused_also_when_two_are_made_at_once() {
    let world = World::new();
    let room = world.room();
    let api = against(&world, 1, |c| {
        let id = "srival".parse().expect("an id");
        c.secrets.push(Secret {
            id,
            hash: String::new(),
            created_at: c.created_at,
        });
    });
    let path = format!("{}/secrets", producer(&room));
    send(&world, &api, "POST", &path, &json!({})).is_refused(409, "secret.limit");
    let secrets = world.operate("GET", &path, None).json;
    assert_eq!(secrets["secrets"].as_array().map(Vec::len), Some(MAX_SECRETS));
}

#[test]
fn an_id_that_is_taken_is_not_used() {
    let world = World::new();
    let path = "/v1/admin/operators";
    let body = json!({"name": "x"});
    assert_eq!(
        send(&world, &against(&world, 3, |_| ()), "POST", path, &body).status,
        201
    );
    send(&world, &against(&world, usize::MAX, |_| ()), "POST", path, &body)
        .is_refused(503, "bus.unavailable");
    assert_eq!(
        world.operate("GET", path, None).json["operators"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}
