//! `storybus audit`.

use clap::Args;

use super::api::Api;
use super::connections::more;
use super::flags::{Common, Paging};
use super::lists::ListKind;
use super::out::{self, Cell, Table};
use crate::exit::Failure;

pub(super) const HELP: &str = "Every write is kept: who, when, what. The newest is first.

Example:
  storybus audit --limit 20";

#[derive(Debug, Args)]
pub struct AuditArgs {
    #[command(flatten)]
    paging: Paging,
    #[command(flatten)]
    pub(super) common: Common,
}

/// Runs it.
pub(super) fn run(args: &AuditArgs) -> Result<(), Failure> {
    let mut api = Api::new(&args.common)?;
    let all = api.gather("admin/audit", ListKind::newest("entries"), &[], &args.paging)?;
    if args.common.json {
        return out::document(&all.document()?);
    }
    let mut table = Table::new(&["TIME", "WHO", "WHAT", "OF", "DETAILS"]);
    for entry in all.values()? {
        let details = entry.get("details").filter(|d| !d.is_null());
        table.row(vec![
            Cell::of(&entry, "at"),
            Cell::of(&entry, "actor"),
            Cell::of(&entry, "action"),
            Cell::of(&entry, "subject"),
            Cell::new(details.map(ToString::to_string).unwrap_or_default()),
        ]);
    }
    table.print("nothing has been written yet")?;
    more(all.next.as_deref());
    Ok(())
}
