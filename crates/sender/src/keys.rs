//! Keys that come from the domain: the same business fact has the same key, whoever computes it and how often.
//!
//! A key that is made anew for a retry makes the partner take the retry for another message. So a key is derived from what the message
//! is about, before it is enqueued, and never from the time or from chance.
//!
//! - For a REST partner a key is any short text that tells one intention from all others: [`Key::new`](crate::message::Key::new)
//!   of `format!("send-{invoice}-to-{partner}")`, such as `send-1042-to-acme`.
//! - For a bus it is the envelope's `message_id`, a UUID. [`Namespace::message_id`] makes it of the same kind of text (RFC 9562 §5.5,
//!   version 5), so that any language's UUID library computes the same one.
//!
//! What belongs into a key: everything that makes it *another* message. For a story's snapshots that is the story and the snapshot's
//! number: two snapshots under one key are refused as `message_id.reused`.
//!
//! ```
//! use storybus_sender::keys::Namespace;
//! use storybus_sender::message::Key;
//!
//! let acme = Namespace::of_domain("acme.example");
//! let first = acme.message_id(&["story", "hurricane-2026", "17"]);
//! assert_eq!(first, acme.message_id(&["story", "hurricane-2026", "17"]));
//! assert_ne!(first, acme.message_id(&["story", "hurricane-2026", "18"]));
//!
//! let (invoice, partner) = (1042, "acme");
//! let key = Key::new(format!("send-{invoice}-to-{partner}"))?;
//! assert_eq!(key.as_str(), "send-1042-to-acme");
//! # Ok::<(), storybus_sender::message::Invalid>(())
//! ```

use storybus_protocol::id::{CorrelationId, MessageId};
use uuid::Uuid;

/// A vendor's own room of names: other vendors' names lead to other UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Namespace(Uuid);

impl Namespace {
    /// The namespace of a domain name that the vendor holds: the version-5 UUID of the name, in lower case and without a dot at its
    /// end, in RFC 9562's namespace for DNS names.
    #[must_use]
    pub fn of_domain(domain: &str) -> Self {
        let name = domain.trim_end_matches('.').to_ascii_lowercase();
        Self(Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes()))
    }

    /// A namespace that the vendor has drawn once and written down.
    #[must_use]
    pub fn of_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The `message_id` of what these parts name.
    ///
    /// The parts are put together with `/`; in each of them `%` becomes `%25` and `/` becomes `%2F` first, so that other parts never
    /// make the same name.
    #[must_use]
    pub fn message_id(&self, parts: &[&str]) -> MessageId {
        MessageId::from_bytes(self.named(parts))
    }

    /// A `correlation_id` in the same way, of a story.
    #[must_use]
    pub fn correlation_id(&self, parts: &[&str]) -> CorrelationId {
        CorrelationId::from_bytes(self.named(parts))
    }

    fn named(&self, parts: &[&str]) -> [u8; 16] {
        let parts: Vec<String> = parts
            .iter()
            .map(|part| part.replace('%', "%25").replace('/', "%2F"))
            .collect();
        Uuid::new_v5(&self.0, parts.join("/").as_bytes()).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_uuid_library_computes_the_same() {
        // Python: uuid5(uuid5(NAMESPACE_DNS, "acme.example"), "story/hurricane-2026/17")
        let acme = Namespace::of_domain("ACME.example.");
        let id = acme.message_id(&["story", "hurricane-2026", "17"]);
        assert_eq!(id.to_string(), "0fcd0e3b-b406-5c5c-b5cd-221e5a2f67d3");
        let by_hand = Namespace::of_uuid(Uuid::new_v5(&Uuid::NAMESPACE_DNS, b"acme.example"));
        assert_eq!(
            by_hand.message_id(&["story/hurricane-2026/17"]).to_string(),
            "50f0d06a-fbc4-5a7b-9c61-4b4230ddc5a0"
        );
    }

    #[test]
    fn other_parts_make_another_id() {
        let acme = Namespace::of_domain("acme.example");
        let names = [
            &["a/b", "c"][..],
            &["a", "b/c"],
            &["a", "b", "c"],
            &["a%2Fb", "c"],
            &["a", "", "b", "c"],
            &["A", "b", "c"],
            &["a", "b", "c", ""],
        ];
        let ids: std::collections::HashSet<_> = names.iter().map(|parts| acme.message_id(parts)).collect();
        assert_eq!(ids.len(), names.len());
        let other = Namespace::of_domain("other.example");
        assert_ne!(acme.message_id(&["a"]), other.message_id(&["a"]));
        assert_eq!(
            acme.message_id(&["a"]).to_string(),
            acme.correlation_id(&["a"]).to_string()
        );
    }
}
