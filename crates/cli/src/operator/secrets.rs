//! `storybus secrets`: of a producer, a consumer or an operator.

use clap::Subcommand;
use serde_json::json;

use super::api::{Api, segment};
use super::connections::gone;
use super::flags::{Noun, Yes};
use super::out::{self, Cell, Table};
use super::secret::{self, SecretFile};
use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub enum SecretsVerb {
    /// The live secrets of a connection: their ids, not themselves
    #[command(after_help = "Example:\n  storybus secrets list c4fq0w9")]
    List {
        /// The producer, the consumer or the operator, by id or by name
        connection: String,
    },
    /// Make a second secret; it is shown once
    #[command(
        after_help = "To rotate a secret without an outage: make a second one, give it to the client, delete the first.

Example:
  storybus secrets create c4fq0w9 --secret-file rundown.secret
  storybus secrets list c4fq0w9
  storybus secrets delete c4fq0w9 s8d1k2x"
    )]
    Create {
        /// The producer, the consumer or the operator, by id or by name
        connection: String,
        #[command(flatten)]
        secret: SecretFile,
    },
    /// Delete a secret; the tokens that it got hold on for up to an hour
    #[command(
        after_help = "To shut a client out at once, disable it.\n\nExample:\n  storybus secrets delete c4fq0w9 s8d1k2x --yes"
    )]
    Delete {
        /// The producer, the consumer or the operator, by id or by name
        connection: String,
        /// The secret's id
        secret_id: String,
        #[command(flatten)]
        yes: Yes,
    },
}

/// Runs it.
pub(super) fn run(noun: &Noun<SecretsVerb>) -> Result<(), Failure> {
    let (mut api, json) = (Api::new(&noun.common)?, noun.common.json);
    match &noun.verb {
        SecretsVerb::List { connection } => {
            let found = api.connection(connection)?;
            let all = api.get(&format!("{}/secrets", found.path))?;
            if json {
                return out::document(&all);
            }
            let mut table = Table::new(&["SECRET", "CREATED"]);
            for secret in all.value()?["secrets"].as_array().into_iter().flatten() {
                table.row(vec![
                    Cell::of(secret, "secret_id"),
                    Cell::of(secret, "created_at"),
                ]);
            }
            table.print(&format!(
                "{} has no live secret: it cannot log in; storybus secrets create {}",
                found.told(),
                found.id
            ))
        }
        SecretsVerb::Create { connection, secret } => {
            let file = secret.secret_file.as_deref();
            secret::check(file)?;
            let found = api.connection(connection)?;
            let look = format!(
                "storybus secrets list {0}. One that was made and nobody has seen: storybus secrets delete {0} SECRET_ID",
                found.id
            );
            let made = api.post(&format!("{}/secrets", found.path), &json!({}), &look)?;
            secret::handed_over(&made, file, json, |s| {
                vec![
                    ("client id", Cell::new(&found.id)),
                    ("name", Cell::new(&found.name)),
                    ("created", Cell::of(s, "created_at")),
                ]
            })
        }
        SecretsVerb::Delete {
            connection,
            secret_id,
            yes,
        } => {
            let found = api.connection(connection)?;
            let live = api.get(&format!("{}/secrets", found.path))?.value()?;
            let last = live["secrets"]
                .as_array()
                .is_some_and(|all| matches!(all.as_slice(), [only] if only["secret_id"] == **secret_id));
            let (which, end) = if last {
                ("last secret", ", which cannot log in any more then")
            } else {
                ("secret", "")
            };
            out::confirm(
                &format!("Delete the {which} {secret_id} of {}{end}", found.told()),
                yes.yes,
            )?;
            api.delete(&format!("{}/secrets/{}", found.path, segment(secret_id)))?;
            if last {
                out::note(&format!(
                    "it was the last: {0} cannot log in any more; storybus secrets create {0}{1}",
                    found.id, api.carried
                ));
            }
            gone(
                "secret",
                &format!("{} of {}", crate::client::json::plain(secret_id), found.told()),
                secret_id,
                json,
            )
        }
    }
}
