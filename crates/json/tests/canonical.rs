//! The canonical form and its hash, which are stored and therefore fixed.

use sha2::{Digest, Sha256};
use storybus_json::Document;

fn canonical(text: &str) -> String {
    let document = Document::parse(text.as_bytes()).expect("JSON");
    let mut out = Vec::new();
    document.root().write_canonical(&mut out);
    let hash: [u8; 32] = Sha256::digest(&out).into();
    assert_eq!(document.root().content_hash(), hash);
    String::from_utf8(out).expect("UTF-8")
}

/// Changing a line here breaks the comparison with every stored hash.
#[test]
fn fixed_forms() {
    let cases = [
        (" null ", "null"),
        ("[ true , false ]", "[true,false]"),
        ("[]", "[]"),
        ("{ }", "{}"),
        ("[[],[{}],{\"a\":[]}]", "[[],[{}],{\"a\":[]}]"),
        ("\"\"", "\"\""),
        (r#""\u0061\/é\u00E9\ud83d\ude00""#, r#""a/éé😀""#),
        (
            r#""\"\\\b\f\n\r\t\u0000\u001F\u007f""#,
            "\"\\\"\\\\\\u0008\\u000c\\u000a\\u000d\\u0009\\u0000\\u001f\u{7f}\"",
        ),
        ("\"\\u2028\\ufffe\"", "\"\u{2028}\u{fffe}\""),
        (
            r#"{"b":1,"a":2,"":3,"B":4,"aa":5,"a\u0000":6}"#,
            r#"{"":3,"B":4,"a":2,"a\u0000":6,"aa":5,"b":1}"#,
        ),
        // By UTF-8 bytes: the astral character comes after U+FF5E, which by UTF-16 it would not.
        (
            "{\"😀\":1,\"～\":2,\"é\":3,\"z\":4}",
            "{\"z\":4,\"é\":3,\"～\":2,\"😀\":1}",
        ),
        (
            r#"{"12345678z":1,"12345678a":2,"12345678":3,"1234567":4}"#,
            r#"{"1234567":4,"12345678":3,"12345678a":2,"12345678z":1}"#,
        ),
        (
            "[0,-0,1.0,1e2,1.50,1e21,-1E-7,123456789012345678901234567890]",
            "[0,0,1,100,15e-1,1e21,-1e-7,12345678901234567890123456789e1]",
        ),
        (
            r#"{"$serde_json::private::Number":"1.0"}"#,
            r#"{"$serde_json::private::Number":"1.0"}"#,
        ),
        (r#"{"a":1,"a":0}"#, r#"{"a":1,"a":0}"#),
    ];
    for (text, form) in cases {
        assert_eq!(canonical(text), form, "{text}");
        assert_eq!(canonical(form), form, "the form is its own form");
    }
}

/// Computed by other means from the forms above.
#[test]
fn fixed_hashes() {
    let cases = [
        (
            "null",
            "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
        ),
        (
            "{}",
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        ),
        (
            r#"{"b":[1.0,"\n"],"a":-0}"#,
            "8554eeaf8828a362742f5ba770bc1e5a3392b0ef2c74588975d6044211812a28",
        ),
        (
            "{\"😀\":1e400,\"～\":[true,{}],\"z\":15e-1}",
            "330fcdb94a5eda40668202d163c2b6ceeb413b5a43fd3f6c8048a138090ce5a5",
        ),
    ];
    for (text, expected) in cases {
        let document = Document::parse(text.as_bytes()).unwrap();
        let hash: String = document
            .root()
            .content_hash()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hash, expected, "{text}");
    }
}

#[test]
fn a_part_has_the_form_it_would_have_alone() {
    let document = Document::parse(br#"{"x":[1,{"b":1.0,"a":"\n"},2]}"#).unwrap();
    let part = document
        .root()
        .get("x")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .nth(1)
        .unwrap();
    let alone = Document::parse(br#"{"a":"\u000a","b":1}"#).unwrap();
    assert_eq!(part.content_hash(), alone.root().content_hash());
    assert_eq!(part, alone.root());
    let mut out = b"kept ".to_vec();
    part.write_canonical(&mut out);
    assert_eq!(out, br#"kept {"a":"\u000a","b":1}"#);
}

#[test]
fn long_documents_are_hashed_in_pieces() {
    for length in [16_381, 16_382, 16_383, 16_384, 16_385, 40_000] {
        canonical(&format!("[\"{}\",1]", "x".repeat(length)));
        canonical(&format!("[\"\\n{}\\n\",1]", "x".repeat(length)));
        canonical(&format!("[{}1]", "1,".repeat(length / 2)));
    }
    canonical(&format!("[\"{}\"]", "\\u0001".repeat(20_000)));
}

#[test]
fn very_deep_documents() {
    let text = format!("{}1.0{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(canonical(&text).len(), 200_001);
    let text = format!("{}1{}", "{\"a\" : [".repeat(20_000), "]}".repeat(20_000));
    assert_eq!(canonical(&text), text.replace(' ', ""));
}
