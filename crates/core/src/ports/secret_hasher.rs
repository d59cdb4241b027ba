//! Slow salted hashes of client secrets.

use async_trait::async_trait;

/// The hasher has more work waiting than it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many secrets are being checked at once")]
pub struct Busy;

/// Argon2id, run where it does not hold up other requests, a bounded number at a time.
#[async_trait]
pub trait SecretHasher: Send + Sync {
    /// A PHC string with a new salt.
    async fn hash(&self, secret: &str) -> Result<String, Busy>;

    /// Whether the secret is the one hashed. Takes as long for a wrong one; compares in constant time.
    async fn verify(&self, secret: &str, hash: &str) -> Result<bool, Busy>;
}
