//! Handles into a document.

use std::fmt;

use crate::canonical;
use crate::document::{Document, Node};
use crate::number::Number;

/// Up to so many members, looking at each name is quicker than a binary search.
const FEW_MEMBERS: usize = 16;

/// A value within a document: a cheap handle.
///
/// Two values are equal if they are equal as JSON values: numbers by exact decimal value, objects whatever
/// the order of their members, arrays in order.
#[derive(Clone, Copy)]
pub struct Value<'d> {
    doc: &'d Document<'d>,
    node: usize,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum Kind<'d> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, exact.
    Number(Number<'d>),
    /// A string, unescaped.
    String(&'d str),
    /// An array.
    Array(Array<'d>),
    /// An object.
    Object(Object<'d>),
}

/// What a value is, without a look at what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl<'d> Value<'d> {
    #[inline]
    pub(crate) fn new(doc: &'d Document<'d>, node: usize) -> Self {
        Self { doc, node }
    }

    /// What it is.
    #[inline]
    pub fn kind(self) -> Kind<'d> {
        let Document {
            text,
            unescaped,
            nodes,
            ..
        } = self.doc;
        match nodes[self.node] {
            Node::Null => Kind::Null,
            Node::Bool(value) => Kind::Bool(value),
            Node::Plain { start, end } | Node::Number { start, end } => {
                Kind::Number(Number::of(&text[start as usize..end as usize]))
            }
            Node::Text { start, end } => Kind::String(&text[start as usize..end as usize]),
            Node::Unescaped { start, end } => Kind::String(&unescaped[start as usize..end as usize]),
            Node::Array { .. } => Kind::Array(Array { value: self }),
            Node::Object { .. } => Kind::Object(Object { value: self }),
        }
    }

    /// What it is, without a look at what is in it.
    #[inline]
    pub fn tag(self) -> Tag {
        match self.doc.nodes[self.node] {
            Node::Null => Tag::Null,
            Node::Bool(_) => Tag::Bool,
            Node::Plain { .. } | Node::Number { .. } => Tag::Number,
            Node::Text { .. } | Node::Unescaped { .. } => Tag::String,
            Node::Array { .. } => Tag::Array,
            Node::Object { .. } => Tag::Object,
        }
    }

    /// Whether it is this string.
    #[inline]
    pub fn is_str(self, wanted: &str) -> bool {
        self.doc.is_str(self.node, wanted)
    }

    /// Whether it is `null`.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self.kind(), Kind::Null)
    }

    /// The boolean, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        match self.kind() {
            Kind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The unescaped string, if it is one.
    #[inline]
    pub fn as_str(self) -> Option<&'d str> {
        self.doc.str(self.node)
    }

    /// The bytes of the unescaped string, if it is one. Quicker to come by than the string, whose ends have to be
    /// looked at for whether they part a character: for what is compared and not read.
    #[inline]
    pub fn as_bytes(self) -> Option<&'d [u8]> {
        self.doc.bytes(self.node)
    }

    /// The object, if it is one.
    #[inline]
    pub fn as_object(self) -> Option<Object<'d>> {
        (self.tag() == Tag::Object).then_some(Object { value: self })
    }

    /// The array, if it is one.
    #[inline]
    pub fn as_array(self) -> Option<Array<'d>> {
        (self.tag() == Tag::Array).then_some(Array { value: self })
    }

    /// The number, if it is one.
    #[inline]
    pub fn as_number(self) -> Option<Number<'d>> {
        match self.kind() {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The member of that name, if this is an object that has it.
    pub fn get(self, name: &str) -> Option<Value<'d>> {
        self.as_object()?.get(name)
    }

    /// Whether a member name repeats anywhere in the document that this is a part of.
    #[inline]
    pub fn is_of_ambiguous_document(self) -> bool {
        self.doc.is_ambiguous()
    }

    /// Appends the canonical form: equal bytes if and only if equal as JSON values.
    ///
    /// The form is itself a JSON text, the shortest of its kind, in UTF-8 and without white space:
    ///
    /// - **Literals**: `null`, `true`, `false`.
    /// - **Strings**: between quotes, every character as itself but three kinds: the quote is `\"`, the
    ///   backslash is `\\`, a character below U+0020 is `\u00` and two lower-case hexadecimal digits. Nothing
    ///   is normalised: strings are equal when their code points are.
    /// - **Numbers**: zero, of either sign, is `0`. Any other is `-` if negative, then, if it is a whole number
    ///   of at most 21 digits, those digits; otherwise its coefficient, a whole number without leading or
    ///   trailing zeros, followed, unless the exponent is zero, by `e` and the exponent of ten, in digits
    ///   without leading zeros, with a `-` if negative. So `1.50` is `15e-1`, `1E+2` is `100`, `1e400` is `1e400`.
    /// - **Arrays**: `[`, the elements in order, separated by `,`, and `]`.
    /// - **Objects**: `{`, the members, each its name as a string, `:` and its value, separated by `,`, and `}`;
    ///   sorted by the UTF-8 bytes of the unescaped names. Members of the same name, which make a document
    ///   ambiguous, all stand, in the text's order.
    ///
    /// Hashes of this form are stored and compared for days, by nodes of different releases: it never changes.
    pub fn write_canonical(self, out: &mut Vec<u8>) {
        canonical::write(self.doc, self.node, out);
    }

    /// SHA-256 of the [canonical form](Self::write_canonical).
    pub fn content_hash(self) -> [u8; 32] {
        canonical::hash(self.doc, self.node)
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.kind(), other.kind()) {
            (Kind::Null, Kind::Null) => true,
            (Kind::Bool(a), Kind::Bool(b)) => a == b,
            (Kind::Number(a), Kind::Number(b)) => a == b,
            (Kind::String(a), Kind::String(b)) => a == b,
            (Kind::Array(_), Kind::Array(_)) | (Kind::Object(_), Kind::Object(_)) => {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                self.write_canonical(&mut a);
                other.write_canonical(&mut b);
                a == b
            }
            _ => false,
        }
    }
}

impl Eq for Value<'_> {}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write_canonical(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

/// An array within a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Array<'d> {
    value: Value<'d>,
}

impl<'d> Array<'d> {
    /// How many elements.
    pub fn len(self) -> usize {
        match self.value.doc.nodes[self.value.node] {
            Node::Array { count, .. } => count as usize,
            _ => 0,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The elements in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Value<'d>> {
        let doc = self.value.doc;
        let mut node = self.value.node + 1;
        (0..self.len()).map(move |_| {
            let element = Value::new(doc, node);
            node = doc.after(node);
            element
        })
    }
}

/// An object within a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'d> {
    value: Value<'d>,
}

impl<'d> Object<'d> {
    /// How many members.
    pub fn len(self) -> usize {
        self.order().len()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The member of that name; the first, if the name repeats. Takes logarithmic time.
    pub fn get(self, name: &str) -> Option<Value<'d>> {
        let doc = self.value.doc;
        let order = self.order();
        let found = if order.len() <= FEW_MEMBERS {
            order.iter().find(|&&node| doc.is_str(node as usize, name))
        } else {
            let name = name.as_bytes();
            let name_at = |node: u32| doc.bytes(node as usize).unwrap_or_default();
            let first = order.partition_point(|&node| name_at(node) < name);
            order.get(first).filter(|&&node| name_at(node) == name)
        };
        found.map(|&node| Value::new(doc, node as usize + 1))
    }

    /// The members in the text's order, names unescaped.
    #[inline]
    pub fn iter(self) -> Members<'d> {
        Members {
            doc: self.value.doc,
            node: self.value.node + 1,
            left: self.len(),
        }
    }

    /// The members in the text's order, names unescaped, as [bytes](Value::as_bytes).
    #[inline]
    pub fn iter_bytes(self) -> impl Iterator<Item = (&'d [u8], Value<'d>)> {
        let doc = self.value.doc;
        let mut members = self.iter();
        std::iter::from_fn(move || {
            let (name, value) = members.step()?;
            Some((doc.bytes_of(name).unwrap_or_default(), value))
        })
    }

    /// Where the names stand on the tape, in the order of the names.
    fn order(self) -> &'d [u32] {
        match self.value.doc.nodes[self.value.node] {
            Node::Object { count, order, .. } => {
                &self.value.doc.order[order as usize..(order + count) as usize]
            }
            _ => &[],
        }
    }
}

/// The members of an object, in the text's order.
#[derive(Debug, Clone)]
pub struct Members<'d> {
    doc: &'d Document<'d>,
    node: usize,
    left: usize,
}

impl<'d> Members<'d> {
    /// The next member: its name's node, and its value.
    #[inline]
    fn step(&mut self) -> Option<(Node, Value<'d>)> {
        self.left = self.left.checked_sub(1)?;
        let [name, value, ..] = self.doc.nodes.get(self.node..)? else {
            return None;
        };
        let member = Value::new(self.doc, self.node + 1);
        self.node = match *value {
            Node::Array { next, .. } | Node::Object { next, .. } => next as usize,
            _ => self.node + 2,
        };
        Some((*name, member))
    }
}

impl<'d> Iterator for Members<'d> {
    type Item = (&'d str, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.step()?;
        let Document { text, unescaped, .. } = self.doc;
        Some((name.str(text, unescaped).unwrap_or_default(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Members<'_> {}
