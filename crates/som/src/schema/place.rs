//! Where in a message the check stands.

use std::fmt::Write;

/// A place in a message: a chain on the stack, so that a message without a fault never builds a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// The root, or a pointer to where the checked value stands in the whole message.
    Start(&'a str),
    Member(&'a str),
    Element(usize),
}

impl<'a> Place<'a> {
    /// The place that a check starts from, as a JSON Pointer.
    pub(crate) const fn start(pointer: &'a str) -> Self {
        Self {
            parent: None,
            step: Step::Start(pointer),
        }
    }

    /// The member of that name.
    pub(crate) const fn member(&'a self, name: &'a str) -> Self {
        Self {
            parent: Some(self),
            step: Step::Member(name),
        }
    }

    /// The element of that index.
    pub(crate) const fn element(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            step: Step::Element(index),
        }
    }

    /// The JSON Pointer (RFC 6901).
    pub(crate) fn pointer(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    /// Recurses as deep as the schema nests, which no message can change.
    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Start(pointer) => out.push_str(pointer),
            Step::Member(name) => {
                out.push('/');
                for c in name.chars() {
                    match c {
                        '~' => out.push_str("~0"),
                        '/' => out.push_str("~1"),
                        c => out.push(c),
                    }
                }
            }
            Step::Element(index) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "/{index}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers() {
        let root = Place::start("");
        assert_eq!(root.pointer(), "");
        let payload = Place::start("/payload");
        let assets = payload.member("assets");
        let second = assets.element(1);
        assert_eq!(second.member("a/b~c").pointer(), "/payload/assets/1/a~1b~0c");
    }
}
