//! No room while blocks are made.

use storybus_core::ports::StoreError;
use storybus_testkit::executor::run;

use crate::place::{Place, everything, letter, open};

#[test]
fn without_room_nothing_is_lost_and_blocks_make_some() {
    run(async {
        let place = Place::with(|options| options.max_pages = Some(400));
        let world = place.world();
        let workspace = world.workspace("w1").await;
        let mut sent = 0;
        // until there is no room for another
        loop {
            let letter = letter(sent, sent % 9);
            let new = world.record_of(&workspace, &letter);
            if world.ledger().record(&new).await.is_err() {
                break;
            }
            let publication = world.publication(&workspace, &letter, new.record.attempt);
            if world.publish(&publication).await.is_err() {
                break;
            }
            sent += 1;
        }
        assert!(sent > 100, "{sent}");
        match place.store.compact().await {
            Ok(()) | Err(StoreError::Unavailable { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        let there = everything(&place.store, &workspace).await;
        assert_eq!(there.len() as u64, sent);
        assert!(place.number("SELECT count(*) FROM archive_block") > 0);
        let check = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'";
        assert_eq!(place.number(check), 1);
        place.store.close().await;
        let store = open(place.directory.path(), &place.clock, |_| {});
        store.compact().await.unwrap();
        assert_eq!(everything(&store, &workspace).await, there);
        assert_eq!(place.number("SELECT count(*) FROM message"), 0);
        store.close().await;
    });
}
