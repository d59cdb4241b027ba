//! The schemas of SOM 1.0 and a validator for exactly these.
//!
//! The files in `schemas/` are compiled once, when the first message comes, into [`Graph`]s over our own JSON values.
//! A general JSON Schema library was not taken for three reasons: rule ids and the order of violations are the
//! contract's, not a library's; numbers must stay exact; and the check runs on every publish, where it must not
//! allocate while nothing is wrong.
//!
//! To add a keyword: a variant of `Check` and its arm in `compile`, in `fits` and in `text`, in `evaluate` if it has
//! parts, and in `keyword` if it can rule by itself. A schema file with a keyword that is not supported does not compile, and a test says so.

mod compile;
mod error;
mod evaluate;
mod fits;
mod keyword;
mod members;
mod names;
mod node;
mod pattern;
mod place;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use storybus_json::Document;

use crate::Family;
pub(crate) use evaluate::{Finding, Findings, LISTED};
pub(crate) use keyword::SchemaName;
pub(crate) use node::Graph;
pub(crate) use text::quoted;

/// The schema files: the project's own wording of the standard's constraints.
const fn file(name: SchemaName) -> &'static str {
    match name {
        SchemaName::Envelope => include_str!("../../schemas/envelope.schema.json"),
        SchemaName::Payload(Family::StoryContext) => include_str!("../../schemas/story-context.schema.json"),
        SchemaName::Payload(Family::TellingEvent) => include_str!("../../schemas/telling-event.schema.json"),
        SchemaName::Payload(Family::LinkEvent) => include_str!("../../schemas/link-event.schema.json"),
        SchemaName::Payload(Family::DeliveryMediaAvailable) => {
            include_str!("../../schemas/delivery-media-available.schema.json")
        }
        SchemaName::Payload(Family::SkillWarning) => include_str!("../../schemas/skill-warning.schema.json"),
        SchemaName::Payload(Family::SystemAudit) => include_str!("../../schemas/system-audit.schema.json"),
    }
}

/// The compiled schemas, each on its first use: a process that sees events only never compiles the largest.
static GRAPHS: [LazyLock<Graph<'static>>; 7] = [
    LazyLock::new(|| load(SchemaName::Envelope)),
    LazyLock::new(|| load(SchemaName::Payload(Family::StoryContext))),
    LazyLock::new(|| load(SchemaName::Payload(Family::TellingEvent))),
    LazyLock::new(|| load(SchemaName::Payload(Family::LinkEvent))),
    LazyLock::new(|| load(SchemaName::Payload(Family::DeliveryMediaAvailable))),
    LazyLock::new(|| load(SchemaName::Payload(Family::SkillWarning))),
    LazyLock::new(|| load(SchemaName::Payload(Family::SystemAudit))),
];

/// The compiled schema of that name.
pub(crate) fn graph(name: SchemaName) -> &'static Graph<'static> {
    let [
        envelope,
        story_context,
        telling_event,
        link_event,
        delivery,
        skill_warning,
        system_audit,
    ] = &GRAPHS;
    match name {
        SchemaName::Envelope => envelope,
        SchemaName::Payload(Family::StoryContext) => story_context,
        SchemaName::Payload(Family::TellingEvent) => telling_event,
        SchemaName::Payload(Family::LinkEvent) => link_event,
        SchemaName::Payload(Family::DeliveryMediaAvailable) => delivery,
        SchemaName::Payload(Family::SkillWarning) => skill_warning,
        SchemaName::Payload(Family::SystemAudit) => system_audit,
    }
}

/// Reads and compiles a schema file. The graph borrows from the document, so the document stays for good.
fn load(name: SchemaName) -> Graph<'static> {
    let document = Document::parse(file(name).as_bytes()).expect("a test parses the same file");
    let document: &'static Document<'static> = Box::leak(Box::new(document));
    Graph::compile(name, document.root()).expect("a test compiles the same file")
}

/// Every rule id that a schema can produce, in alphabetical order: one for each keyword that can fail somewhere in
/// each of the seven files. For the pages that explain rules, and for the tests that hold these complete.
pub fn schema_rules() -> impl Iterator<Item = &'static str> {
    let rules: BTreeSet<_> = SchemaName::ALL
        .into_iter()
        .flat_map(|name| graph(name).rules())
        .collect();
    rules.into_iter()
}
