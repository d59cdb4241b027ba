//! A replay of everything, while others publish.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use storybus_cli::serve::credentials::Credentials;
use tokio::time::{Instant, interval};

use crate::connection::Connection;
use crate::{Args, publish};

/// The operator API.
struct Operator {
    connection: Connection,
    token: String,
    tenant: String,
}

impl Operator {
    async fn call(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let request = format!(
            "{method} /v1/admin/tenants/{}/{path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.tenant,
            self.token,
            body.len()
        );
        let (status, answer) = self.connection.ask(request.as_bytes()).await?;
        let answer: Value = serde_json::from_slice(&self.connection.read[answer])?;
        if status >= 300 {
            bail!("{method} {path}: {status} {answer}");
        }
        Ok(answer)
    }
}

/// Publishes alone, then as much beside a replay of all that was published before.
pub(crate) async fn measure(args: &Arc<Args>, credentials: &Arc<Credentials>) -> Result<()> {
    let mut connection = Connection::open(credentials).await?;
    let mut operator = Operator {
        token: connection.token(credentials.clients.operator.as_ref()).await?,
        connection,
        tenant: credentials.clients.tenant.clone().context("not a demo")?,
    };
    let members = json!({"name": "late", "message_types": ["none.*"]});
    let late = operator.call("POST", "consumers", &members);
    let late = late.await?["client_id"].as_str().unwrap_or_default().to_owned();
    let alone = publish(args, credentials).await?;
    alone.tell("publish alone");
    operator
        .call(
            "PATCH",
            &format!("consumers/{late}"),
            &json!({"message_types": []}),
        )
        .await?;
    let from = operator
        .call("GET", &format!("consumers/{late}"), &json!({}))
        .await?;
    let asked = json!({"from": begin_of(&from), "to": "9999-12-31T00:00:00Z"});
    let job = operator
        .call("POST", &format!("consumers/{late}/replays"), &asked)
        .await?;
    let path = format!("jobs/{}", job["job_id"].as_str().unwrap_or_default());
    let began = Instant::now();
    let beside = tokio::spawn({
        let (args, credentials) = (args.clone(), credentials.clone());
        async move { publish(&args, &credentials).await }
    });
    let mut look = interval(Duration::from_millis(100));
    let job = loop {
        look.tick().await;
        let job = operator.call("GET", &path, &json!({})).await?;
        if job["state"] != "queued" && job["state"] != "running" {
            break job;
        }
    };
    let took = began.elapsed().as_secs_f64();
    let moved = job["moved"].as_f64().unwrap_or_default();
    let still = !beside.is_finished();
    let beside = beside.await??;
    beside.tell("publish beside a replay");
    println!(
        "replay: {} {moved} messages in {took:.1} s: {:.0}/s{}; publishes kept {:.2} of their rate",
        job["state"],
        moved / took,
        if still { ", publishes all the while" } else { "" },
        beside.rate() / alone.rate()
    );
    Ok(())
}

/// A time before anything was published: the day on which the consumer was made, at its begin.
fn begin_of(consumer: &Value) -> String {
    let made = consumer["created_at"].as_str().unwrap_or_default();
    format!("{}T00:00:00Z", made.get(..10).unwrap_or_default())
}
