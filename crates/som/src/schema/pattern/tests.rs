//! Expressions of SOM and others, against `regress`.

use proptest::prelude::*;
use regress::Regex;

use super::Pattern;
use crate::schema::{SchemaName, file};

/// Those of SOM, and others that are read.
fn expressions() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in SchemaName::ALL {
        let schema: serde_json::Value = serde_json::from_str(file(name)).unwrap();
        let mut open = vec![&schema];
        while let Some(value) = open.pop() {
            if let Some(object) = value.as_object() {
                all.extend(object.get("pattern").and_then(|p| p.as_str()).map(str::to_owned));
                if let Some(patterns) = object.get("patternProperties").and_then(|p| p.as_object()) {
                    all.extend(patterns.keys().cloned());
                }
                open.extend(object.values());
            } else if let Some(array) = value.as_array() {
                open.extend(array);
            }
        }
    }
    assert!(all.len() > 10);
    all.extend(
        [
            "",
            "^",
            "$",
            "^$",
            "a",
            "a$",
            "^a",
            "ab|b",
            "(ab)*c",
            "^(a|b)*abb$",
            "a.b",
            "^.*$",
            "[a-]+$",
            "[^a]b",
            "a{0}b",
            "(a{2}){2}",
            r"\$$",
            r"\\$",
            "(a?b?)*c",
            "x(a|)b",
            "^[^/]$",
        ]
        .map(str::to_owned),
    );
    all
}

/// Both engines on one text.
fn agree(expression: &str, text: &str) {
    let theirs = Regex::with_flags(expression, "u").unwrap().find(text).is_some();
    let ours = Pattern::compile(expression).unwrap().matches(text);
    assert_eq!(ours, theirs, "{expression:?} on {text:?}");
}

proptest! {
    #[test]
    fn texts_match_as_an_ecma_262_engine_has_it(
        texts in proptest::collection::vec(
            prop_oneof![
                "[abcx/:.;0-9_\\[\\]()$\\\\-]{0,12}",
                "(tams://|som\\.|com\\.|x-|newsroom|iptc-mediatopic|[\\[(])?[a-z0-9._:/)\\]\\-]{0,10}(\n|\r|\u{2028}|\u{e9}|\u{1f3a5})?[a-z0-9:_.)\\]]{0,4}",
                "[0-9]{1,3}[.:][0-9]{1,3}[.:;][0-9]{1,3}([:;][0-9]{2})?",
                "[\\[(]([0-9]{1,2}:[0-9]{1,2})?_([0-9]{1,2}:[0-9]{1,2})?[)\\]]",
            ],
            1..8,
        )
    ) {
        for expression in expressions() {
            texts.iter().for_each(|text| agree(&expression, text));
        }
    }
}

#[test]
fn what_is_not_read_does_not_compile() {
    for expression in [
        "(", ")", "[", "[a", "a)", "*", "a**", "a+?", "a{1,2}", "a{,2}", "a{x}", "(?:a)", "(?=a)", r"\w",
        r"\b", r"\u0041", r"[\w]", r"a\", "é", "[à-é]", "[z-a]", "^a|b", "a|b$", "a^b", "a$b", "{", "}", "]",
    ] {
        assert!(Pattern::compile(expression).is_err(), "{expression}");
    }
}

#[test]
fn repetitions_end_somewhere() {
    assert!(Pattern::compile("a{501}").is_err());
    assert!(Pattern::compile("(a{100}){100}").is_err());
    assert!(Pattern::compile("a{200}").unwrap().matches(&"a".repeat(200)));
    assert!(!Pattern::compile("a{200}").unwrap().matches(&"a".repeat(199)));
    // as many states as there are texts of so many letters
    assert!(Pattern::compile("(a|b)*a(a|b){12}$").is_err());
}
