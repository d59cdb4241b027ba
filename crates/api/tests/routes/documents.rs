//! The documents for machines: served as they are, and held to the code. That every route is in the OpenAPI document is
//! tested beside the table of routes; that every answer of these tests is as it says, in `world`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use storybus_core::domain::message::Attributes;
use storybus_protocol::rule::{ALL, Appears, SCHEMA_KEYWORDS, SCHEMAS, TABLE, about};

use crate::world::{Document, World, ask, asyncapi, note, openapi, snapshot};

/// Every object in a document with its place.
fn walk(value: &Value, pointer: &str, see: &mut impl FnMut(&str, &serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            see(pointer, members);
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(member, &format!("{pointer}/{name}"), see);
            }
        }
        Value::Array(elements) => {
            for (n, element) in elements.iter().enumerate() {
                walk(element, &format!("{pointer}/{n}"), see);
            }
        }
        _ => {}
    }
}

/// The answers of all operations: status, and what they say.
fn answers() -> Vec<(u16, Value)> {
    let mut all = Vec::new();
    for (path, methods) in openapi().json["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            for status in operation["responses"].as_object().expect("responses").keys() {
                let status: u16 = status.parse().expect("a status");
                let (_, answer) = openapi().answer(method, path, status).expect("an answer");
                all.push((status, answer.clone()));
            }
        }
    }
    all
}

/// The rules that an answer can name, but for those of schemas.
fn rules(answer: &Value) -> Vec<String> {
    let rule =
        answer.pointer("/content/application~1json/schema/properties/violations/items/properties/rule");
    let listed = rule.and_then(|rule| {
        rule["enum"]
            .as_array()
            .or_else(|| rule["anyOf"][0]["enum"].as_array())
    });
    let listed = listed.into_iter().flatten();
    listed
        .map(|rule| rule.as_str().expect("a rule").to_owned())
        .collect()
}

#[test]
fn anybody_gets_them_as_they_are() {
    let world = World::new();
    for (path, document) in [("/v1/openapi.json", openapi()), ("/v1/asyncapi.json", asyncapi())] {
        let answer = world.send(ask("GET", path));
        assert_eq!(answer.is_ok().json, document.json);
        assert_eq!(document.json["info"]["version"], json!(env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn every_reference_leads_somewhere() {
    for document in [openapi(), asyncapi()] {
        walk(&document.json, "", &mut |place, members| {
            let reference = members.get("$ref").and_then(Value::as_str).unwrap_or("#");
            if let Some(target) = reference.strip_prefix('#') {
                assert!(document.json.pointer(target).is_some(), "{place}: {reference}");
            }
        });
    }
}

#[test]
fn every_example_is_valid() {
    let mut examples = 0;
    walk(&openapi().json, "", &mut |place, members| {
        if let (Some(example), Some(_)) = (members.get("example"), members.get("schema")) {
            examples += 1;
            let faults = openapi().faults(&format!("{place}/schema"), example);
            assert_eq!(faults, [""; 0], "{place}");
        }
    });
    assert!(examples > 20, "{examples}");
}

#[test]
fn the_rules_of_an_answer_are_those_of_its_status() {
    let mut documented = BTreeSet::new();
    for (status, answer) in answers() {
        for rule in rules(&answer) {
            let known = about(&rule).unwrap_or_else(|| panic!("{rule} is none"));
            assert!(
                known.appears.contains(&Appears::Refusal(status)),
                "{rule}: {status}"
            );
            documented.insert(rule);
        }
    }
    let refusing = TABLE
        .iter()
        .filter(|known| matches!(known.appears[0], Appears::Refusal(_)));
    for known in refusing {
        // of a method that has no operation
        let elsewhere = known.rule == "method.not_allowed";
        assert!(
            elsewhere || documented.contains(known.rule),
            "{} is nowhere",
            known.rule
        );
    }
}

#[test]
fn a_publish_can_be_refused_by_every_schema_rule() {
    let schema = "/components/responses/PublishInvalid/content/application~1json/schema";
    let refusal = |rule: &str| {
        let violation = json!({"source": "schema", "rule": rule, "message": "m", "path": "/payload"});
        openapi().faults(schema, &json!({"accepted": false, "violations": [violation]}))
    };
    for name in SCHEMAS {
        for keyword in SCHEMA_KEYWORDS {
            assert_eq!(refusal(&format!("{name}.{}", keyword.rule)), [""; 0]);
        }
    }
    for other in [
        "envelope.allOf",
        "story.required",
        "envelope.formatXuuid",
        "tenant.not_found",
    ] {
        assert!(!refusal(other).is_empty(), "{other}");
    }
}

#[test]
fn who_may_call_is_what_the_path_says() {
    let mut ids = BTreeSet::new();
    for (path, methods) in openapi().json["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let expected = match path.as_str() {
                p if p.starts_with("/admin/") => json!([{"token": ["sombus/admin"]}]),
                p if p.contains("/iam/") => json!([{"signature": []}]),
                p if p.contains("/consumers/") => json!([{"token": ["sombus/consume"]}]),
                p if p.starts_with("/tenants/") || p.starts_with("/jwt/") => {
                    json!([{"token": ["sombus/publish"]}])
                }
                "/oauth/token" => json!([{"client": []}, {}]),
                _ => json!([]),
            };
            assert_eq!(operation["security"], expected, "{method} {path}");
            let id = operation["operationId"].as_str().expect("an id");
            assert!(ids.insert(id), "{id} stands twice");
            let named: Vec<&str> = path.split('/').filter(|s| s.starts_with('{')).collect();
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let in_path: Vec<String> = parameters
                .iter()
                .filter_map(|p| openapi().json.pointer(p["$ref"].as_str()?.strip_prefix('#')?))
                .filter(|p| p["in"] == "path")
                .map(|p| format!("{{{}}}", p["name"].as_str().expect("a name")))
                .collect();
            assert_eq!(in_path, named, "{method} {path}");
        }
    }
}

/// The schema of SOM's own file, as it stands in the document.
#[test]
fn the_envelope_is_that_of_som() {
    let file = include_str!("../../../som/schemas/envelope.schema.json");
    let text = file.replace(
        "#/$defs/originating_system",
        "#/components/schemas/OriginatingSystem",
    );
    let mut som: Value = serde_json::from_str(&text).expect("JSON");
    let schemas = &openapi().json["components"]["schemas"];
    assert_eq!(schemas["OriginatingSystem"], som["$defs"]["originating_system"]);
    let mut ours = schemas["Envelope"].clone();
    for schema in [&mut som, &mut ours] {
        for name in ["$schema", "$id", "$defs", "title", "description"] {
            schema.as_object_mut().expect("an object").remove(name);
        }
    }
    assert_eq!(ours, som);
}

fn messages(document: &Document) -> Vec<(&String, &Value)> {
    let messages = document.json["components"]["messages"].as_object();
    messages.expect("messages").iter().collect()
}

#[test]
fn every_family_is_a_message_with_an_example() {
    let names: BTreeSet<&str> = messages(asyncapi())
        .into_iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let families = SCHEMAS.iter().copied().filter(|schema| *schema != "envelope");
    assert_eq!(names, families.chain(["other", "received"]).collect());
    for (name, message) in messages(asyncapi()) {
        let examples = message["examples"].as_array().expect("examples");
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            let payload = format!("/components/messages/{name}/payload/schema");
            assert_eq!(
                asyncapi().faults(&payload, &example["payload"]),
                [""; 0],
                "{name}"
            );
            if let Some(headers) = example.get("headers") {
                let attributes = "/components/messageTraits/attributes/headers";
                assert_eq!(asyncapi().faults(attributes, headers), [""; 0], "{name}");
            }
        }
    }
}

#[test]
fn the_attributes_are_those_that_travel() {
    let text = String::new;
    let attributes = Attributes {
        message_type: text(),
        family: Some(text()),
        topic: text(),
        correlation_id: text(),
        producer_id: "p1".parse().expect("an id"),
        system_id: text(),
        som_version: text(),
    };
    let headers = &asyncapi().json["components"]["messageTraits"]["attributes"]["headers"];
    let mut documented: Vec<&str> = headers["properties"]
        .as_object()
        .expect("properties")
        .keys()
        .map(String::as_str)
        .collect();
    documented.retain(|name| *name != "redelivery");
    let mut travelling: Vec<&str> = attributes.pairs().map(|(name, _)| name).collect();
    travelling.sort_unstable();
    documented.sort_unstable();
    assert_eq!(documented, travelling);
}

#[test]
fn what_a_receive_gives_is_what_the_document_says() {
    let world = World::new();
    let room = world.room();
    for message in [note(1), snapshot(2, 1)] {
        let answer = world.send(ask("POST", room.publish()).of(&room.producer).json(&message));
        assert_eq!(answer.status, 202, "{}", answer.json);
    }
    let received = world.receive(&room, "");
    assert_eq!(received.len(), 2);
    for message in received {
        let schema = "/components/messages/received/payload/schema";
        assert_eq!(asyncapi().faults(schema, &message), [""; 0]);
    }
}

/// The token route's errors are no rules, and no rule is taken for one.
#[test]
fn the_token_route_is_apart() {
    let errors = openapi()
        .json
        .pointer("/components/schemas/TokenError/properties/error/enum");
    for error in errors.and_then(Value::as_array).expect("errors") {
        assert!(!ALL.contains(&error.as_str().expect("an error")));
    }
}
