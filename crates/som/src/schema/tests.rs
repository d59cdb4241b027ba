//! The validator on small schemas, and on the shipped files.

use storybus_json::{Document, Value};

use super::error::Defect;
use super::{Finding, Findings, Graph, SchemaName, file, graph};

const ENVELOPE: SchemaName = SchemaName::Envelope;

/// Rules without `envelope.`, and paths.
fn listed(findings: &[Finding]) -> Vec<String> {
    let show = |finding: &Finding| {
        let rule = finding
            .violation
            .rule
            .strip_prefix("envelope.")
            .unwrap()
            .to_owned();
        format!("{rule} {}", finding.violation.path.as_deref().unwrap())
    };
    findings.iter().map(show).collect()
}

fn check(schema: &str, value: &str) -> Vec<Finding> {
    let schema = Document::parse(schema.as_bytes()).unwrap();
    let value = Document::parse(value.as_bytes()).unwrap();
    let graph = Graph::compile(ENVELOPE, schema.root()).unwrap();
    let mut findings = Findings::new(false);
    graph.check(value.root(), "", &mut findings);
    findings.list
}

#[track_caller]
fn assert_valid(schema: &str, values: &[&str]) {
    for value in values {
        assert_eq!(
            listed(&check(schema, value)),
            [""; 0],
            "{value:.60} under {schema}"
        );
    }
}

#[track_caller]
fn assert_lists(schema: &str, value: &str, expected: &[&str]) {
    assert_eq!(
        listed(&check(schema, value)),
        expected,
        "{value:.60} under {schema}"
    );
}

#[test]
fn types() {
    assert_valid(
        r#"{"type":"integer"}"#,
        &[
            "1",
            "-0",
            "1.0",
            "1e2",
            "10e-1",
            "1e400",
            "123456789012345678901234567890",
        ],
    );
    for value in ["1.5", "1e-1", "\"1\"", "true", "null", "[]", "{}"] {
        assert_lists(r#"{"type":"integer"}"#, value, &["type "]);
    }
    assert_valid(r#"{"type":"number"}"#, &["1", "1.5", "1e-400"]);
    assert_valid(r#"{"type":"boolean"}"#, &["true", "false"]);
    assert_lists(r#"{"type":"boolean"}"#, "0", &["type "]);
    assert_lists(r#"{"type":"null"}"#, "false", &["type "]);
    assert_lists(r#"{"type":"object"}"#, "[]", &["type "]);
    assert_lists(r#"{"type":"array"}"#, "{}", &["type "]);
}

#[test]
fn equality_is_that_of_json() {
    let schema = r#"{"enum":[1,"1",null,{"a":[1,2.50],"b":true}]}"#;
    assert_valid(
        schema,
        &["1.0", "10e-1", "\"1\"", "null", r#"{"b":true,"a":[1e0,2.5]}"#],
    );
    for value in [
        "true",
        "\"null\"",
        "1.0000000000000000000000001",
        r#"{"a":[2.5,1],"b":true}"#,
    ] {
        assert_lists(schema, value, &["enum "]);
    }
    assert_valid(r#"{"const":0}"#, &["-0", "0.0", "0e9"]);
    assert_lists(r#"{"const":0}"#, "false", &["const "]);
    assert_lists(r#"{"const":"a"}"#, "\"A\"", &["const "]);
}

#[test]
fn keywords_rule_their_own_kind_of_value_only() {
    let schema = r##"{"minLength":3,"maxLength":4,"pattern":"^a","format":"uuid","minimum":3,"maximum":4,"uniqueItems":true,
        "items":{"type":"string"},"required":["a"],"properties":{"a":{"type":"string"}},"additionalProperties":false}"##;
    assert_valid(
        schema,
        &["null", "true", "3", "4.0", "[\"x\",\"y\"]", r#"{"a":"x"}"#],
    );
    assert_lists(schema, "5", &["maximum "]);
    assert_lists(schema, "2.9", &["minimum "]);
    assert_lists(schema, "\"b\"", &["minLength ", "pattern ", "format.uuid "]);
    assert_lists(schema, "[1,1.0]", &["uniqueItems ", "type /0", "type /1"]);
    assert_lists(
        schema,
        r#"{"a":1,"b":1,"c":1}"#,
        &["type /a", "additionalProperties ", "additionalProperties "],
    );
}

#[test]
fn limits_are_exact() {
    assert_valid(
        r#"{"minimum":0,"maximum":1}"#,
        &[
            "0",
            "1",
            "-0",
            "1e0",
            "0.999999999999999999999999",
            "1e-999999999",
        ],
    );
    assert_lists(
        r#"{"minimum":0,"maximum":1}"#,
        "1.000000000000000000000001",
        &["maximum "],
    );
    assert_lists(r#"{"minimum":0,"maximum":1}"#, "-1e-999999999", &["minimum "]);
    // Characters, not bytes and not UTF-16 units; a combining accent is one of its own.
    assert_valid(
        r#"{"minLength":2,"maxLength":2}"#,
        &["\"ab\"", "\"🎥🎥\"", "\"e\u{301}\"", r#""\ud83c\udfa5\n""#],
    );
    assert_lists(r#"{"minLength":2,"maxLength":2}"#, "\"🎥\"", &["minLength "]);
    assert_lists(r#"{"minLength":2,"maxLength":2}"#, "\"ab🎥\"", &["maxLength "]);
}

#[test]
fn unique_items_go_by_equality_of_json() {
    let schema = r#"{"uniqueItems":true}"#;
    assert_valid(
        schema,
        &[
            "[]",
            "[1]",
            "[1,\"1\",true,[1],{\"a\":1}]",
            "[0,false,null,\"\",[],{}]",
        ],
    );
    assert_lists(schema, "[1,2,1e0]", &["uniqueItems "]);
    assert_lists(
        schema,
        r#"[{"a":1,"b":[2]},{"b":[2.0],"a":1}]"#,
        &["uniqueItems "],
    );
    assert_lists(schema, "[1,1,1,1]", &["uniqueItems "]);
    assert_valid(r#"{"uniqueItems":false}"#, &["[1,1]"]);
    let many: Vec<String> = (0..20_000).map(|i| format!("{{\"n\":{i}}}")).collect();
    assert_valid(schema, &[&format!("[{}]", many.join(","))]);
    assert_lists(
        schema,
        &format!("[{},{{\"n\":7.0}}]", many.join(",")),
        &["uniqueItems "],
    );
}

#[test]
fn of_a_repeated_name_every_member_is_checked() {
    let schema = r#"{"properties":{"a":{"type":"string"}}}"#;
    assert_lists(schema, r#"{"a":"x","a":1}"#, &["type /a"]);
    assert_lists(schema, r#"{"a":1,"a":"x","a":2}"#, &["type /a", "type /a"]);
}

#[test]
fn required_is_listed_first_and_once_a_member() {
    let schema = r#"{"required":["z","a","m"],"properties":{"a":{"type":"string"},"b":false}}"#;
    assert_lists(
        schema,
        r#"{"b":1}"#,
        &["required ", "required ", "required ", "false_schema /b"],
    );
    let findings = check(schema, r#"{"a":1}"#);
    assert_eq!(listed(&findings), ["required ", "required ", "type /a"]);
    let messages: Vec<_> = findings
        .iter()
        .map(|finding| finding.violation.message.as_str())
        .collect();
    assert!(
        messages[0].contains("`z`") && messages[1].contains("`m`"),
        "{messages:?}"
    );
}

#[test]
fn members_are_surplus_when_neither_names_nor_patterns_know_them() {
    let schema = r##"{"properties":{"a":{}},"patternProperties":{"^x":{"type":"string"},"y$":{"type":"string"}},"additionalProperties":false}"##;
    assert_valid(schema, &[r#"{"a":1,"x":"","ay":"","xy":""}"#]);
    assert_lists(schema, r#"{"xy":1}"#, &["type /xy", "type /xy"]);
    assert_lists(
        schema,
        r#"{"b":1,"ax":1}"#,
        &["additionalProperties ", "additionalProperties "],
    );
    // A required name is not a known one.
    assert_lists(
        r#"{"required":["r"],"additionalProperties":false}"#,
        r#"{"r":1}"#,
        &["additionalProperties "],
    );
    assert_valid(
        r#"{"properties":{"a":{}},"additionalProperties":true}"#,
        &[r#"{"b":1}"#],
    );
}

#[test]
fn paths_are_json_pointers_to_the_value_at_fault() {
    let schema = r#"{"properties":{"a/b":{"items":{"properties":{"~":{"type":"null"}}}}}}"#;
    assert_lists(schema, r#"{"a/b":[{},{"~":1}]}"#, &["type /a~1b/1/~0"]);
}

#[test]
fn combinations() {
    let any = r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#;
    assert_valid(any, &["\"\"", "[]", "[\"\"]"]);
    assert_lists(any, "[1,\"\",2]", &["type ", "type /0", "type /2", "anyOf "]);
    assert_lists(any, "1", &["type ", "type ", "anyOf "]);

    let one = r#"{"oneOf":[{"minimum":2},{"maximum":5},{"type":"null"}]}"#;
    assert_valid(one, &["1", "6"]);
    assert_lists(one, "3", &["type ", "oneOf "]);
    assert_lists(one, "\"\"", &["type ", "oneOf "]);
    assert_lists(
        r#"{"oneOf":[false,{"type":"null"}]}"#,
        "3",
        &["false_schema ", "type ", "oneOf "],
    );

    assert_lists(
        r#"{"not":{"anyOf":[{"type":"null"},{"minimum":2}]}}"#,
        "3",
        &["not "],
    );
    assert_valid(r#"{"not":{"minimum":2}}"#, &["1"]);
    assert_lists(r#"{"not":{}}"#, "1", &["not "]);

    let all =
        r##"{"minimum":2,"allOf":[{"minimum":3},{"$ref":"#/$defs/least"}],"$defs":{"least":{"minimum":4}}}"##;
    // Each is a keyword that fails at the place, wherever in the schema it stands.
    assert_lists(all, "1", &["minimum ", "minimum ", "minimum "]);
    assert_lists(all, "3", &["minimum "]);
}

#[test]
fn conditions_are_never_listed() {
    let schema = r#"{"if":{"required":["a"],"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c","d"]}}"#;
    assert_lists(schema, r#"{"a":1.0}"#, &["required "]);
    assert_lists(schema, r#"{"a":2}"#, &["required ", "required "]);
    assert_lists(schema, "{}", &["required ", "required "]);
    assert_valid(schema, &["[]", r#"{"a":1,"b":1}"#]);
    assert_valid(r#"{"if":{"type":"null"},"then":false}"#, &["1"]);
    assert_lists(
        r#"{"if":{"type":"null"},"then":false}"#,
        "null",
        &["false_schema "],
    );
}

#[test]
fn a_reference_and_its_siblings_both_count() {
    let schema = r##"{"$ref":"#/$defs/s","maxLength":1,"$defs":{"s":{"type":"string","minLength":1}}}"##;
    assert_valid(schema, &["\"a\""]);
    assert_lists(schema, "\"ab\"", &["maxLength "]);
    assert_lists(schema, "\"\"", &["minLength "]);
    assert_lists(schema, "1", &["type "]);
}

#[test]
fn a_branch_that_fails_by_news_alone_makes_all_branches_tolerable() {
    let schema = r#"{"anyOf":[{"type":"string","enum":["A"]},{"type":"string","pattern":"^x-"}]}"#;
    let tolerable = |value| {
        check(schema, value)
            .iter()
            .map(|finding| finding.tolerable)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&check(schema, "\"B\"")), ["enum ", "pattern ", "anyOf "]);
    assert_eq!(tolerable("\"B\""), [true, true, true]);
    assert_eq!(listed(&check(schema, "1")), ["type ", "enum ", "type ", "anyOf "]);
    assert_eq!(tolerable("1"), [false, true, false, false]);
    // Also through another anyOf.
    let nested = format!(r#"{{"anyOf":[{schema},{{"type":"null"}}]}}"#);
    assert!(check(&nested, "\"B\"").iter().all(|finding| finding.tolerable));
    assert!(check(&nested, "1").iter().any(|finding| !finding.tolerable));
    // A oneOf is not of those that give way.
    let one = r#"{"oneOf":[{"enum":["A"]},{"type":"null"}]}"#;
    assert_eq!(
        check(one, "1").iter().map(|f| f.tolerable).collect::<Vec<_>>(),
        [true, false, false]
    );
}

fn defect(schema: &str) -> (String, Defect) {
    let document = Document::parse(schema.as_bytes()).unwrap();
    let error = Graph::compile(ENVELOPE, document.root()).err().unwrap();
    assert!(
        error.to_string().ends_with(&format!(" at {:?}", error.at)),
        "{error}"
    );
    (error.at, error.defect)
}

#[test]
fn what_is_not_supported_does_not_compile() {
    let unknown = |keyword: &str| Defect::UnknownKeyword(keyword.to_owned());
    for (keyword, value) in [
        ("minItems", "1"),
        ("exclusiveMinimum", "1"),
        ("dependentRequired", "{}"),
        ("prefixItems", "[]"),
        ("contains", "{}"),
        ("propertyNames", "{}"),
        ("unevaluatedProperties", "false"),
        ("multipleOf", "1"),
        ("$dynamicRef", "\"#x\""),
        ("default", "1"),
    ] {
        let schema = format!(r#"{{"items":{{"{keyword}":{value}}}}}"#);
        assert_eq!(defect(&schema), (format!("/items/{keyword}"), unknown(keyword)));
    }
    // Also where nothing refers to it.
    assert_eq!(
        defect(r#"{"$defs":{"a":{"contains":{}}}}"#),
        ("/$defs/a/contains".to_owned(), unknown("contains"))
    );
    for schema in [
        r#"{"type":["string","null"]}"#,
        r#"{"type":"text"}"#,
        r#"{"format":"email"}"#,
        r#"{"additionalProperties":{}}"#,
        r#"{"maxLength":"1"}"#,
        r#"{"maxLength":1.5}"#,
        r#"{"minimum":"1"}"#,
        r#"{"enum":"A"}"#,
        r#"{"required":[1]}"#,
        r#"{"properties":[]}"#,
        r#"{"then":{}}"#,
        r#"{"$defs":[]}"#,
        r#"{"uniqueItems":1}"#,
    ] {
        assert_eq!(defect(schema).1, Defect::UnsupportedValue, "{schema}");
    }
    assert_eq!(defect("1").1, Defect::NotASchema);
    assert_eq!(defect(r#"{"not":[]}"#), ("/not".to_owned(), Defect::NotASchema));
    for reference in ["#", "#/$defs/b", "#/properties/a", "https://example.com/x", ""] {
        let schema = format!(r#"{{"$ref":"{reference}","$defs":{{"a":{{}}}}}}"#);
        assert_eq!(defect(&schema).1, Defect::UnresolvedReference, "{reference}");
    }
    let recursive = r##"{"$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"not":{"$ref":"#/$defs/a"}}}}"##;
    assert_eq!(defect(recursive).1, Defect::RecursiveReference);
    assert!(matches!(defect(r#"{"pattern":"("}"#).1, Defect::Pattern(_)));
    let many: Vec<String> = (0..65).map(|i| format!("\"{i}\"")).collect();
    assert_eq!(
        defect(&format!(r#"{{"required":[{}]}}"#, many.join(","))).1,
        Defect::UnsupportedValue
    );
}

#[test]
fn the_shipped_files_are_those_of_som_1_0() {
    let names: Vec<_> = SchemaName::ALL
        .map(|name| {
            let document = Document::parse(file(name).as_bytes()).unwrap();
            assert_eq!(document.duplicate_member(), None);
            let root = document.root();
            let text = |name| root.get(name).and_then(Value::as_str).unwrap().to_owned();
            assert_eq!(text("$schema"), "https://json-schema.org/draft/2020-12/schema");
            assert!(Graph::compile(name, root).is_ok());
            let id = text("$id");
            let of_som = id.strip_prefix("https://storyobjectmodel.com/schema/1.0/");
            of_som
                .and_then(|rest| rest.strip_suffix(".schema.json"))
                .unwrap()
                .to_owned()
        })
        .into();
    // The rules of each graph bear the name that its file has.
    for (name, file) in SchemaName::ALL.into_iter().zip(names) {
        assert!(
            graph(name)
                .rules()
                .all(|rule| rule.strip_prefix(&*file).unwrap().starts_with('.')),
            "{file}"
        );
    }
}

#[test]
fn expressions_are_those_of_ecma_262() {
    let range = r#"{"pattern":"^[\\[(](\\d+:\\d+)?_(\\d+:\\d+)?[\\])]$"}"#;
    assert_valid(range, &["\"[0:0_1:0)\"", "\"(_]\"", "\"[_1:1]\""]);
    for value in ["\"[0:0_1:0)\\n\"", "\"[\\u0660:0_1:0)\"", "\"_\"", "\" [_]\""] {
        assert_lists(range, value, &["pattern "]);
    }
    let source = r#"{"pattern":"^tams://[^/]+/.+"}"#;
    assert_valid(
        source,
        &[
            "\"tams://a/b\"",
            "\"tams://\\n/b\\n\"",
            "\"tams://a//\"",
            "\"tams://🎥/🎥\"",
        ],
    );
    for value in [
        "\"tams://a/\"",
        "\"tams:///a\"",
        "\"tams://a/\\n\"",
        "\"tams://a/\\u2028b\"",
        "\"xtams://a/b\"",
    ] {
        assert_lists(source, value, &["pattern "]);
    }
}
