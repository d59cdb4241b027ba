//! Randomness that is the same in every run.

use std::sync::{Mutex, PoisonError};

use storybus_core::ports::Random;

/// A stream of bytes that its seed decides (SplitMix64). Never for anything but tests.
#[derive(Debug)]
pub struct SeededRandom(Mutex<u64>);

impl SeededRandom {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// The next number of the stream.
    pub fn next_u64(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Another stream that goes on from where this one stands.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(Mutex::new(*self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Default for SeededRandom {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_stream() {
        let bytes = |random: &SeededRandom| {
            let mut bytes = [0; 19];
            random.fill(&mut bytes);
            bytes
        };
        let (one, two) = (SeededRandom::new(7), SeededRandom::new(7));
        assert_eq!(bytes(&one), bytes(&two));
        let fork = one.fork();
        assert_eq!(bytes(&one), bytes(&fork));
        assert_ne!(bytes(&one), bytes(&SeededRandom::new(8)));
    }
}
