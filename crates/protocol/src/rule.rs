//! The rule ids of the contract that are not made from a schema keyword. Ids never change.
//!
//! Schema rules are `<schema>.<keyword>`, such as `envelope.required` or `story-context.format.date-time`.
//!
//! To add one: a line in the table, a page in `docs/errors/`, a line in `docs/http-api.md`; tests ask for all of them.

mod about;

pub use about::{About, Appears, Fault, Retry, SCHEMA_KEYWORDS, SCHEMAS, about};

use crate::Source::{Conformance, Policy, Schema, Sequence};
use Appears::{Failed, Job, Refusal, Tolerated};

/// Declares the rule ids as constants, as one list, and as a table of what they mean for whoever meets them:
/// `NAME = "id": source, [where it appears], whose fault, whether to retry`.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $id:literal: $source:ident, $appears:expr, $fault:ident, $retry:ident;)*) => {
        $($(#[$doc])* pub const $name: &str = $id;)*
        /// Every rule id that is not a schema rule.
        pub const ALL: &[&str] = &[$($id),*];
        /// What is to be known of each of [`ALL`], in the same order.
        pub const TABLE: &[About] = &[$(About {
            rule: $id,
            source: $source,
            appears: &$appears,
            fault: Fault::$fault,
            retry: Retry::$retry,
        }),*];
    };
}

rules! {
    /// 401: no token, or one that does not hold, where a producer is asked for.
    PRODUCER_UNAUTHENTICATED = "producer.unauthenticated": Policy, [Refusal(401)], Caller, NewToken;
    /// 403: not a producer, of another workspace, disabled or deleted.
    PRODUCER_NOT_REGISTERED = "producer.not_registered": Policy, [Refusal(403)], Caller, No;
    /// 403: the producer may not speak for this `system_id`.
    PRODUCER_SYSTEM_ID_NOT_ALLOWED = "producer.system_id_not_allowed": Policy, [Refusal(403)], Operator, No;
    /// 403: the producer may not publish this type.
    PRODUCER_MESSAGE_TYPE_NOT_ALLOWED = "producer.message_type_not_allowed": Policy, [Refusal(403)], Operator, No;
    /// 401: no token, or one that does not hold, where a consumer is asked for.
    CONSUMER_UNAUTHENTICATED = "consumer.unauthenticated": Policy, [Refusal(401)], Caller, NewToken;
    /// 403: not that consumer.
    CONSUMER_NOT_REGISTERED = "consumer.not_registered": Policy, [Refusal(403)], Caller, No;
    /// 401: no token, or one that does not hold, where an operator is asked for.
    OPERATOR_UNAUTHENTICATED = "operator.unauthenticated": Policy, [Refusal(401)], Caller, NewToken;
    /// 403: not an operator.
    OPERATOR_NOT_REGISTERED = "operator.not_registered": Policy, [Refusal(403)], Caller, No;
    /// 415: a `Content-Encoding` other than identity.
    REQUEST_UNSUPPORTED = "request.unsupported": Policy, [Refusal(415)], Caller, No;
    /// 400: a parameter or a member of the request is not as the route asks; 409: it cannot be given what it asks for now.
    REQUEST_INVALID = "request.invalid": Policy, [Refusal(400), Refusal(408), Refusal(409), Refusal(431)], Caller, No;
    /// 404: no such route.
    ROUTE_NOT_FOUND = "route.not_found": Policy, [Refusal(404)], Caller, No;
    /// 405: the route exists, not with this method.
    METHOD_NOT_ALLOWED = "method.not_allowed": Policy, [Refusal(405)], Caller, No;
    /// 429: the connection is over its rate.
    RATE_EXCEEDED = "rate.exceeded": Policy, [Refusal(429)], Caller, RetryAfter;
    /// 413: the message is larger than the bus carries.
    MESSAGE_TOO_LARGE = "message.too_large": Policy, [Refusal(413)], Caller, No;
    /// 400: not JSON in UTF-8.
    MESSAGE_NOT_JSON = "message.not_json": Schema, [Refusal(400)], Caller, No;
    /// 400: a repeated member name.
    MESSAGE_DUPLICATE_MEMBER = "message.duplicate_member": Policy, [Refusal(400)], Caller, No;
    /// 400: a character that queues cannot carry.
    MESSAGE_ILLEGAL_CHARACTER = "message.illegal_character": Policy, [Refusal(400)], Caller, No;
    /// 400: nested too deep.
    MESSAGE_TOO_DEEP = "message.too_deep": Policy, [Refusal(400)], Caller, No;
    /// 404: no such message, or not this producer's.
    MESSAGE_NOT_FOUND = "message.not_found": Policy, [Refusal(404)], Caller, No;
    /// 503: recorded and not known published; ask again later.
    MESSAGE_IN_FLIGHT = "message.in_flight": Policy, [Refusal(503)], Bus, RetryAfter;
    /// 409: a newer snapshot of the story was accepted; this one will not be published any more.
    MESSAGE_SUPERSEDED = "message.superseded": Policy, [Refusal(409)], Nobody, No;
    /// 409: the id is known with other content.
    MESSAGE_ID_REUSED = "message_id.reused": Policy, [Refusal(409)], Caller, No;
    /// 400: a type that SOM 1.0 does not know, where it must.
    MESSAGE_TYPE_UNKNOWN = "message_type.unknown": Policy, [Refusal(400)], Caller, No;
    /// 400: older than SOM 1.0.0.
    SOM_VERSION_PRE_1_0 = "som_version.pre_1_0": Conformance, [Refusal(400)], Caller, No;
    /// 400: from a later major version.
    SOM_VERSION_UNSUPPORTED_MAJOR = "som_version.unsupported_major": Policy, [Refusal(400)], Caller, No;
    /// 400: the payload names another type than the envelope.
    PAYLOAD_MESSAGE_TYPE_MISMATCH = "payload.message_type_mismatch": Policy, [Refusal(400)], Caller, No;
    /// Tolerated: a type without a schema.
    PAYLOAD_UNVALIDATED = "payload.unvalidated": Policy, [Tolerated], Nobody, No;
    /// 400: the `Idempotency-Key` header is not the `message_id`.
    IDEMPOTENCY_KEY_MISMATCH = "idempotency_key.mismatch": Policy, [Refusal(400)], Caller, No;
    /// 409: another snapshot of the story is on its way; send the same bytes again after a moment.
    COMMIT_CONTENTION = "commit.contention": Policy, [Refusal(409)], Nobody, Moment;
    /// 409: not greater than the story's last.
    SEQUENCE_NUMBER_NOT_INCREASING = "sequence_number.not_increasing": Sequence, [Refusal(409)], Caller, No;
    /// Tolerated: greater by more than one.
    SEQUENCE_NUMBER_GAP = "sequence_number.gap": Sequence, [Tolerated], Caller, No;
    /// 409: earlier than the story's last.
    UPDATED_AT_BACKWARDS = "updated_at.backwards": Sequence, [Refusal(409)], Caller, No;
    /// 409: a member of the last snapshot is absent.
    SNAPSHOT_MEMBERS_MISSING = "snapshot.members_missing": Sequence, [Refusal(409)], Caller, No;
    /// 409: an asset of the last snapshot is absent.
    SNAPSHOT_ASSETS_DROPPED = "snapshot.assets_dropped": Sequence, [Refusal(409)], Caller, No;
    /// 409: an asset has another type than in the last snapshot.
    ASSET_TYPE_CHANGED = "asset.type_changed": Sequence, [Refusal(409)], Caller, No;
    /// 409: back from KILLED, SPIKED or ARCHIVED.
    STORY_TYPE_LEFT_TERMINAL = "story_type.left_terminal": Sequence, [Refusal(409)], Caller, No;
    /// Tolerated: not the story's first correlation id.
    CORRELATION_ID_CHANGED = "correlation_id.changed": Sequence, [Tolerated], Caller, No;
    /// Tolerated: an assertion's review went back to PENDING.
    ASSERTION_REVIEW_REGRESSED = "assertion.review_regressed": Sequence, [Tolerated], Caller, No;
    /// 503: the publication failed, or its outcome is not certain; safe to retry.
    BUS_PUBLISH_FAILED = "bus.publish_failed": Policy, [Refusal(503)], Bus, RetryAfter;
    /// 503: a store cannot be reached or has no room; nothing was written.
    BUS_UNAVAILABLE = "bus.unavailable": Policy, [Refusal(503)], Bus, RetryAfter;
    /// 500: our own fault.
    BUS_INTERNAL_ERROR = "bus.internal_error": Policy, [Refusal(500)], Bus, Moment;
    /// In `failed`: the receipt handle is unknown or has expired.
    RECEIPT_HANDLE_INVALID = "receipt_handle.invalid": Policy, [Failed], Caller, No;
    /// In `failed` (AWS): the message is not archived yet; call again.
    MESSAGE_NOT_ARCHIVED = "message.not_archived": Policy, [Failed], Nobody, Moment;
    /// 404: no such workspace.
    TENANT_NOT_FOUND = "tenant.not_found": Policy, [Refusal(404)], Caller, No;
    /// 409: the workspace still has connections.
    TENANT_NOT_EMPTY = "tenant.not_empty": Policy, [Refusal(409)], Caller, No;
    /// 404: no such producer.
    PRODUCER_NOT_FOUND = "producer.not_found": Policy, [Refusal(404)], Caller, No;
    /// 404: no such consumer.
    CONSUMER_NOT_FOUND = "consumer.not_found": Policy, [Refusal(404), Job], Caller, No;
    /// 409: the workspace has as many consumers as it can (AWS).
    CONSUMER_LIMIT = "consumer.limit": Policy, [Refusal(409)], Caller, No;
    /// 404: no such operator.
    OPERATOR_NOT_FOUND = "operator.not_found": Policy, [Refusal(404)], Caller, No;
    /// 404: no such secret.
    SECRET_NOT_FOUND = "secret.not_found": Policy, [Refusal(404)], Caller, No;
    /// 409: two secrets are live already.
    SECRET_LIMIT = "secret.limit": Policy, [Refusal(409)], Caller, No;
    /// 409: the `system_id` belongs to another producer.
    SYSTEM_ID_TAKEN = "system_id.taken": Policy, [Refusal(409)], Caller, No;
    /// 404: no such job.
    JOB_NOT_FOUND = "job.not_found": Policy, [Refusal(404)], Caller, No;
    /// 409: the job is over.
    JOB_FINISHED = "job.finished": Policy, [Refusal(409)], Caller, No;
    /// 404: no such story.
    STORY_NOT_FOUND = "story.not_found": Policy, [Refusal(404)], Caller, No;
}

#[cfg(test)]
mod tests {
    use super::{ALL, SCHEMA_KEYWORDS, SCHEMAS, TABLE, about};

    #[test]
    fn the_documentation_names_every_rule() {
        let text = include_str!("../../../docs/http-api.md");
        for id in ALL {
            assert!(
                text.contains(&format!("`{id}`")),
                "docs/http-api.md does not name {id}"
            );
        }
    }

    #[test]
    fn ids_are_unique_and_well_formed() {
        let mut seen = std::collections::BTreeSet::new();
        for id in ALL {
            assert!(seen.insert(id), "{id} stands twice");
            assert!(
                id.contains('.')
                    && id
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._".contains(&b)),
                "{id}"
            );
        }
    }

    #[test]
    fn every_rule_is_found() {
        for known in TABLE {
            assert_eq!(about(known.rule), Some(known));
            assert!(!known.appears.is_empty(), "{}", known.rule);
        }
        for schema in SCHEMAS {
            for known in SCHEMA_KEYWORDS {
                assert_eq!(about(&format!("{schema}.{}", known.rule)), Some(known));
            }
        }
        for unknown in [
            "",
            ".",
            "envelope",
            "envelope.",
            "envelope.allOf",
            "story.required",
            "required",
            "format.uuid",
        ] {
            assert_eq!(about(unknown), None, "{unknown}");
        }
    }
}
