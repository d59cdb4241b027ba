//! `storybus completions` and `storybus man`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
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
    let command = crate::args::command();
    if let Some(folder) = &args.out {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .with_context(|| format!("cannot write to {}", folder.display()));
        return written.map_err(|e| Failure::new(exit::UNUSABLE, e));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .context("cannot make the page")?;
    out::text(&String::from_utf8_lossy(&page))
}
