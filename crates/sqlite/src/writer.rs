//! The writer: one thread, one connection, all writes.
//!
//! A port hands it a command and waits for the answer. The thread takes all commands that wait and runs them in one
//! transaction; they are answered after its commit. So a commit serves as many commands as came during the one before.
//!
//! A command checks its conditions before it writes, so a condition that does not hold is an answer and leaves the others'
//! work alone. What remains are failures of SQLite (no room, above all): then the whole batch is rolled back and its commands
//! run again, each in its own transaction, so that each gets its own answer. A command may therefore run twice, and keeps
//! what it does outside of the database for [`Tx::after_commit`].

mod batch;
mod positions;
mod tx;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use storybus_core::ports::StoreError;
use tokio::sync::oneshot;

pub(crate) use self::batch::Batches;
pub(crate) use self::tx::{Change, Tx};
use crate::error::{Failure, closed};

/// A batch's upper bound: it bounds how long the first of it waits for the last.
const MAX_BATCH: usize = 256;
/// How long the thread is idle before it looks after old rows. Pacing alone: what is due is told by the clock.
const IDLE: Duration = Duration::from_millis(200);

/// What a port wants done, with whoever waits for it.
pub(crate) trait Command: Send {
    /// Runs within a transaction. Keeps its result for [`Command::answer`].
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure>;
    /// Tells whoever waits.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

struct Job<W, A, R> {
    work: W,
    abandoned: A,
    result: Option<R>,
    reply: oneshot::Sender<Result<R, StoreError>>,
}

impl<W, A, R> Command for Job<W, A, R>
where
    W: FnMut(&mut Tx<'_>) -> Result<R, Failure> + Send,
    A: FnMut(&mut Tx<'_>) + Send,
    R: Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Failure> {
        if self.reply.is_closed() {
            (self.abandoned)(tx);
        } else {
            self.result = Some((self.work)(tx)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        let answer = outcome.and_then(|()| result.ok_or_else(closed));
        // whoever waited may have gone
        reply.send(answer).ok();
    }
}

enum Order {
    Run(Box<dyn Command>),
    Close(oneshot::Sender<()>),
}

/// The way to the writer.
#[derive(Clone)]
pub(crate) struct Writer {
    orders: Sender<Order>,
}

impl Writer {
    /// Runs the command in a transaction and returns when that is committed.
    ///
    /// Dropping the future before the command's turn leaves it undone.
    pub(crate) async fn call<R, W>(&self, work: W) -> Result<R, StoreError>
    where
        R: Send + 'static,
        W: FnMut(&mut Tx<'_>) -> Result<R, Failure> + Send + 'static,
    {
        self.call_or(work, |_| {}).await
    }

    /// The same; `abandoned` runs in the command's place when nobody waits for it any more.
    pub(crate) async fn call_or<R, W, A>(&self, work: W, abandoned: A) -> Result<R, StoreError>
    where
        R: Send + 'static,
        W: FnMut(&mut Tx<'_>) -> Result<R, Failure> + Send + 'static,
        A: FnMut(&mut Tx<'_>) + Send + 'static,
    {
        self.send(work, abandoned)?.await.map_err(|_| ended())?
    }

    /// The same as [`call`](Self::call), from a thread that waits itself.
    pub(crate) fn call_blocking<R, W>(&self, work: W) -> Result<R, StoreError>
    where
        R: Send + 'static,
        W: FnMut(&mut Tx<'_>) -> Result<R, Failure> + Send + 'static,
    {
        self.send(work, |_| {})?.blocking_recv().map_err(|_| ended())?
    }

    fn send<R, W, A>(
        &self,
        work: W,
        abandoned: A,
    ) -> Result<oneshot::Receiver<Result<R, StoreError>>, StoreError>
    where
        R: Send + 'static,
        W: FnMut(&mut Tx<'_>) -> Result<R, Failure> + Send + 'static,
        A: FnMut(&mut Tx<'_>) + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Job {
            work,
            abandoned,
            result: None,
            reply,
        });
        self.orders.send(Order::Run(job)).map_err(|_| closed())?;
        Ok(answer)
    }

    /// Finishes what was sent before and ends the thread; returns when the database is closed.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.orders.send(Order::Close(done)).is_ok() {
            closed.await.ok();
        }
    }
}

/// A command that the thread took and did not answer: it died on the way.
fn ended() -> StoreError {
    StoreError::Unknown {
        reason: "the writer ended".to_owned(),
    }
}

/// The thread's end of the way.
pub(crate) struct Orders {
    orders: Receiver<Order>,
}

pub(crate) fn channel() -> (Writer, Orders) {
    let (sender, receiver) = mpsc::channel();
    (Writer { orders: sender }, Orders { orders: receiver })
}

impl Orders {
    /// Works until it is told to close, or nobody can send any more; then `shut` ends the rest of the store.
    pub(crate) fn serve(self, mut batches: Batches, shut: impl FnOnce(Batches)) {
        let mut waiting: Vec<Box<dyn Command>> = Vec::with_capacity(MAX_BATCH);
        let mut closing = Vec::new();
        let mut open = true;
        while open {
            let mut next = match self.orders.recv_timeout(batches.idle_for(IDLE)) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            while let Some(order) = next {
                match order {
                    Order::Run(command) => waiting.push(command),
                    Order::Close(done) => {
                        closing.push(done);
                        open = false;
                        break;
                    }
                }
                next = if waiting.len() < MAX_BATCH {
                    self.orders.try_recv().ok()
                } else {
                    None
                };
            }
            // a panic outside of a command would leave callers waiting: they get an error as their replies drop
            if catch_unwind(AssertUnwindSafe(|| batches.run(&mut waiting))).is_err() {
                batches.fail("the writer panicked");
                break;
            }
        }
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Run(command) => command.answer(Err(closed())),
                Order::Close(done) => closing.push(done),
            }
        }
        drop(self.orders);
        shut(batches);
        for done in closing {
            // whoever closed may have gone
            done.send(()).ok();
        }
    }
}
