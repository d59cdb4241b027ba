//! What a connection is doing, and until when it may.
//!
//! One is shared by the connection's three parts: the [`Wire`](super::wire::Wire) sees bytes come and go, the service
//! sees requests begin and end, and the connection's task looks at the deadline.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::limits::Limits;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing: it is new, or its last answer is out.
    Idle,
    /// A request's head is coming.
    Head,
    /// A request's body is coming; the service has its own limit for that.
    Body,
    /// A request is being worked on. A receive may wait, so its client must be able to leave.
    Work {
        /// Whether this is a receive.
        may_leave: bool,
    },
    /// An answer is going out.
    Answer {
        /// Whether some of it is out.
        begun: bool,
    },
    /// Closing, and reading what the client still sends.
    Linger,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// When the phase began.
    since: Instant,
    /// While an answer is not all out: when the client last took a part of it.
    taken: Option<Instant>,
    /// How many answers have gone out.
    answered: u64,
    /// Whether the client may still be sending what nobody wants: then the end needs time.
    unread: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Watch {
    state: Mutex<State>,
    limits: Limits,
}

/// How little a connection is worth when there is no room, the smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Worth {
    /// Whether it has ever had an answer.
    proven: bool,
    /// Since when it does nothing of use.
    since: Instant,
}

/// How long a new client has to send its first request before it is worth nothing.
const GRACE: Duration = Duration::from_millis(500);

impl Watch {
    pub(super) fn new(limits: Limits) -> Self {
        let now = Instant::now();
        let state = State {
            phase: Phase::Idle,
            since: now,
            taken: None,
            answered: 0,
            unread: false,
        };
        Self {
            state: Mutex::new(state),
            limits,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        state.since = Instant::now();
    }

    /// Bytes came.
    pub(super) fn came(&self) {
        let mut state = self.state();
        if state.phase == Phase::Idle {
            state.phase = Phase::Head;
            state.since = Instant::now();
        }
    }

    /// A head is complete.
    pub(super) fn body(&self) {
        self.enter(Phase::Body);
    }

    /// A request is complete.
    pub(super) fn work(&self, may_leave: bool) {
        self.enter(Phase::Work { may_leave });
    }

    /// An answer is ready.
    pub(super) fn answer(&self) {
        self.enter(Phase::Answer { begun: false });
        let mut state = self.state();
        // The one before may not be out yet: a client can send requests without reading.
        let since = state.since;
        state.taken.get_or_insert(since);
    }

    /// A part of it went out.
    pub(super) fn took(&self) {
        let mut state = self.state();
        if let Phase::Answer { begun } = &mut state.phase {
            *begun = true;
        }
        state.taken = state.taken.map(|_| Instant::now());
    }

    /// Nothing is left to write.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        if state.phase != (Phase::Answer { begun: false }) {
            state.taken = None;
        }
        if state.phase == (Phase::Answer { begun: true }) {
            state.phase = Phase::Idle;
            state.since = Instant::now();
            state.answered += 1;
        }
    }

    /// Since when the client has taken nothing of an answer that it should take.
    pub(super) fn stalled_since(&self) -> Option<Instant> {
        self.state().taken
    }

    /// The body was not read to its end.
    pub(super) fn leave_unread(&self) {
        self.state().unread = true;
    }

    /// Whether closing needs time, which begins now.
    pub(super) fn linger(&self) -> bool {
        let unread = self.state().unread;
        if unread {
            self.enter(Phase::Linger);
        }
        unread
    }

    /// Whether a request's head is awaited or coming: what is written then, hyper says by itself.
    pub(super) fn before_request(&self) -> bool {
        matches!(self.state().phase, Phase::Idle | Phase::Head)
    }

    /// Whether a head has begun and is not complete.
    pub(super) fn in_head(&self) -> bool {
        self.state().phase == Phase::Head
    }

    /// Whether the end of what the client sends may wait until it has its answer.
    pub(super) fn holds_end(&self) -> bool {
        self.state().phase == (Phase::Work { may_leave: false })
    }

    /// Until when the connection may go on like this.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let state = self.state();
        let stalled = state.taken.map(|taken| taken + self.limits.write_stall);
        match state.phase {
            Phase::Idle => Some(state.since + self.limits.idle_time),
            Phase::Head => Some(state.since + self.limits.head_time),
            Phase::Body | Phase::Work { .. } => stalled,
            Phase::Answer { .. } => {
                let end = state.since + self.limits.write_time;
                Some(stalled.map_or(end, |stalled| stalled.min(end)))
            }
            Phase::Linger => Some(state.since + self.limits.linger),
        }
    }

    /// What it is worth, if it may be closed to make room.
    pub(super) fn worth(&self, now: Instant) -> Option<Worth> {
        let state = self.state();
        let (proven, since) = (state.answered > 0, state.since);
        match state.phase {
            Phase::Idle | Phase::Linger if proven => Some(Worth { proven, since }),
            Phase::Idle | Phase::Linger | Phase::Head | Phase::Body if !proven => {
                (now >= since + GRACE).then_some(Worth { proven, since })
            }
            Phase::Idle
            | Phase::Linger
            | Phase::Head
            | Phase::Body
            | Phase::Work { .. }
            | Phase::Answer { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadlines_follow_the_phase() {
        let limits = Limits::default();
        let watch = Watch::new(limits.clone());
        let start = Instant::now();
        assert_eq!(watch.deadline(), Some(start + limits.idle_time));
        tokio::time::advance(Duration::from_secs(60)).await;
        watch.came();
        let head = Instant::now() + limits.head_time;
        assert_eq!(watch.deadline(), Some(head));
        tokio::time::advance(Duration::from_secs(9)).await;
        watch.came();
        assert_eq!(watch.deadline(), Some(head), "more bytes give no more time");
        watch.body();
        assert_eq!(watch.deadline(), None);
        watch.work(true);
        watch.answer();
        watch.flushed();
        assert_eq!(
            watch.deadline(),
            Some(Instant::now() + limits.write_stall),
            "nothing is out yet"
        );
        tokio::time::advance(Duration::from_secs(20)).await;
        watch.took();
        assert_eq!(watch.deadline(), Some(Instant::now() + limits.write_stall));
        for _ in 0..4 {
            tokio::time::advance(Duration::from_secs(20)).await;
            watch.took();
        }
        assert_eq!(
            watch.deadline(),
            Some(Instant::now() + Duration::from_secs(20)),
            "120 s in all"
        );
        watch.flushed();
        assert_eq!(watch.deadline(), Some(Instant::now() + limits.idle_time));
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_again_without_reading_gets_no_more_time() {
        let limits = Limits::default();
        let watch = Watch::new(limits.clone());
        watch.body();
        watch.answer();
        let stalled = Some(Instant::now() + limits.write_stall);
        tokio::time::advance(Duration::from_secs(10)).await;
        for step in [Watch::body, Watch::answer, Watch::body] {
            step(&watch);
            assert_eq!(watch.deadline(), stalled);
        }
        watch.took();
        assert_eq!(watch.deadline(), Some(Instant::now() + limits.write_stall));
        watch.flushed();
        assert_eq!((watch.deadline(), watch.stalled_since()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn those_without_a_request_go_first_then_the_longest_idle() {
        let fresh = Watch::new(Limits::default());
        assert_eq!(fresh.worth(Instant::now()), None, "it has just come");
        let old = Watch::new(Limits::default());
        old.body();
        old.work(false);
        assert_eq!(old.worth(Instant::now()), None, "at work");
        old.answer();
        old.took();
        old.flushed();
        tokio::time::advance(GRACE).await;
        let young = Watch::new(Limits::default());
        for step in [Watch::body, Watch::answer, Watch::took, Watch::flushed] {
            step(&young);
        }
        let now = Instant::now();
        assert!(fresh.worth(now) < old.worth(now) && old.worth(now) < young.worth(now));
    }
}
