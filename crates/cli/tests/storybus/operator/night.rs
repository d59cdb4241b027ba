//! The way from "a consumer stands still" to the message and the mend, by the hints alone.

use serde_json::json;

use super::{done, fails, json, text};
use crate::client::snapshot;
use crate::verbs::with_bus;

#[test]
fn an_overview_says_what_stands_still_and_how_to_go_on() {
    let (home, bus) = with_bus(&["--demo"]);
    let consumer = bus.text("/consumer/client_id");
    let out = done(&home, &["status", "--hints"]);
    assert_eq!(out, "");
    done(&home, &["consumers", "update", consumer, "--pause"]);
    let mut producer = bus.log_in(&bus.credentials, "producer");
    for n in 1..=3 {
        assert_eq!(producer.publish(&snapshot("s", n)).status, 202);
    }
    let status = json(&home, &["status"]);
    let row = &status["consumers"][0];
    assert_eq!((&row["visible"], &row["paused"]), (&json!(3), &json!(true)));
    let hint = text(row, "/hints/0");
    assert!(hint.starts_with("paused: storybus consumers update "), "{hint}");
    let out = done(&home, &["queue", consumer]);
    assert!(
        out.contains("waiting       3") && out.contains("paused") && out.contains("Next:"),
        "{out}"
    );
    // The hint as it is told, as somebody would paste it.
    let command = hint.split_once("storybus ").unwrap().1;
    let words: Vec<&str> = command.split(' ').collect();
    assert!(words.contains(&"--credentials-file"), "{command}");
    let pasted = words.iter().position(|w| *w == "--credentials-file").unwrap();
    done(&home, &words[..pasted]);
    assert_eq!(json(&home, &["status", "--hints"])["consumers"], json!([]));
    done(&home, &["consumers", "update", consumer, "--disable"]);
    assert!(done(&home, &["status", "-w", bus.text("/tenant")]).contains("disabled: storybus consumers"));
    fails(&home, &["status", "-w", "none"], 3, &["there is no workspace"]);
}
