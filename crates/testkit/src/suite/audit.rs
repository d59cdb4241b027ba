//! The audit: [`AuditLog`](storybus_core::ports::AuditLog).

use std::time::Duration;

use storybus_core::ports::audit::{AuditCursor, AuditEntry};

use super::sample;
use super::world::World;

super::behaviours![
    a_new_audit_is_empty,
    an_entry_is_read_as_written,
    entries_come_newest_first,
    entries_of_one_instant_keep_their_order,
    pages_meet_without_gap_or_overlap,
    a_page_stays_when_newer_entries_come,
    a_foreign_cursor_is_none,
    cursors_survive_a_reopening needs Reopen,
];

/// Writes entries numbered from `from`, each at its own instant.
async fn write(world: &World, from: usize, count: usize) {
    for n in from..from + count {
        world.clock.advance(Duration::from_millis(1));
        world.workspace(&format!("w{n:03}")).await;
    }
}

async fn page(
    world: &World,
    before: Option<&AuditCursor>,
    limit: usize,
) -> (Vec<String>, Option<AuditCursor>) {
    let (entries, next) = world.audit().list(before, limit).await.unwrap().unwrap();
    (
        entries.into_iter().map(|entry| entry.subject.join("/")).collect(),
        next,
    )
}

/// Nothing was written: no entries, no cursor.
pub async fn a_new_audit_is_empty(world: &mut World) {
    assert_eq!(
        world.audit().list(None, 10).await.unwrap(),
        Some((Vec::new(), None))
    );
}

/// Every member of an entry comes back as it was given.
pub async fn an_entry_is_read_as_written(world: &mut World) {
    let entry = AuditEntry {
        at: world.now(),
        actor: "o7".to_owned(),
        action: "tenant.create".to_owned(),
        subject: vec!["w1".to_owned(), "\"é\\".to_owned(), String::new()],
        details: serde_json::json!({ "b": [1, null, true, "ü"], "a": { "x": -1.5 } }),
    };
    let workspace = sample::workspace("w1", world.now());
    world.workspaces().create(&workspace, &entry).await.unwrap();
    assert_eq!(
        world.audit().list(None, 10).await.unwrap(),
        Some((vec![entry], None))
    );
}

/// The newest entry is the first.
pub async fn entries_come_newest_first(world: &mut World) {
    write(world, 1, 3).await;
    assert_eq!(
        page(world, None, 10).await,
        (vec!["w003".into(), "w002".into(), "w001".into()], None)
    );
}

/// Writes within one millisecond are told apart: the later one is the newer one.
pub async fn entries_of_one_instant_keep_their_order(world: &mut World) {
    for id in ["w5", "w1", "w3"] {
        world.workspace(id).await;
    }
    let (first, cursor) = page(world, None, 2).await;
    assert_eq!(first, ["w3", "w1"]);
    assert_eq!(page(world, cursor.as_ref(), 2).await.0, ["w5"]);
}

/// Page by page, every entry comes once.
pub async fn pages_meet_without_gap_or_overlap(world: &mut World) {
    write(world, 1, 7).await;
    for limit in 1..9 {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let (entries, next) = page(world, cursor.as_ref(), limit).await;
            assert!(entries.len() <= limit);
            all.extend(entries);
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        assert_eq!(
            all,
            ["w007", "w006", "w005", "w004", "w003", "w002", "w001"],
            "{limit} a page"
        );
    }
}

/// A cursor leads to the same entries, whatever was written since.
pub async fn a_page_stays_when_newer_entries_come(world: &mut World) {
    write(world, 1, 4).await;
    let (first, cursor) = page(world, None, 2).await;
    assert_eq!(first, ["w004", "w003"]);
    write(world, 5, 2).await;
    assert_eq!(page(world, cursor.as_ref(), 2).await.0, ["w002", "w001"]);
}

/// A cursor that the log never gave is not an error, and not a page either.
pub async fn a_foreign_cursor_is_none(world: &mut World) {
    write(world, 1, 2).await;
    for text in [
        "",
        "x",
        "-1",
        "é",
        "1; DROP TABLE audit",
        "99999999999999999999999999",
    ] {
        let cursor = AuditCursor(text.to_owned());
        assert_eq!(
            world.audit().list(Some(&cursor), 10).await.unwrap(),
            None,
            "{text:?}"
        );
    }
}

/// A cursor holds over a reopening.
pub async fn cursors_survive_a_reopening(world: &mut World) {
    write(world, 1, 3).await;
    let (_, cursor) = page(world, None, 1).await;
    world.reopen().await;
    assert_eq!(page(world, cursor.as_ref(), 2).await.0, ["w002", "w001"]);
}
