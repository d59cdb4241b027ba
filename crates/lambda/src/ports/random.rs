//! The operating system's randomness.

use storybus_core::ports::Random;

/// The operating system's generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the randomness")]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            // A guessable token or secret would be worse than no bus at all.
            tracing::error!(%error, "the operating system gives no randomness");
            std::process::abort();
        }
    }
}
