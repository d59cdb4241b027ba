//! `docs/openapi.json` and `docs/asyncapi.json` as judges of what is answered.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};

/// A document, and its schemas ready for use.
pub(crate) struct Document {
    /// As it is written.
    pub(crate) json: Value,
    registry: Registry<'static>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// What the document is called among the schemas.
const NAME: &str = "urn:storybus:document";

macro_rules! som {
    ($($name:literal)*) => {
        [$(include_str!(concat!("../../../../som/schemas/", $name, ".schema.json"))),*]
    };
}

/// The schemas of SOM, which have names of their own.
const SOM: [&str; 7] = som!["envelope" "story-context" "telling-event" "link-event" "delivery-media-available" "skill-warning" "system-audit"];

static OPENAPI: LazyLock<Document> =
    LazyLock::new(|| Document::new(include_str!("../../../../../docs/openapi.json")));
static ASYNCAPI: LazyLock<Document> =
    LazyLock::new(|| Document::new(include_str!("../../../../../docs/asyncapi.json")));

pub(crate) fn openapi() -> &'static Document {
    &OPENAPI
}

pub(crate) fn asyncapi() -> &'static Document {
    &ASYNCAPI
}

/// Closes what the document leaves open: clients must expect new members, but a test asks that all are documented.
fn closed(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let open = members.contains_key("properties")
                && !members.contains_key("additionalProperties")
                && !members.contains_key("$ref");
            if open {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(closed);
        }
        Value::Array(elements) => elements.iter_mut().for_each(closed),
        _ => {}
    }
}

impl Document {
    fn new(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).expect("JSON");
        let mut strict = json.clone();
        if let Some(schemas) = strict
            .pointer_mut("/components/schemas")
            .and_then(Value::as_object_mut)
        {
            // a message is open where SOM says so
            let ours = schemas.iter_mut().filter(|(name, _)| *name != "Envelope");
            ours.for_each(|(_, schema)| closed(schema));
        }
        let mut registry = Registry::new()
            .draft(Draft::Draft202012)
            .add(NAME, strict)
            .expect("a name");
        for text in SOM {
            let schema: Value = serde_json::from_str(text).expect("JSON");
            let id = schema["$id"].as_str().expect("an id").to_owned();
            registry = registry.add(id, schema).expect("a name");
        }
        Self {
            json,
            registry: registry.prepare().expect("references that lead somewhere"),
            validators: Mutex::default(),
        }
    }

    /// An operation's answer of a status: where it stands, once references are followed, and what it says.
    pub(crate) fn answer(&self, method: &str, template: &str, status: u16) -> Option<(String, &Value)> {
        let path = template.replace('~', "~0").replace('/', "~1");
        let pointer = format!("/paths/{path}/{}/responses/{status}", method.to_lowercase());
        let answer = self.json.pointer(&pointer)?;
        match answer["$ref"]
            .as_str()
            .and_then(|reference| reference.strip_prefix('#'))
        {
            Some(target) => Some((target.to_owned(), self.json.pointer(target)?)),
            None => Some((pointer, answer)),
        }
    }

    /// What is wrong with a value by the schema at a place of the document.
    pub(crate) fn faults(&self, pointer: &str, value: &Value) -> Vec<String> {
        let validator = self.validator(pointer);
        let faults = validator.iter_errors(value);
        faults
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect()
    }

    fn validator(&self, pointer: &str) -> Arc<Validator> {
        let made = self.validators.lock().expect("a lock").get(pointer).cloned();
        made.unwrap_or_else(|| {
            assert!(self.json.pointer(pointer).is_some(), "no schema at {pointer}");
            let fragment = pointer.replace('{', "%7B").replace('}', "%7D");
            let validator = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .with_registry(&self.registry)
                .should_validate_formats(true)
                .build(&json!({"$ref": format!("{NAME}#{fragment}")}));
            let validator = Arc::new(validator.expect("a schema"));
            let mut validators = self.validators.lock().expect("a lock");
            validators.insert(pointer.to_owned(), validator.clone());
            validator
        })
    }
}
