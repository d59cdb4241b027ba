//! Lists: pages in the order of the ids.

use serde_json::{Value, json};

use crate::world::World;

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
