//! The operator's verbs: the real binary against a real bus, and against a scripted one for what no bus does on demand.

mod admin;
mod help;
mod names;
mod night;
mod output;
mod profiles;
mod scripted;
pub(crate) mod terminal;
mod unlucky;

use serde_json::Value;

use crate::bus::Home;
use crate::verbs::{command, told};

/// Runs a verb as the operator of the credentials that `home` keeps: the code, stdout, stderr.
fn run(home: &Home, words: &[&str]) -> (i32, String, String) {
    let (noun, rest) = words.split_first().unwrap();
    told(&command(home, noun).args(rest).output().unwrap())
}

/// Runs a verb that succeeds: what it prints.
fn done(home: &Home, words: &[&str]) -> String {
    let (code, out, err) = run(home, words);
    assert_eq!(code, 0, "{words:?}: {out}{err}");
    out
}

/// Runs a verb with `--json` that succeeds: its one document.
fn json(home: &Home, words: &[&str]) -> Value {
    let out = done(home, &[words, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{words:?} {e}: {out}"))
}

/// Runs a verb that fails with this code, and says so in these words.
fn fails(home: &Home, words: &[&str], code: i32, told: &[&str]) {
    let (got, out, err) = run(home, words);
    assert_eq!(got, code, "{words:?}: {out}{err}");
    for word in told {
        assert!(err.contains(word), "{words:?} does not say {word:?}: {err}");
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
}
