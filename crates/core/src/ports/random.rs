//! Randomness.

/// Unpredictable bytes, fit for secrets.
pub trait Random: Send + Sync {
    /// Fills the buffer.
    fn fill(&self, bytes: &mut [u8]);
}
