//! Prints how long the checks take, as medians: `cargo run --release -p storybus-som --example bench_som`.

use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

use storybus_json::Document;
use storybus_som::story::StoryState;
use storybus_som::{Options, schema_rules, validate};

const SNAPSHOT: &str = include_str!("../tests/examples/story.context-full.json");
const EVENT: &str = include_str!("../tests/examples/link.committed.json");

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark measures the machine's own time"
)]
fn now() -> Instant {
    Instant::now()
}

/// The median of many runs; each is long enough for the clock.
fn median(mut run: impl FnMut()) -> Duration {
    const RUNS: u32 = 200;
    const EACH: u32 = 50;
    let mut times: Vec<_> = (0..RUNS)
        .map(|_| {
            let start = now();
            for _ in 0..EACH {
                run();
            }
            start.elapsed() / EACH
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Without the white space that people like; members stay in the order that people give them.
fn compact(text: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    text.chars()
        .filter(|c| {
            let kept = in_string || !c.is_ascii_whitespace();
            in_string ^= *c == '"' && !escaped;
            escaped = in_string && *c == '\\' && !escaped;
            kept
        })
        .collect()
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let start = now();
    let rules = schema_rules().count();
    writeln!(
        out,
        "schemas compiled, once: {:?} ({rules} rules)",
        start.elapsed()
    )?;

    for (name, text) in [("snapshot", compact(SNAPSHOT)), ("event", compact(EVENT))] {
        let (Ok(document), size) = (Document::parse(text.as_bytes()), text.len()) else {
            continue;
        };
        let root = document.root();
        let valid = validate(root, Options::default()).is_ok();
        let time = median(|| {
            let _ = black_box(validate(black_box(root), Options::default()));
        });
        writeln!(out, "{name} of {size} bytes, valid: {valid}: {time:?}")?;
    }

    let text = compact(SNAPSHOT)
        .replace("\"BREAKING\"", "\"LIVE\"")
        .replace("\"headline\"", "\"head\"");
    if let Ok(document) = Document::parse(text.as_bytes()) {
        let root = document.root();
        let found = validate(root, Options::default())
            .err()
            .map_or(0, |list| list.len());
        let time = median(|| {
            let _ = black_box(validate(black_box(root), Options::default()));
        });
        writeln!(out, "the snapshot with {found} violations: {time:?}")?;
    }

    let text = compact(SNAPSHOT);
    if let Ok(document) = Document::parse(text.as_bytes())
        && let Some(payload) = document.root().get("payload")
    {
        let state = StoryState::first(payload, "01a3c0de-0000-7000-8000-00000000f1e5");
        let size = serde_json::to_string(&state)?.len();
        let time = median(|| {
            black_box(state.next(black_box(payload), "01a3c0de-0000-7000-8000-00000000f1e5"));
        });
        writeln!(
            out,
            "story order of the snapshot: {time:?}; its state is {size} bytes"
        )?;
    }

    for (name, text) in hostile() {
        let Ok(document) = Document::parse(text.as_bytes()) else {
            continue;
        };
        let start = now();
        let refused = validate(document.root(), Options::default())
            .err()
            .unwrap_or_default();
        let time = start.elapsed();
        let answer = serde_json::to_string(&refused)?.len();
        writeln!(
            out,
            "{} bytes of {name}: {time:?}, {} violations, answer of {answer} bytes",
            text.len(),
            refused.len()
        )?;
    }
    Ok(())
}

/// Bodies as long as the bus takes, each made of as many faults as fit.
fn hostile() -> Vec<(&'static str, String)> {
    let full = |name, open: &str, part: &dyn Fn(usize) -> String, close: &str| {
        let envelope = compact(include_str!("../tests/examples/story.context.json"));
        let room = 240_000 - envelope.len() - open.len() - close.len() - 20;
        let mut inner = String::new();
        let mut index = 0;
        loop {
            let next = part(index);
            if inner.len() + next.len() > room {
                break;
            }
            inner.push_str(&next);
            index += 1;
        }
        let inner = inner.trim_end_matches(',');
        (
            name,
            envelope.replace("\"slug\":", &format!("{open}{inner}{close},\"slug\":")),
        )
    };
    vec![
        full(
            "surplus members",
            "\"lifecycle\":{",
            &|i| format!("\"{i:x}\":0,"),
            "}",
        ),
        full("empty assertions", "\"assertions\":[", &|_| "{},".to_owned(), "]"),
        full(
            "blocks that are numbers",
            "\"editorial_gates\":[{\"blocks\":[",
            &|_| "0,".to_owned(),
            "]}]",
        ),
        full(
            "empty media ranges",
            "\"compliance\":[",
            &|_| "{\"media_range\":{}},".to_owned(),
            "]",
        ),
        full(
            "tags, all different",
            "\"tags\":[",
            &|i| format!("{{\"scheme\":\"newsroom\",\"value\":\"{i}\"}},"),
            "]",
        ),
        full("numbers as tags", "\"tags\":[", &|i| format!("{i},"), "]"),
        full(
            "one long source",
            "\"assets\":[{\"media_refs\":[{\"source\":\"tams://",
            &|_| "a".to_owned(),
            "\"}]}]",
        ),
    ]
}
