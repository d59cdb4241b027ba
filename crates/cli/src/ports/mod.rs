//! The ports of the bus that the process itself provides: time, randomness, rates, hashes, keys.

mod clock;
mod hasher;
mod keys;
mod random;
mod rates;

pub use clock::SystemClock;
pub use hasher::Argon2Hasher;
pub use keys::{FileKeys, KeysError};
pub use random::OsRandom;
pub use rates::MemoryRates;
