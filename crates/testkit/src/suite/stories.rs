//! The stories, to be looked at: [`Stories`](storybus_core::ports::Stories).

use std::time::Duration;

use storybus_core::domain::archived::Position;
use storybus_core::domain::record::{Story, StoryKey, story_digest};
use storybus_core::ports::ledger::{NewRecord, PutBack, Recorded, Removal, StoryMove, Written};
use storybus_core::ports::stories::NamedStory;
use storybus_protocol::id::WorkspaceId;

use super::sample::{self, Letter};
use super::world::{WINDOW, World};

super::behaviours![
    a_story_is_read_with_its_name,
    a_later_snapshot_changes_neither_name_nor_beginning,
    an_unknown_story_is_absent,
    stories_come_newest_first,
    a_new_snapshot_does_not_move_a_story_in_the_list,
    pages_meet_without_gap_or_overlap,
    a_story_that_was_put_back_to_nothing_is_gone,
    a_story_that_was_put_back_to_another_stays,
    a_story_begun_again_is_a_new_one,
    workspaces_are_apart,
    stories_survive_a_reopening needs Reopen,
    foreign_texts_are_no_positions,
];

fn key(workspace: &WorkspaceId, story_id: &str) -> StoryKey {
    StoryKey {
        workspace: workspace.clone(),
        digest: story_digest(story_id),
    }
}

/// Records message `n` as a snapshot of a story that was read like this.
async fn snapshot(
    world: &World,
    workspace: &WorkspaceId,
    story_id: &str,
    n: u64,
    read: Option<&Story>,
) -> NewRecord {
    let mut new = world.record_of(workspace, &Letter::new(n, 1));
    let key = key(workspace, story_id);
    new.record.story = Some(key.digest);
    new.story = Some(StoryMove {
        key,
        story_id: story_id.to_owned(),
        read: read.map(|story| (story.version, story.head)),
        state: sample::story_state(n),
        version: world.token(),
    });
    assert_eq!(world.ledger().record(&new).await.unwrap(), Recorded::Done);
    new
}

/// Takes a snapshot back.
async fn take_back(world: &World, new: &NewRecord, before: Option<Story>) {
    let moved = new.story.as_ref().unwrap();
    let removal = Removal {
        key: new.key.clone(),
        attempt: new.record.attempt,
        story: Some(PutBack {
            key: moved.key.clone(),
            version: moved.version,
            story: before.map(|story| Story {
                version: world.token(),
                ..story
            }),
        }),
        now: world.now(),
        window: WINDOW,
    };
    assert_eq!(world.ledger().remove(&removal).await.unwrap(), Written::Done);
}

async fn get(world: &World, workspace: &WorkspaceId, story_id: &str) -> Option<NamedStory> {
    world.stories().get(&key(workspace, story_id)).await.unwrap()
}

async fn listed(
    world: &World,
    workspace: &WorkspaceId,
    after: Option<&Position>,
    limit: usize,
) -> Vec<NamedStory> {
    world.stories().list(workspace, after, limit).await.unwrap()
}

fn names(stories: &[NamedStory]) -> Vec<&str> {
    stories.iter().filter_map(|s| s.story_id.as_deref()).collect()
}

/// As the ledger has it, with its id to the last character and the time of its first snapshot.
pub async fn a_story_is_read_with_its_name(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let long = "é".repeat(3000);
    for (n, story_id) in [(1, "story 1"), (2, "\"'\\\n😀"), (3, long.as_str())] {
        world.clock.advance(Duration::from_secs(1));
        let new = snapshot(world, &workspace, story_id, n, None).await;
        let moved = new.story.unwrap();
        let story = get(world, &workspace, story_id).await.unwrap();
        assert_eq!(story.story_id.as_deref(), Some(story_id));
        assert_eq!(story.begun_at, Some(world.now()));
        assert_eq!(story.story.state, moved.state);
        assert_eq!(
            (story.story.head, story.story.version),
            (new.key.message_id, moved.version)
        );
        assert_eq!(listed(world, &workspace, None, 1).await, [story]);
    }
}

/// The story is the newest, its name and its beginning are the first's.
pub async fn a_later_snapshot_changes_neither_name_nor_beginning(world: &mut World) {
    let workspace = world.workspace("w1").await;
    snapshot(world, &workspace, "s", 1, None).await;
    let first = get(world, &workspace, "s").await.unwrap();
    world.clock.advance(WINDOW);
    let new = snapshot(world, &workspace, "s", 2, Some(&first.story)).await;
    let second = get(world, &workspace, "s").await.unwrap();
    assert_eq!(second.story.head, new.key.message_id);
    assert_eq!(
        NamedStory {
            story: first.story.clone(),
            ..second
        },
        first
    );
}

/// None is not an error.
pub async fn an_unknown_story_is_absent(world: &mut World) {
    let workspace = world.workspace("w1").await;
    assert_eq!(get(world, &workspace, "s").await, None);
    assert!(listed(world, &workspace, None, 9).await.is_empty());
    world.send(&workspace, &Letter::new(1, 1).about("s")).await;
    assert_eq!(
        get(world, &workspace, "s").await,
        None,
        "an event begins no story"
    );
}

/// The story that began last is the first, in one millisecond too.
pub async fn stories_come_newest_first(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for (n, id) in (1..).zip(["b", "c", "a", "d"]) {
        snapshot(world, &workspace, id, n, None).await;
        if n > 2 {
            world.clock.advance(Duration::from_millis(1));
        }
    }
    assert_eq!(
        names(&listed(world, &workspace, None, 9).await),
        ["d", "a", "c", "b"]
    );
    assert_eq!(names(&listed(world, &workspace, None, 2).await), ["d", "a"]);
}

/// The list is in the order of the beginnings.
pub async fn a_new_snapshot_does_not_move_a_story_in_the_list(world: &mut World) {
    let workspace = world.workspace("w1").await;
    snapshot(world, &workspace, "a", 1, None).await;
    snapshot(world, &workspace, "b", 2, None).await;
    world.clock.advance(WINDOW);
    let read = get(world, &workspace, "a").await.unwrap().story;
    snapshot(world, &workspace, "a", 3, Some(&read)).await;
    assert_eq!(names(&listed(world, &workspace, None, 9).await), ["b", "a"]);
}

/// Page by page, each comes once, whatever begins meanwhile.
pub async fn pages_meet_without_gap_or_overlap(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=7 {
        snapshot(world, &workspace, &n.to_string(), n, None).await;
    }
    for limit in 1..=8_usize {
        let mut all: Vec<NamedStory> = Vec::new();
        loop {
            let after = all.last().map(|story| story.position.clone());
            let page = listed(world, &workspace, after.as_ref(), limit).await;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            all.extend(page);
            if limit == 8 {
                snapshot(world, &workspace, "later", 100, None).await;
            }
        }
        assert_eq!(names(&all), ["7", "6", "5", "4", "3", "2", "1"], "{limit} a page");
    }
}

/// A first snapshot that surely failed leaves no story.
pub async fn a_story_that_was_put_back_to_nothing_is_gone(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let new = snapshot(world, &workspace, "s", 1, None).await;
    take_back(world, &new, None).await;
    assert_eq!(get(world, &workspace, "s").await, None);
    assert!(listed(world, &workspace, None, 9).await.is_empty());
}

/// A later one that surely failed leaves the story as it was, at its place.
pub async fn a_story_that_was_put_back_to_another_stays(world: &mut World) {
    let workspace = world.workspace("w1").await;
    snapshot(world, &workspace, "s", 1, None).await;
    let first = get(world, &workspace, "s").await.unwrap();
    snapshot(world, &workspace, "t", 2, None).await;
    world.clock.advance(WINDOW);
    let new = snapshot(world, &workspace, "s", 3, Some(&first.story)).await;
    take_back(world, &new, Some(first.story.clone())).await;
    let back = get(world, &workspace, "s").await.unwrap();
    assert_eq!(
        (back.story.head, &back.story.state),
        (first.story.head, &first.story.state)
    );
    assert_eq!(
        NamedStory {
            story: first.story.clone(),
            ..back
        },
        first
    );
    assert_eq!(names(&listed(world, &workspace, None, 9).await), ["t", "s"]);
}

/// What failed has not begun: the next attempt begins it.
pub async fn a_story_begun_again_is_a_new_one(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let new = snapshot(world, &workspace, "s", 1, None).await;
    take_back(world, &new, None).await;
    snapshot(world, &workspace, "t", 2, None).await;
    world.clock.advance(Duration::from_secs(1));
    snapshot(world, &workspace, "s", 3, None).await;
    let again = get(world, &workspace, "s").await.unwrap();
    assert_eq!(again.begun_at, Some(world.now()));
    assert_eq!(names(&listed(world, &workspace, None, 9).await), ["s", "t"]);
}

/// The same id elsewhere is another story.
pub async fn workspaces_are_apart(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    snapshot(world, &one, "s", 1, None).await;
    snapshot(world, &one, "t", 2, None).await;
    snapshot(world, &two, "s", 3, None).await;
    assert_eq!(names(&listed(world, &one, None, 9).await), ["t", "s"]);
    assert_eq!(names(&listed(world, &two, None, 9).await), ["s"]);
    assert_eq!(get(world, &two, "t").await, None);
    assert_eq!(
        get(world, &two, "s").await.unwrap().story.head,
        sample::message_id(3)
    );
}

/// Closed and opened again, names and places are what they were.
pub async fn stories_survive_a_reopening(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=3 {
        snapshot(world, &workspace, &n.to_string(), n, None).await;
    }
    let before = listed(world, &workspace, None, 9).await;
    world.reopen().await;
    assert_eq!(listed(world, &workspace, None, 9).await, before);
    let rest = listed(world, &workspace, Some(&before[0].position), 9).await;
    assert_eq!(names(&rest), ["2", "1"]);
}

/// A text is known for a position or not.
pub async fn foreign_texts_are_no_positions(world: &mut World) {
    let workspace = world.workspace("w1").await;
    snapshot(world, &workspace, "s", 1, None).await;
    let own = &listed(world, &workspace, None, 9).await[0].position;
    assert!(world.stories().is_position(own));
    for text in sample::FOREIGN_POSITIONS {
        assert!(
            !world.stories().is_position(&Position((*text).to_owned())),
            "{text:?}"
        );
    }
}
