//! A bus in memory behind the API, and the usual errands.

mod answer;
mod ask;
mod document;
mod jobs;
mod sample;

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Uri};
use serde_json::{Value, json};
use storybus_api::{Api, Context, Outcome};
use storybus_core::{Bus, Ports, Settings};
use storybus_testkit::executor::run;
use storybus_testkit::{FakeClock, FixedKeys, Memory, MemoryRates, PlainHasher, SeededRandom};

pub(crate) use answer::Answer;
pub(crate) use ask::{Ask, ask};
pub(crate) use document::{Document, asyncapi, openapi};
pub(crate) use sample::{note, snapshot};

/// A bus with one operator.
pub(crate) struct World {
    pub(crate) clock: FakeClock,
    pub(crate) memory: Memory,
    pub(crate) api: Api,
    pub(crate) operator: Who,
}

/// A client with a token.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: String,
}

/// A workspace with a producer of everything (as `desk-1`) and a consumer of everything.
pub(crate) struct Room {
    pub(crate) tenant: String,
    pub(crate) producer: Who,
    pub(crate) consumer: Who,
}

impl Room {
    /// The path of the consumer's calls.
    pub(crate) fn pull(&self, call: &str) -> String {
        format!(
            "/v1/tenants/{}/consumers/{}/{call}",
            self.tenant, self.consumer.id
        )
    }

    /// The path of the producer's publishes.
    pub(crate) fn publish(&self) -> String {
        format!("/v1/tenants/{}/messages", self.tenant)
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = FakeClock::automatic();
        let memory = Memory::new(Arc::new(clock.clone()));
        let engine = Arc::new(memory.clone());
        let ports = Ports {
            clock: Arc::new(clock.clone()),
            random: Arc::new(SeededRandom::new(7)),
            ledger: engine.clone(),
            topic: engine.clone(),
            queues: engine.clone(),
            queue_control: engine.clone(),
            dead_letters: engine.clone(),
            archive: engine.clone(),
            stories: engine.clone(),
            jobs: engine.clone(),
            activity: engine.clone(),
            workspaces: engine.clone(),
            connections: engine.clone(),
            audit: engine,
            rates: Arc::new(MemoryRates::default()),
            hasher: Arc::new(PlainHasher),
            keys: Arc::new(FixedKeys::default()),
        };
        let bus = Bus::new(ports, Settings::default());
        let issued = run(bus.operator_bootstrap("first operator"))
            .expect("bootstrap")
            .expect("the first operator");
        assert_eq!(run(bus.operator_bootstrap("again")), Ok(None));
        let nobody = Who {
            id: String::new(),
            secret: String::new(),
            token: String::new(),
        };
        let mut world = Self {
            clock,
            memory,
            api: Api::new(bus),
            operator: nobody,
        };
        let (id, secret) = (issued.connection.id.to_string(), issued.secret.secret);
        world.operator = world.logged_in(&id, &secret);
        world
    }

    /// The same bus with ports changed.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Ports)) -> Api {
        Api::new(self.api.bus().with_ports(change))
    }

    pub(crate) fn send(&self, ask: Ask) -> Answer {
        self.send_to(&self.api, ask)
    }

    /// Sends, and checks what holds for every answer.
    pub(crate) fn send_to(&self, api: &Api, ask: Ask) -> Answer {
        let mut request = Request::new(ask.body);
        *request.method_mut() = ask.method.parse().expect("a method");
        *request.uri_mut() = ask.path.parse::<Uri>().expect("a URI");
        *request.headers_mut() = ask.headers;
        let method = ask.method;
        let deadline = self.clock.now().plus(Duration::from_secs(15));
        let response = run(api.handle(
            request,
            Context {
                source: ask.source,
                deadline,
                iam: ask.iam,
            },
        ));
        let (parts, body) = response.into_parts();
        let outcome = parts.extensions.get::<Outcome>().expect("an outcome").clone();
        let json = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).expect("JSON")
        };
        let answer = Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            json,
            outcome,
        };
        answer.check();
        answer.is_documented(method);
        answer
    }

    /// Sends as the operator.
    pub(crate) fn operate(&self, method: &'static str, path: &str, body: Option<Value>) -> Answer {
        let ask = ask(method, path).of(&self.operator);
        self.send(match body {
            Some(body) => ask.json(&body),
            None => ask,
        })
    }

    pub(crate) fn logged_in(&self, id: &str, secret: &str) -> Who {
        let answer = self.send(
            ask("POST", "/v1/oauth/token")
                .basic(id, secret)
                .form("grant_type=client_credentials"),
        );
        assert_eq!(answer.status, 200, "{}", answer.json);
        let token = answer.text("/access_token");
        Who {
            id: id.to_owned(),
            secret: secret.to_owned(),
            token,
        }
    }

    /// Makes a connection and logs it in.
    pub(crate) fn client(&self, path: &str, members: Value) -> Who {
        let answer = self.operate("POST", path, Some(members));
        assert_eq!(answer.status, 201, "{}", answer.json);
        self.logged_in(&answer.text("/client_id"), &answer.text("/client_secret"))
    }

    pub(crate) fn tenant(&self) -> String {
        self.operate("POST", "/v1/admin/tenants", Some(json!({"name": "room"})))
            .text("/tenant")
    }

    pub(crate) fn producer(&self, tenant: &str, system_id: &str) -> Who {
        let members = json!({"name": "p", "system_ids": [system_id], "message_types": ["*"]});
        self.client(&format!("/v1/admin/tenants/{tenant}/producers"), members)
    }

    pub(crate) fn consumer(&self, tenant: &str) -> Who {
        self.client(
            &format!("/v1/admin/tenants/{tenant}/consumers"),
            json!({"name": "c"}),
        )
    }

    pub(crate) fn room(&self) -> Room {
        self.room_of("desk-1")
    }

    /// Another room: a system belongs to one producer.
    pub(crate) fn room_of(&self, system_id: &str) -> Room {
        let tenant = self.tenant();
        Room {
            producer: self.producer(&tenant, system_id),
            consumer: self.consumer(&tenant),
            tenant,
        }
    }

    /// Publishes an event without a schema; its number tells it from others.
    pub(crate) fn note(&self, room: &Room, number: u64) -> Value {
        let note = note(number);
        let answer = self.send(ask("POST", room.publish()).of(&room.producer).json(&note));
        assert_eq!(answer.status, 202, "{}", answer.json);
        note
    }

    /// Receives with these parameters.
    pub(crate) fn receive(&self, room: &Room, query: &str) -> Vec<Value> {
        let answer = self.send(ask("GET", room.pull(&format!("messages{query}"))).of(&room.consumer));
        assert_eq!(answer.status, 200, "{}", answer.json);
        answer.json["messages"].as_array().expect("a list").clone()
    }
}
