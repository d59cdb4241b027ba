//! What a schema says of an object's members.

use super::names::Names;
use super::node::NodeId;
use super::pattern::Pattern;

/// `required`, `properties`, `patternProperties` and `additionalProperties: false` of one schema.
#[derive(Debug, Default)]
pub(super) struct Members<'s> {
    /// What is said of single names.
    pub(super) named: Box<[Named<'s>]>,
    /// The required names in the schema's order; [`Named::required`] is a bit per entry.
    pub(super) required: Box<[&'s str]>,
    pub(super) patterns: Box<[(Pattern<'s>, NodeId)]>,
    /// Whether a member that neither `properties` nor `patternProperties` knows is surplus.
    pub(super) closed: bool,
    /// Where in `named` a name is.
    names: Names<'s>,
}

/// What a schema says of the member of one name.
#[derive(Debug)]
pub(super) struct Named<'s> {
    pub(super) name: &'s str,
    /// Its schema, if it stands in `properties`.
    pub(super) schema: Option<NodeId>,
    /// Its bit, if it stands in `required`; else 0.
    pub(super) required: u64,
}

impl<'s> Members<'s> {
    /// How many members a schema can require: as many as there are bits.
    pub(super) const MOST_REQUIRED: usize = 64;

    /// Up to so many names are looked up in the object, instead of all the object's names here.
    const FEW: usize = 4;

    pub(super) fn new(
        properties: &[(&'s str, NodeId)],
        required: Vec<&'s str>,
        patterns: Vec<(Pattern<'s>, NodeId)>,
        closed: bool,
    ) -> Self {
        let mut named: Vec<Named<'s>> = Vec::with_capacity(properties.len() + required.len());
        let at = |named: &mut Vec<Named<'s>>, name: &'s str| match named.iter().position(|n| n.name == name) {
            Some(at) => at,
            None => {
                named.push(Named {
                    name,
                    schema: None,
                    required: 0,
                });
                named.len() - 1
            }
        };
        for (name, schema) in properties {
            let at = at(&mut named, name);
            if let Some(named) = named.get_mut(at) {
                named.schema = Some(*schema);
            }
        }
        for (bit, name) in required.iter().enumerate() {
            let at = at(&mut named, name);
            if let Some(named) = named.get_mut(at) {
                named.required |= 1 << bit;
            }
        }
        let names = Names::new(named.iter().map(|named| named.name));
        Self {
            named: named.into(),
            required: required.into(),
            patterns: patterns.into(),
            closed,
            names,
        }
    }

    #[inline]
    pub(super) fn find(&self, name: &str) -> Option<&Named<'s>> {
        self.named.get(self.names.find(name)?)
    }

    /// Whether only members of a few names matter, as in an `if` or a `not`.
    pub(super) fn are_few(&self) -> bool {
        !self.closed && self.patterns.is_empty() && self.named.len() <= Self::FEW
    }
}
