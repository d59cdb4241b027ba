//! Chance that comes again: what a run draws follows from its seed, as far as the threads and processes of it let it.

use std::time::Duration;

use storybus_sender::ports::{Random, SystemRandom};

/// The seed of a run, by environment.
const SEED: &str = "STORYBUS_CHAOS_SEED";

/// A source of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// With the seed of the environment, or a new one. Told in any case, so that a run that fails can be tried again.
    pub(crate) fn of_this_run() -> Self {
        let seed = match std::env::var(SEED) {
            Ok(given) => given.parse().expect("a seed is a number"),
            Err(_) => {
                let mut bytes = [0; 4];
                SystemRandom.fill(&mut bytes);
                u64::from(u32::from_le_bytes(bytes))
            }
        };
        println!("{SEED}={seed}");
        Self(seed)
    }

    /// Another source, for somebody who draws at the same time.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// So many times in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of[at].clone()
    }

    /// At most so long.
    pub(crate) fn span(&mut self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(longest.saturating_add(1)))
    }
}
