//! The keys that sign tokens.

use std::time::Duration;

use anyhow::{Context, anyhow};
use storybus_aws::{SecretKeys, Signs};
use storybus_core::domain::time::Millis;
use storybus_core::ports::Clock;
use tokio::signal::unix::{SignalKind, signal};

use super::say;
use super::stack::Stack;
use crate::exit::{self, Failure};
use crate::ports::SystemClock;

/// A key that was made so lately is new enough to drop the others for: an interrupted command goes on with it.
const NEW: Duration = Duration::from_secs(15 * 60);
/// How often it is told how long the wait goes on.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// Makes a new key, and removes the old ones whose tokens have all expired, or all of them.
pub(super) async fn rotate(stack: &Stack, drop_old: bool) -> Result<(), Failure> {
    let (keys, clock) = (stack.aws.secret_keys(), SystemClock::new());
    if !drop_old {
        make(&keys, &clock).await?;
        return Ok(());
    }
    // from before anything is done: a signal may come at any time
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let stopped = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let signs = keys.signs().await.context("the keys could not be read")?;
    let signs = if is_new(&signs, clock.now()) {
        say(&format!(
            "key {} was made just now: it goes on signing",
            signs.kid
        ))?;
        signs
    } else {
        make(&keys, &clock).await?
    };
    if !settled(&signs, &clock, stopped).await {
        let kid = &signs.kid;
        return Err(Failure::new(
            exit::GAVE_UP,
            anyhow!(
                "nothing was dropped: key {kid} signs, and the tokens of the old keys hold\n  to do: run the command again; within {} minutes it goes on with this key",
                NEW.as_secs() / 60
            ),
        ));
    }
    let dropped = keys
        .drop_old(&signs.kid)
        .await
        .context("the old keys could not be removed; run the command again")?;
    say(&format!(
        "{dropped} old keys removed: their tokens are void within five minutes"
    ))
}

async fn make(keys: &SecretKeys, clock: &SystemClock) -> Result<Signs, Failure> {
    let kid = keys
        .rotate(clock.now())
        .await
        .context("no key could be made; run the command again")?;
    say(&format!("key {kid} signs from now on"))?;
    // it is in the secret now at the latest
    let since = Some(clock.now());
    Ok(Signs { kid, since })
}

/// Whether a key was made so lately that none newer is needed.
fn is_new(signs: &Signs, now: Millis) -> bool {
    signs.since.is_some_and(|at| now < at.plus(NEW))
}

/// Waits until no function signs with an older key; `false` if it was stopped.
async fn settled(signs: &Signs, clock: &dyn Clock, stopped: impl Future<Output = ()>) -> bool {
    let mut left = signs.settles_in(clock.now());
    if left.is_zero() {
        return true;
    }
    let wait = async {
        while !left.is_zero() {
            tell(left);
            let step = left.min(TOLD_EVERY);
            clock.sleep(step).await;
            left -= step;
        }
    };
    tokio::select! {
        () = stopped => false,
        () = wait => true,
    }
}

/// On the standard error.
fn tell(left: Duration) {
    use std::io::Write as _;
    // What cannot be told of the wait does not end it.
    let _ = writeln!(
        std::io::stderr(),
        "the old keys are kept for {} s more: a function may sign with one for so long, and without it those tokens would be refused; a signal ends the wait and drops nothing",
        left.as_millis().div_ceil(1000)
    );
}

#[cfg(test)]
mod tests {
    use storybus_testkit::FakeClock;

    use super::*;

    const MADE: Millis = Millis(1_789_144_860_000);

    fn signs() -> Signs {
        Signs {
            kid: "k2".to_owned(),
            since: Some(MADE),
        }
    }

    #[test]
    fn only_a_key_that_was_just_made_is_gone_on_with() {
        let minutes = |n: u64| MADE.plus(Duration::from_secs(60 * n));
        assert!(is_new(&signs(), MADE) && is_new(&signs(), minutes(14)));
        assert!(!is_new(&signs(), minutes(15)));
        // the only key may be as old as the bus
        let since = None;
        assert!(!is_new(&Signs { since, ..signs() }, MADE));
    }

    #[tokio::test]
    async fn old_keys_are_kept_until_the_new_one_has_settled() {
        let clock = FakeClock::automatic();
        let now = clock.now();
        let since = Some(now);
        let signs = Signs { since, ..signs() };
        assert!(settled(&signs, &clock, std::future::pending()).await);
        assert_eq!(clock.now(), now.plus(Duration::from_secs(90)));
        // it has by now
        assert!(settled(&signs, &clock, std::future::pending()).await);
        assert_eq!(clock.now(), now.plus(Duration::from_secs(90)));
    }

    #[tokio::test]
    async fn a_signal_ends_the_wait() {
        let clock = FakeClock::at(MADE);
        assert!(!settled(&signs(), &clock, async {}).await);
        assert_eq!(clock.now(), MADE);
    }
}
