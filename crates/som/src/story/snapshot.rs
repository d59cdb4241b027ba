//! What story order looks at in a payload.

use std::collections::BTreeMap;

use storybus_json::{Number, Value};

use super::digests::{Digests, digest};
use crate::rfc3339::Instant;

/// Bytes of an id's digest: no two ids of a story will ever share them.
pub(super) const ID: usize = 16;
/// Bytes of an asset type's digest. Fewer are enough, since it is compared with one other, of the same asset.
pub(super) const TYPE: usize = 8;
/// An asset id's digest, then its type's.
pub(super) const ASSET: usize = ID + TYPE;

/// The member that comes and goes with the story type, and so says nothing about completeness.
const TIED_TO_ACTIVE: &str = "lifecycle";

/// A payload of `story.context`, read for its order.
///
/// The payload has passed the schema. Nothing here relies on it: what is not of the kind it should be is as if it
/// were absent, and an absent thing breaks no rule.
#[derive(Clone, Copy)]
pub(super) struct Snapshot<'d>(pub(super) Value<'d>);

impl<'d> Snapshot<'d> {
    pub(super) fn sequence_number(self) -> Option<Number<'d>> {
        self.0.get("sequence_number")?.as_number()
    }

    /// The text, if it is a time.
    pub(super) fn updated_at(self) -> Option<&'d str> {
        self.0
            .get("updated_at")?
            .as_str()
            .filter(|text| Instant::parse(text).is_some())
    }

    pub(super) fn story_type(self) -> Option<&'d str> {
        self.0.get("story_type")?.as_str()
    }

    /// The names of the members that a later snapshot must have too, sorted.
    pub(super) fn members(self) -> Vec<&'d str> {
        let members = self.0.as_object().into_iter().flat_map(|payload| payload.iter());
        let mut names: Vec<_> = members
            .map(|(name, _)| name)
            .filter(|name| *name != TIED_TO_ACTIVE)
            .collect();
        names.sort_unstable();
        names
    }

    /// Each asset's id and type. An id that stands twice with two types has both.
    pub(super) fn assets(self) -> Digests<ASSET> {
        self.elements("assets")
            .filter_map(|asset| {
                let id = digest::<ID>(asset.get("asset_id").filter(is_string)?);
                // Without a type it is there all the same.
                let kind = asset.get("asset_type").map(digest::<TYPE>).unwrap_or_default();
                let mut entry = [0; ASSET];
                let (id_part, kind_part) = entry.split_at_mut(ID);
                id_part.copy_from_slice(&id);
                kind_part.copy_from_slice(&kind);
                Some(entry)
            })
            .collect()
    }

    /// The ids of assertions by how their review stands.
    pub(super) fn reviews(self) -> Reviews {
        let mut by_id: BTreeMap<[u8; ID], (bool, bool)> = BTreeMap::new();
        for assertion in self.elements("assertions") {
            let state = assertion
                .get("review")
                .and_then(|review| review.get("state"))
                .and_then(Value::as_str);
            let (pending, decided) = match state {
                Some("PENDING") => (true, false),
                Some("CONFIRMED" | "REJECTED") => (false, true),
                _ => continue,
            };
            if let Some(id) = assertion.get("assertion_id").filter(is_string) {
                let entry = by_id.entry(digest(id)).or_default();
                *entry = (entry.0 || pending, entry.1 || decided);
            }
        }
        let of = |wanted: fn(&(bool, bool)) -> bool| {
            by_id
                .iter()
                .filter(|(_, review)| wanted(review))
                .map(|(id, _)| *id)
                .collect()
        };
        Reviews {
            pending: of(|(pending, _)| *pending),
            decided: of(|(pending, decided)| *decided && !*pending),
        }
    }

    fn elements(self, name: &str) -> impl Iterator<Item = Value<'d>> {
        self.0
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flat_map(|array| array.iter())
    }
}

/// Assertions by how their review stands. Of an id that stands more than once, any PENDING makes it pending: it is
/// not decided as long as one of its entries is not.
pub(super) struct Reviews {
    pub(super) pending: Digests<ID>,
    /// CONFIRMED or REJECTED.
    pub(super) decided: Digests<ID>,
}

fn is_string(value: &Value<'_>) -> bool {
    value.as_str().is_some()
}
