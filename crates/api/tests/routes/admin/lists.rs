//! Lists: pages in the order of the ids.

use serde_json::{Value, json};

use crate::world::{World, ask, note, snapshot};

fn ids(page: &Value, list: &str, id: &str) -> Vec<String> {
    let entries = page[list].as_array().expect("a list");
    entries
        .iter()
        .map(|e| e[id].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn read_page_by_page() {
    let world = World::new();
    let tenants: Vec<String> = (0..5).map(|_| world.tenant()).collect();
    let t = format!("/v1/admin/tenants/{}", tenants[0]);
    for n in 0..5 {
        world.producer(&tenants[0], &format!("s{n}"));
        world.consumer(&tenants[0]);
    }
    (0..4).for_each(|_| drop(world.client("/v1/admin/operators", json!({"name": "x"}))));
    for (path, list, id) in [
        ("/v1/admin/tenants".to_owned(), "tenants", "tenant"),
        (format!("{t}/producers"), "producers", "client_id"),
        (format!("{t}/consumers"), "consumers", "client_id"),
        ("/v1/admin/operators".to_owned(), "operators", "client_id"),
    ] {
        let whole = world.operate("GET", &path, None).is_ok().json.clone();
        let all = ids(&whole, list, id);
        assert_eq!((all.len(), whole.get("next")), (5, None));
        assert!(all.is_sorted(), "{all:?}");
        let shown = world.operate("GET", &format!("{path}/{}", all[0]), None).json;
        assert_eq!(whole[list][0], shown, "a list shows what the resource shows");
        let (mut read, mut query) = (Vec::new(), "?limit=2".to_owned());
        loop {
            let page = world
                .operate("GET", &format!("{path}{query}"), None)
                .is_ok()
                .json
                .clone();
            read.extend(ids(&page, list, id));
            let Some(next) = page["next"].as_str() else { break };
            assert_eq!(page[list].as_array().map(Vec::len), Some(2));
            query = format!("?limit=2&after={next}");
        }
        assert_eq!(read, all);
        let whole = world.operate("GET", &format!("{path}?limit=5"), None);
        assert_eq!(whole.json.get("next"), None, "no more behind the last");
        for (query, paths) in [
            ("limit=0", &["/limit"][..]),
            ("limit=1001", &["/limit"]),
            ("limit=x", &["/limit"]),
            ("limit=1&limit=2", &["/limit"]),
            ("after=x%20y", &["/after"]),
            ("after=", &["/after"]),
        ] {
            world
                .operate("GET", &format!("{path}?{query}"), None)
                .is_invalid_at(paths);
        }
        world
            .operate("GET", &format!("{path}?limit=1000&other=1&other=2"), None)
            .is_ok();
    }
}

/// Reads a list page by page; how many pages, and how many entries.
fn paged(world: &World, path: &str, name: &str, cursor: &str) -> (usize, usize) {
    let (mut pages, mut entries, mut from) = (0, 0, String::new());
    loop {
        let answer = world.operate("GET", &format!("{path}?limit=1000{from}"), None);
        assert!(
            answer.is_ok().body.len() < 9 * 1024 * 1024,
            "{name}: too large a page"
        );
        pages += 1;
        entries += answer.json[name].as_array().map_or(0, Vec::len);
        match answer.json["next"].as_str() {
            Some(next) => from = format!("&{cursor}={next}"),
            None => return (pages, entries),
        }
    }
}

#[test]
fn pages_of_large_entries_end_early() {
    let world = World::new();
    let room = world.room();
    for n in 1..=60 {
        let mut message = snapshot(n, 1);
        message["correlation_id"] = note(n)["correlation_id"].clone();
        message["payload"]["story_id"] = json!(format!("{n}{}", "x".repeat(230_000)));
        let answer = world.send(ask("POST", room.publish()).of(&room.producer).json(&message));
        assert_eq!(answer.status, 202, "{}", answer.json);
    }
    let tenant = format!("/v1/admin/tenants/{}", room.tenant);
    let (pages, stories) = paged(&world, &format!("{tenant}/stories"), "stories", "after");
    assert_eq!(stories, 60);
    assert!(pages >= 3, "{pages} pages");
    let ids: Vec<_> = (0..1000)
        .map(|n| note(1_000_000 + n)["message_id"].clone())
        .collect();
    for _ in 0..90 {
        let job = world.operate(
            "POST",
            &room.operated("redrives"),
            Some(json!({"message_ids": ids})),
        );
        assert_eq!(job.status, 202, "{}", job.json);
    }
    let (pages, jobs) = paged(&world, &format!("{tenant}/jobs"), "jobs", "after");
    assert_eq!(jobs, 90);
    assert!(pages >= 2, "{pages} pages");
    let (_, entries) = paged(&world, "/v1/admin/audit", "entries", "before");
    assert!(entries >= 90, "{entries}");
}
