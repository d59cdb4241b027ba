//! Finding one's way in a document.

use storybus_json::{Document, Kind};

#[test]
fn kinds_and_accessors() {
    let document = Document::parse(br#"[null,true,1.5,"a",[1],{"b":2}]"#).unwrap();
    let root = document.root();
    let elements: Vec<_> = root.as_array().unwrap().iter().collect();
    let [null, yes, number, string, array, object] = elements[..] else {
        panic!("six elements")
    };
    assert!(null.is_null() && !yes.is_null());
    assert_eq!(yes.as_bool(), Some(true));
    assert_eq!(number.as_number().unwrap().text(), "1.5");
    assert_eq!(string.as_str(), Some("a"));
    assert_eq!(string.as_bytes(), Some(&b"a"[..]));
    assert_eq!(array.as_array().unwrap().len(), 1);
    assert_eq!(object.as_object().unwrap().len(), 1);
    for value in elements {
        let answers = [
            value.is_null(),
            value.as_bool().is_some(),
            value.as_number().is_some(),
            value.as_str().is_some(),
            value.as_array().is_some(),
            value.as_object().is_some(),
        ];
        assert_eq!(value.as_bytes(), value.as_str().map(str::as_bytes));
        assert_eq!(answers.iter().filter(|&&answer| answer).count(), 1);
        assert!(value.as_object().is_some() || value.get("b").is_none());
    }
    assert!(matches!(object.get("b").unwrap().kind(), Kind::Number(_)));
}

#[test]
fn members_come_in_the_order_of_the_text() {
    let document = Document::parse(br#"{"b":[1,[2,{}]],"a\n":{"x":{}},"":3,"c":"\u0041"}"#).unwrap();
    let object = document.root().as_object().unwrap();
    let names = ["b", "a\n", "", "c"];
    assert!(object.iter().map(|(name, _)| name).eq(names));
    let bytes: Vec<_> = object.iter_bytes().map(|(name, _)| name).collect();
    assert_eq!(bytes, names.map(str::as_bytes));
    assert!(
        object
            .iter_bytes()
            .map(|(_, value)| value)
            .eq(object.iter().map(|(_, value)| value))
    );
    assert_eq!(object.iter().len(), 4);
    assert_eq!(object.iter().last().unwrap().1.as_str(), Some("A"));
    assert_eq!(
        object
            .get("a\n")
            .unwrap()
            .get("x")
            .unwrap()
            .as_object()
            .unwrap()
            .iter()
            .count(),
        0
    );
    assert!(object.get("").is_some());
    assert!(object.get("B").is_none());
}

#[test]
fn empty_containers() {
    let document = Document::parse(b"[[],{},[ ],{ }]").unwrap();
    let elements: Vec<_> = document.root().as_array().unwrap().iter().collect();
    assert_eq!(elements.len(), 4);
    assert!(elements[0].as_array().unwrap().is_empty());
    assert!(elements[1].as_object().unwrap().is_empty());
    assert_eq!(elements[0], elements[2]);
    assert_eq!(elements[1], elements[3]);
    assert_ne!(elements[0], elements[1]);
}

#[test]
fn objects_of_every_size_find_their_members() {
    for count in (0..40).chain([20_000]) {
        let members: Vec<String> = (0..count)
            .map(|n| format!("\"k{}\":{n}", n * 7919 % 20_011))
            .collect();
        let text = format!("{{{}}}", members.join(","));
        let document = Document::parse(text.as_bytes()).unwrap();
        let object = document.root().as_object().unwrap();
        assert_eq!(object.len(), count);
        for n in 0..count {
            let found = object.get(&format!("k{}", n * 7919 % 20_011)).unwrap();
            assert_eq!(found.as_number().unwrap().to_i64(), Some(n as i64));
        }
        assert!(object.get("k").is_none() && object.get("k99999").is_none() && object.get("").is_none());
    }
}

#[test]
fn of_repeated_names_the_first_is_found() {
    for padding in [0, 40] {
        let more: String = (0..padding).map(|n| format!(",\"p{n}\":0")).collect();
        let text = format!("{{\"a\":1,\"a\":2{more},\"a\":3}}");
        let document = Document::parse(text.as_bytes()).unwrap();
        assert_eq!(
            document.root().get("a").unwrap().as_number().unwrap().to_i64(),
            Some(1)
        );
        assert_eq!(document.root().as_object().unwrap().len(), padding + 3);
    }
}

#[test]
fn values_are_equal_as_json_values() {
    let same = [
        (
            r#"{"a":1,"b":[2,"x"]}"#,
            r#" { "b" : [ 20e-1 , "\u0078" ] , "a" : 1.0 } "#,
        ),
        ("0", "-0.0"),
        (r#""\/""#, r#""/""#),
        ("[null,true]", "[ null, true ]"),
    ];
    for (a, b) in same {
        assert_eq!(
            Document::parse(a.as_bytes()).unwrap().root(),
            Document::parse(b.as_bytes()).unwrap().root()
        );
    }
    let texts = [
        "0", "1", "null", "true", "false", "\"\"", "\"0\"", "[]", "{}", "[0]", "[[]]", "{\"\":0}", "\"null\"",
    ];
    for (i, a) in texts.iter().enumerate() {
        for (j, b) in texts.iter().enumerate() {
            let (a, b) = (
                Document::parse(a.as_bytes()).unwrap(),
                Document::parse(b.as_bytes()).unwrap(),
            );
            assert_eq!(a.root() == b.root(), i == j);
            assert_eq!(a.root().content_hash() == b.root().content_hash(), i == j);
        }
    }
}

#[test]
fn values_show_themselves() {
    let document = Document::parse(br#" { "b" : 1.0, "a" : [ ] } "#).unwrap();
    assert_eq!(format!("{:?}", document.root()), r#"{"a":[],"b":1}"#);
    assert_eq!(
        format!("{document:?}"),
        r#"Document(" { \"b\" : 1.0, \"a\" : [ ] } ")"#
    );
}
