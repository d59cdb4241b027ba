//! The way from "a consumer stands still" to the message and the mend, by the hints alone.

use serde_json::{Value, json};

use super::{done, fails, json, run, text};
use crate::bus::wait_for;
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
    let hint = text(row, "/hints/0/command");
    assert!(hint.starts_with("storybus consumers update "), "{hint}");
    assert_eq!(text(row, "/hints/0/code"), "paused");
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
    done(&home, &["consumers", "update", consumer, "--pause"]);
    let out = done(&home, &["status", "-w", bus.text("/tenant")]);
    assert!(
        out.contains("disabled, paused")
            && out.contains("disabled: storybus consumers")
            && out.contains("--unpause"),
        "{out}"
    );
    fails(&home, &["status", "-w", "none"], 3, &["there is no workspace"]);
}

#[test]
fn from_a_dead_letter_to_its_mend() {
    let (home, bus) = with_bus(&["--demo"]);
    let (tenant, consumer) = (bus.text("/tenant"), bus.text("/consumer/client_id"));
    let mut producer = bus.log_in(&bus.credentials, "producer");
    let mut reader = bus.log_in(&bus.credentials, "consumer");
    let snapshots: Vec<Value> = (1..=3).map(|n| snapshot("s", n)).collect();
    for message in &snapshots {
        assert_eq!(producer.publish(message).status, 202);
    }
    let base = format!("/v1/tenants/{tenant}/consumers/{consumer}");
    let received = reader.get(&format!("{base}/messages?max=1"));
    let handle = &received.body["messages"][0]["receipt_handle"];
    let reject = json!({"receipt_handles": [handle], "reason": "no such \u{1b}[31mrundown"});
    assert_eq!(reader.post(&format!("{base}/reject"), &reject).status, 200);
    let id = text(&snapshots[0], "/message_id");

    let status = done(&home, &["status"]);
    assert!(
        status.contains("1 dead letter: storybus dead-letters list "),
        "{status}"
    );
    let list = done(&home, &["dead-letters", "list", "demo consumer"]);
    assert!(
        list.contains(id) && list.contains("no such \\u001b[31mrundown"),
        "{list}"
    );
    let shown = done(&home, &["dead-letters", "show", consumer, id]);
    assert!(
        shown.contains("\"headline\": \"Headline 1\"") && shown.contains("rejected"),
        "{shown}"
    );
    let way = done(&home, &["message", "show", id]);
    assert!(
        way.contains("dead_lettered") && way.contains("published"),
        "{way}"
    );

    let out = done(&home, &["redrive", consumer, "--message", id, "--wait"]);
    assert!(
        out.contains("redrive")
            && out.contains("done")
            && out.contains("demo consumer (")
            && out.contains(&format!("storybus message show {id}")),
        "{out}"
    );
    assert_eq!(json(&home, &["queue", consumer])["dead_lettered"], 0);
    let (code, shown, err) = run(&home, &["redrive", consumer, "--message", id, "--wait", "--json"]);
    let job: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &job["missing"], &job["moved"]),
        (8, &json!([id]), &json!(0))
    );
    assert!(
        err.contains("nothing was moved: none of the messages is a dead letter"),
        "{err}"
    );
    for words in [
        &["redrive", consumer, "--all", "--wait"][..],
        &[
            "replay",
            consumer,
            "--last",
            "1h",
            "--story",
            "ferry-stirke",
            "--wait",
        ],
    ] {
        fails(
            &home,
            words,
            8,
            &["nothing was moved: ", "newer messages of their story"],
        );
    }
    assert_eq!(reader.drain(tenant, consumer).len(), 3);

    let job = json(
        &home,
        &["replay", consumer, "--last", "1h", "--type", "story.*", "--wait"],
    );
    assert_eq!((&job["state"], &job["moved"]), (&json!("done"), &json!(3)));
    let list = done(&home, &["jobs", "list"]);
    assert_eq!(list.lines().count(), 6, "{list}");
    assert!(
        list.contains("ferry-stirke") && list.contains("demo consumer"),
        "{list}"
    );
    let job = text(&job, "/job_id").to_owned();
    assert!(done(&home, &["jobs", "show", &job]).contains("replay"));
    done(&home, &["jobs", "wait", &job]);
    fails(
        &home,
        &["jobs", "cancel", &job],
        3,
        &["job.finished", "storybus jobs show"],
    );
    assert_eq!(json(&home, &["queue", "purge", consumer, "--yes"])["purged"], 3);
    fails(
        &home,
        &["replay", consumer, "--from", "2001-01-01T00:00:00Z"],
        3,
        &["request.invalid at /from (--from, --last)"],
    );
}

#[test]
fn what_happened_is_seen_afterwards() {
    let (home, bus) = with_bus(&["--demo"]);
    let mut producer = bus.log_in(&bus.credentials, "producer");
    for n in 1..=2 {
        assert_eq!(producer.publish(&snapshot("s", n)).status, 202);
    }
    assert_eq!(producer.publish(&snapshot("s", 1)).status, 409);
    let refused = ["activity", "--rule", "sequence_number.not_increasing"];
    let out = wait_for("refusal in the activity", || {
        Some(done(&home, &refused)).filter(|out| out.contains("409"))
    });
    assert!(
        !out.contains("  202  ") && out.contains("sequence_number.not_increasing"),
        "{out}"
    );
    let all = json(
        &home,
        &["activity", "--producer", bus.text("/producer/client_id")],
    );
    assert_eq!(all["activity"].as_array().unwrap().len(), 3);
    assert!(
        out.contains("caller") && out.contains("storybus explain sequence_number.not_increasing"),
        "{out}"
    );
    for (words, why) in [
        (
            &["activity", "--producer", "nobody"][..],
            "there is no producer \"nobody\"",
        ),
        (
            &["activity", "--rule", "sequence_number"],
            "sequence_number.not_increasing",
        ),
    ] {
        let (code, _, err) = run(&home, words);
        assert!(code != 0 && err.contains(why), "{code} {err}");
    }
    let out = done(&home, &["activity", "--rule", "envelope.required"]);
    assert_eq!(out, "");
    // Of the same millisecond as the last publish, it need not be the first.
    let entries = all["activity"].as_array().unwrap();
    let refused = entries.iter().find(|entry| entry["status"] == 409).unwrap();
    let refused = text(refused, "/message_id").to_owned();
    let of_it = json(&home, &["activity", "--message", &refused]);
    assert_eq!(of_it["activity"].as_array().unwrap().len(), 1);
    fails(
        &home,
        &["message", "show", &refused],
        3,
        &[
            "refused: ",
            "with 409: sequence_number.not_increasing; fault: caller; retry: no",
            "storybus explain",
        ],
    );
    fails(&home, &["message", "show", "057b25e2"], 2, &["is no message id"]);
    let stories = done(&home, &["stories", "list"]);
    assert!(stories.contains("ACTIVE"), "{stories}");
    let story = json(&home, &["stories", "show", "s"]);
    assert_eq!(story["messages"].as_array().unwrap().len(), 2);
    assert_eq!(
        done(&home, &["stories", "show", "s"])
            .matches("story.context")
            .count(),
        2
    );
    fails(&home, &["stories", "show", "none"], 3, &["story.not_found"]);
    let nobody = "0199b3d0-1111-7000-8000-00000000abcd";
    fails(
        &home,
        &["message", "show", nobody],
        3,
        &["message.not_found", "storybus activity"],
    );
}
