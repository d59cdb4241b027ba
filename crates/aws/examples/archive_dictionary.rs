//! Makes a dictionary for the archive's messages: `cargo run -p storybus-aws --example archive_dictionary -- FILE`.
//!
//! It is trained on `events/story` and on messages that the schemas allow, with our own words in them. The same code gives the same
//! file. **A dictionary that messages were written with is never made anew**: another one gets another number (see
//! `src/archive/pack.rs`). Without FILE, it tells how small each level makes the messages, and how long it takes.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool at a terminal, which measures time"
)]

use std::fmt::Write as _;
use std::time::Instant;

use storybus_json::{Document, Value};

/// The largest dictionary: every function that reads or writes the archive carries it.
const SIZE: usize = 16 * 1024;
const SAMPLES: u64 = 4000;

const SCHEMAS: [(&str, &str); 6] = [
    (
        "story.context",
        include_str!("../../som/schemas/story-context.schema.json"),
    ),
    (
        "telling.started",
        include_str!("../../som/schemas/telling-event.schema.json"),
    ),
    (
        "link.committed",
        include_str!("../../som/schemas/link-event.schema.json"),
    ),
    (
        "skill.warning",
        include_str!("../../som/schemas/skill-warning.schema.json"),
    ),
    (
        "system.audit",
        include_str!("../../som/schemas/system-audit.schema.json"),
    ),
    (
        "delivery.media_available",
        include_str!("../../som/schemas/delivery-media-available.schema.json"),
    ),
];
const STORIES: [&str; 6] = [
    include_str!("../../../events/story/1-planned.json"),
    include_str!("../../../events/story/2-breaking.json"),
    include_str!("../../../events/story/3-developing.json"),
    include_str!("../../../events/story/4-corrected.json"),
    include_str!("../../../events/story/stale-snapshot.json"),
    include_str!("../../../events/story/telling-started.json"),
];
const WORDS: [&str; 48] = [
    "government",
    "the",
    "of",
    "in",
    "and",
    "for",
    "to",
    "after",
    "talks",
    "report",
    "live",
    "update",
    "camera",
    "interview",
    "reporter",
    "studio",
    "graphic",
    "map",
    "national",
    "local",
    "evening",
    "morning",
    "headline",
    "correspondent",
    "official",
    "statement",
    "press",
    "conference",
    "public",
    "service",
    "weather",
    "warning",
    "transport",
    "health",
    "minister",
    "parliament",
    "vote",
    "police",
    "court",
    "season",
    "match",
    "results",
    "city",
    "centre",
    "north",
    "south",
    "new",
    "first",
];

struct Maker {
    state: u64,
}

impl Maker {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn words(&mut self, count: usize, between: &str) -> String {
        let words: Vec<&str> = (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(between)
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "0199{:04x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
            a >> 48,
            a >> 32 & 0xffff,
            a >> 16 & 0xfff,
            a & 0xfff,
            b >> 16
        )
    }

    fn time(&mut self) -> String {
        let n = self.next();
        let fraction = match n % 3 {
            0 => String::new(),
            1 => format!(".{:03}", n >> 8 & 511),
            _ => format!(".{:06}", n >> 8 & 524_287),
        };
        let (month, day, hour) = (n >> 32 & 7, n >> 36 & 15, n >> 40 & 15);
        format!(
            "2026-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}Z",
            month + 4,
            day + 10,
            hour + 6,
            n >> 44 & 31,
            n >> 50 & 31
        )
    }

    /// A text for a member of this name.
    fn text(&mut self, name: &str, schema: Value<'_>) -> String {
        if schema.get("format").and_then(Value::as_str) == Some("date-time") || name.ends_with("_at") {
            return self.time();
        }
        match name {
            "message_id" | "correlation_id" | "telling_id" | "link_id" | "delivery_id" | "warning_id"
            | "audit_id" => self.uuid(),
            "slug" => self.words(2, "-").to_uppercase(),
            "source" => format!("tams://{}/{}", self.words(2, "-"), self.next() % 10_000),
            "version" | "skill_version" => "1.0.0".to_owned(),
            _ if name.ends_with("_id") || name.ends_with("_by") => {
                format!("{}-{:x}", self.words(2, "-"), self.next() % 65_536)
            }
            _ => {
                let count = 2 + self.below(7);
                self.words(count, " ")
            }
        }
    }

    /// Something that the schema allows, more or less.
    fn value(&mut self, root: Value<'_>, schema: Value<'_>, name: &str, depth: usize, out: &mut String) {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let to = reference
                .strip_prefix("#/$defs/")
                .and_then(|def| root.get("$defs")?.get(def));
            if let Some(to) = to {
                return self.value(root, to, name, depth, out);
            }
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let chosen = values.iter().nth(self.below(values.len()));
            return write!(out, "\"{}\"", chosen.and_then(Value::as_str).unwrap_or_default()).unwrap();
        }
        if let Some(first) = schema
            .get("oneOf")
            .and_then(Value::as_array)
            .and_then(|of| of.iter().next())
        {
            return self.value(root, first, name, depth, out);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(root, schema, depth, out),
            Some("array") => {
                let count = if name == "assets" {
                    2 + self.below(9)
                } else {
                    1 + self.below(3)
                };
                out.push('[');
                for n in 0..count {
                    out.push_str(if n == 0 { "" } else { "," });
                    match schema.get("items") {
                        Some(items) => self.value(root, items, name, depth + 1, out),
                        None => out.push_str("{}"),
                    }
                }
                out.push(']');
            }
            Some("integer") => write!(out, "{}", self.next() % 40 + 1).unwrap(),
            Some("number") => write!(out, "0.{}", self.next() % 90 + 10).unwrap(),
            Some("boolean") => out.push_str(if self.one_in(2) { "true" } else { "false" }),
            _ => {
                let text = self.text(name, schema);
                write!(out, "\"{text}\"").unwrap();
            }
        }
    }

    fn object(&mut self, root: Value<'_>, schema: Value<'_>, depth: usize, out: &mut String) {
        let required = |name: &str| {
            let list = schema.get("required").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|r| r.as_str() == Some(name)))
        };
        out.push('{');
        let begin = out.len();
        if let Some(members) = schema.get("properties").and_then(Value::as_object) {
            for (name, of) in members.iter() {
                let common = matches!(
                    name,
                    "assets"
                        | "sequence_number"
                        | "updated_at"
                        | "media_refs"
                        | "status"
                        | "evidential_position"
                        | "acquisition_state"
                );
                let wanted = required(name) || common && !self.one_in(8) || self.one_in(2 + depth);
                if wanted && name != "extensions" && depth < 6 {
                    out.push_str(if out.len() == begin { "" } else { "," });
                    write!(out, "\"{name}\":").unwrap();
                    self.value(root, of, name, depth + 1, out);
                }
            }
        }
        out.push('}');
    }

    /// A message, and what the archive keeps of it beside the body.
    fn message(&mut self, n: u64) -> [String; 2] {
        let of = if n % 10 < 6 {
            0
        } else {
            usize::try_from(n).unwrap() % SCHEMAS.len()
        };
        let (message_type, schema) = SCHEMAS[of];
        let document = Document::parse(schema.as_bytes()).unwrap();
        let mut payload = String::new();
        self.value(document.root(), document.root(), "", 0, &mut payload);
        let [id, correlation] = [self.uuid(), self.uuid()];
        let (system, name, topic) = (self.words(2, "-"), self.words(2, " "), self.words(1, "-"));
        let kind = ["ncs", "mam", "playout", "graphics"][self.below(4)];
        let time = self.time();
        let body = format!(
            r#"{{"som_version":"1.0.0","message_id":"{id}","correlation_id":"{correlation}","message_type":"{message_type}","timestamp":"{time}","originating_system":{{"system_id":"{system}","system_type":"{kind}","system_name":"{name}"}},"topic":"som.{message_type}.{topic}","payload":{payload}}}"#
        );
        let family = message_type.replace('.', "-");
        let head = format!(
            r#"["{message_type}","{family}","som.{message_type}.{topic}",null,"p{:010x}{:010x}","{system}","1.0.0","{}-{:x}","{}"]"#,
            self.next() >> 24,
            self.next() >> 24,
            self.words(2, "-"),
            self.next() % 65_536,
            self.next() % 40 + 1
        );
        [body, head]
    }
}

/// The same with line breaks and indentation, as many serialisers write it.
fn pretty(text: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    serde_json::to_string_pretty(&value).unwrap()
}

fn main() {
    let mut maker = Maker { state: 7 };
    let mut samples: Vec<String> = STORIES.iter().flat_map(|s| [(*s).to_owned(); 1]).collect();
    for n in 0..SAMPLES {
        let [body, head] = maker.message(n);
        samples.push(if n % 6 == 5 { pretty(&body) } else { body });
        samples.push(head);
    }
    let dictionary = zstd::dict::from_samples(&samples, SIZE).unwrap();
    if let Some(file) = std::env::args().nth(1) {
        std::fs::write(&file, &dictionary).unwrap();
        println!(
            "{file}: {} bytes, from {} samples",
            dictionary.len(),
            samples.len()
        );
        return;
    }
    let mut other = Maker { state: 1 << 40 };
    let bodies: Vec<String> = (0..2000)
        .map(|n| other.message(n)[0].clone())
        .filter(|b| (3000..5000).contains(&b.len()))
        .collect();
    let sum: usize = bodies.iter().map(String::len).sum();
    println!(
        "{} other messages of {} bytes on average",
        bodies.len(),
        sum / bodies.len()
    );
    for level in [1, 3, 6, 9, 12, 15, 19] {
        let encoder = zstd::dict::EncoderDictionary::copy(&dictionary, level);
        let begun = Instant::now();
        let packed: usize = bodies
            .iter()
            .map(|body| {
                let mut compressor = zstd::bulk::Compressor::with_prepared_dictionary(&encoder).unwrap();
                compressor.compress(body.as_bytes()).unwrap().len()
            })
            .sum();
        let took = begun.elapsed().as_micros() / bodies.len() as u128;
        println!(
            "level {level:2}: {:5} bytes, {took:5} us each",
            packed / bodies.len()
        );
    }
}
