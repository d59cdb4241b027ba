//! What the operator's verbs have in common on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::settings::{BusArgs, of_flag};

/// A noun: its verbs, and what all of them take.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Noun<V: Subcommand> {
    #[command(subcommand)]
    pub(super) verb: V,
    #[command(flatten)]
    pub(super) common: Common,
}

/// What every verb of the operator takes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Common {
    /// Print the bus's own JSON, one document, instead of text for people; a refusal's too
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// The workspace, by id or by name [default: the profile's or the credentials file's, else the only one there is]
    #[arg(
        long,
        short = 'w',
        global = true,
        value_name = "WORKSPACE",
        env = "STORYBUS_WORKSPACE",
        help_heading = "Bus"
    )]
    pub(super) workspace: Option<String>,
    /// How long to try again when the bus cannot be reached or has no room, in seconds
    #[arg(
        long,
        global = true,
        value_name = "SECONDS",
        default_value_t = 30,
        hide_short_help = true,
        help_heading = "Bus"
    )]
    pub(super) patience: u64,
    #[command(flatten)]
    pub(super) bus: BusArgs,
}

impl Common {
    /// The flags that say which bus, as whom and which workspace, for a command that is to go on from this one. What comes from
    /// variables is left out: the next command has them too. The workspace is what the caller says.
    pub(super) fn carried(&self, workspace: Option<&str>) -> String {
        let path = |p: &Option<PathBuf>| p.as_ref().map(|p| p.display().to_string());
        let own = |value: Option<String>, name| of_flag(value, name);
        let bus = &self.bus;
        let flags = [
            ("--url", own(bus.url.clone(), "STORYBUS_URL")),
            ("--client-id", own(bus.client_id.clone(), "STORYBUS_CLIENT_ID")),
            ("--client-secret-file", path(&bus.client_secret_file)),
            (
                "--credentials-file",
                own(path(&bus.credentials_file), "STORYBUS_CREDENTIALS"),
            ),
            ("--config", own(path(&bus.config), "STORYBUS_CONFIG")),
            ("--profile", own(bus.profile.clone(), "STORYBUS_PROFILE")),
            (
                "-w",
                workspace
                    .map(str::to_owned)
                    .or_else(|| own(self.workspace.clone(), "STORYBUS_WORKSPACE")),
            ),
        ];
        let mut text = String::new();
        for (flag, value) in flags {
            if let Some(value) = value {
                text.push_str(&format!(" {flag} {}", quoted(&value)));
            }
        }
        text
    }
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@%+,=".contains(&b);
    if !word.is_empty() && word.bytes().all(bare) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// How much of a list.
#[derive(Debug, Clone, Args)]
pub struct Paging {
    /// At most so many [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// All there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Paging {
    /// Everything.
    pub(super) const ALL: Self = Self {
        limit: None,
        all: true,
    };

    /// The most entries; `None` without a limit.
    pub(super) fn most(&self) -> Option<usize> {
        (!self.all).then(|| usize::try_from(self.limit.unwrap_or(100)).unwrap_or(usize::MAX))
    }

    /// The same, with so many when nobody said how many.
    pub(super) fn or(&self, limit: u64) -> Self {
        Self {
            limit: self.limit.or(Some(limit)),
            all: self.all,
        }
    }
}

/// For what destroys something.
#[derive(Debug, Clone, Args)]
pub struct Yes {
    /// Do not ask; needed where nobody can be asked
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

/// Two flags that say the opposite of each other: what they say together.
pub(super) fn either(on: bool, off: bool) -> Option<bool> {
    (on || off).then_some(on)
}

/// A text as a flag gave it; an empty one resets it.
pub(super) fn or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

/// A list as flags gave it; an empty value empties it.
pub(super) fn list(values: &[String]) -> Vec<&str> {
    values
        .iter()
        .map(|v| v.trim())
        .filter(|v| !v.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        assert_eq!(quoted("c-1_x"), "c-1_x");
        assert_eq!(quoted("Harbour News"), "'Harbour News'");
        assert_eq!(quoted("it's; rm"), "'it'\\''s; rm'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn an_empty_value_empties_a_list() {
        let given = |v: &[&str]| v.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        assert!(list(&given(&[""])).is_empty());
        assert_eq!(list(&given(&["a", " b"])), ["a", "b"]);
    }
}
