//! Items of a table: writing and reading their attributes.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;

/// An item as the SDK has it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// A text.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number.
pub(crate) fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Bytes.
pub(crate) fn b(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes.into()))
}

/// A value as JSON text.
pub(crate) fn json(value: &impl Serialize) -> Result<AttributeValue, StoreError> {
    serde_json::to_string(value).map(s).map_err(unreadable)
}

/// An item with this key.
pub(crate) fn key(pk: impl Into<String>, sk: impl Into<String>) -> Item {
    HashMap::from([("pk".to_owned(), s(pk)), ("sk".to_owned(), s(sk))])
}

/// A time as `expires_at`, the time-to-live attribute: whole seconds, not before it.
pub(crate) fn expiry(at: Millis) -> AttributeValue {
    n(at.0
        .div_euclid(1000)
        .saturating_add(i64::from(at.0.rem_euclid(1000) > 0)))
}

/// What has `expires_at` up to this has expired by now, whether or not DynamoDB has deleted it: it does days late.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ttl-expired-items.html>
pub(crate) fn expired_by(now: Millis) -> AttributeValue {
    n(now.0.div_euclid(1000))
}

/// Whether an item with an `expires_at` has not expired.
pub(crate) fn is_live(item: &Item, now: Millis) -> bool {
    item.number::<i64>("expires_at")
        .is_none_or(|at| at > now.0.div_euclid(1000))
}

/// What an item lacks or has in another form than it was written in.
pub(crate) fn unreadable(what: impl ToString) -> StoreError {
    StoreError::Internal {
        reason: format!("an item cannot be read: {}", what.to_string()),
    }
}

/// Reading an item's attributes.
pub(crate) trait Attributes {
    /// A text, if it is there.
    fn text(&self, name: &str) -> Option<&str>;
    /// Bytes, if they are there.
    fn bytes(&self, name: &str) -> Option<&[u8]>;
    /// A number, if it is there.
    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T>;

    /// A text that must be there.
    fn need_text(&self, name: &'static str) -> Result<&str, StoreError> {
        self.text(name).ok_or_else(|| unreadable(name))
    }

    /// A number that must be there.
    fn need_number<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, StoreError> {
        self.number(name).ok_or_else(|| unreadable(name))
    }

    /// A value of JSON text that must be there.
    fn need_json<T: DeserializeOwned>(&self, name: &'static str) -> Result<T, StoreError> {
        serde_json::from_str(self.need_text(name)?).map_err(|error| unreadable(format!("{name}: {error}")))
    }

    /// A parsed text that must be there.
    fn need_parsed<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, StoreError> {
        self.need_text(name)?.parse().map_err(|_| unreadable(name))
    }

    /// Bytes of a fixed length that must be there.
    fn need_array<const N: usize>(&self, name: &'static str) -> Result<[u8; N], StoreError> {
        self.bytes(name)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| unreadable(name))
    }
}

impl Attributes for Item {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_s().ok().map(String::as_str)
    }

    fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.get(name)?.as_b().ok().map(AsRef::as_ref)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.as_n().ok()?.parse().ok()
    }
}
