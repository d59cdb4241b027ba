//! The members of a JSON object, one by one, with a fault for each that is not what it should be.
//!
//! A member at fault still gives a value: one that passes further checks, or fails them at the same place. Whoever puts
//! both lists of faults together keeps the first at each place, see [`refuse_all`].

use std::collections::HashSet;

use storybus_core::domain::refusal::{Refusal, RefusalKind};
use storybus_json::{Kind, Object, Value};
use storybus_protocol::Violation;

use super::{MAX_FAULTS, fault};

/// How much of a member's name is shown, in characters.
const MAX_SHOWN: usize = 256;

/// A text that a client sent, cut to what may be shown.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An object that is being read.
pub(crate) struct Members<'d> {
    object: Object<'d>,
    /// Where it stands.
    at: String,
    known: HashSet<&'static str>,
    faults: Vec<Violation>,
}

impl<'d> Members<'d> {
    pub(super) fn of(object: Object<'d>, at: String) -> Self {
        Self {
            object,
            at,
            known: HashSet::new(),
            faults: Vec::new(),
        }
    }

    /// The member, if it is there.
    fn get(&mut self, name: &'static str) -> Option<Value<'d>> {
        self.known.insert(name);
        self.object.get(name)
    }

    fn fault(&mut self, name: &str, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault(format!("{}/{name}", self.at), message));
        }
    }

    /// A member that must be there.
    pub(crate) fn required<T>(&mut self, name: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() && self.object.get(name).is_none() {
            self.fault(name, "is missing");
        }
        value
    }

    /// A string.
    pub(crate) fn string(&mut self, name: &'static str) -> Option<String> {
        let value = self.get(name)?;
        if value.as_str().is_none() {
            self.fault(name, "must be a string");
        }
        Some(value.as_str().unwrap_or_default().to_owned())
    }

    /// A string, or `null`.
    pub(crate) fn nullable_string(&mut self, name: &'static str) -> Option<Option<String>> {
        let value = self.get(name)?;
        if value.as_str().is_none() && !value.is_null() {
            self.fault(name, "must be a string or null");
        }
        Some(value.as_str().map(str::to_owned))
    }

    /// A list of strings.
    pub(crate) fn strings(&mut self, name: &'static str) -> Option<Vec<String>> {
        let value = self.get(name)?;
        let Some(array) = value.as_array() else {
            self.fault(name, "must be a list of strings");
            return Some(Vec::new());
        };
        let mut strings = Vec::with_capacity(array.len());
        for (n, element) in array.iter().enumerate() {
            if element.as_str().is_none() {
                self.fault(&format!("{name}/{n}"), "must be a string");
            }
            strings.push(element.as_str().unwrap_or_default().to_owned());
        }
        Some(strings)
    }

    /// A boolean.
    pub(crate) fn boolean(&mut self, name: &'static str) -> Option<bool> {
        let value = self.get(name)?;
        if value.as_bool().is_none() {
            self.fault(name, "must be true or false");
        }
        value.as_bool()
    }

    /// A boolean, or `null`.
    pub(crate) fn nullable_boolean(&mut self, name: &'static str) -> Option<Option<bool>> {
        if self.get(name)?.is_null() {
            Some(None)
        } else {
            self.boolean(name).map(Some)
        }
    }

    /// A whole number; what is beyond 64 bits is the furthest that is not.
    pub(crate) fn integer(&mut self, name: &'static str) -> Option<i64> {
        let value = self.get(name)?;
        match value.kind() {
            Kind::Number(number) if number.is_integer() => {
                let furthest = if number.text().starts_with('-') {
                    i64::MIN
                } else {
                    i64::MAX
                };
                Some(number.to_i64().unwrap_or(furthest))
            }
            _ => {
                self.fault(name, "must be a whole number");
                None
            }
        }
    }

    /// A whole number, or `null`.
    pub(crate) fn nullable_integer(&mut self, name: &'static str) -> Option<Option<i64>> {
        if self.get(name)?.is_null() {
            Some(None)
        } else {
            self.integer(name).map(Some)
        }
    }

    /// An object, or `null`; what `read` cannot make a value of has a fault already.
    pub(crate) fn nullable_object<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Members<'d>) -> Option<T>,
    ) -> Option<Option<T>> {
        let value = self.get(name)?;
        if value.is_null() {
            return Some(None);
        }
        let Some(object) = value.as_object() else {
            self.fault(name, "must be an object or null");
            return None;
        };
        let mut inner = Members::of(object, format!("{}/{name}", self.at));
        let made = read(&mut inner);
        self.faults.extend(inner.finish());
        made.map(Some)
    }

    /// All faults, those members included that nobody asked for.
    pub(super) fn finish(mut self) -> Vec<Violation> {
        for (name, _) in self.object.iter() {
            if self.faults.len() >= MAX_FAULTS {
                break;
            }
            if !self.known.contains(name) {
                let escaped = cut(name).replace('~', "~0").replace('/', "~1");
                self.fault(&escaped, "is not a member of this request");
            }
        }
        self.faults
    }
}

/// Refuses if there are faults: those of the shape, and those of the values at other places.
pub(crate) fn refuse_all(shape: Vec<Violation>, values: Vec<Violation>) -> Result<(), Refusal> {
    let mut faults = shape;
    let places: HashSet<Option<String>> = faults.iter().map(|f| f.path.clone()).collect();
    faults.extend(values.into_iter().filter(|f| !places.contains(&f.path)));
    faults.truncate(MAX_FAULTS);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Refusal::of(RefusalKind::Invalid, faults))
    }
}
