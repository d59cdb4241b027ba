//! A message's way through a live bus, as any client goes it, in a workspace that is removed again.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::anyhow;
use http::Method;
use serde_json::{Value, json};
use storybus_core::ports::Random as _;
use tokio::time::Instant;

use super::say;
use crate::client::answer::{Answer, GaveUp};
use crate::client::bus::BusClient;
use crate::client::settings::Settings;
use crate::exit::{self, Failure};
use crate::ports::OsRandom;
use crate::serve::credentials::Client;

/// How long one request is tried again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a message may be on its way to a queue or to the archive.
const ARRIVAL: Duration = Duration::from_secs(90);

/// Goes it. What it has made it removes, however it ends.
pub(super) fn go(base_url: &str, operator: Client) -> Result<(), Failure> {
    let base_url = format!("{}/", base_url.trim_end_matches('/'));
    say(&format!("base URL: {base_url}"))?;
    let mut operator = Party::of(&base_url, operator)?;
    let name = format!("storybus deploy-check {}", word());
    let tenant = id(
        &operator.ask(Method::POST, "admin/tenants", Some(&json!({"name": name})), 201)?,
        "tenant",
    )?;
    let walked = walk(&base_url, &mut operator, &tenant);
    let cleared = clear(&mut operator, &tenant);
    walked?;
    cleared.map_err(|failure| {
        Failure::new(
            failure.code,
            failure.error.context(format!(
                "the workspace {tenant} could not be removed; everything before that works"
            )),
        )
    })?;
    say("the workspace is removed again; everything works")
}

fn walk(base_url: &str, operator: &mut Party, tenant: &str) -> Result<(), Failure> {
    let system = format!("deploy-check-{}", word());
    let made = operator.ask(
        Method::POST,
        &format!("admin/tenants/{tenant}/producers"),
        Some(&json!({"name": "producer", "system_ids": [system], "message_types": ["*"]})),
        201,
    )?;
    let mut producer = Party::of(base_url, client(&made)?)?;
    let made = operator.ask(
        Method::POST,
        &format!("admin/tenants/{tenant}/consumers"),
        Some(&json!({"name": "consumer"})),
        201,
    )?;
    let mut consumer = Party::of(base_url, client(&made)?)?;
    say("workspace, producer and consumer are made")?;

    let (message_id, message) = message(&system);
    let publish = format!("tenants/{tenant}/messages");
    producer.ask(Method::POST, &publish, Some(&message), 202)?;
    let again = producer.ask(Method::POST, &publish, Some(&message), 200)?;
    if again["duplicate"] != true {
        return Err(anyhow!(
            "a message that is published again is a duplicate, but this bus answers otherwise"
        )
        .into());
    }
    say("published; published again, and known as a duplicate")?;

    let queue = format!("tenants/{tenant}/consumers/{}", consumer.client.client_id());
    let began = Instant::now();
    let handle = loop {
        let answer = consumer.ask(
            Method::GET,
            &format!("{queue}/messages?max=10&wait=10"),
            None,
            200,
        )?;
        let messages = answer["messages"].as_array().cloned().unwrap_or_default();
        match &messages[..] {
            [one] if one["envelope"]["message_id"] == *message_id => break one["receipt_handle"].clone(),
            [] if began.elapsed() < ARRIVAL => {}
            [] => return Err(anyhow!("the message did not reach the consumer's queue within {} s: look at the alarms of undelivered messages", ARRIVAL.as_secs()).into()),
            _ => return Err(anyhow!("the consumer received something else than the message").into()),
        }
    };
    consumer.ask(
        Method::POST,
        &format!("{queue}/ack"),
        Some(&json!({"receipt_handles": [handle]})),
        200,
    )?;
    say("received and acknowledged")?;

    let began = Instant::now();
    loop {
        let way = operator.ask(
            Method::GET,
            &format!("admin/tenants/{tenant}/messages/{message_id}"),
            None,
            200,
        )?;
        if way["archived"] == true {
            return say("found in the archive");
        }
        if began.elapsed() > ARRIVAL {
            return Err(anyhow!(
                "the message did not reach the archive within {} s: look at the log of the function archive",
                ARRIVAL.as_secs()
            )
            .into());
        }
        operator.client.stop.pause(Duration::from_secs(1));
    }
}

/// Removes the workspace with all that is in it.
fn clear(operator: &mut Party, tenant: &str) -> Result<(), Failure> {
    for (kind, list) in [("consumers", "consumers"), ("producers", "producers")] {
        let path = format!("admin/tenants/{tenant}/{kind}");
        let there = operator.ask(Method::GET, &path, None, 200)?;
        for connection in there[list].as_array().into_iter().flatten() {
            operator.remove(&format!("{path}/{}", id(connection, "client_id")?))?;
        }
    }
    operator.remove(&format!("admin/tenants/{tenant}"))
}

/// Who asks.
struct Party {
    client: BusClient,
}

impl Party {
    fn of(base_url: &str, client: Client) -> Result<Self, Failure> {
        let Some(client_secret) = client.client_secret else {
            return Err(anyhow!("there is no secret of {}", client.client_id).into());
        };
        Ok(Self {
            client: BusClient::new(Settings {
                url: base_url.to_owned(),
                client_id: client.client_id,
                client_secret,
                of_file: false,
                workspace: None,
            }),
        })
    }

    fn send(&mut self, method: &Method, path: &str, body: Option<&Value>) -> Result<Answer, Failure> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let told = |reason: &str, pause: Duration| {
            // Nobody is left to tell when stderr is gone.
            let _ = writeln!(io::stderr(), "{reason}; again in {:.1} s", pause.as_secs_f64());
        };
        self.client
            .until_final(PATIENCE, told, |client| {
                client.call(method, path, body.as_bytes(), Duration::from_secs(10))
            })
            .map_err(|gave_up| match gave_up {
                GaveUp::TimeUp(why) | GaveUp::Login(why) | GaveUp::Wrong(why) | GaveUp::Unknown(why) => {
                    Failure::new(exit::FAILED, anyhow!("{method} {path}: {why}"))
                }
                GaveUp::Stopped => Failure::new(exit::GAVE_UP, anyhow!("stopped")),
            })
    }

    fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        status: u16,
    ) -> Result<Value, Failure> {
        let answer = self.send(&method, path, body)?;
        if answer.status != status {
            let rules: Vec<String> = answer
                .violations()
                .iter()
                .map(|v| format!("{}: {}", v.rule, v.message))
                .collect();
            return Err(anyhow!(
                "{method} {path} is answered {} instead of {status}: {}",
                answer.status,
                rules.join("; ")
            )
            .into());
        }
        Ok(serde_json::from_slice(&answer.body)
            .map_err(|_| anyhow!("{method} {path}: the answer is not a bus's"))?)
    }

    fn remove(&mut self, path: &str) -> Result<(), Failure> {
        match self.send(&Method::DELETE, path, None)?.status {
            204 | 404 => Ok(()),
            status => Err(anyhow!("DELETE {path} is answered {status}").into()),
        }
    }
}

fn client(made: &Value) -> Result<Client, Failure> {
    Ok(Client {
        client_id: id(made, "client_id")?,
        client_secret: Some(id(made, "client_secret")?),
        system_id: None,
    })
}

fn id(of: &Value, member: &str) -> Result<String, Failure> {
    let text = of[member].as_str().map(str::to_owned);
    text.ok_or_else(|| anyhow!("an answer has no {member}: is that a bus?").into())
}

/// Eight digits that nobody else has.
fn word() -> String {
    let mut bytes = [0; 4];
    OsRandom.fill(&mut bytes);
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A snapshot of a story that nobody tells.
fn message(system: &str) -> (String, Value) {
    let (message_id, story) = (uuid(), uuid());
    let message = json!({
        "som_version": "1.0.0",
        "message_id": message_id,
        "correlation_id": story,
        "message_type": "story.context",
        "timestamp": "2026-01-01T00:00:00Z",
        "originating_system": {"system_id": system, "system_type": "ncs"},
        "topic": "som.story.context",
        "payload": {
            "story_id": story,
            "slug": "DEPLOY-CHECK",
            "headline": "A check of the bus",
            "story_type": "ACTIVE",
            "lifecycle": {"phase": "DEVELOPING", "phase_entered_at": "2026-01-01T00:00:00Z"},
            "sequence_number": 1,
            "updated_at": "2026-01-01T00:00:00Z",
        },
    });
    (message_id, message)
}

/// A random UUID (RFC 9562 §5.4).
fn uuid() -> String {
    let mut b = [0_u8; 16];
    OsRandom.fill(&mut b);
    b[6] = b[6] & 0x0f | 0x40;
    b[8] = b[8] & 0x3f | 0x80;
    let hex: String = b.iter().map(|b| format!("{b:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
