//! Strict JSON text: one pass that finds every defect, a document that keeps numbers exact, a canonical hash.

/// A parsed JSON text. Everything is borrowed from the text where it can be.
#[derive(Debug)]
pub struct Document<'a> {
    _text: &'a [u8],
}

/// The text is not JSON (RFC 8259).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset of the first byte that cannot stand there.
    pub offset: usize,
    /// What is wrong, as a lower-case fragment.
    pub reason: &'static str,
}

/// A JSON Pointer (RFC 6901) to a place in a document.
pub type Pointer = String;

impl<'a> Document<'a> {
    /// Reads the whole text; never recurses.
    pub fn parse(_text: &'a [u8]) -> Result<Self, SyntaxError> {
        unimplemented!()
    }
    /// The pointer to the first member whose (unescaped) name repeats within its object.
    pub fn duplicate_member(&self) -> Option<Pointer> {
        unimplemented!()
    }
    /// Byte offset of the first raw U+FFFE or U+FFFF: the characters that JSON allows and SQS does not.
    pub fn illegal_character(&self) -> Option<usize> {
        unimplemented!()
    }
    /// How many arrays and objects stand within each other at the deepest place; 0 for a scalar.
    pub fn depth(&self) -> usize {
        unimplemented!()
    }
    /// The value of the whole text.
    pub fn root(&self) -> Value<'_> {
        unimplemented!()
    }
}

/// A value within a document: a cheap handle.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d> {
    _doc: &'d Document<'d>,
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

impl<'d> Value<'d> {
    /// What it is.
    pub fn kind(self) -> Kind<'d> {
        unimplemented!()
    }
    /// The unescaped string, if it is one.
    pub fn as_str(self) -> Option<&'d str> {
        unimplemented!()
    }
    /// The object, if it is one.
    pub fn as_object(self) -> Option<Object<'d>> {
        unimplemented!()
    }
    /// The array, if it is one.
    pub fn as_array(self) -> Option<Array<'d>> {
        unimplemented!()
    }
    /// The number, if it is one.
    pub fn as_number(self) -> Option<Number<'d>> {
        unimplemented!()
    }
    /// The member of that name, if this is an object that has it.
    pub fn get(self, _name: &str) -> Option<Value<'d>> {
        unimplemented!()
    }
    /// Appends the canonical form: equal bytes if and only if equal as JSON values.
    pub fn write_canonical(self, _out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// SHA-256 of the canonical form.
    pub fn content_hash(self) -> [u8; 32] {
        unimplemented!()
    }
}

/// An array within a document.
#[derive(Debug, Clone, Copy)]
pub struct Array<'d> {
    _value: Value<'d>,
}

impl<'d> Array<'d> {
    /// How many elements.
    pub fn len(self) -> usize {
        unimplemented!()
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// The elements in order.
    pub fn iter(self) -> impl Iterator<Item = Value<'d>> {
        std::iter::empty()
    }
}

/// An object within a document.
#[derive(Debug, Clone, Copy)]
pub struct Object<'d> {
    _value: Value<'d>,
}

impl<'d> Object<'d> {
    /// How many members.
    pub fn len(self) -> usize {
        unimplemented!()
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// The member of that name.
    pub fn get(self, _name: &str) -> Option<Value<'d>> {
        unimplemented!()
    }
    /// The members in the text's order, names unescaped.
    pub fn iter(self) -> impl Iterator<Item = (&'d str, Value<'d>)> {
        std::iter::empty()
    }
}

/// An exact decimal number as it stands in the text. Equality and order are by exact decimal value.
#[derive(Debug, Clone, Copy)]
pub struct Number<'d> {
    _text: &'d str,
}

impl<'d> Number<'d> {
    /// The text of the number.
    pub fn text(self) -> &'d str {
        self._text
    }
    /// Whether the value is a whole number (`1.0` and `1e2` are).
    pub fn is_integer(self) -> bool {
        unimplemented!()
    }
}
