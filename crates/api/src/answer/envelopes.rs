//! Lists of messages with their envelopes.

use serde::Serialize;
use storybus_core::domain::refusal::Refusal;

/// A message whose envelope is embedded as it is stored.
pub(crate) trait Bare {
    /// Everything but the envelope: an object with at least one member.
    fn head(&self) -> impl Serialize;

    /// The producer's bytes.
    fn envelope(&self) -> &[u8];
}

/// The list, written by hand: an envelope is the producer's bytes, which were checked to be one JSON value when they were
/// accepted. Reading them again would cost time and could change them.
pub(crate) fn messages<T: Bare>(entries: &[T], next: Option<&str>) -> Result<Vec<u8>, Refusal> {
    let room: usize = entries.iter().map(|e| e.envelope().len() + 1024).sum();
    let mut out = Vec::with_capacity(room + 16);
    out.extend_from_slice(b"{\"messages\":[");
    for (n, entry) in entries.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write(&mut out, &entry.head())?;
        // the head's closing brace makes room for the envelope
        out.pop();
        out.extend_from_slice(b",\"envelope\":");
        out.extend_from_slice(entry.envelope());
        out.push(b'}');
    }
    out.push(b']');
    if let Some(next) = next {
        out.extend_from_slice(b",\"next\":");
        write(&mut out, &next)?;
    }
    out.push(b'}');
    Ok(out)
}

fn write(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Refusal> {
    serde_json::to_writer(out, value).map_err(|error| {
        tracing::error!(%error, "a message cannot be written as JSON");
        Refusal::internal()
    })
}
