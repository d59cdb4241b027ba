//! Items of stories.
//!
//! What places a story in the list (`list_pk`, `list_sk`) is set when it begins and never again: an index is written to only when
//! what it projects changes, so later snapshots pay nothing for it.

use storybus_core::domain::record::{Story, StoryKey, Token};
use storybus_core::domain::time::Millis;
use storybus_core::ports::StoreError;
use storybus_core::ports::ledger::{PutBack, StoryMove};
use storybus_protocol::id::MessageId;

use crate::item::{Attributes, Item, b, json, n, s};
use crate::keys;
use crate::writes::Action;

/// A story of an item.
pub(crate) fn read(item: &Item) -> Result<Story, StoreError> {
    Ok(Story {
        state: item.need_json("state")?,
        head: item.need_parsed("head")?,
        version: Token(item.need_array("version")?),
    })
}

/// Whether the item is of this version.
pub(super) fn is_version(item: &Item, version: Token) -> bool {
    item.bytes("version") == Some(&version.0[..])
}

/// RECORD's part: the story is still the one read, or still absent.
pub(super) fn moved(
    moved: &StoryMove,
    head: MessageId,
    begun_at: Millis,
    place: u32,
) -> Result<Action, StoreError> {
    let (state, head, version) = (json(&moved.state)?, s(head.to_string()), b(moved.version.0));
    Ok(match &moved.read {
        Some((read, _)) => {
            let set = "SET head = :head, #version = :version, #state = :state, story_id = if_not_exists(story_id, :id)";
            Action::update(keys::story(&moved.key), set)
                .when("#version = :read")
                .value(":head", head)
                .value(":version", version)
                .value(":state", state)
                .value(":id", s(moved.story_id.as_str()))
                .value(":read", b(read.0))
        }
        None => {
            let mut item = keys::story(&moved.key);
            for (name, value) in [
                ("head", head),
                ("version", version),
                ("state", state),
                ("story_id", s(moved.story_id.as_str())),
                ("begun_at", n(begun_at.0)),
                ("list_pk", s(keys::stories(&moved.key.workspace))),
                ("list_sk", s(keys::place_of_story(&moved.key, begun_at, place))),
            ] {
                item.insert(name.to_owned(), value);
            }
            Action::put(item).when("attribute_not_exists(pk)")
        }
    })
}

/// CLAIM's part: the story is still of this version.
pub(super) fn unchanged(key: &StoryKey, version: Token) -> Action {
    Action::check(keys::story(key))
        .when("#version = :read")
        .value(":read", b(version.0))
}

/// SUPERSEDE's part: another version of the same.
pub(super) fn renew(key: &StoryKey, read: Token, version: Token) -> Action {
    Action::update(keys::story(key), "SET #version = :version")
        .when("#version = :read")
        .value(":version", b(version.0))
        .value(":read", b(read.0))
}

/// REMOVE's part: the story as it was read, its name, its beginning and its place untouched; or gone, if it was not there.
pub(super) fn put_back(back: &PutBack) -> Result<Action, StoreError> {
    let action = match &back.story {
        Some(story) => {
            let set = "SET head = :head, #version = :version, #state = :state";
            Action::update(keys::story(&back.key), set)
                .value(":head", s(story.head.to_string()))
                .value(":version", b(story.version.0))
                .value(":state", json(&story.state)?)
        }
        None => Action::delete(keys::story(&back.key)),
    };
    Ok(action.when("#version = :read").value(":read", b(back.version.0)))
}
