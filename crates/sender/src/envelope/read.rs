//! What the outbox has to know of an envelope that somebody else has written: its two ids. The rest is the bus's to judge.

use serde::Deserialize;
use serde_json::error::Category;
use storybus_protocol::id::{CorrelationId, MessageId};

use crate::message::{Group, Invalid, Key, Message, Target};
use crate::transport::text::is_object;

/// The largest message that a bus takes, in bytes.
pub const MAX_BUS_MESSAGE: usize = 240_000;
const NO_OBJECT: &str = "it is no JSON object with one message_id and one correlation_id, both texts";

/// A message for a bus, of the exact bytes of an envelope: its `message_id` is the key, its `correlation_id` the order group.
///
/// Only what would make the outbox's promises void is refused here: no JSON, an id that is none, or more bytes than a bus takes.
pub fn for_bus(target: Target, bytes: Vec<u8>) -> Result<Message, Invalid> {
    if bytes.len() > MAX_BUS_MESSAGE {
        return Err(not_an_envelope(format!(
            "it has more than {MAX_BUS_MESSAGE} bytes, the most that a bus takes; put references into it, not content"
        )));
    }
    let ids = Ids::read(&bytes)?;
    let message_id: MessageId = id("message_id", ids.message_id)?;
    let correlation_id: CorrelationId = id("correlation_id", ids.correlation_id)?;
    Ok(Message {
        target,
        key: Key::new(message_id.to_string())?,
        group: Some(Group::new(correlation_id.to_string())?),
        body: bytes,
        content_type: Some("application/json".to_owned()),
    })
}

/// The `message_id` of an envelope as it stands there; `None` where there is none.
pub(crate) fn message_id_of(bytes: &[u8]) -> Option<String> {
    let id = Ids::read(bytes).ok()?.message_id?;
    id.parse::<MessageId>().ok().map(|_| id)
}

#[derive(Deserialize)]
struct Ids {
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    correlation_id: Option<String>,
}

impl Ids {
    fn read(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.trim_ascii().is_empty() {
            return Err(not_an_envelope("it is empty".to_owned()));
        }
        if bytes.starts_with(b"\xef\xbb\xbf") {
            return Err(not_an_envelope(
                "it begins with a byte order mark, which no JSON does: write it without".to_owned(),
            ));
        }
        let text = str::from_utf8(bytes)
            .map_err(|e| not_an_envelope(format!("it is not UTF-8 (at byte {})", e.valid_up_to())))?;
        // The parser's own words may repeat the message, so only the place is told.
        let ids = serde_json::from_str(text).map_err(|e| {
            let (line, column) = (e.line(), e.column());
            let what = match e.classify() {
                Category::Data => NO_OBJECT,
                Category::Io | Category::Syntax | Category::Eof => "it is not JSON",
            };
            not_an_envelope(format!("{what} (line {line}, column {column})"))
        })?;
        if is_object(bytes) {
            Ok(ids)
        } else {
            Err(not_an_envelope(NO_OBJECT.to_owned()))
        }
    }
}

fn id<T: std::str::FromStr>(member: &str, text: Option<String>) -> Result<T, Invalid> {
    let text = text.ok_or_else(|| not_an_envelope(format!("it has no {member}")))?;
    text.parse()
        .map_err(|_| not_an_envelope(format!("its {member} is no UUID (8-4-4-4-12 hexadecimal digits)")))
}

fn not_an_envelope(reason: String) -> Invalid {
    Invalid::NotAnEnvelope { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: &str = r#"{"payload":{"message_id":7,"a":[1,{"b":null}]}, "correlation_id":"0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B08",
        "message_id":"0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07","topic":"\ud800"}"#;

    fn target() -> Target {
        Target::new("bus").unwrap()
    }

    #[test]
    fn the_ids_become_key_and_group_in_lower_case_and_the_bytes_stay() {
        let message = for_bus(target(), ENVELOPE.as_bytes().to_vec()).unwrap();
        assert_eq!(message.key.as_str(), "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07");
        assert_eq!(
            message.group.as_ref().map(Group::as_str),
            Some("0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b08")
        );
        assert_eq!(message.body, ENVELOPE.as_bytes());
        assert_eq!(
            message_id_of(ENVELOPE.as_bytes()).as_deref(),
            Some("0199A1C4-7A2E-7B31-8C55-4D2F9E6A1B07")
        );
    }

    #[test]
    fn a_message_that_is_nested_deep_is_the_buss_to_judge() {
        let deep = ENVELOPE.replace("null", &format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)));
        assert!(for_bus(target(), deep.into_bytes()).is_ok());
    }

    #[test]
    fn what_is_no_envelope_is_told_without_repeating_it() {
        let without = |member: &str| ENVELOPE.replace(&format!("\"{member}\":\"0"), "\"x\":\"0");
        for (bytes, told) in [
            (b"".to_vec(), "it is empty"),
            (b" \n".to_vec(), "it is empty"),
            (b"hunter2".to_vec(), "it is not JSON (line 1, column 1)"),
            (b"\xef\xbb\xbf{}".to_vec(), "byte order mark"),
            (b"\"hunter2\"".to_vec(), "it is no JSON object"),
            (b"[\"hunter2\"]".to_vec(), "it is no JSON object"),
            (
                b"[\"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07\",\"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b08\"]"
                    .to_vec(),
                "it is no JSON object",
            ),
            (
                b"{\"message_id\":\"hunter2\",\"correlation_id\":5}".to_vec(),
                "it is no JSON object",
            ),
            (
                b"{\"message_id\":\"hunter2\"}".to_vec(),
                "its message_id is no UUID",
            ),
            (
                format!("{ENVELOPE} hunter2").into_bytes(),
                "it is not JSON (line 2",
            ),
            (without("message_id").into_bytes(), "it has no message_id"),
            (without("correlation_id").into_bytes(), "it has no correlation_id"),
            (
                ENVELOPE
                    .replacen('{', r#"{"message_id":"hunter2","#, 1)
                    .into_bytes(),
                "with one message_id",
            ),
            (b"{\"a\":\"\xff\"}".to_vec(), "it is not UTF-8 (at byte 6)"),
            (
                vec![b' '; 240_001],
                "it has more than 240000 bytes, the most that a bus takes",
            ),
        ] {
            let error = for_bus(target(), bytes).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
