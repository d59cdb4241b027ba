//! Reads envelopes, one a line, and prints of each a JSON list of `[rule, path]`.
//!
//! For comparison with other validators: `conformance/mutate.py` pipes thousands of broken messages through it. What
//! was tolerated is listed too, behind a `null`: `[[rule, path], null, [rule, path]]`. With `--rules` it prints the rules
//! of the schemas instead.

use std::io::{BufRead, Write};

use storybus_json::Document;
use storybus_protocol::Violation;
use storybus_som::{Options, schema_rules, validate};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if std::env::args().any(|argument| argument == "--rules") {
        for rule in schema_rules() {
            writeln!(out, "{rule}")?;
        }
        return out.flush();
    }
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let list = match Document::parse(line.as_bytes()) {
            Err(error) => vec![Some(("message.not_json".to_owned(), error.reason.to_owned()))],
            Ok(document) => match validate(document.root(), Options::default()) {
                Err(refused) => refused.into_iter().map(pair).collect(),
                Ok(checked) if checked.tolerated.is_empty() => Vec::new(),
                Ok(checked) => std::iter::once(None)
                    .chain(checked.tolerated.into_iter().map(pair))
                    .collect(),
            },
        };
        serde_json::to_writer(&mut out, &list)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

fn pair(violation: Violation) -> Option<(String, String)> {
    Some((violation.rule.into_owned(), violation.path.unwrap_or_default()))
}
