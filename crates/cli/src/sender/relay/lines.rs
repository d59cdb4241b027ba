//! The lines of `--json`, written by a thread of their own: a reader that is slow, or does not read, holds up no message and no stop.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::time::Duration;

use storybus_sender::ports::Clock;
use tokio::sync::oneshot;

/// How many lines wait for their reader; what does not fit is left out.
const WAITING: usize = 10_000;
/// How long a stop waits for the last lines.
const LAST: Duration = Duration::from_secs(1);

/// Where lines are put. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Lines {
    queue: SyncSender<String>,
    left_out: Arc<AtomicU64>,
}

/// Comes when the last line is written.
#[derive(Debug)]
pub(super) struct Written(oneshot::Receiver<()>);

impl Lines {
    /// Starts the thread that writes to `out`.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<(Self, Written)> {
        let (queue, waiting) = mpsc::sync_channel(WAITING);
        let (ends, ended) = oneshot::channel();
        let left_out = Arc::new(AtomicU64::new(0));
        let counted = left_out.clone();
        std::thread::Builder::new()
            .name("storybus-json".to_owned())
            .spawn(move || {
                write(out, &waiting, &counted);
                // Nobody may be waiting for it.
                let _ = ends.send(());
            })?;
        Ok((Self { queue, left_out }, Written(ended)))
    }

    /// Puts a line, without waiting for anybody.
    pub(super) fn put(&self, line: String) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(line)
            && self.left_out.fetch_add(1, Ordering::Relaxed) == 0
        {
            tracing::warn!(
                waiting = WAITING,
                "the lines of --json are not read as fast as they come: from now on some are left out; the messages are sent as before"
            );
        }
    }
}

impl Written {
    /// Waits for the last line, but not for ever.
    pub(super) async fn last(self, clock: &dyn Clock) {
        tokio::select! {
            _ = self.0 => {}
            () = clock.sleep(LAST) => tracing::warn!("the last lines of --json were not written: nobody reads them"),
        }
    }
}

fn write(mut out: impl Write, waiting: &Receiver<String>, left_out: &AtomicU64) {
    while let Ok(line) = waiting.recv() {
        let mut next = Some(line);
        while let Some(mut line) = next {
            line.push('\n');
            // That nobody reads it any more does not stop the sending.
            let _ = out.write_all(line.as_bytes());
            next = waiting.try_recv().ok();
        }
        let _ = out.flush();
        let lines = left_out.swap(0, Ordering::Relaxed);
        if lines > 0 {
            tracing::warn!(lines, "so many lines of --json were left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use storybus_sender::ports::SystemClock;

    use super::*;

    /// Keeps what it is given, once the other end lets it.
    struct Stuck {
        until: Receiver<()>,
        kept: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // The other end never sends: it is dropped.
            let _ = self.until.recv();
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_is_not_read_is_left_out_and_the_rest_comes_in_its_order() {
        let (lets, until) = mpsc::channel();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let out = Stuck {
            until,
            kept: kept.clone(),
        };
        let (lines, written) = Lines::start(out).unwrap();
        for n in 0..WAITING + 100 {
            lines.put(n.to_string());
        }
        let left_out = usize::try_from(lines.left_out.load(Ordering::Relaxed)).unwrap();
        assert!(
            (99..=100).contains(&left_out),
            "the first may be on its way: {left_out}"
        );
        drop(lets);
        drop(lines);
        written.last(&SystemClock).await;
        let kept = kept.lock().unwrap();
        let expected: String = (0..WAITING + 100 - left_out).map(|n| format!("{n}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&kept), expected);
    }
}
