//! Colour, questions, pipes.

use std::io::Read;
use std::process::Stdio;

use super::terminal::on_terminal;
use super::{done, json};
use crate::verbs::{command, with_bus};

#[test]
fn colour_is_for_terminals_that_want_it() {
    let (home, _bus) = with_bus(&["--demo"]);
    assert!(!done(&home, &["consumers", "list"]).contains('\u{1b}'));
    let list = || {
        let mut list = command(&home, "consumers");
        list.arg("list").env_remove("NO_COLOR");
        list
    };
    let (code, shown) = on_terminal(&mut list(), "");
    assert!(
        code == 0 && shown.contains("\u{1b}[32mactive\u{1b}[0m"),
        "{shown:?}"
    );
    let (_, shown) = on_terminal(list().env("NO_COLOR", "1"), "");
    assert!(shown.contains("active") && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_terminal_is_asked_before_something_is_destroyed() {
    let (home, bus) = with_bus(&["--demo"]);
    let consumer = bus.text("/consumer/client_id");
    let delete = || {
        let mut delete = command(&home, "consumers");
        delete.args(["delete", consumer]);
        delete
    };
    for no in ["\n", "n\n", "no\n", "yess\n"] {
        let (code, shown) = on_terminal(&mut delete(), no);
        assert!(
            code == 2
                && shown.contains("Delete the consumer demo consumer (")
                && shown.contains("with 0 messages in its queue and 0 dead letters? [y/N]")
                && shown.contains("nothing was done"),
            "{code} {shown}"
        );
    }
    assert_eq!(
        json(&home, &["consumers", "show", consumer])["client_id"],
        consumer
    );
    let (code, shown) = on_terminal(&mut delete(), "y\n");
    assert!(code == 0 && shown.contains("deleted the consumer"), "{shown}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let (home, _bus) = with_bus(&["--demo"]);
    let mut child = command(&home, "audit")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}
