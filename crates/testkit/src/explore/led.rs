//! A call of the core that is led from stop to stop.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use futures::future::BoxFuture;

use super::gate::{Gate, Place};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// How far a call was led.
pub(super) enum Way<T> {
    /// To the next stop.
    Stands,
    /// To its answer.
    Answered(T),
    /// Stopped: it will never answer.
    Stopped,
}

/// Leads a call to its next stop, or to its answer.
pub(super) fn lead<T>(future: &mut BoxFuture<'static, T>, gate: &Gate) -> Way<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = Pin::new(&mut *future).poll(&mut cx) {
            return Way::Answered(answer);
        }
        match gate.place() {
            // an engine works on a thread of its own
            Place::Running => thread::park(),
            Place::Stopped => return Way::Stopped,
            Place::Before(_) | Place::After(_) | Place::Sleeping(_) => return Way::Stands,
        }
    }
}
