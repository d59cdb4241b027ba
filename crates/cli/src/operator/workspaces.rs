//! `storybus workspaces`.

use clap::Subcommand;
use serde_json::{Map, Value};

use super::api::Api;
use super::connections::{deleted, list, show_found, written};
use super::flags::{Noun, Paging, Yes, either};
use super::names::Kind;
use super::out::{self, Cell, Table};
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum WorkspacesVerb {
    /// All workspaces
    #[command(after_help = "Example:\n  storybus workspaces list")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// One workspace
    #[command(after_help = "Example:\n  storybus workspaces show \"Harbour News\"")]
    Show {
        /// Its id or name
        workspace_name: String,
    },
    /// Make a workspace
    #[command(after_help = "Example:\n  storybus workspaces create \"Harbour News\" --strict")]
    Create {
        /// Its name, 1 to 200 characters
        name: String,
        /// Refuse message types that SOM 1.0 does not know
        #[arg(long)]
        strict: bool,
    },
    /// Rename a workspace, or change how strict it is
    #[command(after_help = "Example:\n  storybus workspaces update \"Harbour News\" --no-strict")]
    Update {
        /// Its id or name
        workspace_name: String,
        /// Its new name
        #[arg(long)]
        name: Option<String>,
        /// Refuse message types that SOM 1.0 does not know
        #[arg(long, conflicts_with = "no_strict")]
        strict: bool,
        /// Let them pass, with a remark
        #[arg(long)]
        no_strict: bool,
    },
    /// Delete a workspace that has no connections any more
    #[command(
        after_help = "Its messages, its stories and its archive go with it.\n\nExample:\n  storybus workspaces delete \"Harbour News\" --yes"
    )]
    Delete {
        /// Its id or name
        workspace_name: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<WorkspacesVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let kind = Kind::Workspace;
    match &noun.verb {
        WorkspacesVerb::List { paging } => list(&mut api, kind, paging, json, |all| {
            let mut table = Table::new(&["WORKSPACE", "NAME", "STRICT", "CREATED"]);
            for w in all {
                table.row(vec![
                    Cell::of(w, "tenant"),
                    Cell::of(w, "name"),
                    Cell::of(w, "strict_message_types"),
                    Cell::of(w, "created_at"),
                ]);
            }
            table
        }),
        WorkspacesVerb::Show { workspace_name } => {
            show_found(&api.named(kind, workspace_name)?.document, json, fields)
        }
        WorkspacesVerb::Create { name, strict } => {
            let mut body = Map::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
            if *strict {
                body.insert("strict_message_types".to_owned(), true.into());
            }
            let made = api.post("admin/tenants", &Value::Object(body), "storybus workspaces list")?;
            show_found(&made, json, fields)?;
            if !json {
                let id = super::api::id_in(&made.value()?, "tenant")?;
                out::next(&[
                    (
                        format!("storybus producers create NAME --system-id ID --type story.* -w {id}"),
                        "who publishes",
                    ),
                    (format!("storybus consumers create NAME -w {id}"), "who reads"),
                ])?;
            }
            Ok(())
        }
        WorkspacesVerb::Update {
            workspace_name,
            name,
            strict,
            no_strict,
        } => {
            let mut body = Map::new();
            if let Some(name) = name {
                body.insert("name".to_owned(), name.as_str().into());
            }
            if let Some(strict) = either(*strict, *no_strict) {
                body.insert("strict_message_types".to_owned(), strict.into());
            }
            let found = api.named(kind, workspace_name)?;
            let answer = written(&mut api, &found, body)?;
            show_found(&answer, json, fields)
        }
        WorkspacesVerb::Delete { workspace_name, yes } => {
            let found = api.named(kind, workspace_name)?;
            out::confirm(
                &format!(
                    "Delete the workspace {} with its stories and its archive",
                    found.told()
                ),
                yes.yes,
            )?;
            deleted(&mut api, kind, &found, json)
        }
    }
}

fn fields(w: &Value) -> Vec<(&'static str, Cell)> {
    vec![
        ("workspace", Cell::of(w, "tenant")),
        ("name", Cell::of(w, "name")),
        ("strict", Cell::of(w, "strict_message_types")),
        ("created", Cell::of(w, "created_at")),
    ]
}
