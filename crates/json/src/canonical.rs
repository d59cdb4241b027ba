//! The canonical form (described at [`Value::write_canonical`](crate::Value::write_canonical)) and its hash.

use sha2::{Digest, Sha256};

use crate::document::{Document, Node};
use crate::lexer::plain_end;
use crate::number::Number;

/// Enough that an ordinary message is hashed in one go, little enough to stay in the nearest cache.
const BUFFER: usize = 16 * 1024;

/// Takes the canonical form piece by piece.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
    fn put_byte(&mut self, byte: u8);
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// Hashes in large pieces: a call of the hash for every token would cost more than the hashing.
struct Hasher {
    sha: Sha256,
    buffer: Vec<u8>,
}

impl Hasher {
    #[cold]
    fn flush(&mut self) {
        self.sha.update(&self.buffer);
        self.buffer.clear();
    }
}

impl Sink for Hasher {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush();
            if bytes.len() > BUFFER {
                self.sha.update(bytes);
                return;
            }
        }
        self.buffer.extend_from_slice(bytes);
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        if self.buffer.len() == BUFFER {
            self.flush();
        }
        self.buffer.push(byte);
    }
}

pub(crate) fn write(doc: &Document<'_>, node: usize, out: &mut Vec<u8>) {
    walk(doc, node, out);
}

pub(crate) fn hash(doc: &Document<'_>, node: usize) -> [u8; 32] {
    let expected = doc.text.len().min(BUFFER);
    let mut hasher = Hasher {
        sha: Sha256::new(),
        buffer: Vec::with_capacity(expected),
    };
    walk(doc, node, &mut hasher);
    hasher.flush();
    hasher.sha.finalize().into()
}

/// A container that is being written.
enum Open {
    /// The elements that are left, and where the next one stands.
    Array { left: u32, node: usize },
    /// Where in `Document::order` the next member is, and where the last one ends.
    Object { next: u32, end: u32 },
}

fn walk(doc: &Document<'_>, root: usize, out: &mut impl Sink) {
    let mut open = Vec::new();
    let mut node = root;
    loop {
        let container = match doc.nodes[node] {
            Node::Array { count, .. } => Some(Open::Array {
                left: count,
                node: node + 1,
            }),
            Node::Object { count, order, .. } => Some(Open::Object {
                next: order,
                end: order + count,
            }),
            _ => None,
        };
        let mut first = container.is_some();
        match container {
            Some(container) => {
                out.put_byte(if matches!(container, Open::Array { .. }) {
                    b'['
                } else {
                    b'{'
                });
                open.push(container);
            }
            None => scalar(doc, node, out),
        }
        // On to the next value, closing what ends before it.
        node = loop {
            match open.last_mut() {
                None => return,
                Some(Open::Array { left: 0, .. }) => out.put_byte(b']'),
                Some(Open::Object { next, end }) if next == end => out.put_byte(b'}'),
                Some(Open::Array { left, node }) => {
                    if !first {
                        out.put_byte(b',');
                    }
                    let element = *node;
                    *left -= 1;
                    *node = doc.after(element);
                    break element;
                }
                Some(Open::Object { next, .. }) => {
                    if !first {
                        out.put_byte(b',');
                    }
                    let name = doc.order[*next as usize] as usize;
                    *next += 1;
                    scalar(doc, name, out);
                    out.put_byte(b':');
                    break name + 1;
                }
            }
            open.pop();
            first = false;
        };
    }
}

#[inline]
fn scalar(doc: &Document<'_>, node: usize, out: &mut impl Sink) {
    let text = doc.text.as_bytes();
    match doc.nodes[node] {
        // What had no escapes needs none: the text's own bytes, with its quotes.
        Node::Text { start, end } => out.put(&text[start as usize - 1..end as usize + 1]),
        Node::Unescaped { start, end } => {
            escape(&doc.unescaped.as_bytes()[start as usize..end as usize], out)
        }
        Node::Plain { start, end } => out.put(&text[start as usize..end as usize]),
        Node::Number { start, end } => {
            out.put(
                Number::of(&doc.text[start as usize..end as usize])
                    .canonical()
                    .as_bytes(),
            );
        }
        Node::Bool(true) => out.put(b"true"),
        Node::Bool(false) => out.put(b"false"),
        Node::Null => out.put(b"null"),
        Node::Array { .. } | Node::Object { .. } => {}
    }
}

fn escape(string: &[u8], out: &mut impl Sink) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.put_byte(b'"');
    let mut from = 0;
    loop {
        let stop = plain_end(string, from);
        out.put(&string[from..stop]);
        match string.get(stop) {
            Some(&control @ ..0x20) => {
                let [high, low] = [control >> 4, control & 15].map(|digit| HEX[usize::from(digit)]);
                out.put(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            Some(&other) => out.put(&[b'\\', other]),
            None => break,
        }
        from = stop + 1;
    }
    out.put_byte(b'"');
}
