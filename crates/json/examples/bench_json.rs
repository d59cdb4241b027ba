//! How long reading and hashing take: `cargo run --release -p storybus-json --example bench_json [FILE…]`.
//!
//! Prints, for a snapshot of about 4 kB and for each file named, the median time of parsing, of the content
//! hash of the parsed document, and of SHA-256 over the same bytes, which is the least any hash can cost.
#![expect(clippy::print_stdout, reason = "the figures are the point")]

use std::hint::black_box;
use std::time::Instant;

use sha2::{Digest, Sha256};
use storybus_json::Document;

const SAMPLES: usize = 301;
/// A sample is as many runs as read so many bytes, so that the clock's own cost does not show.
const BYTES_PER_SAMPLE: usize = 800_000;

fn main() -> std::io::Result<()> {
    report("snapshot", snapshot().as_bytes());
    for path in std::env::args().skip(1) {
        report(&path, &std::fs::read(&path)?);
    }
    Ok(())
}

fn report(name: &str, text: &[u8]) {
    let Ok(document) = Document::parse(text) else {
        println!("{name}: not JSON");
        return;
    };
    let runs = BYTES_PER_SAMPLE / text.len().max(1) + 1;
    let parse = median(runs, || {
        let _ = black_box(Document::parse(black_box(text)));
    });
    let findings = median(runs, || {
        black_box((
            document.duplicate_member(),
            black_box(&document).illegal_character(),
            document.depth(),
        ));
    });
    let hash = median(runs, || {
        black_box(black_box(&document).root().content_hash());
    });
    let raw = median(runs, || {
        black_box(Sha256::digest(black_box(text)));
    });
    let ratio = hash as f64 / raw as f64;
    println!(
        "{name}: {} bytes, parse {parse} ns, findings {findings} ns, content hash {hash} ns, raw SHA-256 {raw} ns, hash / raw {ratio:.2}",
        text.len()
    );
}

/// Median nanoseconds of one run.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the real clock")]
fn median(runs: usize, mut run: impl FnMut()) -> u128 {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..runs {
            run();
        }
        samples.push(start.elapsed().as_nanos() / runs as u128);
    }
    samples.sort_unstable();
    samples[SAMPLES / 2]
}

/// A story snapshot as producers send it: minified, members not sorted, a few escapes.
fn snapshot() -> String {
    let assets: Vec<String> = (0..8)
        .map(|n| {
            format!(
                r#"{{"asset_id":"asset-{n:04}","asset_type":"VIDEO","title":"Landfall, camera {n}","duration_seconds":1{n}.5,"rights":{{"holder":"pool","expires_at":"2026-10-0{}T00:00:00Z"}},"status":"READY","tags":["coast","storm","live"]}}"#,
                n % 9 + 1
            )
        })
        .collect();
    let assertions: Vec<String> = (0..8)
        .map(|n| {
            format!(
                r#"{{"assertion_id":"claim-{n}","text":"1{n},000 households are without power \u2014 \"and rising\"","review":"CONFIRMED","confidence":0.{n}5,"sources":["src-wire","src-official"]}}"#
            )
        })
        .collect();
    format!(
        r#"{{"som_version":"1.0.0","message_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07","correlation_id":"0199a1c4-0000-7000-8000-000000000911","message_type":"story.context","timestamp":"2026-09-11T16:41:00.000000Z","originating_system":{{"system_id":"desk-01","system_type":"ncs","vendor":"example","version":"1.0"}},"topic":"som.story.context.storm","payload":{{"story_id":"storm-2026","slug":"STORM-LANDFALL","headline":"Storm makes landfall; 40,000 outages confirmed","story_type":"ACTIVE","sequence_number":7,"updated_at":"2026-09-11T16:41:00Z","priority":{{"level":"URGENT","reason":"landfall"}},"assets":[{}],"assertions":[{}]}}}}"#,
        assets.join(","),
        assertions.join(",")
    )
}
