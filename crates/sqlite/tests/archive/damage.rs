//! Something in the archive is broken: the error says what, and everything else goes on.

use storybus_core::ports::{Archive as _, StoreError};
use storybus_testkit::executor::run;
use storybus_testkit::suite::sample;

use crate::place::{Place, everything, letter, number, numbers, part};

/// Forty messages in blocks of at most four, with runs.
async fn filled() -> (Place, storybus_protocol::id::WorkspaceId) {
    let place = Place::new();
    let world = place.world();
    let workspace = world.workspace("w1").await;
    for n in 0..40 {
        world.send(&workspace, &letter(n, n % 5)).await;
    }
    place.store.compact().await.unwrap();
    assert!(place.number("SELECT count(*) FROM archive_segment WHERE state = 1") > 0);
    let found = storybus_sqlite::check(place.directory.path()).unwrap().findings;
    assert!(found.is_empty(), "{found:?}");
    (place, workspace)
}

fn names_block_2(error: &StoreError) {
    let text = error.to_string();
    assert!(
        text.contains("archive block 2 ") && text.contains("damaged"),
        "{text}"
    );
}

#[test]
fn damaged_bodies_hide_no_other_block() {
    run(async {
        let (mut place, workspace) = filled().await;
        place
            .between(|database| {
                let sql = "UPDATE archive_block SET bodies = CAST(substr(bodies, 1, 20) || zeroblob(length(bodies) - 20) AS BLOB) WHERE id = 2";
                assert_eq!(database.execute(sql, []).unwrap(), 1);
            })
            .await;
        let found = storybus_sqlite::check(place.directory.path()).unwrap().findings;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("archive block 2 "), "{found:?}");
        // its heads are whole
        let archive = place.store.archive();
        assert_eq!(archive.latest(&workspace, None, 100).await.unwrap().len(), 40);
        let first = part(&place.store, &workspace, None).await;
        names_block_2(&first.unwrap_err());
        // behind it one can read on
        let last = place.number("SELECT last_seq FROM archive_block WHERE id = 2");
        let after = storybus_core::domain::archived::Position(last.to_string());
        let behind = part(&place.store, &workspace, Some(&after)).await.unwrap();
        assert!(!behind.messages.is_empty());
        place.store.close().await;
    });
}

#[test]
fn damaged_heads_are_an_error_where_they_are_needed() {
    run(async {
        let (mut place, workspace) = filled().await;
        let (first, last) = (
            place.number("SELECT first_seq FROM archive_block WHERE id = 2"),
            place.number("SELECT last_seq FROM archive_block WHERE id = 2"),
        );
        place
            .between(|database| {
                let sql = "UPDATE archive_block SET heads = zeroblob(length(heads)) WHERE id = 2";
                database.execute(sql, []).unwrap();
                // the runs have to be made anew, over the damaged block
                database
                    .execute_batch("UPDATE archive_segment SET state = 2 WHERE state = 1")
                    .unwrap();
            })
            .await;
        let world = place.world();
        world.send(&workspace, &letter(100, 3)).await;
        place.store.sweep().await.unwrap();
        place.store.compact().await.unwrap();
        let archive = place.store.archive();
        names_block_2(&archive.latest(&workspace, None, 100).await.unwrap_err());
        let newest = archive.latest(&workspace, None, 4).await.unwrap();
        assert_eq!(number(newest[0].message_id), 100);
        // what the index did not have to ask the damaged block for
        for n in [0, 39, 100] {
            let found = archive.find(&workspace, sample::message_id(n)).await.unwrap();
            assert_eq!(numbers(&found), [n]);
        }
        assert!(first < last);
        place.store.close().await;
    });
}

#[test]
fn a_run_that_was_not_finished_is_made_anew() {
    run(async {
        let (mut place, workspace) = filled().await;
        place
            .between(|database| {
                database
                    .execute_batch(
                        "UPDATE archive_segment SET state = 0;
                         DELETE FROM archive_run WHERE id % 2 = 0;
                         INSERT INTO archive_segment (level, first_block, last_block, state) VALUES (1, 1, 1000, 0);
                         INSERT INTO archive_run (segment, first, pairs) SELECT max(id), 0, zeroblob(12) FROM archive_segment",
                    )
                    .unwrap();
            })
            .await;
        let archive = place.store.archive();
        for _ in 0..2 {
            for n in 0..40 {
                let found = archive.find(&workspace, sample::message_id(n)).await.unwrap();
                assert_eq!(numbers(&found), [n]);
            }
            place.store.compact().await.unwrap();
            place.store.sweep().await.unwrap();
        }
        assert_eq!(
            place.number("SELECT count(*) FROM archive_segment WHERE state != 1"),
            0
        );
        assert_eq!(
            place.number(
                "SELECT count(*) FROM archive_run WHERE segment NOT IN (SELECT id FROM archive_segment WHERE state = 1)"
            ),
            0
        );
        assert_eq!(everything(&place.store, &workspace).await.len(), 40);
        place.store.close().await;
    });
}
