//! `storybus relay --spool DIR`: a file's way, and what a kill at each step leaves.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::{Running, consumed, id, outbox, wait_long};
use crate::bus::{Home, wait_for};
use crate::client::snapshot;
use crate::verbs::with_bus;

/// Puts a message into the spool as a program does: under another name, then renamed.
fn put(home: &Home, name: &str, content: impl AsRef<[u8]>) {
    let hidden = home.path(&format!("in/.{name}"));
    fs::write(&hidden, content).unwrap();
    fs::rename(hidden, home.path(&format!("in/{name}"))).unwrap();
}

fn spool(home: &Home) {
    fs::create_dir_all(home.path("in")).unwrap();
}

fn relay(home: &Home, words: &[&str]) -> Running {
    Running::relay(home, &[&["--spool", "in"], words].concat())
}

/// The answer beside a file that has come to its end.
fn answer(home: &Home, path: &str) -> Value {
    wait_for(path, || home.path(path).exists().then_some(()));
    let text = fs::read_to_string(home.path(&format!("{path}.answer.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn there(home: &Home, folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(home.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn nothing_under_way(home: &Home) {
    wait_for("an empty spool", || {
        (there(home, "in") == ["done", "failed", "sending", "taking"]
            && there(home, "in/sending").is_empty()
            && there(home, "in/taking").is_empty())
        .then_some(())
    });
}

#[test]
fn a_file_ends_in_done_or_failed_with_its_answer() {
    let (home, bus) = with_bus(&["--demo"]);
    spool(&home);
    let (first, second) = (snapshot("s", 2), snapshot("s", 1));
    put(&home, "first.json", first.to_string());
    put(&home, "second.json", second.to_string());
    put(&home, "text.json", "hunter2");
    fs::write(home.path("in/half.tmp"), "{").unwrap();
    fs::create_dir(home.path("in/folder")).unwrap();
    let mut running = relay(&home, &[]);
    let done = answer(&home, "in/done/first.json");
    assert_eq!(
        (
            done["key"].as_str(),
            done["state"].as_str(),
            done["outcome"].as_str(),
            done["status"].as_u64()
        ),
        (Some(&*id(&first)), Some("delivered"), Some("accepted"), Some(202)),
        "{done}"
    );
    assert!(
        done["attempts"] == 1 && done["file"] == "first.json" && done["finished_at"].is_string(),
        "{done}"
    );
    let failed = answer(&home, "in/failed/second.json");
    assert_eq!(
        (
            failed["state"].as_str(),
            failed["rule"].as_str(),
            failed["status"].as_u64()
        ),
        (Some("refused"), Some("sequence_number.not_increasing"), Some(409)),
        "{failed}"
    );
    let local = answer(&home, "in/failed/text.json");
    assert_eq!(
        (local["state"].as_str(), local["rule"].as_str()),
        (Some("not_enqueued"), Some("spool.not_an_envelope"))
    );
    assert!(!local.to_string().contains("hunter2"));
    // The same again goes where the first one went; the same id with other content fails.
    put(&home, "first.json", first.to_string());
    let again = answer(&home, &format!("in/done/first.{}.json", id(&first)));
    assert_eq!(again["attempts"], 1, "it was not sent again");
    let mut other = first.clone();
    other["payload"]["headline"] = "Another".into();
    put(&home, "other.json", other.to_string());
    let reused = answer(&home, "in/failed/other.json");
    assert_eq!(reused["rule"], "outbox.key_reused", "{reused}");
    assert_eq!(running.stop(), 0);
    assert_eq!(consumed(&home, &bus), [id(&first)]);
    assert!(home.path("in/half.tmp").exists() && home.path("in/folder").is_dir());
    let told = home.read("log").matches("left alone in the spool").count();
    assert_eq!(told, 1, "each is told of once");
    assert!(there(&home, "in/sending").is_empty() && there(&home, "in/taking").is_empty());
}

#[test]
fn a_parked_file_waits_with_its_answer_and_goes_on_when_it_is_resent() {
    let (home, bus) = with_bus(&["--demo"]);
    spool(&home);
    let envelope = snapshot("s", 1);
    put(&home, "a.json", envelope.to_string());
    let nobody = [
        "--url",
        "http://127.0.0.1:1/v1/",
        "--max-attempts",
        "1",
        "--patience",
        "1s",
    ];
    let mut running = relay(&home, &nobody);
    let place = format!("in/sending/{}/a.json", id(&envelope));
    wait_for("the file in sending/", || {
        home.path(&place).exists().then_some(())
    });
    assert_eq!(running.stop(), 0);
    // The second round would come after half a minute: an operator need not wait for it.
    let _ = outbox(&home, &["list"]);
    let code = super::send(
        &home,
        &["--url", "http://127.0.0.1:1/v1/", "--max-attempts", "1", &place],
    )
    .0;
    assert_eq!(code, 4);
    assert_eq!(outbox(&home, &["show", &id(&envelope)])["state"], "parked");
    let mut running = relay(&home, &nobody);
    wait_for("an answer", || {
        home.path(&format!("{place}.answer.json")).exists().then_some(())
    });
    let parked = answer(&home, &place);
    assert_eq!(
        (parked["state"].as_str(), parked["outcome"].as_str()),
        (Some("parked"), Some("token_error"))
    );
    assert_eq!(running.stop(), 0);
    let resent = super::bare(&home, &["outbox", "resend", &id(&envelope)])
        .output()
        .unwrap();
    assert_eq!(resent.status.code(), Some(0));
    let mut running = relay(&home, &[]);
    assert_eq!(answer(&home, "in/done/a.json")["state"], "delivered");
    nothing_under_way(&home);
    assert_eq!(running.stop(), 0);
    assert_eq!(consumed(&home, &bus), [id(&envelope)]);
}

/// What a kill leaves at each step, set up by hand: the next start goes on from there, and the message is delivered once.
#[test]
fn whatever_a_kill_left_is_finished_by_the_next_start() {
    let (home, bus) = with_bus(&["--demo"]);
    spool(&home);
    for folder in ["taking", "sending", "done", "failed"] {
        fs::create_dir_all(home.path(&format!("in/{folder}"))).unwrap();
    }
    let envelopes: Vec<Value> = (1..=7).map(|n| snapshot(&format!("s{n}"), 1)).collect();
    let key = |n: usize| id(&envelopes[n]);
    let at = |path: &str| -> PathBuf { home.path(&format!("in/{path}")) };
    let text = |n: usize| envelopes[n].to_string();
    let waits = |n: usize, name: &str| {
        fs::create_dir_all(at(&format!("sending/{}", key(n)))).unwrap();
        fs::write(at(&format!("sending/{}/{name}", key(n))), text(n)).unwrap();
    };
    // 3 to 6 are in the outbox, and delivered but for the first of them.
    for n in 3..7 {
        fs::write(home.path("m.json"), text(n)).unwrap();
        let nobody = ["--url", "http://127.0.0.1:1/v1/", "--max-attempts", "1"];
        let words: &[&str] = if n == 3 { &nobody } else { &[] };
        let code = super::send(&home, &[words, &["m.json"]].concat()).0;
        assert_eq!(code, if n == 3 { 4 } else { 0 });
    }
    let resent = super::bare(&home, &["outbox", "resend", &key(3)])
        .output()
        .unwrap();
    assert_eq!(resent.status.code(), Some(0));
    // Before it was taken; after; after with a new one of the same name behind it.
    fs::write(at("0.json"), text(0)).unwrap();
    fs::write(at("taking/1.json"), text(1)).unwrap();
    fs::write(at("1.json"), text(2)).unwrap();
    // Enqueued, and not moved yet: pending, and delivered by another relay meanwhile.
    fs::write(at("taking/3.json"), text(3)).unwrap();
    fs::write(at("taking/4.json"), text(4)).unwrap();
    // Delivered: nothing written yet; the answer written, the file not moved; the file moved, its place not cleared.
    waits(5, "5.json");
    waits(6, "6.json");
    let cut_off = format!("{{\"key\":\"{}\"}}", key(6));
    fs::write(at("done/6.json.answer.json"), cut_off).unwrap();
    fs::create_dir(at("sending/00000000-0000-0000-0000-000000000001")).unwrap();
    fs::write(
        at("sending/00000000-0000-0000-0000-000000000001/x.json.answer.json"),
        "{}",
    )
    .unwrap();
    fs::write(at("done/.x.json.answer.json.tmp"), "half").unwrap();
    // And one that the outbox does not know: it belongs to another.
    fs::create_dir(at("sending/00000000-0000-0000-0000-000000000002")).unwrap();
    fs::write(at("sending/00000000-0000-0000-0000-000000000002/y.json"), "{}").unwrap();

    let mut running = relay(&home, &[]);
    nothing_under_way(&home);
    assert_eq!(running.stop(), 0);
    for n in [0, 3, 4, 5, 6] {
        let answer = answer(&home, &format!("in/done/{n}.json"));
        assert_eq!(
            (answer["state"].as_str(), answer["key"].as_str()),
            (Some("delivered"), Some(&*key(n))),
            "{answer}"
        );
    }
    // Two of one name, of two stories: whichever is delivered first gets the name, and the other has its key in it.
    let first = answer(&home, "in/done/1.json");
    let other = if first["key"] == key(1) { key(2) } else { key(1) };
    let second = answer(&home, &format!("in/done/1.{other}.json"));
    assert_eq!(
        (
            first["state"].as_str(),
            second["state"].as_str(),
            second["key"].as_str()
        ),
        (Some("delivered"), Some("delivered"), Some(&*other))
    );
    assert_eq!(answer(&home, "in/failed/y.json")["rule"], "outbox.forgotten");
    let mut got = consumed(&home, &bus);
    got.sort();
    let mut all: Vec<String> = envelopes.iter().map(id).collect();
    all.sort();
    assert_eq!(got, all, "each once");
}

#[test]
fn a_file_that_cannot_be_settled_does_not_stop_those_behind_it() {
    let (home, _bus) = with_bus(&["--demo"]);
    spool(&home);
    for folder in ["sending", "failed"] {
        fs::create_dir(home.path(&format!("in/{folder}"))).unwrap();
    }
    // Directories are listed in an order of their own: some of the others come after it.
    for n in 0..30 {
        let place = format!("in/sending/00000000-0000-0000-0000-0000000000{n:02}");
        if n == 7 {
            fs::write(home.path(&place), "a file where a directory belongs").unwrap();
        } else {
            fs::create_dir(home.path(&place)).unwrap();
            fs::write(home.path(&format!("{place}/{n}.json")), "{}").unwrap();
        }
    }
    let mut running = relay(&home, &[]);
    wait_for("all others in failed/", || {
        (there(&home, "in/failed").len() == 2 * 29).then_some(())
    });
    assert_eq!(running.stop(), 0);
    assert_eq!(
        there(&home, "in/sending"),
        ["00000000-0000-0000-0000-000000000007"]
    );
    assert!(home.read("log").contains("a file stays in sending/ for now"));
}

#[test]
fn killed_again_and_again_it_loses_and_doubles_nothing() {
    let (home, bus) = with_bus(&["--demo"]);
    spool(&home);
    let envelopes: Vec<Value> = (0..60)
        .map(|n| snapshot(&format!("s{}", n % 20), n / 20 + 1))
        .collect();
    for (n, envelope) in envelopes.iter().enumerate() {
        put(&home, &format!("{n:03}.json"), envelope.to_string());
    }
    let words = ["--timeout-ms", "300"];
    let done = || fs::read_dir(home.path("in/done")).map_or(0, Iterator::count);
    for enough in [4, 50] {
        let mut running = relay(&home, &words);
        wait_long("files in done/", || done() >= enough);
        running.kill();
    }
    let mut running = relay(&home, &words);
    wait_long("the last file", || done() >= 120);
    nothing_under_way(&home);
    assert_eq!(running.stop(), 0);
    assert_eq!(
        (there(&home, "in/done").len(), there(&home, "in/failed").len()),
        (120, 0)
    );
    let got = consumed(&home, &bus);
    assert_eq!(got.len(), 60, "each once");
    for story in 0..20 {
        let of_story: Vec<String> = (0..60)
            .filter(|n| n % 20 == story)
            .map(|n| id(&envelopes[n]))
            .collect();
        let came: Vec<String> = got.iter().filter(|id| of_story.contains(id)).cloned().collect();
        assert_eq!(came, of_story, "in their order");
    }
}
