//! From what people type to what is meant: names, workspaces, whole lists, and who may not ask.

use serde_json::json;

use super::{done, fails, json, run, text};
use crate::verbs::{command, told, with_bus};

#[test]
fn a_consumer_is_named_by_id_or_by_a_name_that_only_it_has() {
    let (home, bus) = with_bus(&["--demo"]);
    let made = json(
        &home,
        &[
            "consumers",
            "create",
            "rundown",
            "--type",
            "story.context",
            "--topic-prefix",
            "som.",
            "--source",
            "demo-ncs",
            "--max-receives",
            "3",
            "--visibility",
            "20",
        ],
    );
    assert!(!text(&made, "/client_secret").is_empty());
    let shown = json(&home, &["consumers", "show", "rundown"]);
    assert_eq!(shown["client_id"], made["client_id"]);
    assert_eq!(
        (&shown["max_receives"], &shown["visibility_seconds"]),
        (&json!(3), &json!(20))
    );
    let out = done(
        &home,
        &["consumers", "update", "rundown", "--source", "", "--pause"],
    );
    assert!(
        out.contains("sources      all") && out.contains("paused"),
        "{out}"
    );
    let out = done(
        &home,
        &[
            "consumers",
            "update",
            "rundown",
            "--unpause",
            "--max-receives",
            "9",
        ],
    );
    assert!(
        out.contains("active") && out.contains("after 9 receives"),
        "{out}"
    );
    fails(
        &home,
        &["consumers", "show", "none such"],
        3,
        &[
            "there is no consumer \"none such\"",
            "(rundown)",
            text(&made, "/client_id"),
        ],
    );
    // A name that looks like an id of something else, and one that is longer than any id.
    done(&home, &["consumers", "create", "checker"]);
    assert_eq!(json(&home, &["consumers", "show", "checker"])["name"], "checker");
    let (code, _, err) = run(&home, &["consumers", "create", "rundown"]);
    assert!(
        code == 0 && err.contains("another consumer has the name \"rundown\""),
        "{err}"
    );
    fails(
        &home,
        &["queue", "rundown"],
        2,
        &["2 consumers have the name \"rundown\"", text(&made, "/client_id")],
    );
    assert_eq!(json(&home, &["queue", text(&made, "/client_id")])["visible"], 0);
    // Ids that would lead a path elsewhere.
    for id in ["../../admin", "a/b", "c?x=1", "c#", "%2e%2e"] {
        fails(&home, &["consumers", "show", id], 3, &["there is no consumer"]);
    }
    drop(bus);
}

#[test]
fn which_workspace_is_said_or_plain() {
    let (home, bus) = with_bus(&[]);
    let first = json(&home, &["workspaces", "create", "One"]);
    assert_eq!(json(&home, &["consumers", "list"])["consumers"], json!([]));
    let second = json(&home, &["workspaces", "create", "Two words"]);
    // An operator has none.
    assert!(done(&home, &["secrets", "list", "first operator"]).contains("SECRET"));
    fails(
        &home,
        &["consumers", "list"],
        2,
        &[
            "which workspace?",
            "STORYBUS_WORKSPACE",
            text(&first, "/tenant"),
            "(Two words)",
        ],
    );
    done(
        &home,
        &["consumers", "create", "reader", "--workspace", "Two words"],
    );
    let id = text(&second, "/tenant");
    assert_eq!(
        json(&home, &["consumers", "list", "-w", id])["consumers"][0]["tenant"],
        id
    );
    let (code, out, _) = told(
        &command(&home, "consumers")
            .arg("list")
            .env("STORYBUS_WORKSPACE", "One")
            .output()
            .unwrap(),
    );
    assert_eq!((code, out.as_str()), (0, ""));
    // What a variable has set is not asked for, and a noun alone is told its verb.
    for (noun, words, expected) in [
        (
            "jobs",
            &["cancel"][..],
            "Usage: storybus jobs cancel [OPTIONS] <JOB>",
        ),
        (
            "stories",
            &["ferry-strike"],
            "did you mean storybus stories show ferry-strike?",
        ),
        (
            "dead-letters",
            &["rundown"],
            "did you mean storybus dead-letters list rundown?",
        ),
    ] {
        let mut command = command(&home, noun);
        let (code, _, err) = told(
            &command
                .args(words)
                .env("STORYBUS_WORKSPACE", "One")
                .output()
                .unwrap(),
        );
        assert!(code == 2 && err.contains(expected), "{err}");
    }
    let audit = json(&home, &["audit", "-w", "Two words"]);
    for entry in audit["entries"].as_array().unwrap() {
        assert_eq!(entry["subject"][0], second["tenant"]);
    }
    assert!(!done(&home, &["audit", "-w", "Two words", "--action", "tenant.create"]).contains("One"));
    fails(
        &home,
        &["consumers", "list", "-w", "Three"],
        3,
        &["there is no workspace \"Three\"", "(One)"],
    );
    // What is to be pasted elsewhere names the workspace, also that of a variable.
    done(&home, &["consumers", "update", "reader", "--pause", "-w", id]);
    let mut queue = command(&home, "queue");
    let queue = queue.arg("reader").env("STORYBUS_WORKSPACE", "Two words");
    let (_, out, _) = told(&queue.output().unwrap());
    assert!(out.contains(" -w 'Two words'"), "{out}");
    // An overview is of all of them, and its hints name the workspace.
    let out = done(&home, &["status"]);
    assert!(
        out.contains("Two words") && out.contains("--unpause ") && out.contains(" -w 'Two words'\n"),
        "{out}"
    );
    drop(bus);
}

#[test]
fn lists_are_gathered_from_their_pages() {
    let (home, bus) = with_bus(&[]);
    let mut operator = bus.log_in(&bus.credentials, "operator");
    for n in 0..120 {
        let body = json!({ "name": format!("w{n}") });
        assert_eq!(operator.post("/v1/admin/tenants", &body).status, 201);
    }
    let (_, out, err) = run(&home, &["workspaces", "list"]);
    assert_eq!(out.lines().count(), 101);
    assert!(err.contains("there is more"), "{err}");
    let cut = json(&home, &["workspaces", "list", "--limit", "7"]);
    assert_eq!(cut["tenants"].as_array().unwrap().len(), 7);
    assert!(cut["next"].is_string());
    let all = json(&home, &["workspaces", "list", "--all"]);
    assert_eq!(all["tenants"].as_array().unwrap().len(), 120);
    assert!(all.get("next").is_none());
}

#[test]
fn who_is_no_operator_is_told_so() {
    let (home, bus) = with_bus(&["--demo"]);
    std::fs::write(home.path("s"), bus.text("/producer/client_secret")).unwrap();
    let path = home.path("s");
    let producer = bus.text("/producer/client_id");
    fails(
        &home,
        &[
            "consumers",
            "list",
            "--client-id",
            producer,
            "--client-secret-file",
            path.to_str().unwrap(),
        ],
        3,
        &[
            "operator.not_registered",
            "is no operator",
            "storybus explain operator.not_registered",
        ],
    );
    fails(
        &home,
        &["consumers", "list", "--client-id", "onobody"],
        2,
        &["the secret of onobody is missing"],
    );
    let url = format!("http://{}/nowhere", bus.address());
    fails(
        &home,
        &["consumers", "list", "--url", &url],
        3,
        &["is the URL right?"],
    );
    let other = crate::bus::Home::new();
    fails(
        &other,
        &["consumers", "list"],
        2,
        &["there is no ", "kept.json", "has written"],
    );
    let (code, out, err) = told(
        &command(&home, "status")
            .arg("--json")
            .env("STORYBUS_CLIENT_SECRET", "wrong")
            .output()
            .unwrap(),
    );
    let refused: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, text(&refused, "/violations/0/rule")),
        (3, "operator.unauthenticated")
    );
    assert!(err.contains("to do: "), "{err}");
    drop(bus);
    fails(
        &home,
        &["consumers", "list", "--patience", "0"],
        4,
        &["gave up", "is the bus running?"],
    );
}
