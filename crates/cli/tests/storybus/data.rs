//! `storybus backup`, `restore` and `check` beside a bus under load, and beside one that was killed.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::bus::{BINARY, Bus, Home, wait_for};
use crate::client::{Client, snapshot};
use crate::verbs::told;

const STORIES: u32 = 5;

fn run(verb: &str, paths: &[&Path], flags: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(BINARY);
    command.arg(verb).args(paths).args(flags);
    told(&command.output().unwrap())
}

/// It did it, and said so in JSON.
fn done(verb: &str, paths: &[&Path]) -> Value {
    let (code, out, err) = run(verb, paths, &["--json"]);
    assert_eq!((code, err.as_str()), (0, ""), "{verb}: {out}");
    serde_json::from_str(&out).unwrap()
}

/// Messages that were accepted: each story's, in order.
type Accepted = BTreeMap<u32, Vec<Value>>;

/// Publishes to one story after another until it is told to stop, or the bus has gone.
fn load(mut producer: Client, accepted: &Mutex<Accepted>, stop: &AtomicBool) {
    for n in 1.. {
        for story in 0..STORIES {
            if stop.load(Ordering::Acquire) {
                return;
            }
            let envelope = snapshot(&format!("story-{story}"), n);
            let Some(answer) = producer.try_post("/v1/jwt/messages", &envelope, "") else {
                return;
            };
            assert_eq!(answer.status, 202, "{answer:?}");
            accepted.lock().unwrap().entry(story).or_default().push(envelope);
        }
    }
}

fn count(accepted: &Mutex<Accepted>) -> usize {
    accepted.lock().unwrap().values().map(Vec::len).sum()
}

/// Receives once, and acknowledges; the ids.
fn take(consumer: &mut Client, base: &str) -> Vec<String> {
    let answer = consumer.get(&format!("{base}/messages?max=10"));
    let messages = answer.body["messages"].as_array().unwrap().clone();
    if messages.is_empty() {
        return Vec::new();
    }
    let handles: Vec<&Value> = messages.iter().map(|m| &m["receipt_handle"]).collect();
    let answer = consumer.post(&format!("{base}/ack"), &json!({ "receipt_handles": handles }));
    assert_eq!(answer.body["failed"], json!([]), "{answer:?}");
    messages.iter().map(id).collect()
}

fn id(message: &Value) -> String {
    let envelope = message.get("envelope").unwrap_or(message);
    envelope["message_id"].as_str().unwrap().to_owned()
}

/// The restored bus knows what was accepted before the backup, and has what was not acknowledged before it, in order.
fn goes_on(bus: &Bus, first: &Value, accepted: &Accepted, acknowledged: &BTreeSet<String>) {
    let text = |pointer: &str| first.pointer(pointer).and_then(Value::as_str).unwrap();
    let base = format!(
        "/v1/tenants/{}/consumers/{}",
        text("/tenant"),
        text("/consumer/client_id")
    );
    let mut producer = bus.log_in(first, "producer");
    for envelope in accepted.values().flatten() {
        let answer = producer.publish(envelope);
        assert_eq!(
            (answer.status, &answer.body["duplicate"]),
            (200, &json!(true)),
            "{answer:?}"
        );
    }
    let mut consumer = bus.log_in(first, "consumer");
    let mut came = Vec::new();
    loop {
        let taken = take(&mut consumer, &base);
        if taken.is_empty() {
            break;
        }
        came.extend(taken);
    }
    let place: BTreeMap<&String, usize> = came.iter().zip(0..).collect();
    assert_eq!(place.len(), came.len(), "something is there twice");
    for story in accepted.values() {
        let places: Vec<_> = story
            .iter()
            .map(id)
            .filter(|id| !acknowledged.contains(id))
            .map(|id| place.get(&id).copied())
            .collect();
        assert!(places.iter().all(Option::is_some), "something is lost");
        assert!(places.is_sorted(), "something is out of order");
    }
    assert!(came.iter().all(|id| !acknowledged.contains(id)));
    // and it takes what is new
    assert_eq!(producer.publish(&snapshot("after", 1)).status, 202);
    assert_eq!(take(&mut consumer, &base).len(), 1);
}

#[test]
fn a_backup_of_a_bus_under_load_is_a_bus() {
    let home = Home::new();
    let mut bus = home.serve_with(&["--demo"]);
    let first = bus.credentials.clone();
    let text = |pointer: &str| first.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    let base = format!(
        "/v1/tenants/{}/consumers/{}",
        text("/tenant"),
        text("/consumer/client_id")
    );
    let data = home.path("data");
    let mut taken = Vec::new();
    let mut acknowledged = BTreeSet::new();
    let (accepted, stop) = (Mutex::new(Accepted::new()), AtomicBool::new(false));
    for life in 0..2 {
        let producer = bus.log_in(&first, "producer");
        std::thread::scope(|scope| {
            // the stories of a second life would have to go on where the first was killed
            if life == 0 {
                scope.spawn(|| load(producer, &accepted, &stop));
                wait_for("load", || (count(&accepted) > 100).then_some(()));
            }
            let mut consumer = bus.log_in(&first, "consumer");
            acknowledged.extend(take(&mut consumer, &base));
            let before = accepted.lock().unwrap().clone();
            let name = format!("running-{life}");
            let told = done("backup", &[&data, &home.path(&name)]);
            assert!(told["bytes"].as_u64().unwrap() > 100_000, "{told}");
            assert!(
                told["files"].as_array().unwrap().contains(&json!("keys.json")),
                "{told}"
            );
            taken.push((name, before, acknowledged.clone()));
            assert_eq!(done("check", &[&data])["ok"], true);
            let before = count(&accepted);
            if life == 0 {
                wait_for("more load", || (count(&accepted) > before).then_some(()));
            }
            // in the middle of it
            bus.child.kill().unwrap();
            bus.child.wait().unwrap();
            stop.store(true, Ordering::Release);
        });
        // what it left is looked at, and copied, as it lies
        assert_eq!(done("check", &[&data])["ok"], true);
        let name = format!("killed-{life}");
        done("backup", &[&data, &home.path(&name)]);
        let before = accepted.lock().unwrap().clone();
        taken.push((name, before, acknowledged.clone()));
        bus = home.serve();
    }
    assert!(bus.stop().success());
    for (name, accepted, acknowledged) in taken {
        let backup = home.path(&name);
        assert_eq!(done("check", &[&backup])["ok"], true);
        let restored = Home::new();
        done("restore", &[&backup, &restored.path("data")]);
        goes_on(&restored.serve(), &first, &accepted, &acknowledged);
    }
}

#[test]
fn a_backup_says_that_it_holds_secrets_and_nothing_is_overwritten() {
    let home = Home::new();
    let mut command = home.serve_command(&["--demo"]);
    let mut child = command.spawn().unwrap();
    let data = home.path("data");
    wait_for("credentials", || {
        data.join("credentials.json").exists().then_some(())
    });
    let dest = home.path("backup");
    let (code, out, err) = run("backup", &[&data, &dest], &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("secrets in credentials.json"), "{out}");
    for file in ["bus.db", "keys.json", "credentials.json"] {
        let mode = dest.join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    for (verb, paths, words) in [
        ("backup", vec![data.as_path(), &dest], "is there already"),
        ("restore", vec![&dest, &data], "is not empty"),
        ("restore", vec![&data, &dest], "not a backup"),
        ("check", vec![home.folder.path()], "there is no bus.db in it"),
    ] {
        let (code, out, err) = run(verb, &paths, &[]);
        assert_eq!((code, out.as_str()), (2, ""), "{verb}: {err}");
        assert!(err.contains(words), "{verb}: {err}");
    }
}

#[test]
fn a_check_looks_at_the_keys() {
    let home = Home::new();
    home.serve().stop();
    let data = home.path("data");
    assert_eq!(done("check", &[&data])["ok"], true);
    for broken in [Some("{"), Some(""), None] {
        let keys = data.join("keys.json");
        match broken {
            Some(text) => std::fs::write(&keys, text).unwrap(),
            None => std::fs::remove_file(&keys).unwrap(),
        }
        let (code, out, _) = run("check", &[&data], &[]);
        assert_eq!(code, 1, "{out}");
        assert!(
            out.contains("the keys that sign tokens") && out.contains("every client logs in again"),
            "{out}"
        );
    }
}
