//! A value against a [`Graph`].
//!
//! One walk over the message answers everything: nothing is allocated until something fails, and each failure is
//! listed where it stands. What must be known without being listed (does a branch fit? does the `if` hold?) is
//! evaluated quietly, and ends at the first failure.

use storybus_json::{Array, Kind, Object, Value};
use storybus_protocol::{Source, Violation};

use super::keyword::{Keyword, SchemaName};
use super::members::Members;
use super::node::{Check, Format, Graph, NodeId, Type};
use super::place::Place;
use super::text;
use crate::rfc3339::Instant;
use crate::uuid;

/// A violation, and whether a message of a later minor version may have it.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) violation: Violation,
    pub(crate) tolerable: bool,
}

/// How many violations are listed, at the most, of each kind: refused and tolerated.
///
/// A body of 240 kB can break a rule half a million times; the list of that would be 70 MB. Nobody reads past the first
/// thousand, and a walk that has found so many reasons to refuse may end.
pub(crate) const LISTED: usize = 1000;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) list: Vec<Finding>,
    /// Whether the message is of a version that may have tolerable ones.
    tolerant: bool,
    /// How many of the list refuse the message.
    refusing: usize,
}

impl Findings {
    pub(crate) fn new(tolerant: bool) -> Self {
        Self {
            tolerant,
            ..Self::default()
        }
    }

    fn refuses(&self, finding: &Finding) -> bool {
        !(self.tolerant && finding.tolerable)
    }

    fn push(&mut self, finding: Finding) {
        self.refusing += usize::from(self.refuses(&finding));
        self.list.push(finding);
    }

    /// What was listed from `start` on is tolerable after all.
    fn pardon(&mut self, start: usize) {
        for finding in self.list.iter_mut().skip(start) {
            if self.tolerant && !finding.tolerable {
                self.refusing -= 1;
            }
            finding.tolerable = true;
        }
    }

    /// Whether there is no need to look further: the message is refused, and more would not be listed.
    fn full(&self) -> bool {
        self.refusing > LISTED
    }
}

impl Graph<'_> {
    /// Appends what is wrong with a value that stands at `pointer` in the message.
    ///
    /// A violation is a keyword that fails at a place of the message. Two keywords that fail at one place are two
    /// violations also when they share their name, as the two `required` of an `anyOf` do: an independent validator
    /// lists both, and a reader counts them by what the message says.
    ///
    /// In the order of the message, and at one place in the order of the checks (see [`super::compile`]).
    pub(crate) fn check(&self, value: Value<'_>, pointer: &str, findings: &mut Findings) {
        let mut evaluation = Evaluation {
            graph: self,
            findings: Some(findings),
        };
        evaluation.node(self.root, value, &Place::start(pointer));
    }
}

/// One evaluation. Without a list it is quiet: it only answers whether the value is valid.
struct Evaluation<'g, 'f> {
    graph: &'g Graph<'g>,
    findings: Option<&'f mut Findings>,
}

impl<'g> Evaluation<'g, '_> {
    /// Whether all checks hold. A quiet evaluation ends at the first that does not.
    #[inline]
    fn node(&mut self, id: NodeId, value: Value<'_>, at: &Place<'_>) -> bool {
        let graph = self.graph;
        let open = graph.nodes.get(id.0).map_or(&[][..], |node| node.open(value));
        open.is_empty() || self.checks(open, value, at)
    }

    #[inline(never)]
    fn checks(&mut self, checks: &'g [Check<'g>], value: Value<'_>, at: &Place<'_>) -> bool {
        let mut valid = true;
        for check in checks {
            if !self.check(check, value, at) {
                valid = false;
                if self.findings.is_none() {
                    break;
                }
            }
        }
        valid
    }

    fn check(&mut self, check: &'g Check<'g>, value: Value<'_>, at: &Place<'_>) -> bool {
        let valid = match check {
            Check::Never => false,
            Check::Type(wanted) => is_of_type(value, *wanted),
            Check::Const(wanted) => wanted.equals(value),
            Check::EnumOfText(allowed) => value.as_str().is_some_and(|text| allowed.find(text).is_some()),
            Check::Enum(allowed) => allowed.iter().any(|literal| literal.equals(value)),
            Check::Format(Format::Uuid) => of_text(value, uuid::is_uuid),
            Check::Format(Format::DateTime) => of_text(value, |text| Instant::parse(text).is_some()),
            Check::Pattern(pattern) => of_text(value, |text| pattern.matches(text)),
            Check::MinLength(least) => of_text(value, |text| text::has_at_least(text, *least)),
            Check::MaxLength(most) => of_text(value, |text| !text::has_at_least(text, *most + 1)),
            Check::Minimum(least) => value.as_number().is_none_or(|found| found >= *least),
            Check::Maximum(most) => value.as_number().is_none_or(|found| found <= *most),
            Check::UniqueItems => value.as_array().is_none_or(are_unique),
            Check::Not(unwanted) => !self.fits(*unwanted, value),
            Check::OneOf(branches) => self.one_of(branches, value, at),

            // What rules through its parts, or has a say in how its own violation is listed.
            Check::AnyOf(branches) => return self.any_of(branches, check, value, at),
            Check::Members(members) => {
                return value
                    .as_object()
                    .is_none_or(|object| self.members(members, object, at));
            }
            Check::Items(schema) => {
                return value
                    .as_array()
                    .is_none_or(|array| self.items(*schema, array, at));
            }
            Check::AllOf(schemas) => return self.all_of(schemas, value, at),
            Check::If {
                condition,
                then,
                otherwise,
            } => {
                let chosen = if self.fits(*condition, value) {
                    then
                } else {
                    otherwise
                };
                return chosen.is_none_or(|schema| self.node(schema, value, at));
            }
        };
        if !valid && let Some(keyword) = check.keyword() {
            self.report(keyword, at, keyword.tolerable(), || {
                text::failed(self.graph, check, value)
            });
        }
        valid
    }

    /// Whether a value is valid, without a word.
    fn fits(&self, id: NodeId, value: Value<'_>) -> bool {
        Evaluation {
            graph: self.graph,
            findings: None,
        }
        .node(id, value, &Place::start(""))
    }

    fn all_of(&mut self, schemas: &[NodeId], value: Value<'_>, at: &Place<'_>) -> bool {
        let mut valid = true;
        for schema in schemas {
            valid &= self.node(*schema, value, at);
        }
        valid
    }

    /// All branches' violations; the caller adds its own.
    fn one_of(&mut self, branches: &[NodeId], value: Value<'_>, at: &Place<'_>) -> bool {
        if branches
            .iter()
            .filter(|branch| self.fits(**branch, value))
            .count()
            == 1
        {
            return true;
        }
        if self.findings.is_some() {
            self.all_of(branches, value, at);
        }
        false
    }

    /// All branches' violations, then its own; tolerable together when one branch's all are.
    fn any_of(&mut self, branches: &[NodeId], check: &Check<'_>, value: Value<'_>, at: &Place<'_>) -> bool {
        if branches.iter().any(|branch| self.fits(*branch, value)) {
            return true;
        }
        let listed = |evaluation: &Self| evaluation.findings.as_ref().map_or(0, |found| found.list.len());
        let before = listed(self);
        let mut tolerable = false;
        if self.findings.is_some() {
            for branch in branches {
                let start = listed(self);
                self.node(*branch, value, at);
                let own = self.findings.as_deref().and_then(|found| found.list.get(start..));
                tolerable |= own.is_some_and(|own| own.iter().all(|finding| finding.tolerable));
            }
        }
        self.report(Keyword::AnyOf, at, tolerable, || {
            text::failed(self.graph, check, value)
        });
        if tolerable && let Some(findings) = &mut self.findings {
            findings.pardon(before);
        }
        false
    }

    fn items(&mut self, schema: NodeId, array: Array<'_>, at: &Place<'_>) -> bool {
        let mut valid = true;
        for (index, element) in array.iter().enumerate() {
            if !self.node(schema, element, &at.element(index)) {
                valid = false;
                if self.findings.as_ref().is_none_or(|found| found.full()) {
                    break;
                }
            }
        }
        valid
    }

    fn members(&mut self, members: &'g Members<'g>, object: Object<'_>, at: &Place<'_>) -> bool {
        // What is listed is in the message's order; what is only asked may be asked in the quicker way.
        if self.findings.is_none() && members.are_few() {
            return members.required.iter().all(|name| object.get(name).is_some())
                && members
                    .named
                    .iter()
                    .all(|named| match (named.schema, object.get(named.name)) {
                        (Some(schema), Some(value)) => self.node(schema, value, at),
                        _ => true,
                    });
        }
        self.all_members(members, object, at)
    }

    /// One pass over the members: required ones are ticked off, known ones evaluated, surplus ones listed.
    fn all_members(&mut self, members: &'g Members<'g>, object: Object<'_>, at: &Place<'_>) -> bool {
        let before = self.findings.as_ref().map_or(0, |found| found.list.len());
        let mut valid = true;
        let mut present = 0;
        for (name, value) in object.iter() {
            let mut known = false;
            if let Some(named) = members.find(name) {
                present |= named.required;
                if let Some(schema) = named.schema {
                    known = true;
                    valid &= self.node(schema, value, &at.member(name));
                }
            }
            for (pattern, schema) in &members.patterns {
                if pattern.matches(name) {
                    known = true;
                    valid &= self.node(*schema, value, &at.member(name));
                }
            }
            if members.closed && !known {
                valid = false;
                self.report(
                    Keyword::AdditionalProperties,
                    at,
                    Keyword::AdditionalProperties.tolerable(),
                    || text::surplus(members, name),
                );
            }
            if !valid && self.findings.as_ref().is_none_or(|found| found.full()) {
                return false;
            }
        }
        let mut missing = 0;
        for (bit, name) in members.required.iter().enumerate() {
            if present & (1 << bit) == 0 {
                missing += 1;
                self.report(Keyword::Required, at, false, || text::missing(name));
            }
        }
        // What is missing is known only at the end, and read best at the front.
        if let Some(own) = self
            .findings
            .as_deref_mut()
            .and_then(|found| found.list.get_mut(before..))
        {
            own.rotate_right(missing);
        }
        valid && missing == 0
    }

    fn report(
        &mut self,
        keyword: Keyword,
        at: &Place<'_>,
        tolerable: bool,
        message: impl FnOnce() -> String,
    ) {
        let schema: SchemaName = self.graph.name;
        if let Some(findings) = &mut self.findings {
            let violation = Violation::new(Source::Schema, keyword.rule(schema), message()).at(at.pointer());
            findings.push(Finding { violation, tolerable });
        }
    }
}

fn is_of_type(value: Value<'_>, wanted: Type) -> bool {
    match value.kind() {
        Kind::Null => wanted == Type::Null,
        Kind::Bool(_) => wanted == Type::Boolean,
        Kind::Number(number) => wanted == Type::Number || wanted == Type::Integer && number.is_integer(),
        Kind::String(_) => wanted == Type::String,
        Kind::Array(_) => wanted == Type::Array,
        Kind::Object(_) => wanted == Type::Object,
    }
}

/// What is asked of strings holds for everything else.
fn of_text(value: Value<'_>, holds: impl FnOnce(&str) -> bool) -> bool {
    value.as_str().is_none_or(holds)
}

/// Whether no two elements are equal as JSON values: a few strings each with each, else by sorting their canonical forms.
fn are_unique(array: Array<'_>) -> bool {
    /// More are quicker to sort.
    const FEW: usize = 8;
    if array.len() < 2 {
        return true;
    }
    if array.len() <= FEW && array.iter().all(|element| element.as_str().is_some()) {
        let mut texts = array.iter().map(Value::as_str);
        let mut seen = [None; FEW];
        return (0..)
            .map_while(|index| Some((index, texts.next()?)))
            .all(|(index, text)| {
                let new = !seen.iter().take(index).any(|other| *other == text);
                if let Some(place) = seen.get_mut(index) {
                    *place = text;
                }
                new
            });
    }
    let mut canonical = Vec::new();
    let mut ends = Vec::with_capacity(array.len());
    for element in array.iter() {
        element.write_canonical(&mut canonical);
        ends.push(canonical.len());
    }
    let mut start = 0;
    let mut forms: Vec<&[u8]> = Vec::with_capacity(ends.len());
    for end in ends {
        forms.extend(canonical.get(start..end));
        start = end;
    }
    forms.sort_unstable();
    forms.windows(2).all(|pair| pair.first() != pair.last())
}
