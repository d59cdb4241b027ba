//! Where log events go: to stderr, for people at a terminal and as JSON for everybody else.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Flags of the log.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// What is logged: error, warn, info, debug, trace, or by module such as `info,storybus_cli=debug`. At `debug` there is
    /// a line for each request
    #[arg(long, value_name = "LEVEL", env = "STORYBUS_LOG", default_value = "info", value_parser = parse_targets)]
    pub log: Targets,
    /// How log lines look [default: human on a terminal, json otherwise]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// A word alone is a level: else a misspelt one would be taken for a module, and nothing would be logged.
fn parse_targets(text: &str) -> Result<Targets, String> {
    let unknown = text
        .split(',')
        .find(|part| !part.contains('=') && part.trim().parse::<LevelFilter>().is_err());
    if let Some(word) = unknown {
        return Err(format!(
            "{word:?} is no level: error, warn, info, debug, trace or off, or by module such as info,storybus_cli=debug"
        ));
    }
    text.parse::<Targets>().map_err(|error| error.to_string())
}

/// Starts logging. Secrets, tokens, payloads, headers and queries are never logged, at any level.
pub fn start(args: &LogArgs) {
    let terminal = std::io::stderr().is_terminal();
    let format = args.log_format.unwrap_or(if terminal {
        LogFormat::Human
    } else {
        LogFormat::Json
    });
    // What other crates say at their most talkative would hold what clients send.
    let filter = args
        .log
        .clone()
        .with_target("hyper", LevelFilter::ERROR)
        .with_target("hyper_util", LevelFilter::ERROR)
        .with_target("reqwest", LevelFilter::ERROR)
        .with_target("rustls", LevelFilter::ERROR)
        .with_target("sqlx", LevelFilter::ERROR)
        .with_target("ureq", LevelFilter::ERROR);
    let layer = fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Human => layer.with_ansi(terminal).with_target(false).boxed(),
        LogFormat::Json => layer
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
    };
    // A second start keeps the first: only tests do that.
    let _ = tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .try_init();
    std::panic::set_hook(Box::new(|panic| {
        // The text of a panic may quote what it was working on; only one that is a constant is safe to log.
        let text = panic
            .payload()
            .downcast_ref::<&'static str>()
            .copied()
            .unwrap_or("(not shown)");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::event!(Level::ERROR, place, text, "panicked");
    }));
}
