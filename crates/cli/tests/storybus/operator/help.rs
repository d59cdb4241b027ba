//! What the command line says of itself, and what the documentation says of it.

use std::collections::{BTreeMap, BTreeSet};

use clap::Command;
use storybus_cli::args::{GROUPS, command};

use crate::bus::{BINARY, Home};
use crate::verbs::told;

const DOCUMENTATION: &str = include_str!("../../../../../docs/command-line.md");
/// What has tables of its flags elsewhere, or `--help` of the verb alone.
const NOT_THE_OPERATORS: &[&str] = &[
    "serve", "backup", "restore", "check", "publish", "pull", "send", "relay",
];

/// The verbs that do something, by the words that call them.
fn verbs() -> BTreeMap<String, Command> {
    fn walk(command: &Command, words: &str, all: &mut BTreeMap<String, Command>) {
        let mut has_verbs = false;
        for verb in command.get_subcommands().filter(|c| c.get_name() != "help") {
            has_verbs = true;
            walk(verb, &format!("{words} {}", verb.get_name()), all);
        }
        // A noun that takes something itself is a verb too.
        if !has_verbs || command.get_positionals().next().is_some() {
            all.insert(words.trim().to_owned(), command.clone());
        }
    }
    let mut all = BTreeMap::new();
    walk(&command(), "", &mut all);
    all
}

/// The rows of the tables of verbs: the words, and the whole row.
fn documented() -> BTreeMap<String, String> {
    let rows = DOCUMENTATION
        .lines()
        .filter_map(|row| Some((row.strip_prefix("| `storybus ")?, row)));
    rows.map(|(rest, row)| {
        let call = rest.split('`').next().unwrap();
        let is_verb =
            |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !word.starts_with('-');
        let words: Vec<&str> = call.split(' ').take_while(is_verb).collect();
        (words.join(" "), row.to_owned())
    })
    .collect()
}

#[test]
fn the_documentation_names_every_verb_and_every_flag() {
    let (verbs, documented) = (verbs(), documented());
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(documented.keys().collect()), names(verbs.keys().collect()));
    for (words, command) in &verbs {
        if NOT_THE_OPERATORS.iter().any(|verb| words == verb) {
            continue;
        }
        let flags: BTreeSet<String> = command
            .get_arguments()
            .filter(|a| !a.is_global_set())
            .filter_map(|a| a.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        let row = &documented[words];
        let named: BTreeSet<String> = row
            .split(|c: char| !(c.is_ascii_lowercase() || c == '-'))
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect();
        assert_eq!(named, flags, "storybus {words}");
    }
}

#[test]
fn the_documentation_names_every_exit_code() {
    for line in storybus_cli::exit::HELP.lines().skip(1) {
        let code = line.split_whitespace().next().unwrap();
        assert!(
            DOCUMENTATION.contains(&format!("\n| {code} |")),
            "no row for exit code {code}"
        );
    }
}

#[test]
fn every_verb_of_the_operator_has_an_example_and_says_what_it_is() {
    for (words, mut command) in verbs() {
        assert!(command.get_about().is_some(), "storybus {words}");
        if NOT_THE_OPERATORS.contains(&words.as_str()) {
            continue;
        }
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "storybus {words} has no example");
        assert!(
            help.contains(&format!("storybus {words}")),
            "the example of storybus {words} is another's"
        );
        for argument in command.get_arguments() {
            assert!(
                argument.get_help().is_some(),
                "storybus {words}: {}",
                argument.get_id()
            );
        }
    }
}

#[test]
fn help_puts_every_verb_into_its_group_once() {
    let (code, out, _) = told(&std::process::Command::new(BINARY).arg("--help").output().unwrap());
    assert_eq!(code, 0);
    for verb in command().get_subcommands() {
        let line = format!("\n  {} ", verb.get_name());
        assert_eq!(out.matches(&line).count(), 1, "{}", verb.get_name());
    }
    for (title, verbs) in GROUPS {
        assert!(out.contains(&format!("\n{title}:\n")));
        for verb in *verbs {
            let known = *verb == "help" || command().find_subcommand(verb).is_some();
            assert!(known, "there is no {verb}");
        }
    }
    assert!(out.contains("Exit codes:"));
}

#[test]
fn completions_and_man_pages_know_every_verb() {
    let home = Home::new();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(BINARY);
        told(
            &command
                .args(words)
                .current_dir(home.folder.path())
                .output()
                .unwrap(),
        )
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out, err) = run(&["completions", shell]);
        assert_eq!(code, 0, "{err}");
        for noun in command().get_subcommands() {
            assert!(out.contains(noun.get_name()), "{shell}: {}", noun.get_name());
        }
        assert!(
            out.contains("max-receives") && out.contains("secret-file"),
            "{shell}"
        );
    }
    assert_eq!(run(&["completions", "tcsh"]).0, 2);
    let (code, out, _) = run(&["man"]);
    assert!(code == 0 && out.contains(".TH storybus 1"), "{out}");
    let (code, out, err) = run(&["man", "--out", "pages/man1"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    for words in verbs().keys() {
        let page = home.path(&format!("pages/man1/storybus-{}.1", words.replace(' ', "-")));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(text.contains(".SH NAME"), "{words}");
        if text.contains(".SH BUS") {
            assert!(text.contains("A credentials file as"), "{words} describes no bus");
        }
    }
    std::fs::write(home.path("file"), "").unwrap();
    assert_eq!(run(&["man", "--out", "file"]).0, 2);
}
