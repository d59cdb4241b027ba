//! Story order: may a snapshot follow the story's last accepted one?
//!
//! Consumers keep the newest snapshot of a story and throw the older away, so a snapshot that is stale, or that is a
//! delta in disguise, would silently lose them what they had. A [`StoryState`] is what must be remembered of the last
//! accepted snapshot to see that:
//!
//! ```
//! use storybus_json::Document;
//! use storybus_som::story::StoryState;
//!
//! let one = br#"{"story_id":"s","sequence_number":1,"updated_at":"2026-09-11T10:00:00Z","newsroom_id":"n"}"#;
//! let two = br#"{"story_id":"s","sequence_number":2,"updated_at":"2026-09-11T12:05:00+02:00"}"#;
//! let (one, two) = (Document::parse(one).unwrap(), Document::parse(two).unwrap());
//!
//! let state = StoryState::first(one.root(), "0199a1c4-0000-7000-8000-000000000911");
//! let judgement = state.next(two.root(), "0199a1c4-0000-7000-8000-000000000911");
//! assert_eq!(judgement.refused[0].rule, "snapshot.members_missing");
//! ```
//!
//! The rules are about two snapshots, whatever is true of other stories, of time, or of what has been published; that
//! is the bus's to know.

mod digests;
mod judge;
mod snapshot;
mod state;

pub use judge::Judgement;
pub use state::StoryState;
