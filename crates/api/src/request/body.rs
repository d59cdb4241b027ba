//! Bodies: messages as they came, everything else as one JSON object.

use bytes::Bytes;
use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_json::Document;
use storybus_protocol::{Violation, rule};

use super::members::{Members, cut};
use super::{Call, check_encoding};
use crate::MAX_BODY;
use crate::context::Body;

/// Stands for a body that the front did not read to its end: one byte more than a message may have.
static OVERSIZED: [u8; MAX_BODY + 1] = [0; MAX_BODY + 1];

/// Stands for a body whose bytes are lost: no UTF-8, as what the client sent was not.
static NO_UTF8: [u8; 1] = [0xff];

/// What a client is told of such a body.
pub(crate) const ALTERED: &str = "the body is not JSON in UTF-8: its bytes are not as many as Content-Length says, so some of them were no UTF-8 and have been replaced on the way";

/// The body of a publish, for the core to judge.
pub(crate) fn message_body(body: &Body) -> Bytes {
    match body {
        Body::Complete(bytes) => bytes.clone(),
        Body::TooLarge => Bytes::from_static(&OVERSIZED),
        Body::Altered => Bytes::from_static(&NO_UTF8),
    }
}

/// Reads the body as a JSON object, and gives what `read` made of it with every fault of its shape.
pub(crate) fn object<T>(
    call: &Call,
    read: impl FnOnce(&mut Members<'_>) -> T,
) -> Result<(T, Vec<Violation>), Refusal> {
    check_encoding(&call.headers)?;
    let text = match &call.body {
        Body::Complete(bytes) => bytes,
        Body::TooLarge => return Err(invalid(format!("the body has more than {MAX_BODY} bytes"))),
        Body::Altered => return Err(invalid(ALTERED.to_owned())),
    };
    let document = Document::parse(text).map_err(|e| {
        invalid(format!(
            "the body is not JSON in UTF-8: {} at byte {}",
            e.reason, e.offset
        ))
    })?;
    if let Some(pointer) = document.duplicate_member() {
        return Err(Refusal::request_invalid(cut(&pointer), "is given more than once"));
    }
    let object = document.root().as_object();
    let object = object.ok_or_else(|| Refusal::request_invalid("", "the body must be a JSON object"))?;
    let mut members = Members::of(object, String::new());
    let value = read(&mut members);
    Ok((value, members.finish()))
}

/// The same where the body may be left out, which counts as an empty object.
pub(crate) fn optional_object<T>(
    call: &Call,
    read: impl FnOnce(&mut Members<'_>) -> T,
) -> Result<(T, Vec<Violation>), Refusal> {
    if call.body == Body::empty() {
        let document = Document::parse(b"{}").map_err(|_| Refusal::internal())?;
        let object = document.root().as_object().ok_or_else(Refusal::internal)?;
        let mut members = Members::of(object, String::new());
        return Ok((read(&mut members), members.finish()));
    }
    object(call, read)
}

fn invalid(message: String) -> Refusal {
    Refusal::policy(RefusalKind::Invalid, rule::REQUEST_INVALID, message)
}
