//! `storybus outbox resend` and `storybus outbox drop`.

use std::io::{self, IsTerminal};

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};
use storybus_sender::message::{Key, Target};
use storybus_sender::outbox::{Confirmed, Filter, OperatorError, Outbox, State};

use super::show::key;
use super::{Confirmation, TargetArgs};
use crate::client::json::plain;
use crate::exit::{self, Failure};
use crate::operator::out;
use crate::sender::settings::{self, failed, not_done};

/// How many parked messages are looked up at once.
const PAGE: usize = 500;

#[derive(Debug, Args)]
pub(crate) struct ResendArgs {
    /// Their keys; on a bus their message_ids
    #[arg(
        value_name = "KEY",
        required_unless_present = "all_parked",
        conflicts_with = "all_parked"
    )]
    keys: Vec<String>,
    /// All that are parked, of the target
    #[arg(long)]
    all_parked: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    yes: Confirmation,
}

#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    /// Their keys; on a bus their message_ids
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    yes: Confirmation,
}

/// What was done with several keys.
#[derive(Debug, Default)]
struct Done {
    done: Vec<String>,
    not_done: Vec<Value>,
}

impl Done {
    fn not(&mut self, key: &Key, error: &OperatorError) {
        self.not_done
            .push(json!({"key": key.as_str(), "message": error.to_string()}));
    }

    /// Prints it; the code. `what` is what the others have become.
    fn end(&self, json: bool, what: &str) -> Result<u8, Failure> {
        if json {
            out::value(&json!({"done": self.done, "failed": self.not_done}))?;
        } else {
            let lines: String = self.done.iter().map(|key| format!("{key}  {what}\n")).collect();
            out::text(&lines)?;
            for not in &self.not_done {
                out::note(&plain(not["message"].as_str().unwrap_or_default()));
            }
        }
        Ok(if self.not_done.is_empty() {
            exit::DONE
        } else {
            exit::REFUSED
        })
    }
}

pub(super) async fn resend(
    args: &ResendArgs,
    outbox: &Outbox,
    carried: &str,
    json: bool,
) -> Result<u8, Failure> {
    let target = settings::target(&args.target.target)?;
    let mut done = Done::default();
    if !args.all_parked {
        for text in &args.keys {
            let key = key(text, &args.target)?;
            resend_one(outbox, &target, &key, args.yes.yes, &mut done).await?;
        }
    } else {
        let mut filter = Filter {
            state: Some(State::Parked),
            target: Some(target.as_str().to_owned()),
            ..Filter::default()
        };
        loop {
            let page = outbox
                .list(&filter, PAGE)
                .await
                .map_err(|error| failed(outbox, &error))?;
            let Some(last) = page.last() else {
                break;
            };
            filter.after = Some(last.id);
            for entry in &page {
                let key = Key::new(entry.key.as_str()).map_err(|error| Failure::from(anyhow!(error)))?;
                resend_one(outbox, &target, &key, args.yes.yes, &mut done).await?;
            }
        }
        if done.done.is_empty() && done.not_done.is_empty() && !json {
            out::note("nothing is parked");
        }
    }
    let code = done.end(json, "pending again")?;
    if !done.done.is_empty() && !json {
        out::note(&format!(
            "A relay that runs sends {}; else: storybus relay{carried}",
            if done.done.len() == 1 { "it" } else { "them" }
        ));
    }
    Ok(code)
}

async fn resend_one(
    outbox: &Outbox,
    target: &Target,
    key: &Key,
    yes: bool,
    done: &mut Done,
) -> Result<(), Failure> {
    let mut result = outbox.resend(target, key, yes.then_some(Confirmed)).await;
    if let Err(error @ OperatorError::MayRepeat { .. }) = &result
        && io::stdin().is_terminal()
        && io::stderr().is_terminal()
        && out::confirm(&format!("{error}. Resend it"), false).is_ok()
    {
        result = outbox.resend(target, key, Some(Confirmed)).await;
    }
    match result {
        Ok(()) => done.done.push(key.as_str().to_owned()),
        Err(error @ OperatorError::Outbox(_)) => return Err(not_done(outbox, &error)),
        Err(error @ OperatorError::MayRepeat { .. }) => {
            done.not_done
                .push(json!({"key": key.as_str(), "message": format!("{error} with --yes")}));
        }
        Err(error) => done.not(key, &error),
    }
    Ok(())
}

pub(super) async fn drop(args: &DropArgs, outbox: &Outbox, json: bool) -> Result<u8, Failure> {
    let target = settings::target(&args.target.target)?;
    let mut keys = Vec::with_capacity(args.keys.len());
    for text in &args.keys {
        keys.push(key(text, &args.target)?);
    }
    let what = match keys.as_slice() {
        [only] => format!("drop the message {only}: it is never sent"),
        several => format!("drop {} messages: they are never sent", several.len()),
    };
    out::confirm(&what, args.yes.yes)?;
    let mut done = Done::default();
    for key in &keys {
        match outbox.drop(&target, key).await {
            Ok(()) => done.done.push(key.as_str().to_owned()),
            Err(error @ OperatorError::Outbox(_)) => return Err(not_done(outbox, &error)),
            Err(error) => done.not(key, &error),
        }
    }
    done.end(json, "refused: dropped")
}
