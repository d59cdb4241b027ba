//! `storybus profiles`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::out::{self, Cell, Table};
use crate::client::profiles::{Profile, Profiles};
use crate::exit::{self, Failure};

const HELP: &str = "The file is storybus/config.toml in $XDG_CONFIG_HOME or ~/.config, or that of --config or STORYBUS_CONFIG:

  [profiles.prod]
  url = \"https://bus.example.org/v1/\"
  client_id = \"o4fq0w9\"
  client_secret_file = \"prod.secret\"     # a file with the secret alone, mode 600; beside this file
  workspace = \"Harbour News\"

  [profiles.laptop]
  credentials_file = \"~/bus/storybus-data/credentials.json\"

A secret is never in the file itself.

Example:
  storybus profiles list
  storybus status --profile prod";

#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = HELP)]
pub struct ProfilesArgs {
    #[command(subcommand)]
    verb: ProfilesVerb,
}

#[derive(Debug, Subcommand)]
pub(super) enum ProfilesVerb {
    /// The profiles of the file
    #[command(after_help = HELP)]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The file of profiles [default: storybus/config.toml in $XDG_CONFIG_HOME or ~/.config]
        #[arg(long, value_name = "FILE", env = "STORYBUS_CONFIG")]
        config: Option<std::path::PathBuf>,
    },
}

/// Runs it.
pub(super) fn run(args: &ProfilesArgs) -> Result<(), Failure> {
    let ProfilesVerb::List { json, config } = &args.verb;
    let profiles = Profiles::read(config.as_deref()).map_err(|e| Failure::new(exit::UNUSABLE, e))?;
    let file = profiles.file.display().to_string();
    if *json {
        let all: Vec<Value> = profiles.by_name.iter().map(|(n, p)| document(n, p)).collect();
        return out::value(&json!({ "config": file, "profiles": all }));
    }
    let mut table = Table::new(&["PROFILE", "URL", "CLIENT", "WORKSPACE", "SECRET"]);
    for (name, profile) in &profiles.by_name {
        let document = document(name, profile);
        let secret = match (&profile.client_secret_file, &profile.credentials_file) {
            (Some(file), _) | (None, Some(file)) => format!("in {}", file.display()),
            (None, None) => "STORYBUS_CLIENT_SECRET".to_owned(),
        };
        table.row(vec![
            Cell::of(&document, "name"),
            Cell::of(&document, "url"),
            Cell::of(&document, "client_id"),
            Cell::of(&document, "workspace"),
            Cell::new(secret),
        ]);
    }
    table.print(&format!(
        "no profiles in {file}; storybus profiles --help shows how they look"
    ))
}

fn document(name: &str, profile: &Profile) -> Value {
    let mut document = serde_json::to_value(profile).unwrap_or_default();
    if let Some(members) = document.as_object_mut() {
        members.insert("name".to_owned(), name.into());
    }
    document
}
