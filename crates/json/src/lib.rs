//! Strict JSON text: one pass that finds every defect, a document that keeps numbers exact, a canonical hash.
//!
//! A message's body is read once, by [`Document::parse`], and never turned into owned values: the schema
//! checks, the order checks and the content hash all look at the same document. Three things set it apart
//! from a general JSON library, and are the reason for its existence:
//!
//! - **What is not wrong as JSON may still be refused.** A repeated member name, a character that the queue
//!   cannot carry and a depth that readers cannot follow are *findings* on a document, not syntax errors;
//!   they never hide a syntax error that comes later in the text.
//! - **Numbers are exact.** A [`Number`] is its text; equality and order go by decimal value, whatever the
//!   number of digits, and cost time in proportion to the texts, never to the exponents.
//! - **The content hash is a value's.** [`Value::content_hash`] is the same for two texts if and only if they
//!   are equal as JSON values. Its form is described under [canonical form](Value::write_canonical).
//!
//! ```
//! use storybus_json::Document;
//!
//! let one = Document::parse(br#"{"n": 1.0, "s": "\u0061"}"#)?;
//! let other = Document::parse(br#"{"s":"a","n":1}"#)?;
//! assert_eq!(one.root().content_hash(), other.root().content_hash());
//!
//! let ambiguous = Document::parse(br#"[{"a": 1, "\u0061": 2}]"#)?;
//! assert_eq!(ambiguous.duplicate_member().as_deref(), Some("/0/a"));
//! # Ok::<(), storybus_json::SyntaxError>(())
//! ```
//!
//! Nothing here recurses, so the depth of a text is bounded by its length alone, not by the stack.

mod canonical;
mod document;
mod exponent;
mod lexer;
mod number;
mod parser;
mod value;

pub use document::{Document, Pointer};
pub use lexer::SyntaxError;
pub use number::Number;
pub use value::{Array, Kind, Members, Object, Tag, Value};
