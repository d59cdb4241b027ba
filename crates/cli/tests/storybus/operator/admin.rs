//! Workspaces, connections and secrets.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{done, fails, json, run, text};
use crate::client::snapshot;
use crate::verbs::{command, told, with_bus, write};

#[test]
fn a_workspace_lives_and_goes() {
    let (home, _bus) = with_bus(&[]);
    fails(
        &home,
        &["consumers", "list"],
        2,
        &["storybus workspaces create NAME"],
    );
    let made = json(&home, &["workspaces", "create", "Harbour News", "--strict"]);
    assert_eq!(made["strict_message_types"], true);
    let out = done(
        &home,
        &[
            "workspaces",
            "update",
            "Harbour News",
            "--name",
            "Harbour",
            "--no-strict",
        ],
    );
    assert!(
        out.contains("Harbour\n") && out.contains("strict     no"),
        "{out}"
    );
    assert_eq!(
        json(&home, &["workspaces", "show", "Harbour"])["tenant"],
        made["tenant"]
    );
    let id = text(&made, "/tenant");
    assert!(done(&home, &["workspaces", "show", id]).contains(id));
    done(&home, &["consumers", "create", "reader"]);
    fails(
        &home,
        &["workspaces", "delete", id, "--yes"],
        3,
        &[
            "tenant.not_empty",
            "to do:",
            "fault:   caller; retry: no",
            "storybus explain tenant.not_empty",
        ],
    );
    done(&home, &["consumers", "delete", "reader", "--yes"]);
    let gone = json(&home, &["workspaces", "delete", "Harbour", "--yes"]);
    assert_eq!(gone, json!({ "deleted": id }));
    fails(&home, &["workspaces", "show", id], 3, &["there is no workspace"]);
    let audit = json(&home, &["audit", "--limit", "1"]);
    assert_eq!(text(&audit, "/entries/0/action"), "tenant.delete");
    assert!(done(&home, &["audit", "--all"]).contains("tenant.create"));
}

#[test]
fn a_connection_made_here_works_and_can_be_shut_out() {
    let (home, bus) = with_bus(&["--demo"]);
    let secret = home.path("p.secret");
    let file = secret.to_str().unwrap();
    let out = done(
        &home,
        &[
            "producers",
            "create",
            "planning",
            "--system-id",
            "ncs-1,ncs-2",
            "--type",
            "story.*",
            "--type",
            "telling.*",
            "--rate",
            "50/100",
            "--secret-file",
            file,
        ],
    );
    assert!(
        out.contains("50 a second, 100 at once") && out.contains("ncs-1,ncs-2"),
        "{out}"
    );
    let written = std::fs::read_to_string(&secret).unwrap();
    assert!(
        !out.contains(written.trim()),
        "a secret that goes to a file is not shown"
    );
    assert_eq!(
        std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fails(
        &home,
        &[
            "producers",
            "create",
            "x",
            "--system-id",
            "y",
            "--type",
            "*",
            "--secret-file",
            file,
        ],
        2,
        &["is there already"],
    );
    let id = text(&json(&home, &["producers", "show", "planning"]), "/client_id").to_owned();
    let mut message = snapshot("s", 1);
    message["originating_system"]["system_id"] = "ncs-2".into();
    write(&home, "1.json", &message);
    let publish = || {
        let mut command = command(&home, "publish");
        command.args(["1.json", "--client-id", &id, "--client-secret-file", file]);
        told(&command.output().unwrap())
    };
    assert!(publish().1.starts_with("accepted "));
    let out = done(
        &home,
        &[
            "producers",
            "update",
            "planning",
            "--disable",
            "--no-rate",
            "--type",
            "",
        ],
    );
    assert!(
        out.contains("disabled") && out.contains("no limit") && out.contains("none: it can publish nothing"),
        "{out}"
    );
    assert_eq!(publish().0, 3);
    fails(
        &home,
        &["producers", "update", "planning"],
        2,
        &["nothing to change"],
    );
    fails(
        &home,
        &["producers", "update", &id, "--rate", "0/1"],
        3,
        &["/rate", "request.invalid"],
    );
    fails(
        &home,
        &[
            "producers",
            "create",
            "thief",
            "--system-id",
            "ncs-1",
            "--type",
            "*",
        ],
        3,
        &["system_id.taken"],
    );
    let list = done(&home, &["producers", "list"]);
    assert!(list.contains("PRODUCER") && list.contains("planning") && list.contains("disabled"));
    done(&home, &["producers", "delete", "planning", "--yes"]);
    drop(bus);
}

#[test]
fn secrets_are_rotated() {
    let (home, bus) = with_bus(&["--demo"]);
    let consumer = bus.text("/consumer/client_id");
    let first = json(&home, &["secrets", "list", consumer]);
    let first = text(&first, "/secrets/0/secret_id");
    let file = home.path("new.secret");
    let file = file.to_str().unwrap();
    let made = json(&home, &["secrets", "create", consumer, "--secret-file", file]);
    assert!(made.get("client_secret").is_none(), "{made}");
    let out = done(&home, &["secrets", "list", "demo consumer"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    done(
        &home,
        &[
            "producers",
            "create",
            "demo consumer",
            "--system-id",
            "x",
            "--type",
            "*",
        ],
    );
    fails(
        &home,
        &["secrets", "list", "demo consumer"],
        2,
        &["2 connections have the name"],
    );
    fails(
        &home,
        &["secrets", "create", consumer],
        3,
        &["secret.limit", "storybus secrets delete ID SECRET_ID"],
    );
    fails(&home, &["secrets", "delete", consumer, first], 2, &["--yes"]);
    done(&home, &["secrets", "delete", consumer, first, "--yes"]);
    let last = json(&home, &["secrets", "list", consumer]);
    let last = text(&last, "/secrets/0/secret_id");
    fails(
        &home,
        &["secrets", "delete", consumer, last],
        2,
        &["the last secret", "cannot log in any more"],
    );
    let mut pull = command(&home, "pull");
    pull.args(["--client-secret-file", file]);
    assert_eq!(told(&pull.output().unwrap()).0, 0);
    fails(
        &home,
        &["secrets", "delete", consumer, first, "--yes"],
        3,
        &["secret.not_found"],
    );
    let (_, _, err) = run(&home, &["secrets", "delete", consumer, last, "--yes"]);
    assert!(err.contains("it was the last"), "{err}");
    let status = json(&home, &["status"]);
    assert_eq!(text(&status, "/consumers/0/hints/0/code"), "no_secret");
    assert!(done(&home, &["queue", consumer]).contains("it cannot log in"));
    fails(
        &home,
        &["secrets", "list", "xyz"],
        3,
        &["no producer, consumer or operator \"xyz\""],
    );
}

#[test]
fn operators_come_and_go_but_the_last() {
    let (home, bus) = with_bus(&[]);
    let own = bus.text("/operator/client_id");
    fails(
        &home,
        &["operators", "delete", own, "--yes"],
        3,
        &["request.invalid"],
    );
    let out = done(&home, &["operators", "create", "night desk"]);
    assert!(out.contains("secret "), "{out}");
    let shown = json(&home, &["operators", "show", "night desk"]);
    assert!(done(&home, &["operators", "update", "night desk", "--disable"]).contains("disabled"));
    assert!(done(&home, &["operators", "list"]).contains("night desk"));
    done(&home, &["secrets", "list", text(&shown, "/client_id")]);
    done(&home, &["operators", "delete", "night desk", "--yes"]);
}

#[test]
fn nothing_is_destroyed_unasked() {
    let (home, bus) = with_bus(&["--demo"]);
    let (producer, consumer) = (bus.text("/producer/client_id"), bus.text("/consumer/client_id"));
    for words in [
        &["producers", "delete", producer][..],
        &["consumers", "delete", consumer],
        &["operators", "delete", bus.text("/operator/client_id")],
        &["workspaces", "delete", bus.text("/tenant")],
        &["queue", "purge", consumer],
    ] {
        fails(&home, words, 2, &["give --yes"]);
    }
    assert_eq!(
        json(&home, &["consumers", "list"])["consumers"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
