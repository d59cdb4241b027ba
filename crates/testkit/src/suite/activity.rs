//! The log of refused publishes: [`ActivityLog`](storybus_core::ports::ActivityLog).

use std::time::Duration;

use storybus_core::domain::activity::RefusedPublish;
use storybus_core::domain::archived::Position;
use storybus_core::domain::refusal::RefusalKind;
use storybus_core::domain::time::Millis;
use storybus_core::ports::activity::ACTIVITY_RETENTION;
use storybus_protocol::id::WorkspaceId;

use super::sample;
use super::world::World;

super::behaviours![
    a_new_log_is_empty,
    a_refusal_is_read_as_noted,
    refusals_come_newest_first,
    pages_meet_without_gap_or_overlap,
    a_page_stays_when_newer_refusals_come,
    workspaces_are_apart,
    a_refusal_is_kept_for_thirty_days needs Time,
    a_position_outlives_its_refusal needs Time,
    a_flood_blocks_nobody,
    refusals_survive_a_reopening needs Reopen,
    foreign_texts_are_no_positions,
];

const MS: Duration = Duration::from_millis(1);

fn refused(workspace: &WorkspaceId, n: usize, at: Millis) -> RefusedPublish {
    RefusedPublish {
        at,
        workspace: workspace.clone(),
        producer: "p1".parse().unwrap(),
        kind: RefusalKind::Invalid,
        rules: vec![format!("rule.{n}")],
        message_id: None,
        message_type: None,
        correlation_id: None,
        system_id: None,
        story_id: None,
    }
}

/// Notes refusal `n`, now.
async fn note(world: &World, workspace: &WorkspaceId, n: usize) {
    world.activity().note(refused(workspace, n, world.now()));
    world.settle().await;
}

async fn listed(
    world: &World,
    workspace: &WorkspaceId,
    before: Option<&Position>,
    limit: usize,
) -> Vec<(Position, RefusedPublish)> {
    world.activity().list(workspace, before, limit).await.unwrap()
}

fn rules(entries: &[(Position, RefusedPublish)]) -> Vec<usize> {
    entries
        .iter()
        .map(|(_, refusal)| refusal.rules[0].trim_start_matches("rule.").parse().unwrap())
        .collect()
}

/// Nothing was refused.
pub async fn a_new_log_is_empty(world: &mut World) {
    let workspace = world.workspace("w1").await;
    assert!(listed(world, &workspace, None, 9).await.is_empty());
}

/// Every member, those that are absent too.
pub async fn a_refusal_is_read_as_noted(world: &mut World) {
    let workspace = world.workspace("w1").await;
    let poor = RefusedPublish {
        rules: Vec::new(),
        ..refused(&workspace, 1, world.now())
    };
    let text = |s: &str| Some(s.to_owned());
    let rich = RefusedPublish {
        kind: RefusalKind::Conflict,
        rules: (0..20).map(|n| format!("story-context.{n}")).collect(),
        message_id: text("not an id at all"),
        message_type: text("\"'\\\n😀\u{0}"),
        correlation_id: text(""),
        system_id: text(&"é".repeat(256)),
        story_id: text("s"),
        ..poor.clone()
    };
    for refusal in [poor, rich] {
        world.activity().note(refusal.clone());
        world.settle().await;
        assert_eq!(listed(world, &workspace, None, 1).await[0].1, refusal);
    }
}

/// The one noted last is the first, in one millisecond too.
pub async fn refusals_come_newest_first(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=5 {
        note(world, &workspace, n).await;
        if n > 3 {
            world.clock.advance(MS);
        }
    }
    assert_eq!(rules(&listed(world, &workspace, None, 9).await), [5, 4, 3, 2, 1]);
    assert_eq!(rules(&listed(world, &workspace, None, 2).await), [5, 4]);
}

/// Page by page, each comes once.
pub async fn pages_meet_without_gap_or_overlap(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=7 {
        note(world, &workspace, n).await;
    }
    for limit in 1..=8 {
        let mut all = Vec::new();
        loop {
            let before = all.last().map(|(position, _): &(Position, _)| position.clone());
            let page = listed(world, &workspace, before.as_ref(), limit).await;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        assert_eq!(rules(&all), [7, 6, 5, 4, 3, 2, 1], "{limit} a page");
    }
}

/// Older pages are the same whatever was noted since.
pub async fn a_page_stays_when_newer_refusals_come(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=3 {
        note(world, &workspace, n).await;
    }
    let first = listed(world, &workspace, None, 1).await;
    note(world, &workspace, 4).await;
    assert_eq!(
        rules(&listed(world, &workspace, Some(&first[0].0), 9).await),
        [2, 1]
    );
}

/// No workspace sees what another was refused.
pub async fn workspaces_are_apart(world: &mut World) {
    let (one, two) = (world.workspace("w1").await, world.workspace("w2").await);
    for n in 1..=6 {
        note(world, if n % 2 == 0 { &two } else { &one }, n).await;
    }
    assert_eq!(rules(&listed(world, &one, None, 9).await), [5, 3, 1]);
    let second = listed(world, &two, None, 9).await;
    assert_eq!(rules(&second), [6, 4, 2]);
    assert_eq!(rules(&listed(world, &one, Some(&second[1].0), 9).await), [3, 1]);
}

/// Until its age is 30 days, to the millisecond.
pub async fn a_refusal_is_kept_for_thirty_days(world: &mut World) {
    let workspace = world.workspace("w1").await;
    note(world, &workspace, 1).await;
    world.clock.advance(MS);
    note(world, &workspace, 2).await;
    world.clock.advance(ACTIVITY_RETENTION - MS * 2);
    assert_eq!(rules(&listed(world, &workspace, None, 9).await), [2, 1]);
    world.clock.advance(MS);
    assert_eq!(rules(&listed(world, &workspace, None, 9).await), [2]);
    world.clock.advance(MS);
    assert!(listed(world, &workspace, None, 9).await.is_empty());
}

/// A position is good when its refusal is gone.
pub async fn a_position_outlives_its_refusal(world: &mut World) {
    let workspace = world.workspace("w1").await;
    note(world, &workspace, 1).await;
    let old = listed(world, &workspace, None, 1).await.remove(0).0;
    world.clock.advance(ACTIVITY_RETENTION);
    note(world, &workspace, 2).await;
    assert!(world.activity().is_position(&old));
    assert!(listed(world, &workspace, Some(&old), 9).await.is_empty());
}

/// Many at once do not wait for room; what comes of them is in order, and the log takes new ones after.
pub async fn a_flood_blocks_nobody(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 0..30_000 {
        world.activity().note(refused(&workspace, n, world.now()));
    }
    world.settle().await;
    let kept = rules(&listed(world, &workspace, None, 100_000).await);
    assert!(!kept.is_empty() && kept.is_sorted_by(|newer, older| newer > older));
    note(world, &workspace, 30_001).await;
    assert_eq!(rules(&listed(world, &workspace, None, 1).await), [30_001]);
}

/// What was written is there after a reopening.
pub async fn refusals_survive_a_reopening(world: &mut World) {
    let workspace = world.workspace("w1").await;
    for n in 1..=3 {
        note(world, &workspace, n).await;
    }
    let before = listed(world, &workspace, None, 9).await;
    world.reopen().await;
    assert_eq!(listed(world, &workspace, None, 9).await, before);
    note(world, &workspace, 4).await;
    assert_eq!(rules(&listed(world, &workspace, None, 9).await), [4, 3, 2, 1]);
}

/// A text is known for a position or not; none of its characters is the activity cursor's own.
pub async fn foreign_texts_are_no_positions(world: &mut World) {
    let workspace = world.workspace("w1").await;
    note(world, &workspace, 1).await;
    let own = &listed(world, &workspace, None, 9).await[0].0;
    assert!(world.activity().is_position(own) && !own.0.contains('~'));
    for text in sample::FOREIGN_POSITIONS {
        assert!(
            !world.activity().is_position(&Position((*text).to_owned())),
            "{text:?}"
        );
    }
}
