//! What a schema says of an object's members.

use super::names::Names;
use super::node::{Kinds, Node, NodeId};
use super::pattern::Pattern;

/// `required`, `properties`, `patternProperties` and `additionalProperties: false` of one schema.
#[derive(Debug)]
pub(super) struct Members<'s> {
    /// What is said of single names.
    pub(super) named: Names<'s, Named>,
    /// The required names in the schema's order; [`Named::required`] is a bit per entry.
    pub(super) required: Box<[&'s str]>,
    /// The bits of all required names.
    pub(super) all_required: u64,
    pub(super) patterns: Box<[(Pattern<'s>, NodeId)]>,
    /// Whether a member that neither `properties` nor `patternProperties` knows is surplus.
    pub(super) closed: bool,
}

/// What a schema says of the member of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named {
    /// Its schema, if it stands in `properties`.
    pub(super) schema: Option<NodeId>,
    /// Its bit, if it stands in `required`; else 0.
    pub(super) required: u64,
    /// The kinds of value that its schema is known to hold for: kept here, too, so that it need not be looked up for them.
    pub(super) settled: Kinds,
}

impl<'s> Members<'s> {
    /// How many members a schema can require: as many as there are bits.
    pub(super) const MOST_REQUIRED: usize = 64;

    /// Up to so many names are looked up in the object, instead of all the object's names here.
    const FEW: usize = 4;

    /// `nodes` has all that `properties` refers to.
    pub(super) fn new(
        properties: &[(&'s str, NodeId)],
        required: Vec<&'s str>,
        patterns: Vec<(Pattern<'s>, NodeId)>,
        closed: bool,
        nodes: &[Node<'s>],
    ) -> Self {
        let unknown = Named {
            schema: None,
            required: 0,
            settled: if closed { Kinds::default() } else { Kinds::ALL },
        };
        let mut named: Vec<(&'s str, Named)> = Vec::with_capacity(properties.len() + required.len());
        let mut say =
            |name: &'s str, say: &dyn Fn(&mut Named)| match named.iter_mut().find(|(n, _)| *n == name) {
                Some((_, named)) => say(named),
                None => {
                    let mut new = unknown;
                    say(&mut new);
                    named.push((name, new));
                }
            };
        for (name, schema) in properties {
            say(name, &|named| {
                named.schema = Some(*schema);
                named.settled = nodes.get(schema.0).map(|node| node.settled).unwrap_or_default();
            });
        }
        for (bit, name) in required.iter().enumerate() {
            say(name, &|named| named.required |= 1 << bit);
        }
        let named = Names::new(named.into_iter());
        Self {
            all_required: named.iter().fold(0, |all, (_, named)| all | named.required),
            named,
            required: required.into(),
            patterns: patterns.into(),
            closed,
        }
    }

    /// Whether only members of a few names matter, as in an `if` or a `not`.
    pub(super) fn are_few(&self) -> bool {
        !self.closed && self.patterns.is_empty() && self.named.len() <= Self::FEW
    }
}
