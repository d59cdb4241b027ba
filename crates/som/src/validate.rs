//! The envelope and its payload against SOM 1.0.

use storybus_json::Value;
use storybus_protocol::{Source, Violation, rule};

use crate::Family;
use crate::family::in_own_namespace;
use crate::schema::{Finding, Findings, LISTED, SchemaName, graph};
use crate::version::Version;

/// Where the payload stands in the envelope.
const PAYLOAD: &str = "/payload";

/// What differs between workspaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Refuse every type without a schema, inside SOM's namespaces or not, whatever the version.
    pub strict_message_types: bool,
}

/// A message that holds to the schemas, and what the bus needs of it. Everything is borrowed from its document.
#[derive(Debug, Clone)]
pub struct Checked<'d> {
    /// The schema that the payload was checked against; `None` for a type without one.
    pub family: Option<Family>,
    /// What the bus lets pass and tells the producer.
    pub tolerated: Vec<Violation>,
    /// A UUID, in the letter case of the producer.
    pub message_id: &'d str,
    /// A UUID, in the letter case of the producer.
    pub correlation_id: &'d str,
    /// Such as `story.context`.
    pub message_type: &'d str,
    /// Of the originating system: who the message speaks for.
    pub system_id: &'d str,
    /// Starts with `som.`.
    pub topic: &'d str,
    /// Such as `1.0.0`.
    pub som_version: &'d str,
    /// When the producer made the message: RFC 3339, as sent.
    pub timestamp: &'d str,
    /// An object.
    pub payload: Value<'d>,
}

/// Checks a message against SOM 1.0: all of what can be said of one message by itself.
///
/// # What is refused
///
/// Every violation is listed, in the order of the message: those of the envelope's schema, those of the payload's,
/// then those of the bus's own rules about types. The payload's schema is chosen by the envelope's `message_type`
/// alone. A version of another major is listed alone, since nothing that is said of such a message by the schemas of
/// 1.0 means anything; the version counts as soon as it is well-formed, however broken the rest is.
///
/// # What is tolerated
///
/// A message of 1.y with y above 0 may carry members and enumerated values that 1.0 does not know: violations of
/// `additionalProperties` and `enum`, and those of an `anyOf` of which one branch fails by such alone. They are listed
/// in [`Checked::tolerated`] when the message is accepted, and never in a refusal. No other rule gives way: what such
/// a value brings about elsewhere (a story type that 1.0 does not know is not `ACTIVE`, so there must be no
/// `lifecycle`) is refused as in 1.0.
///
/// A well-formed type without a schema is accepted unvalidated (tolerated `payload.unvalidated`), unless it is of
/// SOM's own namespaces in a message of 1.0, or [`Options::strict_message_types`] asks for more.
///
/// # Cost
///
/// One walk over a message that is valid, at most two over one that is not; the time is linear in its length, and
/// nothing is allocated while nothing is wrong but what `uniqueItems` takes of a list whose elements a glance does not
/// tell apart. Of each list, refused and tolerated, the first 1,000 violations are given; the last of them says when
/// there were more.
///
/// # Errors
///
/// The violations, at least one, if the message is refused.
pub fn validate<'d>(envelope: Value<'d>, options: Options) -> Result<Checked<'d>, Vec<Violation>> {
    let version = text(envelope, "som_version").and_then(Version::parse);
    if let Some(violation) = version.and_then(other_major) {
        return Err(vec![violation]);
    }

    let tolerant = version == Some(Version::LaterMinor);
    let mut findings = Findings::new(tolerant);
    graph(SchemaName::Envelope).check(envelope, "", &mut findings);
    let message_type = text(envelope, "message_type");
    let family = message_type.and_then(Family::of);
    let payload = envelope
        .get("payload")
        .filter(|payload| payload.as_object().is_some());
    if let (Some(family), Some(payload)) = (family, payload) {
        graph(SchemaName::Payload(family)).check(payload, PAYLOAD, &mut findings);
    }

    let (mut tolerated, mut refused) = sort(findings.list, tolerant);
    cut(&mut tolerated);
    cut(&mut refused);
    let named = payload.and_then(|payload| text(payload, "message_type"));
    if let (Some(named), Some(message_type)) = (named, message_type)
        && named != message_type
    {
        refused.push(mismatch());
    }
    if family.is_none() && message_type.is_some_and(is_well_formed) {
        let reserved = version == Some(Version::OneZero) && message_type.is_some_and(in_own_namespace);
        if reserved || options.strict_message_types {
            refused.push(unknown_type(reserved));
        } else {
            tolerated.push(unvalidated());
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }

    // The schema has asked for all of them.
    let sent = |name| text(envelope, name).unwrap_or_default();
    Ok(Checked {
        family,
        tolerated,
        message_id: sent("message_id"),
        correlation_id: sent("correlation_id"),
        message_type: sent("message_type"),
        system_id: envelope
            .get("originating_system")
            .and_then(|s| text(s, "system_id"))
            .unwrap_or_default(),
        topic: sent("topic"),
        som_version: sent("som_version"),
        timestamp: sent("timestamp"),
        payload: payload.unwrap_or(envelope),
    })
}

fn text<'d>(object: Value<'d>, name: &str) -> Option<&'d str> {
    object.get(name)?.as_str()
}

/// What may pass in this version, and what may not.
fn sort(findings: Vec<Finding>, tolerant: bool) -> (Vec<Violation>, Vec<Violation>) {
    let (mut tolerated, mut refused) = (Vec::new(), Vec::new());
    for Finding { violation, tolerable } in findings {
        if tolerant && tolerable {
            tolerated.push(violation)
        } else {
            refused.push(violation)
        }
    }
    (tolerated, refused)
}

/// Keeps what is listed at the most, and says so.
fn cut(violations: &mut Vec<Violation>) {
    if violations.len() > LISTED {
        violations.truncate(LISTED);
        if let Some(last) = violations.last_mut() {
            last.message.push_str(&format!(
                " (there are more: only the first {LISTED} violations are listed)"
            ));
        }
    }
}

/// The shape of a type, as the envelope's schema asks for it.
fn is_well_formed(message_type: &str) -> bool {
    message_type.starts_with(|c: char| c.is_ascii_lowercase())
        && message_type
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.".contains(&b))
}

fn other_major(version: Version) -> Option<Violation> {
    let (source, rule, message) = match version {
        Version::BeforeOne => (
            Source::Conformance,
            rule::SOM_VERSION_PRE_1_0,
            "older than SOM 1.0.0; send the message as SOM 1.0 has it",
        ),
        Version::LaterMajor => (
            Source::Policy,
            rule::SOM_VERSION_UNSUPPORTED_MAJOR,
            "this bus speaks SOM 1; send the message as such",
        ),
        Version::OneZero | Version::LaterMinor => return None,
    };
    Some(Violation::new(source, rule, message).at("/som_version"))
}

fn mismatch() -> Violation {
    Violation::new(
        Source::Policy,
        rule::PAYLOAD_MESSAGE_TYPE_MISMATCH,
        "the payload names another type than the envelope; make them agree",
    )
    .at("/payload/message_type")
}

fn unknown_type(reserved: bool) -> Violation {
    let message = if reserved {
        "SOM 1.0 has no such type, and its namespaces are its own; use a type of the standard, or a namespace of yours"
    } else {
        "this workspace takes only types that have a schema"
    };
    Violation::new(Source::Policy, rule::MESSAGE_TYPE_UNKNOWN, message).at("/message_type")
}

fn unvalidated() -> Violation {
    Violation::new(
        Source::Policy,
        rule::PAYLOAD_UNVALIDATED,
        "there is no schema for this type: the payload was accepted as it is",
    )
    .at(PAYLOAD)
}
