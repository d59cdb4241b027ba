//! A parsed text: a tape of nodes in the text's order, and what was found besides.

use std::fmt;

use crate::lexer::SyntaxError;
use crate::parser::Parser;
use crate::value::Value;

/// A JSON Pointer (RFC 6901) to a place in a document.
pub type Pointer = String;

/// A parsed JSON text. Everything is borrowed from the text where it can be.
///
/// The values stand on one tape in the text's order, a member's name before its value; a container knows
/// where it ends, so that a reader can step over it. A document is four allocations, whatever its size.
pub struct Document<'a> {
    pub(crate) text: &'a str,
    /// The strings that had escapes, one behind the other.
    pub(crate) unescaped: String,
    pub(crate) nodes: Vec<Node>,
    /// For each object, its names' places on the tape in the order of the names.
    pub(crate) order: Vec<u32>,
    depth: usize,
    duplicate: Option<u32>,
}

/// A place on the tape. Offsets are into the text, or into the unescaped strings.
#[derive(Clone, Copy)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// A number whose text is its canonical form.
    Plain {
        start: u32,
        end: u32,
    },
    Number {
        start: u32,
        end: u32,
    },
    /// A string that had no escapes.
    Text {
        start: u32,
        end: u32,
    },
    Unescaped {
        start: u32,
        end: u32,
    },
    Array {
        count: u32,
        next: u32,
    },
    Object {
        count: u32,
        next: u32,
        order: u32,
    },
}

impl Node {
    /// The string, if it is one.
    #[inline]
    pub(crate) fn str<'d>(self, text: &'d str, unescaped: &'d str) -> Option<&'d str> {
        match self {
            Node::Text { start, end } => Some(&text[start as usize..end as usize]),
            Node::Unescaped { start, end } => Some(&unescaped[start as usize..end as usize]),
            _ => None,
        }
    }
}

impl<'a> Document<'a> {
    /// Reads the whole text; never recurses.
    ///
    /// Accepts exactly RFC 8259 in UTF-8, without a byte order mark and without lone surrogates. A repeated
    /// member name, an [illegal character](Self::illegal_character) and any depth are accepted: they are
    /// findings on the document, for the caller to judge once the syntax is known to be right.
    pub fn parse(text: &'a [u8]) -> Result<Self, SyntaxError> {
        if text.starts_with(b"\xEF\xBB\xBF") {
            return Err(SyntaxError::new(0, "byte order mark before the value"));
        }
        if text.len() >= u32::MAX as usize {
            return Err(SyntaxError::new(u32::MAX as usize, "text of 4 GiB or more"));
        }
        match std::str::from_utf8(text) {
            Ok(text) => Self::parse_str(text),
            Err(error) => {
                let valid = error.valid_up_to();
                let before = std::str::from_utf8(&text[..valid]).unwrap_or_default();
                match Self::parse_str(before) {
                    // The text was at fault before its encoding was.
                    Err(earlier) if earlier.offset < valid => Err(earlier),
                    _ => Err(SyntaxError::new(valid, "invalid UTF-8")),
                }
            }
        }
    }

    fn parse_str(text: &'a str) -> Result<Self, SyntaxError> {
        let mut parser = Parser::new(text);
        parser.run()?;
        let Parser {
            nodes,
            unescaped,
            order,
            depth,
            duplicate,
            ..
        } = parser;
        Ok(Self {
            text,
            unescaped,
            nodes,
            order,
            depth,
            duplicate,
        })
    }

    /// The pointer to the first member that repeats an earlier name of its object.
    ///
    /// Names are compared as they are after unescaping. First is meant in the text's order of the
    /// repetitions: in `{"a":1,"b":2,"b":3,"a":4}` it is `/b`.
    pub fn duplicate_member(&self) -> Option<Pointer> {
        self.duplicate.map(|name| self.pointer_to(name as usize))
    }

    /// Byte offset of the first raw U+FFFE or U+FFFF: the characters that JSON allows and SQS does not.
    ///
    /// An escaped one (`\uffff`) does not count: the text carries it as ASCII.
    pub fn illegal_character(&self) -> Option<usize> {
        /// Bytes that are looked at together, which the compiler turns into a few instructions.
        const BLOCK: usize = 64;
        let bytes = self.text.as_bytes();
        let suspect = |block: &[u8]| block.iter().fold(false, |found, &byte| found | (byte == 0xEF));
        for (number, block) in bytes.chunks(BLOCK).enumerate() {
            if !suspect(block) {
                continue;
            }
            let start = number * BLOCK;
            let found = (start..start + block.len()).find(|&at| {
                // In valid UTF-8 the byte EF starts a character wherever it stands.
                matches!(bytes.get(at..at + 3), Some([0xEF, 0xBF, 0xBE | 0xBF]))
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// How many arrays and objects stand within each other at the deepest place; 0 for a scalar.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The value of the whole text.
    pub fn root(&self) -> Value<'_> {
        Value::new(self, 0)
    }

    /// The place behind the value at `node`.
    #[inline]
    pub(crate) fn after(&self, node: usize) -> usize {
        match self.nodes[node] {
            Node::Array { next, .. } | Node::Object { next, .. } => next as usize,
            _ => node + 1,
        }
    }

    #[inline]
    pub(crate) fn str(&self, node: usize) -> Option<&str> {
        self.nodes[node].str(self.text, &self.unescaped)
    }

    /// The string at `node` as bytes: without a look at whether its ends part a character.
    #[inline]
    pub(crate) fn bytes(&self, node: usize) -> Option<&[u8]> {
        self.bytes_of(self.nodes[node])
    }

    /// Whether the string at `node` is this one: its length tells most apart without a look at the text.
    #[inline]
    pub(crate) fn is_str(&self, node: usize, wanted: &str) -> bool {
        let (bytes, start, end) = match self.nodes[node] {
            Node::Text { start, end } => (self.text.as_bytes(), start, end),
            Node::Unescaped { start, end } => (self.unescaped.as_bytes(), start, end),
            _ => return false,
        };
        (end - start) as usize == wanted.len() && bytes[start as usize..end as usize] == *wanted.as_bytes()
    }

    #[inline]
    pub(crate) fn bytes_of(&self, node: Node) -> Option<&[u8]> {
        match node {
            Node::Text { start, end } => Some(&self.text.as_bytes()[start as usize..end as usize]),
            Node::Unescaped { start, end } => Some(&self.unescaped.as_bytes()[start as usize..end as usize]),
            _ => None,
        }
    }

    /// Whether a member name repeats anywhere.
    #[inline]
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.duplicate.is_some()
    }

    /// The pointer to the member whose name is at `target`.
    fn pointer_to(&self, target: usize) -> Pointer {
        let mut pointer = String::new();
        let mut container = 0;
        loop {
            let is_object = matches!(self.nodes[container], Node::Object { .. });
            let mut child = container + 1;
            let mut position = 0;
            // Steps over the children before the one that holds the target.
            let holder = loop {
                let value = if is_object { child + 1 } else { child };
                let next = self.after(value);
                if target < next {
                    break value;
                }
                child = next;
                position += 1;
            };
            pointer.push('/');
            if is_object {
                for character in self.str(child).unwrap_or_default().chars() {
                    match character {
                        '~' => pointer.push_str("~0"),
                        '/' => pointer.push_str("~1"),
                        other => pointer.push(other),
                    }
                }
            } else {
                pointer.push_str(&position.to_string());
            }
            if is_object && child == target {
                return pointer;
            }
            container = holder;
        }
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Document").field(&self.text).finish()
    }
}
