//! Regular expressions, as tables.
//!
//! JSON Schema asks for ECMA-262. Of that, this reads what SOM's patterns are written in (characters, `.`, `\d`, classes, groups,
//! `|`, `?`, `*`, `+`, `{n}`, `^` at the beginning, `$` at the end) and nothing else: an expression with more does not compile. With so
//! little there is nothing to be subtly wrong about, and the tests hold every expression of SOM against `regress`, an ECMA-262 engine.
//!
//! An expression becomes a table of states by classes of characters. A text of n characters takes n steps at the most, whatever it
//! is, and nothing is allocated.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

/// The most states of a table. SOM's have a dozen.
const MOST_STATES: usize = 250;
/// The most places of an expression, repetitions written out.
const MOST_PLACES: usize = 500;
/// No text gets further from here.
const DEAD: u8 = u8::MAX;
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
    /// By state and class the next state.
    next: Box<[u8]>,
    /// How many classes there are.
    width: usize,
    /// Whether a text matches that has come here, whatever follows.
    matched: Box<[bool]>,
    /// Whether a text matches that ends here.
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
        let mut state = 0u8;
        let matched = |state: u8| self.matched.get(usize::from(state)).copied().unwrap_or_default();
        if matched(state) {
            return true;
        }
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
            if state == DEAD {
                return false;
            }
            if matched(state) {
                return true;
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

/// A part of an expression by the places it can begin and end with, and which can follow which.
#[derive(Default)]
struct Part {
    first: BTreeSet<usize>,
    last: BTreeSet<usize>,
    follow: BTreeSet<(usize, usize)>,
    /// Whether nothing at all is it, too.
    empty: bool,
}

/// An expression as it stands: what is repeated becomes places of its own each time.
enum Tree {
    Set(Box<Set>),
    Sequence(Vec<Tree>),
    Alternatives(Vec<Tree>),
    /// At least so often; `None`: without end.
    Repeat(Box<Tree>, usize, Option<usize>),
}

struct Reader<'p> {
    chars: Peekable<Chars<'p>>,
    places: Vec<Set>,
}

impl Reader<'_> {
    fn alternatives(&mut self) -> Result<Tree, &'static str> {
        let mut all = vec![self.sequence()?];
        while self.chars.next_if_eq(&'|').is_some() {
            all.push(self.sequence()?);
        }
        Ok(Tree::Alternatives(all))
    }

    fn sequence(&mut self) -> Result<Tree, &'static str> {
        let mut all = Vec::new();
        while let Some(&next) = self.chars.peek() {
            if next == '|' || next == ')' {
                break;
            }
            self.chars.next();
            let one = self.one(next)?;
            all.push(self.repeated(one)?);
        }
        Ok(Tree::Sequence(all))
    }

    fn one(&mut self, first: char) -> Result<Tree, &'static str> {
        Ok(match first {
            '(' => {
                if self.chars.peek() == Some(&'?') {
                    return Err("a group of a special kind");
                }
                let group = self.alternatives()?;
                self.chars.next_if_eq(&')').ok_or("a group is not closed")?;
                group
            }
            '[' => Tree::Set(Box::new(self.class()?)),
            '.' => Tree::Set(Box::new(any_of_a_line())),
            '\\' => Tree::Set(Box::new(self.escape()?)),
            '*' | '+' | '?' | '{' | '}' | ']' | '^' | '$' => return Err("a special character out of place"),
            other => Tree::Set(Box::new(only(other)?)),
        })
    }

    fn repeated(&mut self, one: Tree) -> Result<Tree, &'static str> {
        let (least, most) = match self.chars.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.chars.next();
                let mut digits = String::new();
                while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                let count: usize = digits
                    .parse()
                    .map_err(|_| "a number of repetitions is not readable")?;
                if self.chars.peek() != Some(&'}') || count > MOST_PLACES {
                    return Err("repetitions of a kind that is not read");
                }
                (count, Some(count))
            }
            _ => return Ok(one),
        };
        self.chars.next();
        match self.chars.peek() {
            Some('?' | '*' | '+' | '{') => Err("repetitions of repetitions, or few before many"),
            _ => Ok(Tree::Repeat(Box::new(one), least, most)),
        }
    }

    fn class(&mut self) -> Result<Set, &'static str> {
        const OPEN: &str = "a class is not closed";
        let negated = self.chars.next_if_eq(&'^').is_some();
        let mut set = [false; SYMBOLS];
        loop {
            let from = match self.chars.next().ok_or(OPEN)? {
                ']' => break,
                '\\' => {
                    let escaped = self.escape()?;
                    set.iter_mut().zip(escaped).for_each(|(own, one)| *own |= one);
                    continue;
                }
                character => character,
            };
            let to = if self.chars.next_if_eq(&'-').is_some() {
                match self.chars.next().ok_or(OPEN)? {
                    ']' => {
                        add(&mut set, from, from)?;
                        add(&mut set, '-', '-')?;
                        break;
                    }
                    '\\' => return Err("an escape in a range"),
                    to => to,
                }
            } else {
                from
            };
            add(&mut set, from, to)?;
        }
        if negated {
            set.iter_mut().for_each(|one| *one = !*one);
        }
        Ok(set)
    }

    fn escape(&mut self) -> Result<Set, &'static str> {
        match self.chars.next() {
            Some('d') => {
                let mut set = [false; SYMBOLS];
                add(&mut set, '0', '9')?;
                Ok(set)
            }
            Some(itself) if r"^$\.*+?()[]{}|/".contains(itself) => only(itself),
            _ => Err("an escape that is not read"),
        }
    }

    /// Numbers the places of a tree.
    fn numbered(&mut self, tree: &Tree) -> Result<Part, &'static str> {
        match tree {
            Tree::Set(set) => {
                if self.places.len() == MOST_PLACES {
                    return Err("an expression that is too long");
                }
                let place = self.places.len();
                self.places.push(**set);
                Ok(Part {
                    first: BTreeSet::from([place]),
                    last: BTreeSet::from([place]),
                    ..Part::default()
                })
            }
            Tree::Sequence(all) => {
                let mut whole = Part {
                    empty: true,
                    ..Part::default()
                };
                for one in all {
                    whole = whole.then(self.numbered(one)?);
                }
                Ok(whole)
            }
            Tree::Alternatives(all) => {
                let mut whole = Part::default();
                for one in all {
                    whole = whole.or(self.numbered(one)?);
                }
                Ok(whole)
            }
            Tree::Repeat(one, least, most) => {
                let mut whole = Part {
                    empty: true,
                    ..Part::default()
                };
                for _ in 0..*least {
                    whole = whole.then(self.numbered(one)?);
                }
                match most {
                    None => whole = whole.then(self.numbered(one)?.over_and_over()),
                    Some(most) => {
                        for _ in *least..*most {
                            let mut once = self.numbered(one)?;
                            once.empty = true;
                            whole = whole.then(once);
                        }
                    }
                }
                Ok(whole)
            }
        }
    }
}

impl Part {
    fn then(mut self, next: Self) -> Self {
        self.connect(&self.last.clone(), &next.first);
        self.follow.extend(next.follow);
        if self.empty {
            self.first.extend(next.first);
        }
        if next.empty {
            self.last.extend(next.last);
        } else {
            self.last = next.last;
        }
        self.empty &= next.empty;
        self
    }

    fn or(mut self, other: Self) -> Self {
        self.first.extend(other.first);
        self.last.extend(other.last);
        self.follow.extend(other.follow);
        self.empty |= other.empty;
        self
    }

    fn over_and_over(mut self) -> Self {
        self.connect(&self.last.clone(), &self.first.clone());
        self.empty = true;
        self
    }

    fn connect(&mut self, before: &BTreeSet<usize>, behind: &BTreeSet<usize>) {
        for from in before {
            self.follow.extend(behind.iter().map(|to| (*from, *to)));
        }
    }
}

fn any_of_a_line() -> Set {
    let mut set = [true; SYMBOLS];
    for symbol in [usize::from(b'\n'), usize::from(b'\r'), SEPARATORS] {
        if let Some(one) = set.get_mut(symbol) {
            *one = false;
        }
    }
    set
}

fn only(character: char) -> Result<Set, &'static str> {
    let mut set = [false; SYMBOLS];
    add(&mut set, character, character)?;
    Ok(set)
}

fn add(set: &mut Set, from: char, to: char) -> Result<(), &'static str> {
    if !from.is_ascii() || !to.is_ascii() {
        return Err("a character that is not ASCII");
    }
    if from > to {
        return Err("a range that ends before it begins");
    }
    for one in set.iter_mut().take(to as usize + 1).skip(from as usize) {
        *one = true;
    }
    Ok(())
}

/// The class of each symbol, and a symbol of each class: those that all places treat alike are one.
fn classes(places: &[Set]) -> (Box<[u8; SYMBOLS]>, Vec<usize>) {
    let mut classes = Box::new([0; SYMBOLS]);
    let mut count = 1;
    for set in places {
        // A class of which this place takes some and not others becomes two: `None` until it is known what it takes of it.
        let mut parted: Vec<Option<(bool, Option<u8>)>> = vec![None; usize::from(count)];
        for (class, taken) in classes.iter_mut().zip(set) {
            let Some(parts) = parted.get_mut(usize::from(*class)) else {
                continue;
            };
            match parts {
                None => *parts = Some((*taken, None)),
                Some((first, _)) if first == taken => {}
                Some((_, Some(other))) => *class = *other,
                Some((_, other)) => {
                    // There are fewer symbols than a byte counts.
                    *other = Some(count);
                    *class = count;
                    count += 1;
                }
            }
        }
    }
    let sample = |class: u8| classes.iter().position(|own| *own == class);
    let samples = (0..count).filter_map(sample).collect();
    (classes, samples)
}

/// The table in the making.
struct Table {
    classes: Box<[u8; SYMBOLS]>,
    width: usize,
    next: Vec<u8>,
    matched: Vec<bool>,
    ends: Vec<bool>,
}

impl Table {
    fn of(places: &[Set], whole: &Part, anchored: bool, to_the_end: bool) -> Result<Self, &'static str> {
        let takes = |place: usize, symbol: usize| {
            let set = places.get(place);
            set.and_then(|set| set.get(symbol)).copied().unwrap_or_default()
        };
        let (classes, samples) = classes(places);
        let mut follow: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in &whole.follow {
            follow.entry(*from).or_default().push(*to);
        }

        // A state is the places that the text so far may have ended at, and whether it may (still, or anew) begin.
        let mut table = Self {
            classes,
            width: samples.len(),
            next: Vec::new(),
            matched: Vec::new(),
            ends: Vec::new(),
        };
        type State = (bool, BTreeSet<usize>);
        let start: State = (true, BTreeSet::new());
        let mut states = vec![start.clone()];
        let mut numbers = BTreeMap::from([(start, 0u8)]);
        let mut at = 0;
        while let Some((begins, held)) = states.get(at).cloned() {
            let done = begins && whole.empty || held.iter().any(|place| whole.last.contains(place));
            table.matched.push(done && !to_the_end);
            table.ends.push(done);
            for symbol in &samples {
                let fresh = begins.then_some(&whole.first).into_iter().flatten();
                let further = held.iter().filter_map(|place| follow.get(place)).flatten();
                let reached: BTreeSet<usize> = fresh
                    .chain(further)
                    .copied()
                    .filter(|place| takes(*place, *symbol))
                    .collect();
                let state: State = (!anchored, reached);
                if !state.0 && state.1.is_empty() {
                    table.next.push(DEAD);
                    continue;
                }
                let number = match numbers.get(&state) {
                    Some(number) => *number,
                    None if states.len() == MOST_STATES => return Err("an expression with too many states"),
                    None => {
                        let number = states.len() as u8;
                        numbers.insert(state.clone(), number);
                        states.push(state);
                        number
                    }
                };
                table.next.push(number);
            }
            at += 1;
        }
        Ok(table)
    }

    fn pattern(self, text: &str) -> Pattern<'_> {
        Pattern {
            text,
            classes: self.classes,
            next: self.next.into(),
            width: self.width,
            matched: self.matched.into(),
            ends: self.ends.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regress::Regex;

    use super::Pattern;
    use crate::schema::{SchemaName, file};

    /// Those of SOM, and others that are read.
    fn expressions() -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for name in SchemaName::ALL {
            let schema: serde_json::Value = serde_json::from_str(file(name)).unwrap();
            let mut open = vec![&schema];
            while let Some(value) = open.pop() {
                if let Some(object) = value.as_object() {
                    all.extend(object.get("pattern").and_then(|p| p.as_str()).map(str::to_owned));
                    if let Some(patterns) = object.get("patternProperties").and_then(|p| p.as_object()) {
                        all.extend(patterns.keys().cloned());
                    }
                    open.extend(object.values());
                } else if let Some(array) = value.as_array() {
                    open.extend(array);
                }
            }
        }
        assert!(all.len() > 10);
        all.extend(
            [
                "",
                "^",
                "$",
                "^$",
                "a",
                "a$",
                "^a",
                "ab|b",
                "(ab)*c",
                "^(a|b)*abb$",
                "a.b",
                "^.*$",
                "[a-]+$",
                "[^a]b",
                "a{0}b",
                "(a{2}){2}",
                r"\$$",
                r"\\$",
                "(a?b?)*c",
                "x(a|)b",
                "^[^/]$",
            ]
            .map(str::to_owned),
        );
        all
    }

    /// Both engines on one text.
    fn agree(expression: &str, text: &str) {
        let theirs = Regex::with_flags(expression, "u").unwrap().find(text).is_some();
        let ours = Pattern::compile(expression).unwrap().matches(text);
        assert_eq!(ours, theirs, "{expression:?} on {text:?}");
    }

    proptest! {
        #[test]
        fn texts_match_as_an_ecma_262_engine_has_it(
            texts in proptest::collection::vec(
                prop_oneof![
                    "[abcx/:.;0-9_\\[\\]()$\\\\-]{0,12}",
                    "(tams://|som\\.|com\\.|x-|newsroom|iptc-mediatopic|[\\[(])?[a-z0-9._:/)\\]\\-]{0,10}(\n|\r|\u{2028}|\u{e9}|\u{1f3a5})?[a-z0-9:_.)\\]]{0,4}",
                    "[0-9]{1,3}[.:][0-9]{1,3}[.:;][0-9]{1,3}([:;][0-9]{2})?",
                    "[\\[(]([0-9]{1,2}:[0-9]{1,2})?_([0-9]{1,2}:[0-9]{1,2})?[)\\]]",
                ],
                1..8,
            )
        ) {
            for expression in expressions() {
                texts.iter().for_each(|text| agree(&expression, text));
            }
        }
    }

    #[test]
    fn what_is_not_read_does_not_compile() {
        for expression in [
            "(", ")", "[", "[a", "a)", "*", "a**", "a+?", "a{1,2}", "a{,2}", "a{x}", "(?:a)", "(?=a)", r"\w",
            r"\b", r"\u0041", r"[\w]", r"a\", "é", "[à-é]", "[z-a]", "^a|b", "a|b$", "a^b", "a$b", "{", "}",
            "]",
        ] {
            assert!(Pattern::compile(expression).is_err(), "{expression}");
        }
    }

    #[test]
    fn repetitions_end_somewhere() {
        assert!(Pattern::compile("a{501}").is_err());
        assert!(Pattern::compile("(a{100}){100}").is_err());
        assert!(Pattern::compile("a{200}").unwrap().matches(&"a".repeat(200)));
        assert!(!Pattern::compile("a{200}").unwrap().matches(&"a".repeat(199)));
        // as many states as there are texts of so many letters
        assert!(Pattern::compile("(a|b)*a(a|b){12}$").is_err());
    }
}
