//! What a violation says to people.
//!
//! Messages end up in logs and on consoles, so they tell what the schema asks and of which kind the value is, never the
//! value itself. Member names are the exception, since a surplus one cannot be described without: cut to a length.

use std::fmt::Write;

use storybus_json::{Kind, Value};

use super::members::Members;
use super::node::{Check, Format, Graph, Literal, NodeId, Type};

/// The longest part of a member's name that a message repeats, in characters.
const LONGEST_NAME: usize = 40;

/// A member's name between backticks, cut, and with control characters escaped.
pub(crate) fn quoted(name: &str) -> String {
    let mut out = String::from("`");
    for (index, c) in name.chars().enumerate() {
        if index == LONGEST_NAME {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    out.push('`');
    out
}

/// Whether a text has that many characters; looks no further than it must.
pub(super) fn has_at_least(text: &str, count: usize) -> bool {
    // A character is one to four bytes.
    text.len() >= count && (text.len() / 4 >= count || text.chars().take(count).count() == count)
}

/// A required member is not there.
pub(super) fn missing(name: &str) -> String {
    format!("the member `{name}` is missing; add it")
}

/// A member is there that the schema does not know.
pub(super) fn surplus(members: &Members<'_>, name: &str) -> String {
    let name = quoted(name);
    if members.patterns.is_empty() {
        return format!(
            "the member {name} is not known here; remove it, or carry what is your own in the message's `extensions`"
        );
    }
    let mut out = format!("the member {name} is not allowed here; a name must match ");
    join(&mut out, members.patterns.iter().map(|(pattern, _)| pattern.text));
    out
}

/// A check does not hold.
pub(super) fn failed(graph: &Graph<'_>, check: &Check<'_>, value: Value<'_>) -> String {
    match check {
        Check::Type(wanted) => format!(
            "expected {}, found {}",
            type_text(*wanted),
            kind_text(value, *wanted)
        ),
        Check::Never => String::from("this member must not be here; remove it"),
        Check::Const(wanted) => one_of(std::iter::once(written(wanted)), value),
        Check::EnumOfText(allowed) => one_of(allowed.iter().map(|(text, ())| text.to_owned()), value),
        Check::Enum(allowed) => one_of(allowed.iter().map(written), value),
        Check::Format(Format::Uuid) => {
            String::from("expected a UUID, such as 0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07, found other text")
        }
        Check::Format(Format::DateTime) => String::from(
            "expected a date and time with its zone, such as 2026-09-11T16:41:00Z, found other text",
        ),
        Check::Pattern(pattern) => format!("expected text that matches `{}`, found other text", pattern.text),
        Check::MinLength(least) => format!("expected {least} characters or more, found {}", length(value)),
        Check::MaxLength(most) => format!("expected {most} characters or less, found {}", length(value)),
        Check::Minimum(least) => format!("expected {least} or more, found a lesser number"),
        Check::Maximum(most) => format!("expected {most} or less, found a greater number"),
        Check::UniqueItems => String::from("two elements are equal; each may stand here once"),
        Check::AnyOf(_) => String::from("none of the allowed forms fits; mend what is said of one of them"),
        Check::OneOf(_) => String::from("exactly one of the allowed forms must fit"),
        Check::Not(unwanted) => {
            let names = required_names(graph, *unwanted);
            if names.is_empty() {
                return String::from("what stands here is not allowed");
            }
            let mut out = String::new();
            join(&mut out, names);
            out.push_str(" must not be here, as the other members are; remove it");
            out
        }
        // What rules through its parts alone.
        Check::Items(_) | Check::Members(_) | Check::AllOf(_) | Check::If { .. } => String::new(),
    }
}

fn written(literal: &Literal<'_>) -> String {
    match literal {
        Literal::Text(text) => (*text).to_owned(),
        Literal::Other(value) => format!("{value:?}"),
    }
}

fn one_of(allowed: impl Iterator<Item = String>, value: Value<'_>) -> String {
    let mut out = String::from("expected ");
    join(&mut out, allowed);
    out.push_str(", found ");
    out.push_str(match value.kind() {
        Kind::String(_) => "other text",
        _ => kind_text(value, Type::String),
    });
    out
}

/// The members that a schema asks for, itself or in its branches.
fn required_names<'s>(graph: &Graph<'s>, id: NodeId) -> Vec<&'s str> {
    let mut names = Vec::new();
    for check in graph.nodes.get(id.0).into_iter().flat_map(|node| &node.checks) {
        match check {
            Check::Members(members) => names.extend(&members.required),
            Check::AnyOf(branches) | Check::OneOf(branches) | Check::AllOf(branches) => {
                names.extend(branches.iter().flat_map(|branch| required_names(graph, *branch)));
            }
            _ => {}
        }
    }
    names
}

/// `a`, `b` or `c`.
fn join(out: &mut String, items: impl IntoIterator<Item = impl AsRef<str>>) {
    let items: Vec<_> = items.into_iter().collect();
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(if index + 1 == items.len() { " or " } else { ", " });
        }
        // Writing to a string cannot fail.
        let _ = write!(out, "`{}`", item.as_ref());
    }
}

fn length(value: Value<'_>) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

const fn type_text(wanted: Type) -> &'static str {
    match wanted {
        Type::Null => "null",
        Type::Boolean => "true or false",
        Type::Integer => "a whole number",
        Type::Number => "a number",
        Type::String => "a string",
        Type::Array => "an array",
        Type::Object => "an object",
    }
}

fn kind_text(value: Value<'_>, wanted: Type) -> &'static str {
    match value.kind() {
        Kind::Null => "null",
        Kind::Bool(_) => "a boolean",
        Kind::Number(_) if wanted == Type::Integer => "a fraction",
        Kind::Number(_) => "a number",
        Kind::String(_) => "a string",
        Kind::Array(_) => "an array",
        Kind::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_made_harmless() {
        assert_eq!(quoted("slug"), "`slug`");
        assert_eq!(quoted("a\nb\u{7f}"), "`a\\nb\\u{7f}`");
        let long = "é".repeat(100_000);
        assert_eq!(quoted(&long), format!("`{}…`", "é".repeat(LONGEST_NAME)));
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert!(has_at_least("", 0) && !has_at_least("", 1));
        assert!(has_at_least("🎥é", 2) && !has_at_least("🎥é", 3));
        assert!(has_at_least(&"🎥".repeat(280), 280) && !has_at_least(&"🎥".repeat(280), 281));
        assert!(has_at_least(&"x".repeat(280), 280) && !has_at_least(&"x".repeat(280), 281));
    }
}
