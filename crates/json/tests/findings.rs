//! What is JSON, and wrong all the same.

use storybus_json::Document;

fn parse(text: &str) -> Document<'_> {
    Document::parse(text.as_bytes()).expect("JSON")
}

#[track_caller]
fn duplicate(text: &str, pointer: Option<&str>) {
    let document = parse(text);
    assert_eq!(document.duplicate_member().as_deref(), pointer, "{text}");
    assert_eq!(
        document.root().is_of_ambiguous_document(),
        pointer.is_some(),
        "{text}"
    );
}

#[test]
fn a_name_repeats_within_its_own_object_only() {
    duplicate(r#"{"a":1,"a":1}"#, Some("/a"));
    duplicate(r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}],"A":1,"a ":1}"#, None);
    duplicate(r#"{"":1,"":2}"#, Some("/"));
    duplicate("[]", None);
    duplicate("1", None);
}

#[test]
fn names_are_compared_unescaped_and_as_they_are() {
    duplicate(r#"{"a":1,"\u0061":1}"#, Some("/a"));
    duplicate(r#"{"\ud83d\ude00":1,"😀":1}"#, Some("/😀"));
    duplicate(r#"{"\/":1,"/":1}"#, Some("/~1"));
    // Composed and decomposed: two names.
    duplicate("{\"é\":1,\"e\u{301}\":1}", None);
}

#[test]
fn names_that_agree_in_their_first_bytes() {
    duplicate(
        r#"{"abcdefgh":1,"abcdefghi":1,"abcdefg":1,"abcdefg\u0000":1}"#,
        None,
    );
    duplicate(
        r#"{"abcdefgh1":1,"abcdefgh2":1,"abcdefgh1":1}"#,
        Some("/abcdefgh1"),
    );
    duplicate(r#"{"a":1,"a\u0000":1,"a\u0000\u0000":1,"":1,"\u0000":1}"#, None);
    duplicate(r#"{"a\u0000":1,"a":1,"a\u0000":1}"#, Some("/a\0"));
}

#[test]
fn the_pointer_escapes_and_counts() {
    duplicate(
        r#"{"x":[0,[],{"k":{"a/b~c":1,"a/b~c":1}}]}"#,
        Some("/x/2/k/a~1b~0c"),
    );
    duplicate(r#"[[{"a":1},{"a":1,"b":[{}],"a":1}]]"#, Some("/0/1/a"));
    duplicate(r#"[{"~1":[],"~1":[]}]"#, Some("/0/~01"));
}

#[test]
fn the_first_repetition_in_the_text_counts() {
    duplicate(r#"{"a":1,"b":2,"b":3,"a":4}"#, Some("/b"));
    duplicate(r#"{"a":1,"x":{"c":1,"c":1},"a":4}"#, Some("/x/c"));
    duplicate(r#"{"x":1,"x":{"c":1,"c":1}}"#, Some("/x"));
    duplicate(r#"{"z":1,"z":1,"a":1,"a":1}"#, Some("/z"));
    duplicate(r#"{"a":{"b":1,"b":1},"a":{"b":1}}"#, Some("/a/b"));
}

#[test]
fn it_hides_no_syntax_error() {
    assert_eq!(Document::parse(br#"{"a":1,"a":1"#).unwrap_err().offset, 12);
    assert!(Document::parse("[\"\u{FFFE}\",]".as_bytes()).is_err());
}

#[test]
fn very_large_objects() {
    let members = |names: &mut dyn Iterator<Item = String>| -> String {
        let members: Vec<String> = names.map(|name| format!("\"{name}\":1")).collect();
        format!("{{{}}}", members.join(","))
    };
    let count = 20_000;
    duplicate(&members(&mut (0..count).map(|n| n.to_string())), None);
    duplicate(
        &members(
            &mut (0..count)
                .rev()
                .map(|n| format!("a long prefix, the same for all {n}")),
        ),
        None,
    );
    duplicate(
        &members(&mut (0..count).chain([7]).map(|n| (n * 7919 % count).to_string())),
        Some("/15433"),
    );
    duplicate(&members(&mut (0..count).map(|_| "a".to_owned())), Some("/a"));
    // Each name a prefix of the next.
    duplicate(&members(&mut (0..650).map(|n| "a".repeat(n))), None);
}

#[test]
fn a_repetition_at_any_depth() {
    let text = format!(
        "{}{{\"x\":1,\"x\":1}}{}",
        "{\"a\":[".repeat(20_000),
        "]}".repeat(20_000)
    );
    duplicate(&text, Some(&format!("{}/x", "/a/0".repeat(20_000))));
}

#[test]
fn characters_that_the_queue_cannot_carry() {
    let found = |text: &str| parse(text).illegal_character();
    assert_eq!(found("\"\u{FFFE}\""), Some(1));
    assert_eq!(found("{\"é\u{FFFF}\":\"\u{FFFE}\"}"), Some(4));
    assert_eq!(found(r#""\ufffe\uFFFF""#), None);
    // Their neighbours, and the noncharacters of other planes.
    assert_eq!(
        found("\"\u{FFFD}\u{10000}\u{FFBF}\u{FEFF}\u{1FFFE}\u{10FFFF}\u{FDD0}\u{7f}\""),
        None
    );
    for length in 0..200 {
        let padding = "x".repeat(length);
        assert_eq!(
            found(&format!("\"{padding}\u{FFFF}{padding}\u{FFFE}\"")),
            Some(length + 1)
        );
        assert_eq!(found(&format!("\"{padding}\u{FFFD}{padding}\u{FF5E}\"")), None);
    }
}

#[test]
fn depth() {
    for (text, depth) in [
        ("1", 0),
        ("\"[[\"", 0),
        ("[]", 1),
        ("{}", 1),
        ("[[],{\"a\":[1]},2]", 3),
        ("[[],[],[]]", 2),
    ] {
        assert_eq!(parse(text).depth(), depth, "{text}");
    }
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert_eq!(parse(&nested(128)).depth(), 128);
    assert_eq!(parse(&nested(129)).depth(), 129);
}
