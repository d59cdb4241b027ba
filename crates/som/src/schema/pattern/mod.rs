//! Regular expressions, as tables.
//!
//! JSON Schema asks for ECMA-262. Of that, this reads what SOM's patterns are written in (characters, `.`, `\d`, classes, groups,
//! `|`, `?`, `*`, `+`, `{n}`, `^` at the beginning, `$` at the end) and nothing else: an expression with more does not compile. With so
//! little there is nothing to be subtly wrong about, and the tests hold every expression of SOM against `regress`, an ECMA-262 engine.
//!
//! An expression becomes a table of states by classes of characters. A text of n characters takes n steps at the most, whatever it
//! is, and nothing is allocated.

mod read;
mod table;
#[cfg(test)]
mod tests;

use read::{Reader, Tree};
use table::Table;

/// No text gets further from here.
const DEAD: u8 = u8::MAX;
/// A text matches that has come here, whatever follows.
const MATCHED: u8 = DEAD - 1;
/// U+2028 and U+2029 end lines, which `.` does not match.
const SEPARATORS: usize = 128;
/// Every other character that is not ASCII: no expression tells two of them apart.
const OTHERS: usize = 129;
/// The characters that can be told apart: those of ASCII and these two.
const SYMBOLS: usize = 130;
/// An expression, as it stands in the schema file and as a table.
#[derive(Debug)]
pub(super) struct Pattern<'s> {
    pub(super) text: &'s str,
    /// The class of each symbol.
    classes: Box<[u8; SYMBOLS]>,
    /// By state and class the next state, [`MATCHED`] or [`DEAD`].
    next: Box<[u8]>,
    /// How many classes there are.
    width: usize,
    /// Whether every text matches.
    always: bool,
    /// By state, whether a text matches that ends there.
    ends: Box<[bool]>,
}

impl<'s> Pattern<'s> {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// It is none, or of a kind that is not read.
    pub(super) fn compile(text: &'s str) -> Result<Self, &'static str> {
        let (anchored, rest) = match text.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (to_the_end, rest) = match rest.strip_suffix('$') {
            Some(before) if !ends_in_escape(before) => (true, before),
            _ => (false, rest),
        };
        let mut reader = Reader {
            chars: rest.chars().peekable(),
            places: Vec::new(),
        };
        let whole = reader.alternatives()?;
        if reader.chars.peek().is_some() {
            return Err("a parenthesis closes nothing");
        }
        // Anchors bind closer than alternatives.
        if (anchored || to_the_end) && matches!(&whole, Tree::Alternatives(all) if all.len() > 1) {
            return Err("alternatives beside an anchor belong into a group");
        }
        let part = reader.numbered(&whole)?;
        Table::of(&reader.places, &part, anchored, to_the_end).map(|table| table.pattern(text))
    }

    /// Whether it matches anywhere in a text.
    pub(super) fn matches(&self, text: &str) -> bool {
        if self.always {
            return true;
        }
        let mut state = 0u8;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let symbol = if byte < 128 {
                at += 1;
                usize::from(byte)
            } else {
                let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                    return false;
                };
                at += character.len_utf8();
                symbol_of(character)
            };
            let class = self.classes.get(symbol).copied().unwrap_or_default();
            let place = usize::from(state) * self.width + usize::from(class);
            state = self.next.get(place).copied().unwrap_or(DEAD);
            if state >= MATCHED {
                return state == MATCHED;
            }
        }
        self.ends.get(usize::from(state)).copied().unwrap_or_default()
    }
}

fn symbol_of(character: char) -> usize {
    match character {
        '\u{2028}' | '\u{2029}' => SEPARATORS,
        character if character.is_ascii() => character as usize,
        _ => OTHERS,
    }
}

/// Whether the last character of a text is taken for itself by a backslash before what follows.
fn ends_in_escape(text: &str) -> bool {
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// The symbols that one place of an expression takes.
type Set = [bool; SYMBOLS];
