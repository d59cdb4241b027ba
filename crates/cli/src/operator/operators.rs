//! `storybus operators`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::api::Api;
use super::connections::{body, create, deleted, list, show_found, state, written};
use super::flags::{Noun, Paging, Yes, either};
use super::names::Kind;
use super::out::{self, Cell, Table};
use super::secret::SecretFile;
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum OperatorsVerb {
    /// All operators
    #[command(after_help = "Example:\n  storybus operators list")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// One operator
    #[command(after_help = "Example:\n  storybus operators show night-desk")]
    Show {
        /// Its id or name
        operator: String,
    },
    /// Make an operator; its secret is shown once
    #[command(
        after_help = "Example:\n  storybus operators create night-desk --secret-file night-desk.secret"
    )]
    Create {
        /// Its name, 1 to 200 characters
        name: String,
        #[command(flatten)]
        secret: SecretFile,
    },
    /// Rename an operator, shut it out or let it in again
    #[command(after_help = "Example:\n  storybus operators update night-desk --disable")]
    Update {
        /// Its id or name
        operator: String,
        /// Its new name
        #[arg(long)]
        name: Option<String>,
        /// Shut it out
        #[arg(long, conflicts_with = "enable")]
        disable: bool,
        /// Let it in again
        #[arg(long)]
        enable: bool,
    },
    /// Delete an operator; the last one who can log in stays
    #[command(after_help = "Example:\n  storybus operators delete night-desk --yes")]
    Delete {
        /// Its id or name
        operator: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<OperatorsVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    let kind = Kind::Operator;
    match &noun.verb {
        OperatorsVerb::List { paging } => list(&mut api, kind, paging, json, |all| {
            let mut table = Table::new(&["OPERATOR", "NAME", "STATE", "CREATED"]);
            for o in all {
                table.row(vec![
                    Cell::of(o, "client_id"),
                    Cell::of(o, "name"),
                    state(o),
                    Cell::of(o, "created_at"),
                ]);
            }
            table
        }),
        OperatorsVerb::Show { operator } => show_found(&api.named(kind, operator)?.document, json, fields),
        OperatorsVerb::Create { name, secret } => {
            let file = secret.secret_file.as_deref();
            create(&mut api, kind, &json!({ "name": name }), file, json, fields)
        }
        OperatorsVerb::Update {
            operator,
            name,
            disable,
            enable,
        } => {
            let body = body(vec![
                ("name", name.as_deref().map(Value::from)),
                ("disabled", either(*disable, *enable).map(Value::from)),
            ]);
            let found = api.named(kind, operator)?;
            let answer = written(&mut api, &found, body)?;
            show_found(&answer, json, fields)
        }
        OperatorsVerb::Delete { operator, yes } => {
            let found = api.named(kind, operator)?;
            out::confirm(&format!("Delete the operator {}", found.told()), yes.yes)?;
            deleted(&mut api, kind, &found, json)
        }
    }
}

fn fields(o: &Value) -> Vec<(&'static str, Cell)> {
    vec![
        ("operator", Cell::of(o, "client_id")),
        ("name", Cell::of(o, "name")),
        ("state", state(o)),
        ("created", Cell::of(o, "created_at")),
    ]
}
