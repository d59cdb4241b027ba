//! What a schema file becomes: nodes, each a list of checks.

use std::cmp::Ordering;

use regress::Regex;
use storybus_json::{Number, Value};

use super::keyword::{Keyword, SchemaName};

/// One compiled schema file. Everything that is text stays borrowed from the file.
#[derive(Debug)]
pub(crate) struct Graph<'s> {
    pub(super) name: SchemaName,
    pub(super) nodes: Vec<Node<'s>>,
    pub(super) root: NodeId,
}

/// An index into [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) usize);

/// A schema: all its checks must hold. None at all is the schema `true`.
#[derive(Debug, Default)]
pub(super) struct Node<'s> {
    pub(super) checks: Box<[Check<'s>]>,
}

/// One keyword, or the four about an object's members together, which one pass over the members answers.
#[derive(Debug)]
pub(super) enum Check<'s> {
    /// The schema `false`.
    Never,
    Type(Type),
    Const(Literal<'s>),
    Enum(Box<[Literal<'s>]>),
    Format(Format),
    /// Boxed: a compiled expression is many times larger than any other check.
    Pattern(Box<Pattern<'s>>),
    MinLength(usize),
    MaxLength(usize),
    Minimum(Number<'s>),
    Maximum(Number<'s>),
    UniqueItems,
    Items(NodeId),
    Members(Members<'s>),
    AllOf(Box<[NodeId]>),
    AnyOf(Box<[NodeId]>),
    OneOf(Box<[NodeId]>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
}

/// The types of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    /// A number without a fraction: `1.0` is one.
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// The formats that are asserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Uuid,
    DateTime,
}

/// A regular expression as it stands in the schema file, and compiled.
///
/// JSON Schema asks for ECMA-262, and `regress` is that: no translation that could be subtly wrong (`\d`, `$` and `.`
/// all differ between dialects). It backtracks, so an expression must not be able to: in those of SOM every repeat is
/// of one class of characters and ends where another class begins, so a text of n characters takes about n steps. A
/// test runs them all over the longest hostile texts.
#[derive(Debug)]
pub(super) struct Pattern<'s> {
    pub(super) text: &'s str,
    pub(super) regex: Regex,
}

impl Pattern<'_> {
    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.find(text).is_some()
    }
}

/// A value that `const` or `enum` names.
#[derive(Debug)]
pub(super) enum Literal<'s> {
    /// A string: compared without further ado.
    Text(&'s str),
    /// Anything else, in canonical form: equal bytes are equal values.
    Other(Value<'s>, Box<[u8]>),
}

impl<'s> Literal<'s> {
    pub(super) fn new(value: Value<'s>) -> Self {
        match value.as_str() {
            Some(text) => Self::Text(text),
            None => {
                let mut canonical = Vec::new();
                value.write_canonical(&mut canonical);
                Self::Other(value, canonical.into())
            }
        }
    }

    pub(super) fn equals(&self, value: Value<'_>) -> bool {
        match self {
            Self::Text(text) => value.as_str() == Some(text),
            Self::Other(_, wanted) => {
                let mut canonical = Vec::new();
                value.write_canonical(&mut canonical);
                canonical == **wanted
            }
        }
    }
}

/// `required`, `properties`, `patternProperties` and `additionalProperties: false` of one schema.
#[derive(Debug, Default)]
pub(super) struct Members<'s> {
    /// What is said of single names, in the order of [`by_name`].
    pub(super) named: Box<[Named<'s>]>,
    /// The required names in the schema's order; [`Named::required`] is a bit per entry.
    pub(super) required: Box<[&'s str]>,
    pub(super) patterns: Box<[(Pattern<'s>, NodeId)]>,
    /// Whether a member that neither `properties` nor `patternProperties` knows is surplus.
    pub(super) closed: bool,
}

/// The order of names that is quickest to search: most differ in length, which is compared without a look at the text.
pub(super) fn by_name(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
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

    pub(super) fn find(&self, name: &str) -> Option<&Named<'s>> {
        let index = self
            .named
            .binary_search_by(|named| by_name(named.name, name))
            .ok()?;
        self.named.get(index)
    }

    /// Whether only members of a few names matter, as in an `if` or a `not`.
    pub(super) fn are_few(&self) -> bool {
        !self.closed && self.patterns.is_empty() && self.named.len() <= Self::FEW
    }
}

impl Graph<'_> {
    /// The rule ids of all checks that can be listed: those inside an `if` or a `not` never are.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &'static str> {
        let mut rules = Vec::new();
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![self.root];
        while let Some(id) = open.pop() {
            match seen.get_mut(id.0) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            for check in self.nodes.get(id.0).into_iter().flat_map(|node| &node.checks) {
                rules.extend(check.keyword().map(|keyword| keyword.rule(self.name)));
                match check {
                    Check::Members(members) => {
                        if !members.required.is_empty() {
                            rules.push(Keyword::Required.rule(self.name));
                        }
                        if members.closed {
                            rules.push(Keyword::AdditionalProperties.rule(self.name));
                        }
                        open.extend(members.named.iter().filter_map(|named| named.schema));
                        open.extend(members.patterns.iter().map(|(_, schema)| *schema));
                    }
                    Check::Items(schema) => open.push(*schema),
                    Check::AllOf(schemas) | Check::AnyOf(schemas) | Check::OneOf(schemas) => {
                        open.extend(schemas)
                    }
                    Check::If { then, otherwise, .. } => {
                        open.extend([*then, *otherwise].into_iter().flatten())
                    }
                    _ => {}
                }
            }
        }
        rules.into_iter()
    }
}

impl Check<'_> {
    /// The keyword that rules when the check does not hold; `None` for those that rule through their parts.
    pub(super) const fn keyword(&self) -> Option<Keyword> {
        Some(match self {
            Self::Never => Keyword::FalseSchema,
            Self::Type(_) => Keyword::Type,
            Self::Const(_) => Keyword::Const,
            Self::Enum(_) => Keyword::Enum,
            Self::Format(Format::Uuid) => Keyword::FormatUuid,
            Self::Format(Format::DateTime) => Keyword::FormatDateTime,
            Self::Pattern(_) => Keyword::Pattern,
            Self::MinLength(_) => Keyword::MinLength,
            Self::MaxLength(_) => Keyword::MaxLength,
            Self::Minimum(_) => Keyword::Minimum,
            Self::Maximum(_) => Keyword::Maximum,
            Self::UniqueItems => Keyword::UniqueItems,
            Self::AnyOf(_) => Keyword::AnyOf,
            Self::OneOf(_) => Keyword::OneOf,
            Self::Not(_) => Keyword::Not,
            Self::Items(_) | Self::Members(_) | Self::AllOf(_) | Self::If { .. } => return None,
        })
    }
}
