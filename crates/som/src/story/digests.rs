//! A set of digests, kept small.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use storybus_json::Value;

/// A sorted set of digests of N bytes each, serialised as one base64 text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digests<const N: usize>(Vec<[u8; N]>);

impl<const N: usize> Default for Digests<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const N: usize> Digests<N> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[[u8; N]] {
        &self.0
    }
}

impl<const N: usize> FromIterator<[u8; N]> for Digests<N> {
    fn from_iter<I: IntoIterator<Item = [u8; N]>>(digests: I) -> Self {
        let mut digests: Vec<_> = digests.into_iter().collect();
        digests.sort_unstable();
        digests.dedup();
        Self(digests)
    }
}

/// The first N bytes of SHA-256 of a value's canonical form.
pub(super) fn digest<const N: usize>(value: Value<'_>) -> [u8; N] {
    let hash = value.content_hash();
    std::array::from_fn(|index| hash.get(index).copied().unwrap_or_default())
}

impl<const N: usize> Serialize for Digests<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0.as_flattened()))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Digests<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = URL_SAFE_NO_PAD
            .decode(text.as_bytes())
            .map_err(D::Error::custom)?;
        let (digests, rest) = bytes.as_chunks::<N>();
        if !rest.is_empty() {
            return Err(D::Error::custom(format_args!(
                "digests of {N} bytes, and {} more",
                rest.len()
            )));
        }
        Ok(digests.iter().copied().collect())
    }
}
