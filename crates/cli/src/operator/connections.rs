//! What producers, consumers, operators and workspaces have in common: lists, a look at one, writes, the end.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::api::{Api, Document};
use super::flags::Paging;
use super::names::{Found, Kind};
use super::out::{self, Cell, Table, Tone};
use super::secret;
use crate::exit::Failure;

/// A list of a kind.
pub(super) fn list(
    api: &mut Api,
    kind: Kind,
    paging: &Paging,
    json: bool,
    table: impl FnOnce(&[Value]) -> Table,
) -> Result<(), Failure> {
    let route = api.route_of(kind)?;
    let all = api.gather(&route, kind.list(), &[], paging)?;
    if json {
        return out::document(&all.document()?);
    }
    table(&all.values()?).print(&format!("no {0} here; storybus {0} create --help", kind.many()))?;
    more(all.next.as_deref());
    Ok(())
}

/// Says that a list has been cut.
pub(super) fn more(next: Option<&str>) {
    if next.is_some() {
        out::note("there is more: --limit N, or --all");
    }
}

/// One thing, as JSON or as fields.
pub(super) fn show_found(
    document: &Document,
    json: bool,
    fields: impl FnOnce(&Value) -> Vec<(&'static str, Cell)>,
) -> Result<(), Failure> {
    if json {
        return out::document(document);
    }
    out::fields(&fields(&document.value()?))
}

/// Makes a connection. Its secret goes to the file, or is shown.
pub(super) fn create(
    api: &mut Api,
    kind: Kind,
    body: &Value,
    secret_file: Option<&Path>,
    json: bool,
    fields: impl FnOnce(&Value) -> Vec<(&'static str, Cell)>,
) -> Result<(), Failure> {
    secret::check(secret_file)?;
    let route = api.route_of(kind)?;
    let look = format!(
        "storybus {} list. One that was made has a secret that nobody has seen: delete it, or give it another with storybus secrets create",
        kind.many()
    );
    let made = api.post(&route, body, &look)?;
    secret::handed_over(&made, secret_file, json, fields)?;
    let name = body["name"].as_str().unwrap_or_default();
    if api.names(kind).count(name) > 1 {
        out::note(&format!(
            "another {} has the name {:?}, too: each of them is named by its id from now on",
            kind.one(),
            crate::client::json::plain(name)
        ));
    }
    Ok(())
}

/// A connection with its workspace's name beside the id, for people.
pub(super) fn in_words(api: &mut Api, connection: &Value) -> Value {
    let workspace = api.names(Kind::Workspace).told(connection, "tenant");
    let mut connection = connection.clone();
    connection["tenant"] = workspace.into();
    connection
}

/// Replaces members of what was found.
pub(super) fn written(api: &mut Api, found: &Found, body: Map<String, Value>) -> Result<Document, Failure> {
    if body.is_empty() {
        return Err(Failure::unusable(
            "nothing to change: say what, as the verb's --help lists it",
        ));
    }
    api.patch(&found.path, &Value::Object(body))
}

/// Deletes what was found.
pub(super) fn deleted(api: &mut Api, kind: Kind, found: &Found, json: bool) -> Result<(), Failure> {
    api.delete(&found.path)?;
    gone(kind.one(), &found.told(), &found.id, json)
}

/// Says that something is gone. The bus's own answer is empty.
pub(super) fn gone(one: &str, told: &str, id: &str, json: bool) -> Result<(), Failure> {
    if json {
        return out::value(&json!({ "deleted": id }));
    }
    out::text(&format!("deleted the {one} {told}\n"))
}

/// How a connection stands.
pub(super) fn state(connection: &Value) -> Cell {
    let is = |member| connection.get(member) == Some(&Value::Bool(true));
    match (is("disabled"), is("paused")) {
        (true, true) => Cell::new("disabled, paused").toned(Tone::Bad),
        (true, false) => Cell::new("disabled").toned(Tone::Bad),
        (false, true) => Cell::new("paused").toned(Tone::Warn),
        (false, false) => Cell::new("active").toned(Tone::Good),
    }
}

/// The members of a body that were given.
pub(super) fn body(members: Vec<(&str, Option<Value>)>) -> Map<String, Value> {
    members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
