//! From what people type to the ids that routes need: an id, or a name that only one thing has.

use std::collections::BTreeMap;

use serde_json::Value;
use storybus_protocol::rule;

use super::api::{Api, Document, id_in, segment};
use super::flags::Paging;
use super::lists::ListKind;
use super::out::Cell;
use super::refusals::refused;
use crate::client::json::plain;
use crate::exit::Failure;

/// A kind of thing that has an id and a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Workspace,
    Producer,
    Consumer,
    Operator,
}

impl Kind {
    /// One of them, in words.
    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Operator => "operator",
        }
    }

    /// Several of them: the noun of the command line.
    pub(super) fn many(self) -> &'static str {
        match self {
            Self::Workspace => "workspaces",
            Self::Producer => "producers",
            Self::Consumer => "consumers",
            Self::Operator => "operators",
        }
    }

    /// The member that holds the id.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Workspace => "tenant",
            Self::Producer | Self::Consumer | Self::Operator => "client_id",
        }
    }

    /// The list of them.
    pub(super) fn list(self) -> ListKind {
        ListKind::of(match self {
            Self::Workspace => "tenants",
            other => other.many(),
        })
    }

    fn absent(self) -> &'static str {
        match self {
            Self::Workspace => rule::TENANT_NOT_FOUND,
            Self::Producer => rule::PRODUCER_NOT_FOUND,
            Self::Consumer => rule::CONSUMER_NOT_FOUND,
            Self::Operator => rule::OPERATOR_NOT_FOUND,
        }
    }

    /// The kind of connection whose id this would be.
    pub(super) fn of_connection(id: &str) -> Option<Self> {
        match id.as_bytes().first() {
            Some(b'p') => Some(Self::Producer),
            Some(b'c') => Some(Self::Consumer),
            Some(b'o') => Some(Self::Operator),
            _ => None,
        }
    }
}

/// What was meant.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) id: String,
    pub(super) name: String,
    /// Its route.
    pub(super) path: String,
    pub(super) document: Document,
}

impl Found {
    /// For people: name and id.
    pub(super) fn told(&self) -> String {
        format!("{} ({})", plain(&self.name), self.id)
    }

    pub(super) fn value(&self) -> Result<Value, Failure> {
        self.document.value()
    }
}

/// Names by their ids: for people, where the bus names ids.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Of what a list has.
    pub(super) fn of(values: &[Value], kind: Kind) -> Self {
        let text = |value: &Value, member: &str| value[member].as_str().map(str::to_owned);
        let named = values
            .iter()
            .filter_map(|v| Some((text(v, kind.id())?, text(v, "name")?)));
        Self(named.collect())
    }

    /// The name of an id, if only it has the name.
    pub(super) fn only(&self, id: &str) -> Option<&str> {
        let name = self.0.get(id)?;
        (self.count(name) == 1).then_some(name)
    }

    /// The id that is meant: one that there is, or that of the only one of this name.
    pub(super) fn id<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        if self.0.contains_key(text) {
            return Some(text);
        }
        let (id, _) = self.0.iter().find(|(_, name)| *name == text)?;
        self.only(id).map(|_| id.as_str())
    }

    /// What a member names, for a table: its name, or its id.
    pub(super) fn cell(&self, object: &Value, member: &str) -> Cell {
        let name = object[member].as_str().and_then(|id| self.only(id));
        name.map_or_else(|| Cell::of(object, member), Cell::new)
    }

    /// The same with the id, for a field.
    pub(super) fn field(&self, object: &Value, member: &str) -> Cell {
        Cell::new(self.told(object, member))
    }

    /// The name with the id.
    pub(super) fn told(&self, object: &Value, member: &str) -> String {
        let id = object[member].as_str().unwrap_or("-");
        self.0
            .get(id)
            .map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"))
    }

    /// How many have this name.
    pub(super) fn count(&self, name: &str) -> usize {
        self.0.values().filter(|other| *other == name).count()
    }
}

impl Api {
    /// The names of a kind. Without an answer there are none: they only adorn.
    pub(super) fn names(&mut self, kind: Kind) -> Names {
        let all = self
            .route_of(kind)
            .and_then(|route| self.gather(&route, kind.list(), &[], &Paging::ALL))
            .and_then(|all| all.values());
        all.map(|values| Names::of(&values, kind)).unwrap_or_default()
    }

    /// The id of the workspace that is meant: the one that was named, or the only one there is.
    pub(super) fn workspace_id(&mut self) -> Result<String, Failure> {
        if let Some(known) = &self.meant {
            return Ok(known.clone());
        }
        let id = self.workspace_of_list()?;
        self.meant = Some(id.clone());
        Ok(id)
    }

    fn workspace_of_list(&mut self) -> Result<String, Failure> {
        if let Some(named) = self.workspace.clone() {
            return Ok(self.meant(Kind::Workspace, "admin/tenants", &named)?.id);
        }
        let all = self
            .gather("admin/tenants", Kind::Workspace.list(), &[], &Paging::ALL)?
            .values()?;
        match all.as_slice() {
            [only] => id_in(only, "tenant"),
            [] => Err(Failure::unusable(
                "there is no workspace yet: storybus workspaces create NAME",
            )),
            several => Err(Failure::unusable(format!(
                "which workspace? Give --workspace or STORYBUS_WORKSPACE: {}",
                known(several, Kind::Workspace)
            ))),
        }
    }

    /// The route of a kind's list: within the workspace that is meant, but for what has none.
    pub(super) fn route_of(&mut self, kind: Kind) -> Result<String, Failure> {
        match kind {
            Kind::Workspace => Ok("admin/tenants".to_owned()),
            Kind::Operator => Ok("admin/operators".to_owned()),
            Kind::Producer | Kind::Consumer => {
                let workspace = self.workspace_id()?;
                Ok(format!("admin/tenants/{}/{}", segment(&workspace), kind.many()))
            }
        }
    }

    /// The thing of this id, or else the only one of this name.
    pub(super) fn named(&mut self, kind: Kind, text: &str) -> Result<Found, Failure> {
        let route = self.route_of(kind)?;
        self.meant(kind, &route, text)
    }

    /// The connection of this id, or else the only one of this name, whatever its kind.
    pub(super) fn connection(&mut self, text: &str) -> Result<Found, Failure> {
        // An operator has no workspace: it is found without one.
        const KINDS: [Kind; 3] = [Kind::Operator, Kind::Producer, Kind::Consumer];
        if let Some(kind) = Kind::of_connection(text) {
            let route = self.route_of(kind)?;
            if let Some(found) = self.by_id(kind, &route, text)? {
                return Ok(found);
            }
        }
        let mut same = Vec::new();
        for kind in KINDS {
            let route = match self.route_of(kind) {
                Err(_) if !same.is_empty() => continue,
                route => route?,
            };
            same.extend(self.by_name(kind, &route, text)?.0);
        }
        match same.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(refused(
                rule::CONSUMER_NOT_FOUND,
                format!(
                    "there is no producer, consumer or operator {:?}; storybus producers list, consumers list, operators list",
                    plain(text)
                ),
            )),
            several => Err(ambiguous("connections", text, several)),
        }
    }

    fn meant(&mut self, kind: Kind, route: &str, text: &str) -> Result<Found, Failure> {
        if let Some(found) = self.by_id(kind, route, text)? {
            return Ok(found);
        }
        let (same, all) = self.by_name(kind, route, text)?;
        match same.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(refused(
                kind.absent(),
                format!(
                    "there is no {} {:?}{}; {}",
                    kind.one(),
                    plain(text),
                    match kind {
                        Kind::Producer | Kind::Consumer => " in this workspace",
                        Kind::Workspace | Kind::Operator => "",
                    },
                    known(&all, kind)
                ),
            )),
            several => Err(ambiguous(kind.many(), text, several)),
        }
    }

    fn by_id(&mut self, kind: Kind, route: &str, text: &str) -> Result<Option<Found>, Failure> {
        // No id has another character than these; a name may have any.
        let may_be_id = text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !may_be_id || text.len() < 2 {
            return Ok(None);
        }
        let path = format!("{route}/{}", segment(text));
        let document = self.find(&path, kind.absent())?;
        document.map(|document| found(kind, path, document)).transpose()
    }

    /// All of this name, and all there are.
    fn by_name(&mut self, kind: Kind, route: &str, text: &str) -> Result<(Vec<Found>, Vec<Value>), Failure> {
        let all = self.gather(route, kind.list(), &[], &Paging::ALL)?;
        let values = all.values()?;
        let mut same = Vec::new();
        for (value, raw) in values.iter().zip(&all.entries) {
            if value["name"] == text {
                let path = format!("{route}/{}", segment(&id_in(value, kind.id())?));
                same.push(found(kind, path, Document(raw.get().to_owned()))?);
            }
        }
        Ok((same, values))
    }
}

fn ambiguous(many: &str, text: &str, several: &[Found]) -> Failure {
    let told: Vec<String> = several.iter().map(Found::told).collect();
    Failure::unusable(format!(
        "{} {many} have the name {:?}; give an id: {}",
        several.len(),
        plain(text),
        told.join(", ")
    ))
}

fn found(kind: Kind, path: String, document: Document) -> Result<Found, Failure> {
    let value = document.value()?;
    Ok(Found {
        id: id_in(&value, kind.id())?,
        name: id_in(&value, "name")?,
        path,
        document,
    })
}

/// The things that there are, as a reader may choose from.
fn known(values: &[Value], kind: Kind) -> String {
    const SHOWN: usize = 20;
    if values.is_empty() {
        return format!("there is none at all: storybus {} create --help", kind.many());
    }
    let text =
        |value: &Value, member: &str| plain(value.get(member).and_then(Value::as_str).unwrap_or_default());
    let mut told: Vec<String> = values
        .iter()
        .take(SHOWN)
        .map(|v| format!("{} ({})", text(v, kind.id()), text(v, "name")))
        .collect();
    if values.len() > SHOWN {
        told.push(format!("and {} more", values.len() - SHOWN));
    }
    format!(
        "there {}: {}",
        if values.len() == 1 { "is" } else { "are" },
        told.join(", ")
    )
}
