//! `storybus audit`.

use clap::Args;
use serde_json::Value;

use super::api::Api;
use super::connections::more;
use super::flags::{Common, Paging};
use super::lists::ListKind;
use super::names::Kind;
use super::out::{self, Cell, Table};
use crate::exit::Failure;

pub(super) const HELP: &str = "Every write is kept: who, when, what. The newest is first. With -w (or its variable), --of or --action the whole audit is read for
what fits.

Example:
  storybus audit --limit 20
  storybus audit -w \"Harbour News\" --action consumer.update";

#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only of what has this id: a workspace, a connection, a secret, a job
    #[arg(long, value_name = "ID")]
    of: Option<String>,
    /// Only of this action, such as consumer.update
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Runs it.
pub(super) fn run(args: &AuditArgs) -> Result<(), Failure> {
    let mut api = Api::new(&args.common)?;
    let workspace = if api.narrowed {
        Some(api.workspace_id()?)
    } else {
        None
    };
    let fits = |entry: &Value| {
        let subject = entry["subject"].as_array().map_or(&[][..], Vec::as_slice);
        let about = |id: &Option<String>| id.as_ref().is_none_or(|id| subject.iter().any(|s| s == id));
        about(&workspace) && about(&args.of) && args.action.as_ref().is_none_or(|a| entry["action"] == *a)
    };
    let chosen = workspace.is_some() || args.of.is_some() || args.action.is_some();
    let paging = if chosen { &Paging::ALL } else { &args.paging };
    let mut all = api.gather("admin/audit", ListKind::newest("entries"), &[], paging)?;
    if chosen {
        all.entries
            .retain(|entry| fits(&serde_json::from_str(entry.get()).unwrap_or_default()));
        all.entries.truncate(args.paging.most().unwrap_or(usize::MAX));
    }
    if args.common.json {
        return out::document(&all.document()?);
    }
    if workspace.is_some() {
        out::note(
            "only what was written in the one workspace; without -w and STORYBUS_WORKSPACE it is everything",
        );
    }
    let mut table = Table::new(&["TIME", "WHO", "WHAT", "OF", "DETAILS"]);
    let (operators, workspaces) = (api.names(Kind::Operator), api.names(Kind::Workspace));
    for entry in all.values()? {
        let subject = entry["subject"].as_array().into_iter().flatten();
        let of: Vec<&str> = subject
            .filter_map(Value::as_str)
            .map(|id| workspaces.only(id).or_else(|| operators.only(id)).unwrap_or(id))
            .collect();
        let details = entry.get("details").filter(|d| !d.is_null());
        table.row(vec![
            Cell::of(&entry, "at"),
            operators.cell(&entry, "actor"),
            Cell::of(&entry, "action"),
            Cell::new(of.join(",")),
            Cell::new(details.map(ToString::to_string).unwrap_or_default()),
        ]);
    }
    table.print(if chosen {
        "nothing that was written fits"
    } else {
        "nothing has been written yet"
    })?;
    more(all.next.as_deref());
    Ok(())
}
