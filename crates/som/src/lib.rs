//! SOM 1.0, the Story Object Model: schemas, validation to rule ids, story order. Knows no bus.
//!
//! Two questions are answered here, both pure and both about documents of `storybus-json`:
//!
//! - [`validate()`]: does this message, by itself, hold to the standard? Against the seven schemas in `schemas/`, the
//!   version rules and the rules about types; refused or [`Checked`].
//! - [`story`]: may this snapshot follow the story's last accepted one? Against a [`StoryState`](story::StoryState),
//!   which is all that must be remembered of a story.
//!
//! Both list everything they find, as [`Violation`](storybus_protocol::Violation)s whose rule ids are fixed.
//! [`schema_rules`] names the ids that come from the schemas; the others are constants of `storybus_protocol::rule`.

mod family;
mod rfc3339;
mod schema;
pub mod story;
mod uuid;
mod validate;
mod version;

pub use family::Family;
pub use rfc3339::ceil_millis;
pub use schema::schema_rules;
pub use validate::{Checked, Options, validate};
