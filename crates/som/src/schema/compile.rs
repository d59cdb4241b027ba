//! From a schema file to a [`Graph`].
//!
//! Only what SOM's schemas use is supported, and everything else is an error: a keyword that is read over would be a
//! rule of the standard that the bus does not keep.

use std::collections::{BTreeMap, BTreeSet};

use storybus_json::{Array, Kind, Object, Value};

use super::error::{Defect, SchemaError};
use super::keyword::SchemaName;
use super::members::Members;
use super::names::Names;
use super::node::{Check, Format, Graph, Literal, Node, NodeId, Type};
use super::pattern::Pattern;
use super::place::Place;

type Result<T, E = SchemaError> = std::result::Result<T, E>;

/// Where the schemas that `$ref` may name stand.
const DEFINITIONS: &str = "#/$defs/";

impl<'s> Graph<'s> {
    /// Compiles the root schema of a file.
    pub(crate) fn compile(name: SchemaName, root: Value<'s>) -> Result<Self> {
        let start = Place::start("");
        let definitions = match root.get("$defs") {
            Some(value) => Some(object(value, start.member("$defs"))?),
            None => None,
        };
        let mut compiler = Compiler {
            definitions,
            nodes: Vec::new(),
            references: BTreeMap::new(),
        };
        let root = compiler.schema(root, start)?;
        // Also those that nothing refers to: an unsupported keyword in them is a defect of the file all the same.
        for (name, _) in definitions.iter().flat_map(|definitions| definitions.iter()) {
            compiler.definition(name, start.member("$defs"))?;
        }
        Ok(Self {
            name,
            nodes: compiler.nodes,
            root,
        })
    }
}

struct Compiler<'s> {
    definitions: Option<Object<'s>>,
    nodes: Vec<Node<'s>>,
    /// Definitions by name; `None` while one is being compiled.
    references: BTreeMap<&'s str, Option<NodeId>>,
}

/// The keywords of one schema whose checks need several of them, or must come in a certain order.
#[derive(Default)]
struct Parts<'s> {
    checks: Vec<(Rank, Check<'s>)>,
    required: Vec<&'s str>,
    properties: Vec<(&'s str, NodeId)>,
    patterns: Vec<(Pattern<'s>, NodeId)>,
    closed: bool,
    condition: Option<NodeId>,
    then: Option<NodeId>,
    otherwise: Option<NodeId>,
}

/// The order of checks: what the value is, then its parts, then what combines schemas.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Rank {
    Type,
    Value,
    Parts,
    Combined,
}

impl<'s> Compiler<'s> {
    fn add(&mut self, checks: Vec<Check<'s>>) -> NodeId {
        self.nodes.push(Node::new(checks));
        NodeId(self.nodes.len() - 1)
    }

    fn schema(&mut self, value: Value<'s>, at: Place<'_>) -> Result<NodeId> {
        match value.kind() {
            Kind::Bool(true) => Ok(self.add(Vec::new())),
            Kind::Bool(false) => Ok(self.add(vec![Check::Never])),
            Kind::Object(schema) => {
                let mut parts = Parts::default();
                for (keyword, value) in schema.iter() {
                    self.keyword(&mut parts, keyword, value, at.member(keyword))?;
                }
                let checks = parts.checks(&self.nodes, at)?;
                match &checks[..] {
                    // nothing but a reference
                    [Check::AllOf(schemas)] if schemas.len() == 1 => Ok(schemas[0]),
                    _ => Ok(self.add(checks)),
                }
            }
            _ => Err(defect(at, Defect::NotASchema)),
        }
    }

    fn keyword(
        &mut self,
        parts: &mut Parts<'s>,
        keyword: &str,
        value: Value<'s>,
        at: Place<'_>,
    ) -> Result<()> {
        let (rank, check) = match keyword {
            // Annotations: they assert nothing. Definitions are compiled from the root.
            "$schema" | "$id" | "title" | "description" | "$comment" | "examples" | "$defs" => return Ok(()),

            "type" => (Rank::Type, Check::Type(type_named(string(value, at)?, at)?)),
            "const" => (Rank::Value, Check::Const(Literal::new(value))),
            "enum" => (Rank::Value, enumerated(array(value, at)?)),
            "format" => match string(value, at)? {
                "uuid" => (Rank::Value, Check::Format(Format::Uuid)),
                "date-time" => (Rank::Value, Check::Format(Format::DateTime)),
                // An annotation on the bus: what a URI is differs too much between implementations to refuse news.
                "uri" => return Ok(()),
                _ => return Err(defect(at, Defect::UnsupportedValue)),
            },
            "pattern" => (
                Rank::Value,
                Check::Pattern(Box::new(pattern(string(value, at)?, at)?)),
            ),
            "minLength" => (Rank::Value, Check::MinLength(count(value, at)?)),
            "maxLength" => (Rank::Value, Check::MaxLength(count(value, at)?)),
            "minimum" => (Rank::Value, Check::Minimum(number(value, at)?)),
            "maximum" => (Rank::Value, Check::Maximum(number(value, at)?)),
            "uniqueItems" if boolean(value, at)? => (Rank::Value, Check::UniqueItems),
            "uniqueItems" => return Ok(()),
            "items" => (Rank::Parts, Check::Items(self.schema(value, at)?)),

            "allOf" => (Rank::Combined, Check::AllOf(self.schemas(value, at)?)),
            "anyOf" => (Rank::Combined, Check::AnyOf(self.schemas(value, at)?)),
            "oneOf" => (Rank::Combined, Check::OneOf(self.schemas(value, at)?)),
            "not" => (Rank::Combined, Check::Not(self.schema(value, at)?)),
            "$ref" => {
                let name = string(value, at)?.strip_prefix(DEFINITIONS);
                let name = name.ok_or_else(|| defect(at, Defect::UnresolvedReference))?;
                (Rank::Combined, Check::AllOf([self.definition(name, at)?].into()))
            }

            "if" => return self.schema(value, at).map(|id| parts.condition = Some(id)),
            "then" => return self.schema(value, at).map(|id| parts.then = Some(id)),
            "else" => return self.schema(value, at).map(|id| parts.otherwise = Some(id)),
            "required" => {
                for name in array(value, at)?.iter() {
                    parts.required.push(string(name, at)?);
                }
                return Ok(());
            }
            "properties" => {
                for (name, value) in object(value, at)?.iter() {
                    parts
                        .properties
                        .push((name, self.schema(value, at.member(name))?));
                }
                return Ok(());
            }
            "patternProperties" => {
                for (name, value) in object(value, at)?.iter() {
                    parts
                        .patterns
                        .push((pattern(name, at)?, self.schema(value, at.member(name))?));
                }
                return Ok(());
            }
            // Nothing but a boolean: a schema's own violations would have no place in "once per surplus member".
            "additionalProperties" => {
                parts.closed = !boolean(value, at)?;
                return Ok(());
            }
            _ => return Err(defect(at, Defect::UnknownKeyword(keyword.to_owned()))),
        };
        parts.checks.push((rank, check));
        Ok(())
    }

    fn schemas(&mut self, value: Value<'s>, at: Place<'_>) -> Result<Box<[NodeId]>> {
        let schemas = array(value, at)?;
        schemas
            .iter()
            .enumerate()
            .map(|(index, value)| self.schema(value, at.element(index)))
            .collect()
    }

    /// The node of a definition; compiled once, however many refer to it.
    fn definition(&mut self, name: &str, at: Place<'_>) -> Result<NodeId> {
        let found = self
            .definitions
            .and_then(|definitions| definitions.iter().find(|(known, _)| *known == name));
        let (name, value) = found.ok_or_else(|| defect(at, Defect::UnresolvedReference))?;
        match self.references.insert(name, None) {
            Some(Some(id)) => {
                self.references.insert(name, Some(id));
                Ok(id)
            }
            Some(None) => Err(defect(at, Defect::RecursiveReference)),
            None => {
                let start = Place::start("/$defs");
                let id = self.schema(value, start.member(name))?;
                self.references.insert(name, Some(id));
                Ok(id)
            }
        }
    }
}

impl<'s> Parts<'s> {
    fn checks(mut self, nodes: &[Node<'s>], at: Place<'_>) -> Result<Vec<Check<'s>>> {
        if let Some(condition) = self.condition {
            let check = Check::If {
                condition,
                then: self.then,
                otherwise: self.otherwise,
            };
            self.checks.push((Rank::Combined, check));
        } else if self.then.is_some() || self.otherwise.is_some() {
            return Err(defect(at, Defect::UnsupportedValue));
        }
        if self.required.len() > Members::MOST_REQUIRED {
            return Err(defect(at, Defect::UnsupportedValue));
        }
        if self.closed
            || !(self.required.is_empty() && self.properties.is_empty() && self.patterns.is_empty())
        {
            let members = Members::new(&self.properties, self.required, self.patterns, self.closed, nodes);
            self.checks.push((Rank::Parts, Check::Members(Box::new(members))));
        }
        // Stable: within a rank the file's order stays.
        self.checks.sort_by_key(|(rank, _)| *rank);
        Ok(self.checks.into_iter().map(|(_, check)| check).collect())
    }
}

fn enumerated<'s>(allowed: Array<'s>) -> Check<'s> {
    let texts: Option<Vec<&str>> = allowed.iter().map(Value::as_str).collect();
    match texts {
        Some(mut texts) => {
            let mut seen = BTreeSet::new();
            texts.retain(|text| seen.insert(*text));
            Check::EnumOfText(Names::new(texts.into_iter().map(|text| (text, ()))))
        }
        None => Check::Enum(allowed.iter().map(Literal::new).collect()),
    }
}

fn defect(at: Place<'_>, defect: Defect) -> SchemaError {
    SchemaError {
        at: at.pointer(),
        defect,
    }
}

fn unsupported<T>(value: Option<T>, at: Place<'_>) -> Result<T> {
    value.ok_or_else(|| defect(at, Defect::UnsupportedValue))
}

fn string<'s>(value: Value<'s>, at: Place<'_>) -> Result<&'s str> {
    unsupported(value.as_str(), at)
}

fn array<'s>(value: Value<'s>, at: Place<'_>) -> Result<storybus_json::Array<'s>> {
    unsupported(value.as_array(), at)
}

fn object<'s>(value: Value<'s>, at: Place<'_>) -> Result<Object<'s>> {
    unsupported(value.as_object(), at)
}

fn number<'s>(value: Value<'s>, at: Place<'_>) -> Result<storybus_json::Number<'s>> {
    unsupported(value.as_number(), at)
}

fn boolean(value: Value<'_>, at: Place<'_>) -> Result<bool> {
    match value.kind() {
        Kind::Bool(value) => Ok(value),
        _ => Err(defect(at, Defect::UnsupportedValue)),
    }
}

fn count(value: Value<'_>, at: Place<'_>) -> Result<usize> {
    unsupported(number(value, at)?.text().parse().ok(), at)
}

fn type_named(name: &str, at: Place<'_>) -> Result<Type> {
    Ok(match name {
        "null" => Type::Null,
        "boolean" => Type::Boolean,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "string" => Type::String,
        "array" => Type::Array,
        "object" => Type::Object,
        _ => return Err(defect(at, Defect::UnsupportedValue)),
    })
}

fn pattern<'s>(text: &'s str, at: Place<'_>) -> Result<Pattern<'s>> {
    Pattern::compile(text).map_err(|reason| defect(at, Defect::Pattern(reason)))
}
