//! `storybus publish` and `storybus pull` against a bus.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bus::{BINARY, Bus, Home, pause, wait_for};
use crate::client::snapshot;

pub(crate) fn command(home: &Home, verb: &str) -> Command {
    let mut command = Command::new(BINARY);
    command
        .arg(verb)
        .arg("--credentials-file")
        .arg(home.path("kept.json"))
        .current_dir(home.folder.path());
    for name in [
        "STORYBUS_URL",
        "STORYBUS_CLIENT_ID",
        "STORYBUS_CLIENT_SECRET",
        "STORYBUS_CREDENTIALS",
        "STORYBUS_PROFILE",
        "STORYBUS_CONFIG",
        "STORYBUS_WORKSPACE",
    ] {
        command.env_remove(name);
    }
    command
}

pub(crate) fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A bus, with a copy of its credentials that later starts leave alone.
pub(crate) fn with_bus(flags: &[&str]) -> (Home, Bus) {
    let home = Home::new();
    let bus = home.serve_with(flags);
    std::fs::copy(home.path("given.json"), home.path("kept.json")).unwrap();
    (home, bus)
}

pub(crate) fn write(home: &Home, name: &str, value: &Value) {
    std::fs::write(home.path(name), serde_json::to_vec_pretty(value).unwrap()).unwrap();
}

#[test]
fn a_first_publish_and_a_first_pull() {
    let (home, _bus) = with_bus(&["--demo"]);
    write(&home, "1.json", &snapshot("s", 1));
    write(&home, "2.json", &snapshot("s", 2));
    write(&home, "stale.json", &snapshot("s", 1));
    let (code, out, err) = told(
        &command(&home, "publish")
            .args(["1.json", "2.json"])
            .output()
            .unwrap(),
    );
    assert_eq!((code, out.matches("accepted ").count()), (0, 2), "{out}{err}");
    let (code, out, _) = told(&command(&home, "publish").arg("2.json").output().unwrap());
    assert!(code == 0 && out.starts_with("duplicate "), "{out}");
    let (code, out, _) = told(
        &command(&home, "publish")
            .args(["stale.json", "2.json"])
            .output()
            .unwrap(),
    );
    assert!(
        code == 3
            && out.contains("sequence_number.not_increasing at /payload/sequence_number")
            && out.contains("duplicate "),
        "{out}"
    );
    let (code, out, _) = told(
        &command(&home, "pull")
            .arg("--no-ack")
            .args(["--max", "1"])
            .output()
            .unwrap(),
    );
    assert!(
        code == 0 && out.contains("\"headline\": \"Headline 1\"") && !out.contains("Headline 2"),
        "{out}"
    );
    let mut child = command(&home, "publish")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(snapshot("other", 1).to_string().as_bytes())
        .unwrap();
    assert!(
        told(&child.wait_with_output().unwrap())
            .1
            .starts_with("accepted ")
    );
}

#[test]
fn what_is_printed_is_acknowledged_and_does_not_come_again() {
    let (home, _bus) = with_bus(&["--demo"]);
    let names: Vec<String> = (1..=25).map(|n| format!("{n}.json")).collect();
    for (name, n) in names.iter().zip(1..) {
        write(&home, name, &snapshot("s", n));
    }
    assert_eq!(
        told(&command(&home, "publish").args(&names).output().unwrap()).0,
        0
    );
    let (code, out, _) = told(
        &command(&home, "pull")
            .args(["--json", "--max", "12"])
            .output()
            .unwrap(),
    );
    let numbers = |out: &str| -> Vec<u64> {
        out.lines()
            .map(|l| {
                serde_json::from_str::<Value>(l).unwrap()["envelope"]["payload"]["sequence_number"]
                    .as_u64()
                    .unwrap()
            })
            .collect()
    };
    assert_eq!((code, numbers(&out)), (0, (1..=12).collect()));
    let (code, out, err) = told(&command(&home, "pull").arg("--json").output().unwrap());
    assert_eq!((code, numbers(&out)), (0, (13..=25).collect()));
    assert!(
        err.starts_with("nothing more to receive now") && err.ends_with("\n13 received and acknowledged\n"),
        "{err}"
    );
    let (code, out, err) = told(&command(&home, "pull").arg("--json").output().unwrap());
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(err.starts_with("nothing to receive now: "), "{err}");
}

#[test]
fn follow_prints_what_comes_until_it_is_stopped() {
    let (home, bus) = with_bus(&["--demo"]);
    let mut producer = bus.log_in(&bus.credentials, "producer");
    let mut child = command(&home, "pull")
        .args(["--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 1..=3 {
        pause(100);
        assert_eq!(producer.publish(&snapshot("s", n)).status, 202);
        assert!(lines.next().unwrap().unwrap().contains(&format!("Headline {n}")));
    }
    pause(200);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(wait_for("end", || child.try_wait().unwrap()).code(), Some(0));
    let (_, out, _) = told(&command(&home, "pull").output().unwrap());
    assert_eq!(out, "", "all of it was acknowledged");
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    let (home, bus) = with_bus(&["--demo"]);
    let mut producer = bus.log_in(&bus.credentials, "producer");
    let mut child = command(&home, "pull")
        .args(["--follow", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    producer.publish(&snapshot("s", 1));
    let status = wait_for("end", || child.try_wait().unwrap());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(
        (status.code(), err.as_str()),
        (Some(0), "waiting for messages; Ctrl-C ends\n")
    );
}

#[test]
fn a_bus_that_comes_back_is_waited_for_and_one_that_does_not_is_given_up() {
    let (home, bus) = with_bus(&["--demo"]);
    write(&home, "1.json", &snapshot("s", 1));
    let address = bus.address().to_owned();
    let url = format!("http://{address}");
    bus.kill();
    let (code, out, err) = told(
        &command(&home, "publish")
            .args(["--patience", "0", "1.json", "1.json"])
            .output()
            .unwrap(),
    );
    assert!(
        code == 4 && out.contains("gave up") && out.contains("nothing was sent; 1 more not sent"),
        "{code} {out} {err}"
    );
    assert!(
        out.contains("is the bus running?") && !out.contains("io:"),
        "{out}"
    );
    let mut follows = command(&home, "pull")
        .args(["--follow", "--url", &url])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (code, _, err) = told(&command(&home, "pull").args(["--patience", "1"]).output().unwrap());
    assert!(
        code == 4 && err.contains("gave up: ") && err.contains("again in"),
        "{code} {err}"
    );
    let mut child = command(&home, "publish")
        .args(["1.json", "--url", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    pause(300);
    let mut again = Command::new(BINARY);
    again
        .args(["serve", "--addr", &address, "--demo", "--data"])
        .arg(home.path("data"));
    again.arg("--credentials-file").arg(home.path("given.json"));
    home.logged(&mut again);
    std::fs::remove_file(home.path("given.json")).unwrap();
    let _bus = home.started(again);
    let done = wait_for("end", || child.try_wait().unwrap());
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(
        done.success() && out.starts_with("accepted ") && err.contains("again in"),
        "{out}{err}"
    );
    let mut words = BufReader::new(follows.stderr.take().unwrap()).lines();
    assert!(words.any(|line| line.unwrap() == "connected again"));
    pause(300);
    kill_process(Pid::from_child(&follows), Signal::INT).unwrap();
    assert_eq!(words.last().unwrap().unwrap(), "1 received and acknowledged");
    follows.wait().unwrap();
}

#[test]
fn what_is_wrong_with_a_call_is_told() {
    let (home, bus) = with_bus(&["--demo"]);
    write(&home, "1.json", &snapshot("s", 1));
    let fails = |command: &mut Command, expected: i32, word: &str| {
        let (code, out, err) = told(&command.output().unwrap());
        assert!(
            code == expected && (out.contains(word) || err.contains(word)),
            "{code} {out} {err}"
        );
    };
    fails(
        command(&home, "publish").arg("none.json"),
        2,
        "cannot read none.json",
    );
    fails(&mut command(&home, "publish"), 2, "<FILE>");
    fails(
        command(&home, "publish").args(["1.json", "--client-id", "pnobody"]),
        2,
        "the secret of pnobody is missing",
    );
    fails(
        command(&home, "publish")
            .args(["1.json", "--client-id", "pnobody"])
            .env("STORYBUS_CLIENT_SECRET", "x"),
        3,
        "does not know pnobody",
    );
    let consumer = bus.text("/consumer/client_id");
    let secret = bus.text("/consumer/client_secret");
    fails(
        command(&home, "publish")
            .args(["1.json", "--client-id", consumer])
            .env("STORYBUS_CLIENT_SECRET", secret),
        3,
        "is a consumer; publishing needs a producer",
    );
    std::fs::write(home.path("empty"), "").unwrap();
    fails(command(&home, "publish").arg("empty"), 2, "empty is empty");
    fails(
        command(&home, "pull").args(["--max", "0"]),
        2,
        "give a number from 1 up",
    );
    fails(
        command(&home, "publish").args(["1.json", "--url", &format!("https://{}", bus.address())]),
        2,
        "does not speak TLS",
    );
    std::fs::create_dir(home.path("storybus-data")).unwrap();
    std::fs::copy(
        home.path("kept.json"),
        home.path("storybus-data/credentials.json"),
    )
    .unwrap();
    let mut usual = Command::new(BINARY);
    usual
        .arg("pull")
        .current_dir(home.folder.path())
        .env_remove("STORYBUS_CREDENTIALS");
    fails(&mut usual, 0, "nothing to receive now");
    std::fs::write(home.path("secret"), format!("{secret}\n")).unwrap();
    fails(
        command(&home, "pull").args(["--client-secret-file", "secret"]),
        0,
        "",
    );
    let mut bare = Command::new(BINARY);
    bare.args(["pull"])
        .env_remove("STORYBUS_CREDENTIALS")
        .env_remove("STORYBUS_URL");
    fails(&mut bare, 2, "which bus?");
    fails(
        command(&home, "publish").args(["1.json", "--url", &format!("http://{}/nowhere", bus.address())]),
        3,
        "is the URL right?",
    );
}
