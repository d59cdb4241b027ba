//! The small ports of a function: time, randomness, hashes of secrets, and what stands for a port that it has no business with.

mod absent;
mod clock;
mod hasher;
mod random;

pub use absent::Absent;
pub use clock::{Stopwatch, WallClock};
pub use hasher::InlineHasher;
pub use random::OsRandom;
