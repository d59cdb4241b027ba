//! `docs/errors/` says of each rule what the table says, and has no page too many: the pages are for people, the table for
//! clients, and both are held together here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use storybus_protocol::answer::{Accepted, Refused};
use storybus_protocol::rule::{About, Appears, Retry, SCHEMA_KEYWORDS, TABLE, about};
use storybus_protocol::{Source, Violation};

const SECTIONS: [&str; 6] = [
    "What it means",
    "Where it appears",
    "Whose fault",
    "What to do",
    "Retry",
    "Example",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors")
}

/// The pages of a folder by their names, which are the rules.
fn pages(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path());
    files
        .filter(|path| path.extension().is_some_and(|e| e == "md") && !path.ends_with("README.md"))
        .map(|path| {
            let name = path
                .file_name()
                .and_then(|n| n.to_str())
                .expect("a name")
                .trim_end_matches(".md");
            (name.to_owned(), fs::read_to_string(&path).expect("a page"))
        })
        .collect()
}

/// The two kinds of pages: what stands before their names in a rule, the pages, and what the code knows.
fn shelves() -> [(&'static str, BTreeMap<String, String>, &'static [About]); 2] {
    [
        ("", pages(&folder()), TABLE),
        ("<schema>.", pages(&folder().join("schema")), SCHEMA_KEYWORDS),
    ]
}

fn appears(about: &About) -> String {
    let places: Vec<String> = about.appears.iter().map(Appears::to_string).collect();
    places.join(", ")
}

fn source(about: &About) -> String {
    let source = serde_json::to_value(about.source).expect("a source");
    source.as_str().expect("text").to_owned()
}

/// A page's block of code of a language.
fn block<'p>(page: &'p str, language: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("\n```").expect("its end").0
}

#[test]
fn every_rule_has_its_page_and_every_page_its_rule() {
    for (prefix, pages, table) in shelves() {
        let mut rules: Vec<&str> = table.iter().map(|about| about.rule).collect();
        rules.sort_unstable();
        assert_eq!(pages.keys().collect::<Vec<_>>(), rules);
        for about in table {
            let page = &pages[about.rule];
            let (rule, fault, retry) = (format!("{prefix}{}", about.rule), about.fault, about.retry);
            let head = format!(
                "---\nrule: {rule}\nsource: {}\nappears: {}\nfault: {fault}\nretry: {retry}\n---\n\n# `{rule}`\n",
                source(about),
                appears(about)
            );
            assert!(
                page.starts_with(&head),
                "{rule}: the page should begin with\n{head}"
            );
            let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            assert_eq!(sections, SECTIONS, "{rule}");
        }
    }
}

#[test]
fn the_index_lists_every_page_once() {
    let index = fs::read_to_string(folder().join("README.md")).expect("the index");
    let rows: Vec<&str> = index.lines().filter(|line| line.starts_with("| [")).collect();
    let mut expected = Vec::new();
    for (prefix, _, table) in shelves() {
        let place = if prefix.is_empty() { "" } else { "schema/" };
        expected.extend(table.iter().map(|about| {
            let (rule, fault, retry) = (about.rule, about.fault, about.retry);
            format!(
                "| [`{prefix}{rule}`]({place}{rule}.md) | {} | {fault} | {retry} |",
                appears(about)
            )
        }));
    }
    for row in &expected {
        assert!(rows.contains(&row.as_str()), "missing: {row}");
    }
    assert_eq!(rows.len(), expected.len());
}

/// A receipt handle's failure, which is no violation.
fn failed(body: &Value) -> Vec<Violation> {
    let failed = body["failed"].as_array().expect("a list");
    let text = |entry: &Value, name: &str| entry[name].as_str().expect("text").to_owned();
    failed
        .iter()
        .map(|entry| Violation::new(Source::Policy, text(entry, "rule"), text(entry, "message")))
        .collect()
}

#[test]
fn every_example_is_an_answer_of_its_rule() {
    for (_, pages, table) in shelves() {
        for known in table {
            let rule = known.rule;
            let page = &pages[rule];
            let head = block(page, "http");
            let status: u16 = head["HTTP/1.1 ".len()..][..3].parse().expect("a status");
            let body: Value = serde_json::from_str(block(page, "json")).expect("JSON");
            let violations = match status {
                200 => failed(&body),
                202 => {
                    serde_json::from_value::<Accepted>(body)
                        .expect("an acceptance")
                        .tolerated
                }
                _ => {
                    serde_json::from_value::<Refused>(body)
                        .expect("a refusal")
                        .violations
                }
            };
            let place = match status {
                200 => Appears::Failed,
                202 => Appears::Tolerated,
                status => Appears::Refusal(status),
            };
            assert!(known.appears.contains(&place), "{rule}: {status}");
            assert!(violations.iter().any(|v| about(&v.rule) == Some(known)), "{rule}");
            for violation in violations {
                let told = about(&violation.rule).expect("a rule");
                assert_eq!(told.source, violation.source, "{rule}");
                assert!(told.appears.contains(&place), "{rule}: {}", violation.rule);
            }
            let waits = head.contains("\nRetry-After: ");
            assert_eq!(waits, known.retry == Retry::RetryAfter, "{rule}: Retry-After");
            let challenges = head.contains("\nWWW-Authenticate: ");
            assert_eq!(challenges, status == 401, "{rule}: WWW-Authenticate");
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let folder = folder();
    let index = fs::read_to_string(folder.join("README.md")).expect("the index");
    let mut texts = vec![(folder.clone(), index)];
    texts.extend(pages(&folder).into_values().map(|page| (folder.clone(), page)));
    let schema = folder.join("schema");
    texts.extend(pages(&schema).into_values().map(|page| (schema.clone(), page)));
    for (from, text) in texts {
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().expect("a target");
            assert!(from.join(target).exists(), "{target} does not exist");
        }
    }
}
