//! From an expression's text to its places: which can be the first, which the last, which follows which.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

use super::{SEPARATORS, SYMBOLS, Set};

/// The most places of an expression, repetitions written out.
const MOST_PLACES: usize = 500;

/// A part of an expression by the places it can begin and end with, and which can follow which.
#[derive(Default)]
pub(super) struct Part {
    pub(super) first: BTreeSet<usize>,
    pub(super) last: BTreeSet<usize>,
    pub(super) follow: BTreeSet<(usize, usize)>,
    /// Whether nothing at all is it, too.
    pub(super) empty: bool,
}

/// An expression as it stands: what is repeated becomes places of its own each time.
pub(super) enum Tree {
    Set(Box<Set>),
    Sequence(Vec<Tree>),
    Alternatives(Vec<Tree>),
    /// At least so often; `None`: without end.
    Repeat(Box<Tree>, usize, Option<usize>),
}

pub(super) struct Reader<'p> {
    pub(super) chars: Peekable<Chars<'p>>,
    pub(super) places: Vec<Set>,
}

impl Reader<'_> {
    pub(super) fn alternatives(&mut self) -> Result<Tree, &'static str> {
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
    pub(super) fn numbered(&mut self, tree: &Tree) -> Result<Part, &'static str> {
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
