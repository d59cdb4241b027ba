//! A bus in memory with the connections that the events speak of.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use storybus_api::Api;
use storybus_core::domain::connection::{Connection, Consumer, Producer, Role, Secret, Workspace};
use storybus_core::domain::filter::Filter;
use storybus_core::ops::token::TokenRequest;
use storybus_core::ports::audit::AuditEntry;
use storybus_core::ports::{Clock, Connections, Workspaces};
use storybus_core::{Bus, Ports, Settings};
use storybus_lambda::Invocation;
use storybus_lambda::http::{Answer, Front};
use storybus_lambda::metrics::Meter;
use storybus_testkit::suite::Stores;
use storybus_testkit::{FakeClock, Memory, MemoryRates, SeededRandom, ports};

/// What all secrets are.
const SECRET: &str = "not-a-secret";

/// The bus, and what its functions have written.
pub(crate) struct World {
    pub(crate) clock: FakeClock,
    pub(crate) bus: Bus,
    pub(crate) meter: Arc<Meter>,
    pub(crate) lines: Arc<Mutex<Vec<Value>>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let clock = FakeClock::automatic();
        let engine = Arc::new(Memory::new(Arc::new(clock.clone())));
        let ports = Ports {
            rates: Arc::new(MemoryRates::default()),
            ..ports(
                &Stores::of(&engine),
                Arc::new(clock.clone()),
                Arc::new(SeededRandom::new(7)),
            )
        };
        let audit = AuditEntry {
            at: clock.now(),
            actor: "storybus".to_owned(),
            action: "test".to_owned(),
            subject: Vec::new(),
            details: Value::Null,
        };
        let workspace = Workspace {
            id: "w-demo".parse().unwrap(),
            name: "demo".to_owned(),
            strict_message_types: false,
            created_at: clock.now(),
            version: 1,
        };
        Workspaces::create(&*engine, &workspace, &audit).await.unwrap();
        let producer = Role::Producer(Producer {
            system_ids: vec!["demo-ncs".to_owned()],
            message_types: vec!["*".parse().unwrap()],
            role_arn: Some("arn:aws:iam::123456789012:role/desk/newsroom".to_owned()),
            rate: None,
        });
        let consumer = Role::Consumer(Consumer {
            filter: Filter::default(),
            max_receives: 5,
            visibility_seconds: 60,
            reader_role_arn: None,
            paused: false,
        });
        for (id, role) in [
            ("p-demo", producer),
            ("c-demo", consumer),
            ("o-demo", Role::Operator),
        ] {
            let connection = Connection {
                id: id.parse().unwrap(),
                workspace: (role != Role::Operator).then(|| workspace.id.clone()),
                name: id.to_owned(),
                disabled: false,
                created_at: clock.now(),
                secrets: vec![Secret {
                    id: "s-demo".parse().unwrap(),
                    hash: ports.hasher.hash(SECRET).await.unwrap(),
                    created_at: clock.now(),
                }],
                role,
                version: 1,
            };
            Connections::create(&*engine, &connection, &audit).await.unwrap();
        }
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let meter = Meter::new(
            "bus",
            "test",
            Arc::new(move |line| kept.lock().unwrap().push(serde_json::from_str(line).unwrap())),
        );
        Self {
            clock,
            bus: Bus::new(ports, Settings::default()),
            meter,
            lines,
        }
    }

    /// The event with the tokens of those that it speaks of.
    pub(crate) async fn event(&self, text: &str) -> Box<RawValue> {
        let mut text = text.to_owned();
        for (who, id) in [
            ("producer", "p-demo"),
            ("consumer", "c-demo"),
            ("operator", "o-demo"),
        ] {
            let place = format!("{{{{{who}}}}}");
            if text.contains(&place) {
                let request = TokenRequest {
                    client_id: id.to_owned(),
                    client_secret: SECRET.to_owned(),
                    scope: None,
                    source: "192.0.2.1".to_owned(),
                };
                let token = self.bus.token_issue(&request).await.unwrap();
                text = text.replace(&place, &token.access_token);
            }
        }
        RawValue::from_string(text).unwrap()
    }

    pub(crate) fn front(&self) -> Front {
        Front::new(Api::new(self.bus.clone()), Arc::clone(&self.meter))
    }

    /// An invocation that has 15 s.
    pub(crate) fn invocation(&self) -> Invocation {
        Invocation {
            request_id: "r-1".to_owned(),
            deadline: Clock::now(&self.clock).plus(Duration::from_secs(15)),
            trace_id: None,
        }
    }

    /// Answers an event.
    pub(crate) async fn answer(&self, text: &str) -> Answer {
        let event = self.event(text).await;
        self.front().answer(&event, &self.invocation()).await
    }

    /// The last line of metrics.
    pub(crate) fn line(&self) -> Value {
        self.lines.lock().unwrap().last().cloned().unwrap()
    }
}

/// The body of an answer.
pub(crate) fn json(answer: &Answer) -> Value {
    assert!(!answer.is_base64_encoded);
    serde_json::from_str(&answer.body).unwrap_or(Value::Null)
}
