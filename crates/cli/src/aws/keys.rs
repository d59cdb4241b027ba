//! The keys that sign tokens.

use anyhow::Context;
use storybus_core::ports::Clock as _;

use super::say;
use super::stack::Stack;
use crate::exit::Failure;
use crate::ports::SystemClock;

/// Makes a new key, and removes the old ones whose tokens have all expired, or all of them.
pub(super) async fn rotate(stack: &Stack, drop_old: bool) -> Result<(), Failure> {
    let keys = stack.aws.secret_keys();
    let now = SystemClock::new().now();
    let kid = keys
        .rotate(now)
        .await
        .context("no key could be made; run the command again")?;
    say(&format!("key {kid} signs from now on"))?;
    if drop_old {
        let dropped = keys
            .drop_old()
            .await
            .context("the old keys could not be removed; run the command again")?;
        say(&format!(
            "{dropped} old keys removed: their tokens are void within five minutes"
        ))?;
    }
    Ok(())
}
