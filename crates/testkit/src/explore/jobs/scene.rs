//! What there is before the jobs begin, and what is asked for.

/// How many bytes a body has, so that a step (4 MiB) takes two.
pub(super) const HALF_A_STEP: usize = 1_800_000;

/// A job that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// A redrive of all dead letters.
    All,
    /// A redrive of these messages.
    Chosen(Vec<u64>),
    /// A replay of these messages' time to the other, the second excluded, of those whose number is even (as their type says)
    /// or of all.
    Replay {
        /// From the publication of this one on.
        from: u64,
        /// To that of this one.
        to: u64,
        /// Whether those with even numbers alone.
        even: bool,
    },
}

/// Messages 1 to `messages`, which one consumer got, in two order groups; some died; and the jobs.
#[derive(Debug, Clone)]
pub struct Scene {
    /// How many were published.
    pub messages: u64,
    /// Those that died. The others were acknowledged, but for those that still wait.
    pub dead: Vec<u64>,
    /// Those that still wait.
    pub waiting: Vec<u64>,
    /// The jobs, made at once.
    pub jobs: Vec<Ask>,
}

impl Scene {
    /// All of these died; these jobs are asked for.
    #[must_use]
    pub fn of_dead(messages: u64, jobs: &[Ask]) -> Self {
        Self {
            messages,
            dead: (1..=messages).collect(),
            waiting: Vec::new(),
            jobs: jobs.to_vec(),
        }
    }

    /// All of these were acknowledged; these jobs are asked for.
    #[must_use]
    pub fn of_archived(messages: u64, jobs: &[Ask]) -> Self {
        Self {
            messages,
            dead: Vec::new(),
            waiting: Vec::new(),
            jobs: jobs.to_vec(),
        }
    }

    /// The order group of a message.
    pub(super) fn group(n: u64) -> u64 {
        n % 2
    }
}
