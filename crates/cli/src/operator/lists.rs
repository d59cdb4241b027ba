//! Lists of the operator API, gathered from their pages.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;
use serde_json::value::RawValue;

use super::api::{Api, Document, segment};
use super::flags::Paging;
use crate::exit::Failure;

/// How a list is paged.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListKind {
    /// The member that holds the entries.
    pub(super) name: &'static str,
    /// The parameter for the number of entries, and the most that it takes.
    pub(super) size: (&'static str, usize),
    /// The parameter that takes the `next` of the page before.
    pub(super) cursor: &'static str,
}

impl ListKind {
    /// A list with `limit` and `after`.
    pub(super) const fn of(name: &'static str) -> Self {
        Self {
            name,
            size: ("limit", 1000),
            cursor: "after",
        }
    }

    /// A list with `limit` and `before`: the newest first.
    pub(super) const fn newest(name: &'static str) -> Self {
        Self {
            cursor: "before",
            ..Self::of(name)
        }
    }
}

/// A list, gathered from as many pages as were wanted.
#[derive(Debug)]
pub(super) struct Gathered {
    name: &'static str,
    /// Everything of the first page but the list itself.
    members: BTreeMap<String, Box<RawValue>>,
    /// The entries as the bus wrote them.
    pub(super) entries: Vec<Box<RawValue>>,
    /// Whether there is more.
    pub(super) next: Option<String>,
}

impl Gathered {
    /// One document, as if it had been one page.
    pub(super) fn document(&self) -> Result<Document, Failure> {
        let mut all: BTreeMap<&str, Box<RawValue>> = self
            .members
            .iter()
            .map(|(k, v)| (k.as_str(), v.clone()))
            .collect();
        let raw = |text: String| RawValue::from_string(text).context("cannot join the pages");
        let entries: Vec<&str> = self.entries.iter().map(|e| e.get()).collect();
        all.insert(self.name, raw(format!("[{}]", entries.join(",")))?);
        if let Some(next) = &self.next {
            all.insert("next", raw(Value::from(next.as_str()).to_string())?);
        }
        Ok(Document(
            serde_json::to_string(&all).context("cannot join the pages")?,
        ))
    }

    /// The entries, to look into.
    pub(super) fn values(&self) -> Result<Vec<Value>, Failure> {
        let parsed: Result<_, _> = self
            .entries
            .iter()
            .map(|e| serde_json::from_str(e.get()))
            .collect();
        Ok(parsed.context("the answer is not a bus's")?)
    }

    /// What surrounds the list, to look into.
    pub(super) fn member(&self, name: &str) -> Value {
        self.members
            .get(name)
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default()
    }
}

impl Api {
    /// A list, from as many pages as it takes.
    pub(super) fn gather(
        &mut self,
        path: &str,
        list: ListKind,
        chosen: &[(&str, &str)],
        paging: &Paging,
    ) -> Result<Gathered, Failure> {
        let most = paging.most();
        let mut gathered = Gathered {
            name: list.name,
            members: BTreeMap::new(),
            entries: Vec::new(),
            next: None,
        };
        loop {
            let left = most.map(|most| most.saturating_sub(gathered.entries.len()));
            let before = gathered.next.take();
            let page = self.page(path, list, chosen, left, before.as_deref())?;
            gathered.entries.extend(page.entries);
            gathered.next = page.next;
            if gathered.members.is_empty() {
                gathered.members = page.members;
            }
            let enough = most.is_some_and(|most| gathered.entries.len() >= most);
            if enough || gathered.next.is_none() || gathered.next == before {
                return Ok(gathered);
            }
        }
    }

    /// The first entry of a list that passes; no more pages than it takes.
    pub(super) fn first(
        &mut self,
        path: &str,
        list: ListKind,
        passes: impl Fn(&Value) -> bool,
    ) -> Result<Option<Document>, Failure> {
        let mut next: Option<String> = None;
        loop {
            let page = self.page(path, list, &[], None, next.as_deref())?;
            for entry in page.entries {
                let entry = Document(entry.get().to_owned());
                if passes(&entry.value()?) {
                    return Ok(Some(entry));
                }
            }
            if page.next.is_none() || page.next == next {
                return Ok(None);
            }
            next = page.next;
        }
    }

    /// One page, of at most `most` entries.
    pub(super) fn page(
        &mut self,
        path: &str,
        list: ListKind,
        chosen: &[(&str, &str)],
        most: Option<usize>,
        after: Option<&str>,
    ) -> Result<Gathered, Failure> {
        let (size, largest) = list.size;
        let mut query = format!("{path}?{size}={}", most.map_or(largest, |most| most.min(largest)));
        let after = after.map(|after| (list.cursor, after));
        for (name, value) in chosen.iter().copied().chain(after) {
            query.push_str(&format!("&{name}={}", segment(value)));
        }
        let page = self.get(&query)?;
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(&page.0).context("the answer is not a bus's; is the URL right?")?;
        let entries = members.remove(list.name).context("the answer has no list")?;
        let next = members.remove("next");
        Ok(Gathered {
            name: list.name,
            entries: serde_json::from_str(entries.get()).context("the answer has no list")?,
            next: next
                .and_then(|next| serde_json::from_str(next.get()).ok())
                .flatten(),
            members,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_one_document_and_numbers_keep_their_digits() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let gathered = Gathered {
            name: "messages",
            members: BTreeMap::from([("story_id".to_owned(), raw("\"s\""))]),
            entries: vec![raw("{\"n\":1.0}"), raw("{\"n\":12345678901234567890123}")],
            next: Some("n\"1".to_owned()),
        };
        assert_eq!(
            gathered.document().unwrap().0,
            r#"{"messages":[{"n":1.0},{"n":12345678901234567890123}],"next":"n\"1","story_id":"s"}"#
        );
    }
}
