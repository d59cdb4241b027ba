//! Reading a request. Whatever a client sends ends in a value or in a refusal that says where it is wrong.

mod body;
mod form;
mod headers;
mod members;
pub(crate) mod percent;
mod query;

use http::HeaderMap;
use storybus_protocol::{Source, Violation, rule};

pub(crate) use body::{ALTERED, message_body, object, optional_object};
pub(crate) use form::Form;
pub(crate) use headers::{Authorization, authorization, bearer, check_encoding, idempotency_key, is_form};
pub(crate) use members::{Members, refuse_all};
pub(crate) use query::Query;

use crate::context::{Body, Context};

/// The most faults that one answer lists.
pub(crate) const MAX_FAULTS: usize = 100;

/// A request on its way to its handler.
pub(crate) struct Call {
    /// What stands in the path for the template's parameters, in order, decoded.
    pub(crate) path: Vec<String>,
    /// As sent.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) context: Context,
}

impl Call {
    /// The path's parameters. The table of routes and its handlers agree on how many there are.
    pub(crate) fn path<const N: usize>(&self) -> [&str; N] {
        std::array::from_fn(|n| self.path.get(n).map_or("", String::as_str))
    }
}

/// One fault of a request.
pub(crate) fn fault(path: impl Into<String>, message: impl Into<String>) -> Violation {
    Violation::new(Source::Policy, rule::REQUEST_INVALID, message).at(path)
}
