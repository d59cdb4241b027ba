//! Every event of `events/` through the handlers, over the engine in memory.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod http;
mod jobs;
mod others;
mod panics;
mod queues;
mod world;

use std::collections::BTreeSet;

/// The files of a folder of `events/`, without their ending.
fn files(folder: &str) -> BTreeSet<String> {
    let path = format!("{}/../../events/{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(path).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .map(|name| name.trim_end_matches(".json").to_owned())
        .collect()
}
