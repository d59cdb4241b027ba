//! Slow salted hashes of client secrets: argon2id.
//!
//! Each takes about 19 MiB and tens of milliseconds of one processor, by design. So they run on threads of their own, a
//! few at a time, and only so many wait: a flood of log-ins meets [`Busy`] and nobody else notices it.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use async_trait::async_trait;
use storybus_core::ports::secret_hasher::Busy;
use storybus_core::ports::{Random, SecretHasher};
use tokio::sync::Semaphore;

/// The parameters that OWASP names first among those of equal strength.
/// <https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#argon2id>
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// How many run at once.
const AT_ONCE: usize = 2;
/// How many wait or run: the last of them waits for about a second.
const WAITING: usize = 64;
/// Longer secrets are none of ours: they are wrong without a hash of their megabytes.
const LONGEST_SECRET: usize = 1024;

/// Argon2id on blocking threads.
pub struct Argon2Hasher {
    random: Arc<dyn Random>,
    argon2: Argon2<'static>,
    admitted: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Argon2Hasher {
    /// A hasher that takes its salts from `random`.
    #[must_use]
    pub fn new(random: Arc<dyn Random>) -> Self {
        // One on a single processor, else the bus would stand still while two secrets are checked.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::bounded(random, AT_ONCE.min(processors), WAITING)
    }

    fn bounded(random: Arc<dyn Random>, at_once: usize, waiting: usize) -> Self {
        // The parameters are constants; should the crate ever refuse them, its own default is the same strength.
        let params = Params::new(MEMORY_KIB, PASSES, LANES, None).unwrap_or_default();
        Self {
            random,
            argon2: Argon2::new(Algorithm::Argon2id, Version::V0x13, params),
            admitted: Arc::new(Semaphore::new(waiting)),
            running: Arc::new(Semaphore::new(at_once)),
        }
    }

    /// Runs the work on a blocking thread when its turn has come.
    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        let place = self.admitted.clone().try_acquire_owned().map_err(|_| Busy)?;
        let turn = self.running.clone().acquire_owned().await.map_err(|_| Busy)?;
        // The caller may go away meanwhile; the work goes on to its end, and so it keeps its place.
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            drop((turn, place));
            result
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "hashing a secret failed");
            Busy
        })
    }
}

#[async_trait]
impl SecretHasher for Argon2Hasher {
    async fn hash(&self, secret: &str) -> Result<String, Busy> {
        let mut salt = [0; 16];
        self.random.fill(&mut salt);
        let (argon2, secret) = (self.argon2.clone(), secret.to_owned());
        let hash = self
            .work(move || argon2.hash_password_with_salt(secret.as_bytes(), &salt))
            .await?;
        hash.map(|h| h.to_string()).map_err(|error| {
            tracing::error!(%error, "hashing a secret failed");
            Busy
        })
    }

    async fn verify(&self, secret: &str, hash: &str) -> Result<bool, Busy> {
        let argon2 = self.argon2.clone();
        let fits = secret.len() <= LONGEST_SECRET;
        let (secret, hash) = (
            secret.bytes().take(LONGEST_SECRET).collect::<Vec<u8>>(),
            hash.to_owned(),
        );
        self.work(move || match PasswordHash::new(&hash) {
            Ok(hash) => argon2.verify_password(&secret, &hash).is_ok() && fits,
            Err(error) => {
                tracing::error!(%error, "a stored hash of a secret cannot be read");
                false
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::super::OsRandom;
    use super::*;

    #[tokio::test]
    async fn a_secret_holds_against_its_own_hash_alone() {
        let hasher = Argon2Hasher::new(Arc::new(OsRandom));
        let hash = hasher.hash("correct horse").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(
            hash,
            hasher.hash("correct horse").await.unwrap(),
            "each with a salt of its own"
        );
        assert!(hasher.verify("correct horse", &hash).await.unwrap());
        assert!(!hasher.verify("correct hors", &hash).await.unwrap());
        assert!(!hasher.verify("", &hash).await.unwrap());
        assert!(!hasher.verify("x", "not a hash").await.unwrap());
        let long = "x".repeat(LONGEST_SECRET + 1);
        let hash = hasher.hash(&long[1..]).await.unwrap();
        assert!(
            !hasher.verify(&long, &hash).await.unwrap(),
            "what is cut off counts"
        );
    }

    #[tokio::test]
    async fn only_so_many_wait() {
        let hasher = Arc::new(Argon2Hasher::bounded(Arc::new(OsRandom), 1, 3));
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let hasher = hasher.clone();
                tokio::spawn(async move { hasher.hash("s").await.is_ok() })
            })
            .collect();
        let mut hashed = 0;
        for task in tasks {
            hashed += usize::from(task.await.unwrap());
        }
        assert_eq!(hashed, 3);
        assert!(hasher.hash("s").await.is_ok(), "and then there is room again");
    }
}
