//! A bus on AWS, with the caller's own AWS credentials: what cannot go through its API, since nobody can log in yet or nobody should
//! have to.
//!
//! - `stack`: where a deployed bus lies. `first_operator`: who runs it. `walk`: a message's way from end to end. `keys`: the keys that sign
//!   tokens.

mod first_operator;
mod keys;
mod ports;
mod stack;
mod walk;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::exit::{self, Failure};

/// Which stack.
#[derive(Debug, Args)]
pub struct StackArgs {
    /// The stack's name
    #[arg(value_name = "STACK")]
    stack: String,
    /// The region [default: as every AWS tool finds it: AWS_REGION, or the profile's]
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

/// `storybus deploy-check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct DeployCheckArgs {
    #[command(flatten)]
    stack: StackArgs,
    /// Where an operator's credentials are, or go to when there is no operator yet (mode 600)
    #[arg(long, value_name = "FILE", default_value = "operator.json")]
    credentials_file: PathBuf,
    /// Make one more operator and write its credentials to the file: for when the last operator's secret is lost
    #[arg(long)]
    new_operator: bool,
    /// The base URL, when it is not the one that the stack says
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

const CHECK_HELP: &str = "With your AWS credentials it reads the stack's outputs, and makes the first operator straight in the bus's table. Then it goes the way of a
message, over HTTPS like any client, in a workspace of its own that it removes again: published, published again (a duplicate),
received, acknowledged, found in the archive.

Examples:
  storybus deploy-check storybus --credentials-file operator.json
  storybus deploy-check storybus-preview --region eu-central-1 --new-operator

Exit codes: 0 everything works; 1 something does not, and it says what; 2 nothing was begun: no such stack, no AWS credentials, the file.";

/// `storybus rotate-signing-key`.
#[derive(Debug, Args)]
#[command(after_help = ROTATE_HELP)]
pub struct RotateSigningKeyArgs {
    #[command(flatten)]
    stack: StackArgs,
    /// Remove the old keys once every function signs with the new one: every token that they have signed is void, and clients log in again
    #[arg(long)]
    drop_old: bool,
}

const ROTATE_HELP: &str = "A new key signs from now on. The old one is known until the tokens that it has signed have expired, within the hour; the first
rotation two hours later or more forgets it. Tokens are signed with the new key within a minute; functions forget an old one within five.

With --drop-old the command stays until the new key is 90 seconds old, and says so: before that a function may still sign with the old
one, and clients would be shut out. A key that was made within the last 15 minutes is the new one; else one is made. A signal ends the
wait: nothing is dropped then, and the command run again goes on.

Examples:
  storybus rotate-signing-key storybus
  storybus rotate-signing-key storybus --drop-old

Exit codes: 0 done; 1 it failed, and it says where; 2 nothing was begun: no such stack, no AWS credentials; 4 the wait was ended by a
signal, and nothing was dropped.";

/// Runs `storybus deploy-check`.
///
/// # Errors
///
/// No such stack, or the bus does not do what it should.
pub fn deploy_check(args: &DeployCheckArgs) -> Result<u8, Failure> {
    let (stack, operator) = runtime()?.block_on(async {
        let stack = stack::find(&args.stack).await?;
        let operator = first_operator::of(&stack, args).await?;
        Ok::<_, Failure>((stack, operator))
    })?;
    walk::go(args.url.as_ref().unwrap_or(&stack.base_url), operator)?;
    Ok(exit::DONE)
}

/// Runs `storybus rotate-signing-key`.
///
/// # Errors
///
/// No such stack, or no key could be made.
pub fn rotate_signing_key(args: &RotateSigningKeyArgs) -> Result<u8, Failure> {
    runtime()?.block_on(async {
        let stack = stack::find(&args.stack).await?;
        keys::rotate(&stack, args.drop_old).await
    })?;
    Ok(exit::DONE)
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?)
}

/// A line for people, on the standard output.
fn say(line: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    writeln!(std::io::stdout(), "{line}").context("cannot write to the standard output")?;
    Ok(())
}
