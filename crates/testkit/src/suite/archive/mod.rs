//! The archive: [`Archive`](storybus_core::ports::Archive).
//!
//! Each behaviour runs twice: on what was just published, and on what the engine has compacted since.

pub mod heads;
pub mod keeping;
pub mod many;
pub mod order;
pub mod parts;
pub mod selection;

use std::time::Duration;

use storybus_core::domain::archived::{Archived, Head, Part, Position, Selection, TimeRange};
use storybus_core::ports::archive::PartLimits;
use storybus_protocol::id::WorkspaceId;

use super::sample::Letter;
use super::world::{World, number};

/// No limit that a behaviour meets by chance.
pub(super) const PLENTY: PartLimits = PartLimits {
    messages: 100_000,
    scanned: 100_000,
    bytes: 1 << 30,
};

/// Everything up to now, and what comes within a day.
pub(super) fn ever(world: &World) -> TimeRange {
    TimeRange {
        from: storybus_core::domain::time::Millis(0),
        to: world.now().plus(Duration::from_secs(24 * 3600)),
    }
}

/// The next part of everything.
pub(super) async fn part(
    world: &World,
    workspace: &WorkspaceId,
    after: Option<&Position>,
    selection: &Selection,
    limits: PartLimits,
) -> Part {
    world
        .archive()
        .read(workspace, ever(world), after, selection, limits)
        .await
        .unwrap()
}

/// Reads a range part by part to its end; each part keeps its limits and leads on.
pub(super) async fn read(
    world: &World,
    workspace: &WorkspaceId,
    range: TimeRange,
    selection: &Selection,
    limits: PartLimits,
) -> Vec<Archived> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        world.file().await;
        let part = world
            .archive()
            .read(workspace, range, after.as_ref(), selection, limits)
            .await
            .unwrap();
        let bytes: usize = part.messages.iter().map(|m| m.body.len()).sum();
        assert!(part.messages.len() <= limits.messages);
        assert!(part.scanned <= limits.scanned as u64 && part.messages.len() as u64 <= part.scanned);
        assert!(bytes <= limits.bytes || part.messages.len() == 1);
        assert_eq!(part.last.is_some(), part.scanned > 0);
        assert_eq!(part.last_at.is_some(), part.scanned > 0);
        all.extend(part.messages);
        if part.end {
            return all;
        }
        assert!(part.scanned > 0, "a part that is not the last leads on");
        after = part.last;
    }
}

/// Everything in the archive of a workspace.
pub(super) async fn everything(world: &World, workspace: &WorkspaceId) -> Vec<Archived> {
    read(world, workspace, ever(world), &Selection::default(), PLENTY).await
}

/// Sends letters.
pub(super) async fn send(world: &World, workspace: &WorkspaceId, letters: &[Letter]) {
    for letter in letters {
        world.send(workspace, letter).await;
    }
    world.file().await;
}

/// Sends messages, each `(number, group)`, into a workspace `w1`.
pub(super) async fn archived(world: &World, messages: &[(u64, u64)]) -> WorkspaceId {
    let workspace = world.workspace("w1").await;
    let letters: Vec<Letter> = messages
        .iter()
        .map(|(n, group)| Letter::new(*n, *group))
        .collect();
    send(world, &workspace, &letters).await;
    workspace
}

/// By number.
pub(super) fn numbers(messages: &[Archived]) -> Vec<u64> {
    messages.iter().map(|m| number(m.head.message_id)).collect()
}

/// By number.
pub(super) fn head_numbers(heads: &[Head]) -> Vec<u64> {
    heads.iter().map(|head| number(head.message_id)).collect()
}
