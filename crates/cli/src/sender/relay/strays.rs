//! Messages that this relay has no way for: a mistyped target would wait for ever, and nobody would hear of it.

use std::collections::BTreeSet;
use std::time::Duration;

use storybus_sender::outbox::{Outbox, State};
use storybus_sender::ports::{Clock, SystemClock};

/// How often it is looked for. Counting reads an index from end to end.
const LOOK: Duration = Duration::from_secs(60);
/// After a count that took long, so many times as long passes before the next.
const SHARE: u32 = 100;

/// Looks for pending messages of other targets, and tells of each such target once, until it is aborted.
pub(super) async fn watch(outbox: Outbox, targets: Vec<String>, clock: SystemClock) {
    let mut known: BTreeSet<String> = targets.iter().cloned().collect();
    loop {
        let began = clock.elapsed();
        // A database that fails is the relay's to tell of.
        if let Ok(stats) = outbox.stats().await {
            for count in stats.counts {
                if count.state == State::Pending && count.count > 0 && known.insert(count.target.clone()) {
                    tracing::warn!(
                        target_name = count.target,
                        pending = count.count,
                        "messages wait for a target that this relay does not serve: another relay may, with --partners; or it is mistyped, \
                         then `storybus outbox drop` gives them up, and they are enqueued again for the right one"
                    );
                }
            }
        }
        let took = clock.elapsed().saturating_sub(began);
        clock.sleep(LOOK.max(took * SHARE)).await;
    }
}
