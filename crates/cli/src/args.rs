//! The command line.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::aws::{DeployCheckArgs, RotateSigningKeyArgs};
use crate::client::json::plain as plain_text;
use crate::client::{PublishArgs, PullArgs};
use crate::data::{BackupArgs, CheckArgs, RestoreArgs};
use crate::exit;
use crate::logging::LogArgs;
use crate::operator::Verb;
use crate::sender::{OutboxNoun, RelayArgs, SendArgs};

/// A message bus for newsrooms: the bus on one machine, a client to try it with, and the operator's desk.
#[derive(Debug, Parser)]
#[command(name = "storybus", version, after_help = exit::HELP, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the bus, with its data in one directory
    Serve(ServeArgs),
    /// Publish messages, one from each file
    Publish(PublishArgs),
    /// Receive messages, print them and acknowledge them
    Pull(PullArgs),
    /// Send messages safely: kept in an outbox until the bus has answered for good
    Send(SendArgs),
    /// The outbox: what is there and why; resend, drop, count
    Outbox(OutboxNoun),
    /// Run the sender as a service: send what is in an outbox, and what is put into a directory
    Relay(RelayArgs),
    /// Copy the data directory of a bus that runs
    Backup(BackupArgs),
    /// Make a data directory from a backup
    Restore(RestoreArgs),
    /// Look whether everything in a data directory fits together
    Check(CheckArgs),
    /// On AWS, after a deployment: make the first operator, and check the bus from end to end
    DeployCheck(DeployCheckArgs),
    /// On AWS: a new key signs the tokens
    RotateSigningKey(RotateSigningKeyArgs),
    /// The operator's verbs.
    #[command(flatten)]
    Operator(Verb),
}

/// The verbs in the order of `--help`, by what somebody wants. What stands in none comes last.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("The bus", &["serve", "backup", "restore", "check"]),
    ("The bus on AWS", &["deploy-check", "rotate-signing-key"]),
    ("Messages", &["publish", "pull"]),
    ("Sending safely", &["send", "outbox", "relay"]),
    (
        "When something stands still",
        &["status", "queue", "dead-letters", "redrive", "replay", "jobs"],
    ),
    (
        "What happened",
        &["activity", "message", "stories", "explain", "audit"],
    ),
    (
        "Who may do what",
        &["workspaces", "producers", "consumers", "operators", "secrets"],
    ),
    ("This command", &["profiles", "completions", "man", "help"]),
];

/// The whole command line, with its verbs in groups.
#[must_use]
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut abouts: Vec<(String, String)> = command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .map(|verb| {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            (verb.get_name().to_owned(), about)
        })
        .collect();
    abouts.push((
        "help".to_owned(),
        "This help, or that of a verb: storybus help queue purge".to_owned(),
    ));
    let widest = abouts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let grouped = |name: &str| GROUPS.iter().any(|(_, verbs)| verbs.contains(&name));
    let others: Vec<&str> = abouts
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|n| !grouped(n))
        .collect();
    let mut text = String::new();
    for (title, verbs) in GROUPS.iter().copied().chain([("More", others.as_slice())]) {
        let lines: String = verbs
            .iter()
            .filter_map(|verb| abouts.iter().find(|(name, _)| name == verb))
            .map(|(name, about)| format!("  {name:widest$}  {about}\n"))
            .collect();
        if !lines.is_empty() {
            text.push_str(&format!("{title}:\n{lines}\n"));
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

/// Parses the command line; ends the process with code 2 when it cannot be.
#[must_use]
pub fn parse() -> Cli {
    let words: Vec<OsString> = std::env::args_os().collect();
    let matches = match command().try_get_matches_from(&words) {
        Err(error) if error.use_stderr() => told_plainly(&words).exit(),
        Err(error) => error.exit(),
        Ok(matches) => matches,
    };
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// What is wrong with the words, with the usage that `--help` shows: clap's own would name what variables have set as if it were
/// required. A noun without its verb is told the verb.
fn told_plainly(words: &[OsString]) -> clap::Error {
    fn plain(command: clap::Command) -> clap::Command {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
        command.mut_subcommands(plain).override_usage(usage)
    }
    let mut built = command();
    built.build();
    let mut error = match plain(built.clone()).try_get_matches_from(words) {
        Err(error) => error,
        Ok(_) => return clap::Error::new(ErrorKind::InvalidValue),
    };
    let value = error.get(ContextKind::InvalidSubcommand).map(ToString::to_string);
    let noun = words
        .iter()
        .skip(1)
        .find_map(|word| built.find_subcommand(word.to_str()?));
    let (Some(value), Some(noun)) = (value, noun) else {
        return error;
    };
    let takes = |verb: &&str| {
        let verb = noun.find_subcommand(verb);
        verb.is_some_and(|verb| verb.get_positionals().next().is_some())
    };
    if let Some(verb) = ["list", "show"].iter().find(|verb| takes(verb)) {
        let tip = format!(
            "did you mean storybus {} {verb} {}?",
            noun.get_name(),
            plain_text(&value)
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// `storybus serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub struct ServeArgs {
    /// Where to listen; port 0 lets the system choose one
    #[arg(
        long,
        value_name = "ADDR",
        env = "STORYBUS_ADDR",
        default_value = "127.0.0.1:8787",
        value_parser = parse_addr
    )]
    pub addr: SocketAddr,
    /// The directory of the bus's data; made if it is not there
    #[arg(
        long,
        value_name = "DIR",
        env = "STORYBUS_DATA",
        default_value = "storybus-data"
    )]
    pub data: PathBuf,
    /// Write the credentials there once the bus listens (mode 600). The secrets are in it only on the start that made them
    /// [default: credentials.json in the data directory, which keeps them]
    #[arg(long, value_name = "FILE")]
    pub credentials_file: Option<PathBuf>,
    /// Also make a workspace, a producer and a consumer to try the bus with, once, and print how
    #[arg(long)]
    pub demo: bool,
    /// Make one more operator and hand out its credentials as the operator's: for when the last operator's secret is lost. Put
    /// the file away: a later start with the same file writes it without the secrets
    #[arg(long)]
    pub new_operator: bool,
    /// How long a publish may be under way before a retry takes over; for tests
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub in_flight_seconds: u64,
    /// How many connections there may be at once
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub connections: u32,
    /// The address of a proxy before the bus, which is believed when it names its client in X-Forwarded-For; repeatable.
    /// Failed log-ins are limited by client address
    #[arg(long = "proxy", value_name = "IP")]
    pub proxies: Vec<IpAddr>,
    /// The log.
    #[command(flatten)]
    pub log: LogArgs,
    /// Obey the header x-storybus-fault: tests only
    #[cfg(feature = "faults")]
    #[arg(long)]
    pub faults: bool,
}

fn parse_addr(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "give IP:PORT, such as 127.0.0.1:8787")
}

const SERVE_HELP: &str = "The bus speaks plain HTTP/1.1; put a proxy with TLS before it. /healthz and /metrics stand beside /v1.
SIGTERM and SIGINT stop it cleanly (exit code 0): running requests finish within 10 s, receives that wait come back
empty. A second signal ends it at once. It may also be killed at any instant: nothing accepted is lost.

Limits: 1,024 connections; a request's head 16 KiB and 100 headers, within 10 s; a body 262,144 bytes (a message 240,000), within 30 s;
a connection may be idle for 75 s; an answer must be taken within 120 s, and some of it every 30 s; 512 receives may
be under way at once, 16 of one consumer; 32 MiB for large bodies that are coming in, 64 MiB for large answers that wait to
be taken: who has taken nothing for longest is closed.

Exit codes: 0 stopped cleanly; 2 could not start: flags, directory or address; 5 the store failed while it ran.";
