//! `storybus completions` and `storybus man`.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;

use super::out;
use crate::exit::{self, Failure};

pub(super) const COMPLETIONS_HELP: &str = "Example:
  storybus completions bash > ~/.local/share/bash-completion/completions/storybus";

pub(super) const MAN_HELP: &str = "Without --out the page of storybus itself is printed.

Example:
  storybus man --out ~/.local/share/man/man1";

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each verb into this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `storybus completions`.
pub(super) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::args::command(), "storybus", &mut script);
    out::text(&String::from_utf8_lossy(&script))
}

/// Runs `storybus man`.
pub(super) fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut command = whole(crate::args::command());
    command.build();
    let Some(folder) = &args.out else {
        return out::text(&page(&command).context("cannot make the page")?);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| write(&command, folder))
        .with_context(|| format!("cannot write to {}", folder.display()))
        .map_err(|e| Failure::new(exit::UNUSABLE, e))
}

/// With what `-h` leaves out, so that the page describes it.
fn whole(command: Command) -> Command {
    command
        .mut_args(|argument| argument.hide_short_help(false))
        .mut_subcommands(whole)
}

fn page(command: &Command) -> io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    Ok(page.replace("\n.SH EXTRA\n", "\n.SH NOTES AND EXAMPLES\n"))
}

/// The pages of a command and of all below it.
fn write(command: &Command, folder: &Path) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write(verb, folder)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    std::fs::write(folder.join(format!("{name}.1")), page(command)?)
}
