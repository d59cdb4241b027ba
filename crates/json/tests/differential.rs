//! Accepts and refuses what a widely used parser does, and reads the same.
//!
//! Known differences, which are skipped: the other parser refuses numbers beyond a double's range and texts
//! nested deeper than 128.

use proptest::prelude::*;
use storybus_json::{Document, Kind, Value};

/// What the other parser says; nothing where the two are meant to differ.
fn reference(text: &[u8]) -> Option<Result<serde_json::Value, serde_json::Error>> {
    match serde_json::from_slice(text) {
        Err(error) if error.to_string().contains("number out of range") => None,
        Err(error) if error.to_string().contains("recursion limit") => None,
        answer => Some(answer),
    }
}

fn same(value: Value<'_>, expected: &serde_json::Value) -> bool {
    match (value.kind(), expected) {
        (Kind::Null, serde_json::Value::Null) => true,
        (Kind::Bool(a), serde_json::Value::Bool(b)) => a == *b,
        (Kind::String(a), serde_json::Value::String(b)) => a == b,
        (Kind::Number(a), serde_json::Value::Number(b)) => match b.as_i64() {
            Some(whole) => a.to_i64() == Some(whole),
            // A double, which the other parser may miss by its last bit.
            None => {
                let ours: f64 = a.text().parse().unwrap_or(f64::NAN);
                let theirs = b.as_f64().unwrap_or(f64::NAN);
                ours == theirs || (ours - theirs).abs() <= theirs.abs() * 1e-15
            }
        },
        (Kind::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Kind::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len() && b.iter().all(|(name, b)| a.get(name).is_some_and(|a| same(a, b)))
        }
        _ => false,
    }
}

fn assert_agrees(text: &[u8]) {
    let shown = String::from_utf8_lossy(text);
    let ours = Document::parse(text);
    if let Err(error) = &ours {
        assert!(error.offset <= text.len(), "{shown}");
    }
    let Some(expected) = reference(text) else { return };
    match (ours, expected) {
        (Ok(ours), Ok(expected)) => {
            // With a repeated name, the other parser keeps one of the members.
            assert!(
                ours.duplicate_member().is_some() || same(ours.root(), &expected),
                "{shown}"
            );
        }
        (ours, expected) => assert_eq!(ours.err().is_some(), expected.is_err(), "refused: {shown}"),
    }
}

const SAMPLE: &str =
    r#" {"a\n":[1.5e+3, -0,true , {"é😀":null,"":""}],"b":"\u00e9\ud83d\ude00x","c": false,"d":[[],{}]}"#;

#[test]
fn every_byte_replaced_removed_or_inserted() {
    assert_agrees(SAMPLE.as_bytes());
    for at in 0..SAMPLE.len() {
        let (before, after) = (&SAMPLE.as_bytes()[..at], &SAMPLE.as_bytes()[at..]);
        assert_agrees(&[before, &after[1..]].concat());
        for byte in 0..=255 {
            assert_agrees(&[before, &[byte], after].concat());
            assert_agrees(&[before, &[byte], &after[1..]].concat());
        }
    }
}

#[test]
fn every_escape_of_a_code_unit() {
    for unit in 0..=0xFFFF {
        assert_agrees(format!("\"\\u{unit:04x}\"").as_bytes());
    }
    for high in ["d7ff", "d800", "dbff", "dc00", "dfff", "e000"] {
        for low in ["dbff", "dc00", "dfff", "e000", "0041", "d8", "zzzz"] {
            assert_agrees(format!("\"x\\u{high}\\u{low}\"").as_bytes());
        }
    }
}

/// Pieces of JSON, so that random sequences of them are often almost JSON.
fn any_piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => proptest::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "null", "true", "false", "0", "-", "1", ".", "e", "E+",
            "12.5", "\\", "\\u", "\\ud83d\\ude00", "\\\"", " ", "\n", "é", "😀", "\u{feff}", "\u{ffff}", "{}", "[]", "[1]",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_pieces(pieces in proptest::collection::vec(any_piece(), 0..16)) {
        assert_agrees(&pieces.concat());
    }

    #[test]
    fn random_numbers(text in "-?[0-9]{0,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,3})?") {
        assert_agrees(text.as_bytes());
        assert_agrees(format!("[{text}]").as_bytes());
    }

    #[test]
    fn random_strings(content in proptest::collection::vec(any_piece(), 0..8)) {
        assert_agrees(&[b"\"", &content.concat()[..], b"\""].concat());
    }

    #[test]
    fn several_mutations(
        cuts in proptest::collection::vec((0..SAMPLE.len(), 0..4_usize, any_piece()), 1..4),
    ) {
        let mut text = SAMPLE.as_bytes().to_vec();
        for (at, length, piece) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, piece);
        }
        assert_agrees(&text);
    }
}
