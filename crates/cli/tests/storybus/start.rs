//! Starts: the first one, later ones, and those that cannot be.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::bus::{BINARY, Home, wait_for};
use crate::client::snapshot;

#[test]
fn the_first_start_hands_out_secrets_and_later_ones_do_not() {
    let home = Home::new();
    let bus = home.serve();
    let first = bus.credentials.clone();
    let mode = std::fs::metadata(home.path("given.json"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(first["producer"]["system_id"], "demo-ncs");
    let base = first["base_url"].as_str().unwrap();
    assert!(
        base.starts_with("http://127.0.0.1:") && base.ends_with("/v1/"),
        "{base}"
    );
    let ids = ["operator", "producer", "consumer"].map(|who| first[who]["client_id"].clone());
    for (who, kind) in [
        ("operator", "admin"),
        ("producer", "publish"),
        ("consumer", "consume"),
    ] {
        bus.log_in(&first, who);
        assert!(
            first[who]["client_secret"].as_str().unwrap().len() >= 32,
            "{who} {kind}"
        );
    }
    let message = snapshot("s", 1);
    assert_eq!(bus.log_in(&first, "producer").publish(&message).status, 202);
    assert!(bus.stop().success());

    let bus = home.serve();
    assert_eq!(
        ["operator", "producer", "consumer"].map(|who| bus.credentials[who]["client_id"].clone()),
        ids
    );
    assert!(!bus.credentials.to_string().contains("client_secret"));
    let duplicate = bus.log_in(&first, "producer").publish(&message);
    assert_eq!(
        (duplicate.status, &duplicate.body["duplicate"]),
        (200, &Value::Bool(true))
    );
    let got = bus
        .log_in(&first, "consumer")
        .drain(first["tenant"].as_str().unwrap(), ids[2].as_str().unwrap());
    assert_eq!(got, [message["message_id"].as_str().unwrap()]);
    let operators = bus.log_in(&first, "operator").get("/v1/admin/operators");
    assert_eq!(operators.body["operators"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_file_the_data_directory_keeps_the_credentials() {
    let home = Home::new();
    let own = home.path("data").join("credentials.json");
    let read = || serde_json::from_str::<Value>(&std::fs::read_to_string(&own).unwrap_or_default()).ok();
    let mut child = home.serve_command(&[]).spawn().unwrap();
    let first = wait_for("credentials", read);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first["operator"]["client_secret"].is_string() && first.get("tenant").is_none());
    let mut child = home.serve_command(&["--demo"]).spawn().unwrap();
    let later = wait_for("credentials", || read().filter(|c| c.get("consumer").is_some()));
    let told = wait_for("words", || {
        Some(home.read("out")).filter(|out| out.contains("Ctrl-C"))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(later["operator"], first["operator"], "its secret is kept");
    assert!(later["producer"]["client_secret"].is_string());
    assert_eq!(
        std::fs::metadata(&own).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        told.contains("storybus publish --credentials-file") && told.contains("curl"),
        "{told}"
    );
    for client in ["operator", "producer", "consumer"] {
        let secret = later[client]["client_secret"].as_str().unwrap();
        assert!(
            !told.contains(secret),
            "a file that is no terminal shows no secret"
        );
    }
}

#[test]
fn a_start_that_died_before_it_told_its_secrets_tells_them_the_next_time() {
    let home = Home::new();
    // The file cannot be written: a folder is in its place.
    std::fs::create_dir_all(home.path("data/credentials.json/x")).unwrap();
    let mut child = home.serve_command(&["--demo"]).spawn().unwrap();
    assert_eq!(wait_for("end", || child.try_wait().unwrap()).code(), Some(2));
    assert!(
        home.read("err").contains("cannot write the credentials"),
        "{}",
        home.read("err")
    );
    let bus = home.serve();
    for who in ["operator", "producer", "consumer"] {
        bus.log_in(&bus.credentials, who);
    }
}

#[test]
fn a_lost_operator_s_secret_is_replaced() {
    let home = Home::new();
    let bus = home.serve();
    let first = bus.credentials.clone();
    // Not killed: a first start that did not get to its end hands its operator over once more.
    assert!(bus.stop().success());
    let bus = home.serve_with(&["--new-operator"]);
    let new = bus.credentials.clone();
    assert_ne!(new["operator"]["client_id"], first["operator"]["client_id"]);
    let mut operator = bus.log_in(&new, "operator");
    assert_eq!(
        operator.get("/v1/admin/operators").body["operators"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(bus.stop().success());
    // The same file again: without the secrets, and the log says so. The demo does not propose what cannot work.
    let mut command = home.serve_command(&["--demo", "--credentials-file"]);
    command.arg(home.path("given.json"));
    let mut child = command.spawn().unwrap();
    let out = wait_for("words", || {
        Some(home.read("out")).filter(|out| out.contains("were handed out on the first start"))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(out.contains("--new-operator"), "{out}");
    assert!(
        home.read("err")
            .contains("held secrets that are handed out only once")
    );
    let now: Value = serde_json::from_str(&home.read("given.json")).unwrap();
    assert_eq!(
        now["operator"],
        json!({"client_id": new["operator"]["client_id"]})
    );
    std::fs::write(home.path("data/first-start.json"), "{").unwrap();
    let done = home.serve_command(&[]).output().unwrap();
    assert_eq!(
        done.status.code(),
        Some(2),
        "a damaged note is told before anything is made"
    );
}

#[test]
fn one_process_has_the_directory() {
    let home = Home::new();
    let bus = home.serve();
    let second = home
        .serve_command(&[])
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2));
    assert!(
        told.contains("another process")
            && told.contains(&bus.child.id().to_string())
            && told.contains("--data"),
        "{told}"
    );
    assert_eq!(bus.connect().get("/healthz").status, 200);
}

#[test]
fn a_directory_that_has_lost_its_database_is_not_begun_anew() {
    let home = Home::new();
    assert!(home.serve().stop().success());
    let database = home.path("data").join("bus.db");
    let kept = home.path("kept.db");
    std::fs::rename(&database, &kept).unwrap();
    let refused = home
        .serve_command(&[])
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        told.contains("bus.db is missing") && told.contains("first-start.json"),
        "{told}"
    );
    assert!(!database.exists());
    std::fs::rename(&kept, &database).unwrap();
    assert!(home.serve().stop().success());
}

#[test]
fn what_cannot_be_used_is_told_in_words() {
    let home = Home::new();
    let bus = home.serve();
    let fails = |flags: &[&str], words: &[&str]| {
        let done = Command::new(BINARY).arg("serve").args(flags).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{flags:?}: {told}");
        for word in words {
            assert!(told.contains(word), "{flags:?} does not say {word}: {told}");
        }
    };
    let other = home.path("other");
    let other = other.to_str().unwrap();
    fails(
        &["--data", other, "--addr", bus.address()],
        &["cannot listen on", "another program", "--addr"],
    );
    fails(
        &["--data", other, "--addr", "192.0.2.1:0"],
        &["cannot listen on", "no such address"],
    );
    assert!(!home.path("other").exists(), "nothing was begun");
    fails(
        &["--addr", "localhost"],
        &["--addr", "IP:PORT, such as 127.0.0.1:8787"],
    );
    fails(&["--log", "inof"], &["--log", "\"inof\" is no level"]);
    let (nowhere, folder) = (home.path("none/c.json"), home.folder.path());
    for (file, why) in [
        (std::path::Path::new("/dev/null"), "no regular file"),
        (nowhere.as_path(), "No such file"),
        (folder, "no regular file"),
    ] {
        let file = file.to_str().unwrap();
        fails(
            &[
                "--data",
                other,
                "--addr",
                "127.0.0.1:0",
                "--credentials-file",
                file,
            ],
            &["the credentials cannot be written to", why, file],
        );
    }
    assert!(!home.path("other").exists() && !std::fs::metadata("/dev/null").unwrap().is_file());
    fails(&["--in-flight-seconds", "0"], &["--in-flight-seconds"]);
    fails(&["--nonsense"], &["--nonsense"]);
    let file = home.path("file");
    std::fs::write(&file, "x").unwrap();
    fails(
        &["--data", file.to_str().unwrap(), "--addr", "127.0.0.1:0"],
        &["is not a directory", "--data"],
    );
    let keys = home.path("broken");
    std::fs::create_dir(&keys).unwrap();
    std::fs::write(keys.join("keys.json"), "{}").unwrap();
    fails(
        &["--data", keys.to_str().unwrap(), "--addr", "127.0.0.1:0"],
        &["keys.json", "does not hold signing keys"],
    );
    if !cfg!(feature = "faults") {
        fails(&["--faults"], &["--faults"]);
    }
}

#[test]
fn it_is_ready_at_once() {
    let home = Home::new();
    home.serve().kill();
    let bus = home.serve();
    let metrics = bus.connect().get("/metrics").text;
    let started: f64 = metrics
        .lines()
        .find_map(|l| l.strip_prefix("process_start_time_seconds "))
        .unwrap()
        .parse()
        .unwrap();
    let written = std::fs::metadata(home.path("given.json"))
        .unwrap()
        .modified()
        .unwrap();
    let took = written
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
        - started;
    // The start is known to 10 ms and the boot time to a second.
    assert!(took < 3.0, "{took}");
}

#[test]
fn the_key_can_be_rotated_while_it_runs() {
    let home = Home::new();
    let bus = home.serve();
    let first = bus.credentials.clone();
    let mut old = bus.log_in(&first, "producer");
    let kids = |bus: &crate::bus::Bus| {
        let keys = bus.connect().get("/v1/.well-known/jwks.json").body["keys"]
            .as_array()
            .unwrap()
            .clone();
        keys.iter()
            .map(|k| k["kid"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let before = kids(&bus);
    assert_eq!(before.len(), 1);
    assert!(bus.stop().success());
    // A new key in front, the old one for what it has signed.
    let path = home.path("data").join("keys.json");
    let mut keys: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let other = Home::new();
    other.serve().kill();
    let fresh: Value =
        serde_json::from_str(&std::fs::read_to_string(other.path("data").join("keys.json")).unwrap())
            .unwrap();
    let mut retired = keys["keys"][0].clone();
    retired.as_object_mut().unwrap().remove("private");
    keys["keys"] = json!([fresh["keys"][0], retired]);
    std::fs::write(&path, keys.to_string()).unwrap();
    let bus = home.serve();
    let after = kids(&bus);
    assert!(after.len() == 2 && after[1] == before[0], "{after:?}");
    let token = old.token().to_owned();
    old = bus.connect();
    let answer = old.ask(
        "POST",
        "/v1/jwt/messages",
        &format!("authorization: Bearer {token}\r\n"),
        snapshot("s", 1).to_string().as_bytes(),
    );
    assert_eq!(answer.unwrap().status, 202, "a token of the old key holds");
    assert_eq!(
        bus.log_in(&first, "producer").publish(&snapshot("s", 2)).status,
        202
    );
}
