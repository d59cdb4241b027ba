//! What can be wrong with a schema file.

use std::fmt;

/// A schema file that does not compile. The files are part of the crate: a test sees it, no user does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaError {
    /// JSON Pointer within the file.
    pub(crate) at: String,
    pub(crate) defect: Defect,
}

/// Why a schema does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A schema is an object or a boolean.
    NotASchema,
    /// A keyword that asserts something this validator would silently not check.
    UnknownKeyword(String),
    /// A keyword's value is not of the kind it must be, or is of a kind that is not supported.
    UnsupportedValue,
    /// A `$ref` that leads nowhere, or elsewhere than to this file's `$defs`.
    UnresolvedReference,
    /// A `$ref` that leads back to itself: validation would recurse as deep as a message nests.
    RecursiveReference,
    /// Not a regular expression of ECMA-262.
    Pattern(&'static str),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.defect {
            Defect::NotASchema => f.write_str("neither an object nor a boolean")?,
            Defect::UnknownKeyword(keyword) => write!(f, "keyword {keyword:?} is not supported")?,
            Defect::UnsupportedValue => f.write_str("value is not supported")?,
            Defect::UnresolvedReference => f.write_str("reference leads nowhere")?,
            Defect::RecursiveReference => f.write_str("reference leads back to itself")?,
            Defect::Pattern(reason) => write!(f, "not a regular expression: {reason}")?,
        }
        write!(f, " at {:?}", self.at)
    }
}

impl std::error::Error for SchemaError {}
