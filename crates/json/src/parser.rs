//! One pass over a text: syntax, the tape of nodes, the members of each object in order of their names.

use std::cmp::Ordering;

use crate::document::Node;
use crate::lexer::{self, SyntaxError, UNEXPECTED_END};
use crate::number::MAX_PLAIN_DIGITS;

pub(crate) struct Parser<'a> {
    text: &'a str,
    at: usize,
    pub(crate) nodes: Vec<Node>,
    pub(crate) unescaped: String,
    pub(crate) order: Vec<u32>,
    pub(crate) depth: usize,
    pub(crate) duplicate: Option<u32>,
    open: Vec<Open>,
    members: Vec<Member>,
}

/// A container that is not closed yet.
#[derive(Clone, Copy)]
struct Open {
    node: u32,
    /// An array's elements so far; for an object, where its members start in `Parser::members`.
    mark: u32,
    object: bool,
}

/// A member of an object that is not closed yet.
#[derive(Clone, Copy)]
struct Member {
    /// The first eight bytes of the name, so that most comparisons need not look at the name itself.
    prefix: u64,
    node: u32,
}

enum Next {
    Value,
    AfterValue,
}

/// Offsets and counts are kept in 32 bits: `Document::parse` refuses a longer text, and every node and every
/// unescaped byte takes at least one byte of text.
#[inline]
fn narrow(n: usize) -> u32 {
    n as u32
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        // A guess that fits ordinary messages: they have a token for every ten bytes or so.
        let nodes = text.len() / 8 + 4;
        Self {
            text,
            at: 0,
            nodes: Vec::with_capacity(nodes),
            unescaped: String::new(),
            order: Vec::with_capacity(nodes / 2),
            depth: 0,
            duplicate: None,
            open: Vec::with_capacity(16),
            members: Vec::with_capacity(64),
        }
    }

    pub(crate) fn run(&mut self) -> Result<(), SyntaxError> {
        loop {
            let mut next = self.value()?;
            while let Next::AfterValue = next {
                let Some(open) = self.open.last_mut() else {
                    return self.end();
                };
                let (close, expected) = if open.object {
                    (b'}', "expected a comma or the end of the object")
                } else {
                    (b']', "expected a comma or the end of the array")
                };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.comma()?;
                        next = Next::Value;
                    }
                    Some(byte) if byte == close => {
                        self.at += 1;
                        self.close();
                    }
                    found => return Err(self.unexpected(found, expected)),
                }
            }
        }
    }

    /// The next byte that is not white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    #[cold]
    fn unexpected(&self, found: Option<u8>, expected: &'static str) -> SyntaxError {
        let reason = if found.is_some() { expected } else { UNEXPECTED_END };
        SyntaxError::new(self.at, reason)
    }

    fn end(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(SyntaxError::new(self.at, "trailing data after the value")),
        }
    }

    #[inline]
    fn value(&mut self) -> Result<Next, SyntaxError> {
        let bytes = self.text.as_bytes();
        let node = match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'{') => return self.open_object(),
            Some(b'[') => return Ok(self.open_array()),
            Some(b't') => {
                self.at = lexer::literal_end(bytes, self.at, b"true")?;
                Node::Bool(true)
            }
            Some(b'f') => {
                self.at = lexer::literal_end(bytes, self.at, b"false")?;
                Node::Bool(false)
            }
            Some(b'n') => {
                self.at = lexer::literal_end(bytes, self.at, b"null")?;
                Node::Null
            }
            found => return Err(self.unexpected(found, "expected a value")),
        };
        self.nodes.push(node);
        Ok(Next::AfterValue)
    }

    #[inline]
    fn string(&mut self) -> Result<Node, SyntaxError> {
        let start = self.at + 1;
        let stop = lexer::plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(stop) == Some(&b'"') {
            self.at = stop + 1;
            return Ok(Node::Text {
                start: narrow(start),
                end: narrow(stop),
            });
        }
        let begin = self.unescaped.len();
        self.at = lexer::unescape(self.text, start, stop, &mut self.unescaped)?;
        Ok(Node::Unescaped {
            start: narrow(begin),
            end: narrow(self.unescaped.len()),
        })
    }

    #[inline]
    fn number(&mut self) -> Result<Node, SyntaxError> {
        let bytes = self.text.as_bytes();
        let at = self.at;
        let (end, whole) = lexer::number_end(bytes, at)?;
        self.at = end;
        let (start, end) = (narrow(at), narrow(end));
        // A sign counts as a digit here: at worst, a number takes the longer way to the same form.
        let plain =
            whole && end - start <= MAX_PLAIN_DIGITS as u32 && (bytes[at] != b'-' || bytes[at + 1] != b'0');
        Ok(if plain {
            Node::Plain { start, end }
        } else {
            Node::Number { start, end }
        })
    }

    fn open_array(&mut self) -> Next {
        self.at += 1;
        self.push_open(false, 0);
        if self.peek() == Some(b']') {
            self.at += 1;
            self.close();
            return Next::AfterValue;
        }
        if let Some(open) = self.open.last_mut() {
            open.mark = 1;
        }
        Next::Value
    }

    fn open_object(&mut self) -> Result<Next, SyntaxError> {
        self.at += 1;
        self.push_open(true, narrow(self.members.len()));
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.close();
            return Ok(Next::AfterValue);
        }
        self.name("expected a member name or the end of the object")?;
        Ok(Next::Value)
    }

    fn push_open(&mut self, object: bool, mark: u32) {
        self.open.push(Open {
            node: narrow(self.nodes.len()),
            mark,
            object,
        });
        self.depth = self.depth.max(self.open.len());
        // Filled in when it closes.
        self.nodes.push(Node::Null);
    }

    /// What follows a comma, up to the value.
    #[inline]
    fn comma(&mut self) -> Result<(), SyntaxError> {
        match self.open.last_mut() {
            Some(Open {
                object: false, mark, ..
            }) => {
                *mark += 1;
                Ok(())
            }
            _ => self.name("expected a member name"),
        }
    }

    /// A member's name and its colon.
    #[inline]
    fn name(&mut self, expected: &'static str) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'"') => {}
            found => return Err(self.unexpected(found, expected)),
        }
        let name = self.string()?;
        self.members.push(Member {
            prefix: self.prefix(name),
            node: narrow(self.nodes.len()),
        });
        self.nodes.push(name);
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            found => Err(self.unexpected(found, "expected a colon")),
        }
    }

    /// The first eight bytes of a name, with zeros for what it lacks: orders as the names do where it differs.
    #[inline]
    fn prefix(&self, name: Node) -> u64 {
        let (bytes, start, end) = match name {
            Node::Text { start, end } => (self.text.as_bytes(), start as usize, end as usize),
            Node::Unescaped { start, end } => (self.unescaped.as_bytes(), start as usize, end as usize),
            _ => return 0,
        };
        let length = end - start;
        match bytes[start..].first_chunk::<8>() {
            Some(_) if length == 0 => 0,
            // Reads past a short name, into what follows it, and shifts that out again.
            Some(chunk) if length < 8 => {
                let surplus = 64 - 8 * length as u32;
                u64::from_be_bytes(*chunk) >> surplus << surplus
            }
            Some(chunk) => u64::from_be_bytes(*chunk),
            None => {
                let mut chunk = [0; 8];
                let short = &bytes[start..end];
                chunk[..short.len()].copy_from_slice(short);
                u64::from_be_bytes(chunk)
            }
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let next = narrow(self.nodes.len());
        self.nodes[open.node as usize] = if open.object {
            let order = narrow(self.order.len());
            self.settle_members(open.mark as usize);
            Node::Object {
                count: narrow(self.order.len()) - order,
                next,
                order,
            }
        } else {
            Node::Array {
                count: open.mark,
                next,
            }
        };
    }

    /// Sorts the members of the object that ends here, notes a repeated name, and files them in `order`.
    fn settle_members(&mut self, from: usize) {
        let Self {
            text,
            nodes,
            unescaped,
            members,
            order,
            duplicate,
            ..
        } = self;
        let members_here = &mut members[from..];
        let name = |member: &Member| {
            nodes[member.node as usize]
                .str(text, unescaped)
                .unwrap_or_default()
        };
        members_here.sort_unstable_by(|a, b| match a.prefix.cmp(&b.prefix) {
            // Of equal names, the first in the text comes first.
            Ordering::Equal => name(a).cmp(name(b)).then(a.node.cmp(&b.node)),
            unequal => unequal,
        });
        for pair in members_here.windows(2) {
            if let [a, b] = pair
                && a.prefix == b.prefix
                && name(a) == name(b)
                && duplicate.is_none_or(|found| b.node < found)
            {
                *duplicate = Some(b.node);
            }
        }
        order.extend(members_here.iter().map(|member| member.node));
        members.truncate(from);
    }
}
