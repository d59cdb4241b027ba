//! Whether a value is valid, without a word about why not.
//!
//! Nearly every message is, so this is the walk that a publish pays for, and it carries nothing that only a violation needs: no list, no
//! places. It ends at the first check that does not hold; what is wrong is then for [`super::evaluate`] to say, in a walk of its own.
//!
//! Most of what it does is entering functions and finding names. So a value of a kind that its schema says no more of is not entered at
//! all, and the functions that are entered for every other one leave the work to others (`inline(never)`), since a function makes room for
//! all that it may do whenever it is entered. Written into one another they took markedly longer.

use storybus_json::{Kind, Number, Object, Value};

use super::members::{Members, Named};
use super::names::Names;
use super::node::{Check, Format, Graph, Literal, NodeId, Type};
use super::text;
use crate::rfc3339::is_date_time;
use crate::uuid::is_uuid;

impl<'s> Graph<'s> {
    /// Whether all checks of a schema hold.
    #[inline(never)]
    pub(super) fn fits(&self, id: NodeId, value: Value<'_>) -> bool {
        match self.nodes.get(id.0).map_or(&[][..], |node| node.open(value)) {
            [] => true,
            [only] => self.holds(only, value),
            open => self.all_hold(open, value),
        }
    }

    /// The last first: what is said of the parts tells sooner than `uniqueItems` that a long list is wrong.
    #[inline(never)]
    fn all_hold(&self, checks: &[Check<'s>], value: Value<'_>) -> bool {
        checks.iter().rev().all(|check| self.holds(check, value))
    }

    /// Whether a single check holds.
    #[inline(never)]
    pub(super) fn holds(&self, check: &Check<'s>, value: Value<'_>) -> bool {
        match check {
            Check::Never => false,
            Check::Type(wanted) => is_of_type(value, *wanted),
            Check::Const(wanted) => is_equal(value, wanted),
            Check::EnumOfText(allowed) => is_among(value, allowed),
            Check::Enum(allowed) => is_any_of(value, allowed),
            Check::Format(Format::Uuid) => of_text(value, is_uuid),
            Check::Format(Format::DateTime) => of_text(value, is_date_time),
            Check::Pattern(pattern) => of_text(value, |text| pattern.matches(text)),
            Check::MinLength(least) => of_text(value, |text| text::has_at_least(text, *least)),
            Check::MaxLength(most) => of_text(value, |text| !text::has_at_least(text, *most + 1)),
            Check::Minimum(least) => of_number(value, |found| found >= *least),
            Check::Maximum(most) => of_number(value, |found| found <= *most),
            Check::UniqueItems => are_unique(value),
            Check::Not(unwanted) => self.fits_not(*unwanted, value),
            Check::AllOf(schemas) => self.fits_all(schemas, value),
            Check::AnyOf(branches) => self.fits_any(branches, value),
            Check::OneOf(branches) => self.fits_one(branches, value),
            Check::Items(schema) => self.items_fit(*schema, value),
            Check::Members(members) => self.members_fit(members, value),
            Check::If {
                condition,
                then,
                otherwise,
            } => self.fits_if(*condition, [*then, *otherwise], value),
        }
    }

    #[inline(never)]
    fn fits_all(&self, schemas: &[NodeId], value: Value<'_>) -> bool {
        schemas.iter().all(|schema| self.fits(*schema, value))
    }

    #[inline(never)]
    fn fits_any(&self, branches: &[NodeId], value: Value<'_>) -> bool {
        branches.iter().any(|branch| self.fits(*branch, value))
    }

    #[inline(never)]
    fn fits_one(&self, branches: &[NodeId], value: Value<'_>) -> bool {
        branches
            .iter()
            .filter(|branch| self.fits(**branch, value))
            .count()
            == 1
    }

    #[inline(never)]
    fn fits_not(&self, unwanted: NodeId, value: Value<'_>) -> bool {
        !self.fits(unwanted, value)
    }

    #[inline(never)]
    fn fits_if(&self, condition: NodeId, [then, otherwise]: [Option<NodeId>; 2], value: Value<'_>) -> bool {
        let chosen = if self.fits(condition, value) {
            then
        } else {
            otherwise
        };
        chosen.is_none_or(|schema| self.fits(schema, value))
    }

    #[inline(never)]
    fn items_fit(&self, schema: NodeId, value: Value<'_>) -> bool {
        let (Some(node), Some(array)) = (self.nodes.get(schema.0), value.as_array()) else {
            return true;
        };
        array
            .iter()
            .all(|element| node.settled.contain(element) || self.fits(schema, element))
    }

    #[inline(never)]
    fn members_fit(&self, members: &Members<'s>, value: Value<'_>) -> bool {
        match value.as_object() {
            None => true,
            Some(object) if members.are_few() => self.few_members_fit(members, object),
            Some(object) if members.patterns.is_empty() => self.named_members_fit(members, object),
            Some(object) => self.patterned_members_fit(members, object),
        }
    }

    /// Looks up the few names that matter in the object, instead of all its names here.
    #[inline(never)]
    fn few_members_fit(&self, members: &Members<'s>, object: Object<'_>) -> bool {
        members.named.iter().all(|(name, named)| match object.get(name) {
            Some(value) => self.fits_named(named, value),
            None => named.required == 0,
        })
    }

    #[inline(never)]
    fn named_members_fit(&self, members: &Members<'s>, object: Object<'_>) -> bool {
        let mut present = 0;
        let mut next = 0;
        for (name, value) in object.iter_bytes() {
            match members.named.find_in_order(&mut next, name) {
                Some(named) => {
                    present |= named.required;
                    if !self.fits_named(named, value) {
                        return false;
                    }
                }
                None if members.closed => return false,
                None => {}
            }
        }
        present == members.all_required
    }

    /// What has no schema and is settled for no kind of value is surplus.
    #[inline]
    fn fits_named(&self, named: &Named, value: Value<'_>) -> bool {
        named.settled.contain(value) || named.schema.is_some_and(|schema| self.fits(schema, value))
    }

    #[inline(never)]
    fn patterned_members_fit(&self, members: &Members<'s>, object: Object<'_>) -> bool {
        let mut present = 0;
        let fit = object.iter().all(|(name, value)| {
            let named = members.named.find(name.as_bytes());
            present |= named.map_or(0, |named| named.required);
            let own = named.and_then(|named| named.schema);
            let patterns = members
                .patterns
                .iter()
                .filter(|(pattern, _)| pattern.matches(name));
            let mut schemas = own
                .into_iter()
                .chain(patterns.map(|(_, schema)| *schema))
                .peekable();
            (schemas.peek().is_some() || !members.closed) && schemas.all(|schema| self.fits(schema, value))
        });
        fit && present == members.all_required
    }
}

#[inline(never)]
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

#[inline(never)]
fn is_equal(value: Value<'_>, wanted: &Literal<'_>) -> bool {
    wanted.equals(value)
}

#[inline(never)]
fn is_any_of(value: Value<'_>, allowed: &[Literal<'_>]) -> bool {
    allowed.iter().any(|literal| literal.equals(value))
}

#[inline(never)]
fn is_among(value: Value<'_>, allowed: &Names<'_>) -> bool {
    value.as_bytes().is_some_and(|text| allowed.find(text).is_some())
}

/// What is asked of strings holds for everything else.
#[inline(never)]
fn of_text(value: Value<'_>, holds: impl FnOnce(&str) -> bool) -> bool {
    value.as_str().is_none_or(holds)
}

/// What is asked of numbers holds for everything else.
#[inline(never)]
fn of_number(value: Value<'_>, holds: impl FnOnce(Number<'_>) -> bool) -> bool {
    value.as_number().is_none_or(holds)
}

/// Whether no two elements are equal as JSON values: a few each with each, if a glance tells them apart, else by sorting their canonical
/// forms.
#[inline(never)]
fn are_unique(value: Value<'_>) -> bool {
    /// More are quicker to sort.
    const FEW: usize = 8;
    let Some(array) = value.as_array().filter(|array| array.len() > 1) else {
        return true;
    };
    let all_differ = || {
        let mut elements = array.iter().enumerate();
        elements.all(|(index, one)| {
            array
                .iter()
                .take(index)
                .all(|other| differ_at_a_glance(one, other))
        })
    };
    if array.len() <= FEW && all_differ() {
        return true;
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

/// Whether two values are surely not equal: two strings that differ, or two objects, of more members the one than the other, or whose first few
/// members have the same names in the same order until two strings differ.
fn differ_at_a_glance(one: Value<'_>, other: Value<'_>) -> bool {
    const GLANCE: usize = 4;
    if let (Some(one), Some(other)) = (one.as_bytes(), other.as_bytes()) {
        return one != other;
    }
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return false;
    };
    if one.len() != other.len() {
        return true;
    }
    one.iter_bytes()
        .zip(other.iter_bytes())
        .take(GLANCE)
        .take_while(|((one, _), (other, _))| one == other)
        .any(
            |((_, one), (_, other))| match (one.as_bytes(), other.as_bytes()) {
                (Some(one), Some(other)) => one != other,
                _ => false,
            },
        )
}

#[cfg(test)]
mod tests {
    use storybus_json::Document;

    use super::are_unique;
    use crate::Family;
    use crate::schema::{Findings, SchemaName, graph};

    const MESSAGES: [&str; 7] = [
        include_str!("../../tests/examples/story.context-full.json"),
        include_str!("../../tests/examples/telling.started.json"),
        include_str!("../../tests/examples/link.committed.json"),
        include_str!("../../tests/examples/link.gate_changed.json"),
        include_str!("../../tests/examples/delivery.media_available.json"),
        include_str!("../../tests/examples/skill.warning.raised.json"),
        include_str!("../../tests/examples/system.audit.json"),
    ];

    /// Every way to leave out one value, to put another in its place or one beside it, at any depth.
    fn mutations(value: &serde_json::Value) -> Vec<serde_json::Value> {
        let others = [
            "null", "true", "-1", "0.5", "\"\"", "\"x-é\"", "[]", "[1,1]", "{}",
        ];
        let mut all: Vec<serde_json::Value> = others.map(|other| other.parse().unwrap()).into();
        if let Some(object) = value.as_object() {
            for (name, inner) in object {
                let with = |inner: Option<serde_json::Value>| {
                    let mut object = object.clone();
                    match inner {
                        Some(inner) => object.insert(name.clone(), inner),
                        None => object.remove(name),
                    };
                    object.into()
                };
                all.push(with(None));
                all.extend(mutations(inner).into_iter().map(|inner| with(Some(inner))));
            }
            let mut object = object.clone();
            object.insert("an_unknown_name".to_owned(), 1.into());
            all.push(object.into());
        }
        for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
            all.extend(mutations(inner).into_iter().map(|inner| {
                let mut array = value.clone();
                array[index] = inner;
                array
            }));
        }
        all
    }

    #[test]
    fn what_fits_is_what_nothing_is_listed_of() {
        let (mut fit, mut unfit) = (0, 0);
        for message in MESSAGES {
            let message: serde_json::Value = message.parse().unwrap();
            let family = Family::of(message["message_type"].as_str().unwrap()).unwrap();
            let payload = (SchemaName::Payload(family), &message["payload"]);
            for (schema, value) in [(SchemaName::Envelope, &message), payload] {
                let graph = graph(schema);
                for mutation in mutations(value) {
                    let text = mutation.to_string();
                    let document = Document::parse(text.as_bytes()).unwrap();
                    let mut findings = Findings::new(false);
                    graph.list(document.root(), "", &mut findings);
                    let fits = graph.fits(graph.root, document.root());
                    assert_eq!(fits, findings.list.is_empty(), "{schema:?}: {text}");
                    *if fits { &mut fit } else { &mut unfit } += 1;
                }
            }
        }
        assert!(fit > 1000 && unfit > 1000, "{fit} {unfit}");
    }

    #[test]
    fn a_few_elements_are_told_apart_as_many_are() {
        let object = |members: &str| format!("{{{members}}}");
        let elements = [
            object(r#""a":"x","b":"y""#),
            object(r#""b":"y","a":"x""#),
            object(r#""a":"x","b":"z""#),
            object(r#""a":"x","b":1"#),
            object(r#""b":1.0,"\u0061":"x""#),
            object(r#""a":"x""#),
            object(r#""a":"x","b":"y","c":"","d":"","e":"z""#),
            object(r#""a":"x","b":"y","c":"","d":"","e":"y""#),
            object(""),
            r#""x""#.to_owned(),
            r#""\u0078""#.to_owned(),
            r#"["x"]"#.to_owned(),
            "1".to_owned(),
            "10e-1".to_owned(),
        ];
        let padding: Vec<String> = (100..120).map(|n| n.to_string()).collect();
        for one in &elements {
            for other in &elements {
                let unique = |text: String| are_unique(Document::parse(text.as_bytes()).unwrap().root());
                let few = unique(format!("[{one},{other}]"));
                let many = unique(format!("[{},{one},{other}]", padding.join(",")));
                assert_eq!(few, many, "{one} {other}");
            }
        }
    }
}
