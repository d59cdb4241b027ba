//! A value against a [`Graph`].
//!
//! A message is first asked [whether it is valid](super::fits), and nearly every one is. One that is not is walked once more, and each
//! failure is listed where it stands. What must be known without being listed (does a branch fit? does the `if` hold?) is asked in the
//! quick way, too.

use storybus_json::{Array, Object, Value};
use storybus_protocol::{Source, Violation};

use super::keyword::{Keyword, SchemaName};
use super::members::Members;
use super::node::{Check, Graph, NodeId};
use super::place::Place;
use super::text;

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

impl<'s> Graph<'s> {
    /// Appends what is wrong with a value that stands at `pointer` in the message.
    pub(crate) fn check(&self, value: Value<'_>, pointer: &str, findings: &mut Findings) {
        // A name that repeats is one member to who looks it up and two to who walks, so that only a document without any has one answer.
        if value.is_of_ambiguous_document() || !self.fits(self.root, value) {
            self.list(value, pointer, findings);
        }
    }

    /// The same by one walk over all of it, whether anything is wrong or not.
    ///
    /// A violation is a keyword that fails at a place of the message. Two keywords that fail at one place are two
    /// violations also when they share their name, as the two `required` of an `anyOf` do: an independent validator
    /// lists both, and a reader counts them by what the message says.
    ///
    /// In the order of the message, and at one place in the order of the checks (see [`super::compile`]).
    pub(super) fn list(&self, value: Value<'_>, pointer: &str, findings: &mut Findings) {
        let mut evaluation = Evaluation {
            graph: self,
            findings,
        };
        evaluation.node(self.root, value, &Place::start(pointer));
    }
}

/// One evaluation that lists what fails.
struct Evaluation<'g, 's, 'f> {
    graph: &'g Graph<'s>,
    findings: &'f mut Findings,
}

impl<'g, 's> Evaluation<'g, 's, '_> {
    /// Whether all checks hold.
    fn node(&mut self, id: NodeId, value: Value<'_>, at: &Place<'_>) -> bool {
        let graph = self.graph;
        let open = graph.nodes.get(id.0).map_or(&[][..], |node| node.open(value));
        let mut valid = true;
        for check in open {
            valid &= self.check(check, value, at);
        }
        valid
    }

    fn check(&mut self, check: &'g Check<'s>, value: Value<'_>, at: &Place<'_>) -> bool {
        let valid = match check {
            // What rules through its parts, or has a say in how its own violation is listed.
            Check::AllOf(schemas) => return self.all_of(schemas, value, at),
            Check::AnyOf(branches) => return self.any_of(branches, check, value, at),
            Check::OneOf(branches) => self.one_of(branches, check, value, at),
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
            Check::If {
                condition,
                then,
                otherwise,
            } => {
                let chosen = if self.graph.fits(*condition, value) {
                    then
                } else {
                    otherwise
                };
                return chosen.is_none_or(|schema| self.node(schema, value, at));
            }
            _ => self.graph.holds(check, value),
        };
        if !valid && let Some(keyword) = check.keyword() {
            self.report(keyword, at, keyword.tolerable(), || {
                text::failed(self.graph, check, value)
            });
        }
        valid
    }

    fn all_of(&mut self, schemas: &[NodeId], value: Value<'_>, at: &Place<'_>) -> bool {
        let mut valid = true;
        for schema in schemas {
            valid &= self.node(*schema, value, at);
        }
        valid
    }

    /// All branches' violations; the caller adds its own.
    fn one_of(&mut self, branches: &[NodeId], check: &Check<'s>, value: Value<'_>, at: &Place<'_>) -> bool {
        let valid = self.graph.holds(check, value);
        if !valid {
            self.all_of(branches, value, at);
        }
        valid
    }

    /// All branches' violations, then its own; tolerable together when one branch's all are.
    fn any_of(&mut self, branches: &[NodeId], check: &Check<'s>, value: Value<'_>, at: &Place<'_>) -> bool {
        if self.graph.holds(check, value) {
            return true;
        }
        let before = self.findings.list.len();
        let mut tolerable = false;
        for branch in branches {
            let start = self.findings.list.len();
            self.node(*branch, value, at);
            let own = self.findings.list.get(start..);
            tolerable |= own.is_some_and(|own| own.iter().all(|finding| finding.tolerable));
        }
        self.report(Keyword::AnyOf, at, tolerable, || {
            text::failed(self.graph, check, value)
        });
        if tolerable {
            self.findings.pardon(before);
        }
        false
    }

    fn items(&mut self, schema: NodeId, array: Array<'_>, at: &Place<'_>) -> bool {
        let mut valid = true;
        for (index, element) in array.iter().enumerate() {
            if !self.node(schema, element, &at.element(index)) {
                valid = false;
                if self.findings.full() {
                    break;
                }
            }
        }
        valid
    }

    /// One pass over the members: required ones are ticked off, known ones evaluated, surplus ones listed.
    fn members(&mut self, members: &'g Members<'s>, object: Object<'_>, at: &Place<'_>) -> bool {
        let before = self.findings.list.len();
        let mut valid = true;
        let mut present = 0;
        for (name, value) in object.iter() {
            let mut known = false;
            if let Some(named) = members.named.find(name.as_bytes()) {
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
            if !valid && self.findings.full() {
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
        if let Some(own) = self.findings.list.get_mut(before..) {
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
        let violation = Violation::new(Source::Schema, keyword.rule(schema), message()).at(at.pointer());
        self.findings.push(Finding { violation, tolerable });
    }
}
