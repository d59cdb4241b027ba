//! What makes receipt handles the bus's own: a consumer can read them, and change none.
//!
//! The key is an item of the bus's table, made with the stack, or by the first sweep of one that had none. A process reads it once,
//! with its first call, and one that finds none goes on without: its handles are open, and what a rejection may take of an open
//! one is bounded otherwise (`reject`).

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use storybus_core::ports::{Random, StoreError};

use crate::Aws;
use crate::item::{Attributes as _, b};
use crate::keys;
use crate::writes::Action;

/// The attribute of the key.
const KEY: &str = "key";
/// Bytes of a key.
const KEY_LEN: usize = 32;
/// Bytes of a seal.
const LEN: usize = 16;

/// The key.
pub(crate) struct Seal(hmac::Key);

impl Seal {
    pub(super) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The seal of a text.
    pub(super) fn of(&self, text: &str) -> String {
        let tag = hmac::sign(&self.0, text.as_bytes());
        let short = tag.as_ref().get(..LEN).unwrap_or_default();
        URL_SAFE_NO_PAD.encode(short)
    }

    /// Whether a seal is that of a text.
    pub(super) fn holds(&self, text: &str, seal: &str) -> bool {
        aws_lc_rs::constant_time::verify_slices_are_equal(self.of(text).as_bytes(), seal.as_bytes()).is_ok()
    }
}

impl Aws {
    /// Makes the key that receipt handles are sealed with, if there is none.
    ///
    /// # Errors
    ///
    /// The table cannot be reached, or is not there. Called again, it goes on.
    pub async fn make_seal(&self, random: &dyn Random) -> Result<(), StoreError> {
        if self.item(keys::seal()).await?.is_some() {
            return Ok(());
        }
        let mut key = [0; KEY_LEN];
        random.fill(&mut key);
        let mut item = keys::seal();
        item.insert(KEY.to_owned(), b(key));
        let put = Action::put(item).when("attribute_not_exists(pk)");
        self.write_one(&self.config.table, put).await.map(drop)
    }

    /// The key, if there is one.
    pub(super) async fn seal(&self) -> Result<Option<Seal>, StoreError> {
        let item = self.item(keys::seal()).await?;
        Ok(item.and_then(|item| item.bytes(KEY).map(Seal::new)))
    }
}
