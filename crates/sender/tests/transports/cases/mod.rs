//! Cases as data: facts that every client of a bus must hold to, whatever its language.
//!
//! The project's own cases are in `tests/cases/`. Where `STORYBUS_SDK_CASES` names the folder of the public SDK's cases, which has the same
//! form, those run as well. A member that a runner does not know fails the case: no fact is passed over.

mod envelope;
mod retry;
mod verdicts;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// The folders of cases.
fn folders() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let public = std::env::var_os("STORYBUS_SDK_CASES").map(PathBuf::from);
    std::iter::once(own).chain(public).collect()
}

/// A file of cases.
struct File {
    path: PathBuf,
    top: Value,
}

impl File {
    fn cases(&self) -> &[Value] {
        self.top["cases"].as_array().expect("cases")
    }
}

/// The files of a kind. Each has at least one case, and no two of one id.
fn files(kind: &str) -> Vec<File> {
    folders()
        .into_iter()
        .map(|folder| {
            let path = folder.join(format!("{kind}.json"));
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let file = File {
                top: serde_json::from_str(&text).unwrap(),
                path,
            };
            assert_eq!(file.top["kind"], kind);
            let ids: std::collections::BTreeSet<_> = file.cases().iter().map(id).collect();
            assert!(!ids.is_empty() && ids.len() == file.cases().len());
            file
        })
        .collect()
}

fn id(case: &Value) -> &str {
    case["id"].as_str().expect("an id")
}

/// Tells how many cases have run, for whoever counts them.
fn told(file: &File, ran: usize) {
    assert_eq!(ran, file.cases().len());
    println!("{ran} cases of {} ran", file.path.display());
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
