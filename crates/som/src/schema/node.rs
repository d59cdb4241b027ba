//! What a schema file becomes: nodes, each a list of checks.

use storybus_json::{Number, Tag, Value};

use super::keyword::{Keyword, SchemaName};
use super::members::Members;
use super::names::Names;
use super::pattern::Pattern;

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
    /// The kinds of value for which the first check is known to hold.
    first_holds: Kinds,
    /// Those for which all checks are: most of what a message has is text of which the schema says no more.
    pub(super) settled: Kinds,
}

/// A set of kinds of value, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const ALL: Self = Self(63);

    /// Whether the kind of a value is among them.
    #[inline]
    pub(super) fn contain(self, value: Value<'_>) -> bool {
        self.0 & Self::of(value).0 != 0
    }

    #[inline]
    fn of(value: Value<'_>) -> Self {
        Self(match value.tag() {
            Tag::Null => 1,
            Tag::Bool => 2,
            Tag::Number => 4,
            Tag::String => 8,
            Tag::Array => 16,
            Tag::Object => 32,
        })
    }

    /// Those that are surely of a type.
    const fn of_type(wanted: Type) -> Self {
        Self(match wanted {
            Type::Null => 1,
            Type::Boolean => 2,
            // whether a number is whole is seen from its digits
            Type::Integer => 0,
            Type::Number => 4,
            Type::String => 8,
            Type::Array => 16,
            Type::Object => 32,
        })
    }
}

impl<'s> Node<'s> {
    pub(super) fn new(checks: Vec<Check<'s>>) -> Self {
        let first_holds = match checks.first() {
            Some(Check::Type(wanted)) => Kinds::of_type(*wanted),
            _ => Kinds::default(),
        };
        let settled = match checks.len() {
            0 => Kinds::ALL,
            1 => first_holds,
            _ => Kinds::default(),
        };
        Self {
            checks: checks.into(),
            first_holds,
            settled,
        }
    }

    /// The checks that are not known to hold for this value.
    #[inline]
    pub(super) fn open(&self, value: Value<'_>) -> &[Check<'s>] {
        self.checks
            .get(usize::from(self.first_holds.contain(value))..)
            .unwrap_or_default()
    }
}

/// One keyword, or the four about an object's members together, which one pass over the members answers.
#[derive(Debug)]
pub(super) enum Check<'s> {
    /// The schema `false`.
    Never,
    Type(Type),
    Const(Literal<'s>),
    /// Of strings alone.
    EnumOfText(Names<'s>),
    Enum(Box<[Literal<'s>]>),
    Format(Format),
    /// Boxed: larger than any other check.
    Pattern(Box<Pattern<'s>>),
    MinLength(usize),
    MaxLength(usize),
    Minimum(Number<'s>),
    Maximum(Number<'s>),
    UniqueItems,
    Items(NodeId),
    Members(Box<Members<'s>>),
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

/// A value that `const` or `enum` names.
#[derive(Debug)]
pub(super) enum Literal<'s> {
    /// A string: compared without further ado.
    Text(&'s str),
    /// Anything else.
    Other(Value<'s>),
}

impl<'s> Literal<'s> {
    pub(super) fn new(value: Value<'s>) -> Self {
        value.as_str().map_or(Self::Other(value), Self::Text)
    }

    #[inline]
    pub(super) fn equals(&self, value: Value<'_>) -> bool {
        match self {
            Self::Text(text) => value.is_str(text),
            Self::Other(wanted) => *wanted == value,
        }
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
                        open.extend(members.named.iter().filter_map(|(_, named)| named.schema));
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
            Self::EnumOfText(_) | Self::Enum(_) => Keyword::Enum,
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
