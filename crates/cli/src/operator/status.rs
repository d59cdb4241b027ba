//! `storybus status`: all consumers at a glance.

use clap::Args;
use serde_json::{Value, json};

use super::api::{Api, id_in, segment};
use super::connections::state;
use super::flags::{Common, Paging};
use super::names::{Kind, Names};
use super::out::{self, Cell, Table, Tone};
use super::queue::{Hint, Level, is_shut_out};
use crate::exit::Failure;

pub(super) const HELP: &str = "When a consumer stands still:
  storybus status                               which one, and why
  storybus dead-letters list CONSUMER           what it could not take
  storybus dead-letters show CONSUMER MESSAGE   the message itself
  storybus message show MESSAGE                 its way, also to other consumers
  storybus redrive CONSUMER --message MESSAGE   back into the queue, when the consumer is mended
  storybus replay CONSUMER --last 1h            again what it has lost, from the archive

With --json: {\"consumers\": [{tenant, tenant_name, client_id, name, disabled, paused, visible, in_flight, dead_lettered,
oldest_age_seconds?, hints: [{code, why, command?}]}]}. A code is disabled, paused, no_secret, not_reading, not_acknowledging
or dead_letters.

Example:
  storybus status -w \"Harbour News\"";

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Only consumers for which there is a hint
    #[arg(long)]
    hints: bool,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Runs it.
pub(super) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let mut api = Api::new(&args.common)?;
    // A profile's or a credentials file's workspace does not narrow an overview; one that is asked for does.
    let workspaces = if api.narrowed {
        let id = api.workspace_id()?;
        vec![api.get(&format!("admin/tenants/{}", segment(&id)))?.value()?]
    } else {
        api.gather("admin/tenants", Kind::Workspace.list(), &[], &Paging::ALL)?
            .values()?
    };
    let mut table = Table::new(&[
        "WORKSPACE",
        "CONSUMER",
        "NAME",
        "STATE",
        "WAITING",
        "IN FLIGHT",
        "DEAD",
        "OLDEST",
        "HINT",
    ]);
    let names = Names::of(&workspaces, Kind::Workspace);
    let mut documents = Vec::new();
    let mut seen = 0_u64;
    for workspace in &workspaces {
        let tenant = id_in(workspace, "tenant")?;
        let route = format!("admin/tenants/{}/consumers", segment(&tenant));
        let carried = if workspaces.len() > 1 {
            args.common.carried(Some(names.only(&tenant).unwrap_or(&tenant)))
        } else {
            api.carried.clone()
        };
        for consumer in api
            .gather(&route, Kind::Consumer.list(), &[], &Paging::ALL)?
            .values()?
        {
            seen += 1;
            let id = id_in(&consumer, "client_id")?;
            let path = format!("{route}/{}", segment(&id));
            let Some(queue) = api.find(
                &format!("{path}/queue"),
                storybus_protocol::rule::CONSUMER_NOT_FOUND,
            )?
            else {
                // Deleted since it was listed.
                continue;
            };
            let queue = queue.value()?;
            let mut level = Level::of(&consumer, &queue);
            level.shut_out = is_shut_out(&mut api, &path, &level)?;
            let hints = level.hints(&id, &carried);
            if args.hints && hints.is_empty() {
                continue;
            }
            let told: Vec<String> = hints
                .iter()
                .map(|h| match &h.command {
                    Some(command) => format!("{}: {command}", h.why),
                    None => h.why.clone(),
                })
                .collect();
            documents.push(document(workspace, &consumer, &queue, &hints));
            let hint = Cell::new(told.join("; "));
            table.row(vec![
                Cell::of(workspace, "name"),
                Cell::new(&id),
                Cell::of(&consumer, "name"),
                state(&consumer),
                Cell::new(level.visible.to_string()),
                Cell::new(level.in_flight.to_string()),
                level.dead(),
                level.age(),
                hint.toned(Tone::Warn),
            ]);
        }
    }
    if args.common.json {
        return out::value(&json!({ "consumers": documents }));
    }
    let none = match (workspaces.is_empty(), seen) {
        (true, _) => "there is no workspace yet: storybus workspaces create NAME".to_owned(),
        (false, 0) => "there is no consumer yet: storybus consumers create NAME".to_owned(),
        (false, _) => format!(
            "nothing stands out: {}",
            out::count(seen, "consumer", "consumers")
        ),
    };
    table.print(&none)
}

fn document(workspace: &Value, consumer: &Value, queue: &Value, hints: &[Hint]) -> Value {
    let hints: Vec<Value> = hints
        .iter()
        .map(|h| match &h.command {
            Some(command) => json!({ "code": h.code, "why": h.why, "command": command }),
            None => json!({ "code": h.code, "why": h.why }),
        })
        .collect();
    let mut document = json!({ "tenant_name": workspace["name"], "hints": hints });
    let members = ["tenant", "client_id", "name", "disabled", "paused"];
    if let Some(all) = document.as_object_mut() {
        for member in members {
            all.insert(member.to_owned(), consumer[member].clone());
        }
        all.extend(queue.as_object().cloned().unwrap_or_default());
    }
    document
}
