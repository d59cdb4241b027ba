use std::time::Duration;

use serde_json::Value;
use storybus_sender::envelope::{Cause, Draft, InvalidEnvelope};

use super::{files, id, object, text, told};
use crate::support::{Ones, Still};

/// The moment of a `YYYY-MM-DDThh:mm:ss.fffZ`.
fn moment(text: &str) -> Duration {
    let number = |from: usize, to: usize| text[from..to].parse::<u64>().unwrap();
    assert!(text.len() == 24 && text.ends_with('Z'), "{text}");
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let year = number(0, 4);
    let mut days: u64 = (1970..year).map(|y| if is_leap(y) { 366 } else { 365 }).sum();
    let february = if is_leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += months[..usize::try_from(number(5, 7) - 1).unwrap()]
        .iter()
        .sum::<u64>();
    days += number(8, 10) - 1;
    let seconds = ((days * 24 + number(11, 13)) * 60 + number(14, 16)) * 60 + number(17, 19);
    Duration::from_millis(seconds * 1_000 + number(20, 23))
}

fn draft(case: &Value) -> Draft {
    let input = object(&case["input"]);
    let mut draft = Draft::new(text(&input["message_type"]));
    if let Some(follow) = case.get("follow") {
        draft = draft.caused_by(&Cause {
            message_id: text(&follow["message_id"]).to_owned(),
            correlation_id: text(&follow["correlation_id"]).to_owned(),
        });
    }
    for (name, value) in input {
        draft = match name.as_str() {
            "message_type" => draft,
            "payload" => draft.payload(value),
            "originating_system" => draft.originating_system(value),
            "message_id" => draft.message_id(text(value)),
            "correlation_id" => draft.correlation_id(text(value)),
            "timestamp" => draft.timestamp(text(value)),
            "topic" => draft.topic(text(value)),
            "extensions" => draft.extensions(value),
            other => panic!("{}: {other} is not known", id(case)),
        };
    }
    draft
}

#[test]
fn envelopes() {
    for file in files("envelope") {
        let clock = Still {
            at: moment(text(&file.top["clock"])),
            ..Still::default()
        };
        let mut ran = 0;
        for case in file.cases() {
            let built = draft(case).build(&clock, &Ones);
            let envelope = built.as_ref().map(|built| {
                let envelope: Value = serde_json::from_slice(&built.bytes).unwrap();
                assert_eq!(
                    text(&envelope["message_id"]).to_lowercase(),
                    built.message_id.to_string()
                );
                assert_eq!(
                    text(&envelope["correlation_id"]).to_lowercase(),
                    built.correlation_id.to_string()
                );
                envelope
            });
            for (name, expected) in object(&case["expect"]) {
                let told = format!("{}: {name}: {built:?}", id(case));
                match (name.as_str(), &envelope) {
                    ("error", Err(InvalidEnvelope { member, reason })) => {
                        assert_eq!(member, expected, "{told}");
                        assert!(!reason.is_empty());
                    }
                    ("fields", Ok(envelope)) => {
                        for (member, value) in object(expected) {
                            assert_eq!(envelope.get(member), Some(value), "{told}");
                        }
                    }
                    ("absent", Ok(envelope)) => {
                        for member in expected.as_array().unwrap() {
                            assert_eq!(envelope.get(text(member)), None, "{told}");
                        }
                    }
                    ("uuidv7", Ok(envelope)) => {
                        for (member, begin) in object(expected) {
                            assert!(text(&envelope[member]).starts_with(text(begin)), "{told}");
                        }
                    }
                    _ => panic!("{told}"),
                }
            }
            ran += 1;
        }
        told(&file, ran);
    }
}
