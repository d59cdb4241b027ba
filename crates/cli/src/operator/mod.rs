//! The operator's verbs: `storybus consumers list` and all the others that speak the operator API.
//!
//! - `flags`: what the verbs have in common on the command line. `names`: from names to ids.
//! - `api`: a call and its document. `lists`: lists from their pages. `refusals`: what a rule means and what to do.
//! - `out`: JSON, tables, fields, questions. `times`: points in time as people type them. `secret`: a secret that is shown once.
//! - One module a noun. A noun's verbs are an enum, whose doc comments are the help.
//!
//! To add a noun: its module with the enum and `run`, a variant in [`Verb`], its place in [`crate::args::GROUPS`], and its
//! section in `docs/command-line.md`; tests hold these equal.

mod activity;
mod api;
mod audit;
mod connections;
mod consumers;
mod dead_letters;
mod explain;
pub(crate) mod flags;
mod jobs;
mod lists;
mod messages;
mod names;
mod operators;
pub(crate) mod out;
mod producers;
mod profiles;
mod queue;
mod redeliver;
mod refusals;
mod secret;
mod secrets;
mod setup;
mod status;
mod stories;
pub(crate) mod times;
mod workspaces;

use clap::Subcommand;

use crate::exit::{self, Failure};
use flags::Noun;

/// The operator's nouns and verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// How all consumers do: what waits, what stands still and why
    #[command(after_help = status::HELP)]
    Status(status::StatusArgs),
    /// A consumer's queue: look into it, empty it
    #[command(after_help = queue::HELP)]
    Queue(queue::QueueArgs),
    /// Messages that a consumer could not take: list them, look at one
    DeadLetters(Noun<dead_letters::DeadLettersVerb>),
    /// Move a consumer's dead letters back into its queue
    #[command(after_help = redeliver::REDRIVE_HELP)]
    Redrive(redeliver::RedriveArgs),
    /// Deliver to a consumer again what was published in a span of time
    #[command(after_help = redeliver::REPLAY_HELP)]
    Replay(redeliver::ReplayArgs),
    /// Redrives and replays: how far they are; wait for one, cancel one
    Jobs(Noun<jobs::JobsVerb>),
    /// What was published and refused lately
    #[command(after_help = activity::HELP)]
    Activity(activity::ActivityArgs),
    /// One message's way, to each consumer
    Message(Noun<messages::MessageVerb>),
    /// Stories: list them, follow one through time
    Stories(Noun<stories::StoriesVerb>),
    /// What a rule of a refusal means, whose fault it is, what to do
    #[command(after_help = explain::HELP)]
    Explain(explain::ExplainArgs),
    /// Who has changed what on the bus
    #[command(after_help = audit::HELP)]
    Audit(audit::AuditArgs),
    /// Workspaces, each a world of its own
    Workspaces(Noun<workspaces::WorkspacesVerb>),
    /// Connections that publish
    Producers(Noun<producers::ProducersVerb>),
    /// Connections that read, each with its queue: filter, pause, limits
    Consumers(Noun<consumers::ConsumersVerb>),
    /// Connections that run the bus
    Operators(Noun<operators::OperatorsVerb>),
    /// The secrets of a connection: rotate them without an outage
    Secrets(Noun<secrets::SecretsVerb>),
    /// Buses by name: which there are in the file of profiles
    Profiles(profiles::ProfilesArgs),
    /// Completions for a shell, on the standard output
    #[command(after_help = setup::COMPLETIONS_HELP)]
    Completions(setup::CompletionsArgs),
    /// Man pages
    #[command(after_help = setup::MAN_HELP)]
    Man(setup::ManArgs),
}

impl Verb {
    /// Whether documents are wanted.
    fn json(&self) -> bool {
        match self {
            Self::Status(args) => args.common.json,
            Self::Queue(args) => args.common.json,
            Self::DeadLetters(noun) => noun.common.json,
            Self::Redrive(args) => args.common.json,
            Self::Replay(args) => args.common.json,
            Self::Jobs(noun) => noun.common.json,
            Self::Activity(args) => args.common.json,
            Self::Message(noun) => noun.common.json,
            Self::Stories(noun) => noun.common.json,
            Self::Audit(args) => args.common.json,
            Self::Workspaces(noun) => noun.common.json,
            Self::Producers(noun) => noun.common.json,
            Self::Consumers(noun) => noun.common.json,
            Self::Operators(noun) => noun.common.json,
            Self::Secrets(noun) => noun.common.json,
            Self::Explain(_) | Self::Profiles(_) | Self::Completions(_) | Self::Man(_) => false,
        }
    }
}

/// Runs a verb; the code that the process ends with. With `--json` a failure is a document, too.
pub fn run(verb: &Verb) -> Result<u8, Failure> {
    let ran = ran(verb);
    if let Err(failure) = &ran
        && verb.json()
    {
        out::document(&refusals::document(failure))?;
    }
    ran
}

fn ran(verb: &Verb) -> Result<u8, Failure> {
    match verb {
        Verb::Status(args) => status::run(args)?,
        Verb::Queue(args) => queue::run(args)?,
        Verb::DeadLetters(noun) => dead_letters::run(noun)?,
        Verb::Redrive(args) => return redeliver::redrive(args),
        Verb::Replay(args) => return redeliver::replay(args),
        Verb::Jobs(noun) => return jobs::run(noun),
        Verb::Activity(args) => activity::run(args)?,
        Verb::Message(noun) => messages::run(noun)?,
        Verb::Stories(noun) => stories::run(noun)?,
        Verb::Audit(args) => audit::run(args)?,
        Verb::Workspaces(noun) => workspaces::run(noun)?,
        Verb::Producers(noun) => producers::run(noun)?,
        Verb::Consumers(noun) => consumers::run(noun)?,
        Verb::Operators(noun) => operators::run(noun)?,
        Verb::Secrets(noun) => secrets::run(noun)?,
        Verb::Explain(args) => explain::run(args)?,
        Verb::Profiles(args) => profiles::run(args)?,
        Verb::Completions(args) => setup::completions(args)?,
        Verb::Man(args) => setup::man(args)?,
    }
    Ok(exit::DONE)
}
