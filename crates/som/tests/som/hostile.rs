//! Messages made to be slow: as long as the bus takes, and each as faulty as can be.
//!
//! The answer grows with the message and no faster, and so does the time; nothing is cut, since the contract lists every
//! violation. Time itself is measured by `examples/bench.rs`; here a quadratic step would make a test that never ends.

use storybus_json::Document;
use storybus_som::story::StoryState;
use storybus_som::{Options, validate};

use crate::support::{EXAMPLES, example};

/// The most that a message may be, in bytes.
const LARGEST: usize = 240_000;

/// A snapshot with members put in as text.
fn with(members: &str) -> String {
    let text = example("story.context")
        .to_string()
        .replace("\"slug\":", &format!("{members},\"slug\":"));
    assert!(text.len() <= LARGEST, "{} bytes", text.len());
    text
}

fn count(text: &str) -> usize {
    let document = Document::parse(text.as_bytes()).unwrap();
    validate(document.root(), Options::default()).map_or_else(|refused| refused.len(), |_| 0)
}

fn repeated(part: &str, times: usize) -> String {
    vec![part; times].join(",")
}

#[test]
fn many_faults() {
    let surplus: Vec<_> = (0..20_000).map(|i| format!("\"{i}\":0")).collect();
    assert_eq!(count(&with(&surplus.join(","))), 1000);
    assert_eq!(
        count(&with(&format!(
            "\"editorial_gates\":[{{\"blocks\":[{}]}}]",
            repeated("0", 100_000)
        ))),
        1000
    );
    assert_eq!(
        count(&with(&format!("\"assertions\":[{}]", repeated("{}", 70_000)))),
        1000
    );
}

#[test]
fn a_cut_list_says_so_and_a_whole_one_does_not() {
    let last = |n: usize| {
        let text = with(&format!("\"compliance\":[{}]", repeated("0", n)));
        let document = Document::parse(text.as_bytes()).unwrap();
        validate(document.root(), Options::default())
            .unwrap_err()
            .pop()
            .unwrap()
            .message
    };
    assert!(last(1001).contains("only the first 1000"), "{}", last(1001));
    assert!(!last(1000).contains("only the first"), "{}", last(1000));
}

#[test]
fn what_is_tolerated_never_hides_a_refusal() {
    let surplus: Vec<_> = (0..5_000).map(|i| format!("\"{i}\":0")).collect();
    let later = |text: String| text.replace("\"som_version\":\"1.0.0\"", "\"som_version\":\"1.1.0\"");
    let text = later(with(&surplus.join(",")));
    let document = Document::parse(text.as_bytes()).unwrap();
    assert_eq!(
        validate(document.root(), Options::default())
            .unwrap()
            .tolerated
            .len(),
        1000
    );
    // the same with a fault behind them all
    let text = text.replace("\"headline\":", "\"headlong\":");
    let document = Document::parse(text.as_bytes()).unwrap();
    let refused = validate(document.root(), Options::default()).unwrap_err();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused.first().unwrap().rule, "story-context.required");
}

#[test]
fn many_tags() {
    let tags: Vec<_> = (0..6_000)
        .map(|i| format!("{{\"scheme\":\"newsroom\",\"value\":\"{i}\"}}"))
        .collect();
    assert_eq!(count(&with(&format!("\"tags\":[{}]", tags.join(",")))), 0);
    assert_eq!(
        count(&with(&format!("\"tags\":[{},{}]", tags.join(","), tags[17]))),
        1
    );
    // Alike to the last byte.
    let long = "x".repeat(110_000);
    let alike = |end: &str| format!("{{\"scheme\":\"newsroom\",\"value\":\"{long}{end}\"}}");
    assert_eq!(
        count(&with(&format!("\"tags\":[{},{}]", alike("1"), alike("2")))),
        0
    );
    assert_eq!(
        count(&with(&format!("\"tags\":[{},{}]", alike("1"), alike("1")))),
        1
    );
}

#[test]
fn long_texts_under_every_expression() {
    let n = 230_000;
    let digits = "1".repeat(n / 2);
    let texts = [
        "a".repeat(n),
        "é".repeat(n / 2),
        digits.clone() + "." + &digits[1..],
        "1.".repeat(n / 2),
        format!("tams://{}", "a".repeat(n)),
        format!("tams://{}/", "é".repeat(n / 2)),
        format!("tams://a/{}", "\\n".repeat(n / 2)),
        "tams://".repeat(n / 7),
        format!("[{digits}:{digits}"),
        format!("[{digits}:1_{}:1é", &digits[20..]),
        format!("[1:1_{digits}:{}", &digits[10..]),
        "[".repeat(n),
        format!("com.{}", "a".repeat(n)),
        format!("com.{}.{}!", "a".repeat(n / 2), "a".repeat(n / 2 - 10)),
        "com.a.".repeat(n / 6),
        format!("x-{}!", "a".repeat(n)),
        "som.".repeat(n / 4),
    ];
    for text in &texts {
        let range = format!("\"compliance\":[{{\"media_range\":{{\"time_range\":\"{text}\"}}}}]");
        assert!(count(&with(&range)) > 0);
        assert!(count(&with(&format!("\"assets\":[{{\"asset_type\":\"{text}\"}}]"))) > 0);
        assert!(
            count(&with(&format!(
                "\"assets\":[{{\"media_refs\":[{{\"source\":\"{text}\"}}]}}]"
            ))) > 0
        );
        assert!(count(&with(&format!("\"tags\":[{{\"scheme\":\"{text}\"}}]"))) > 0);
        count(&with(&format!("\"extensions\":{{\"{text}\":1}}")));
        for member in ["som_version", "message_type", "topic"] {
            let mut envelope = example("asset.noted");
            envelope[member] = serde_json::Value::String(text.clone());
            count(&envelope.to_string());
        }
    }
}

#[test]
fn messages_do_not_repeat_the_payload() {
    let secret = "s3cret".repeat(10_000);
    for (_, text) in EXAMPLES {
        let text = text.replace("\": \"", &format!("\": \"{secret}"));
        let document = Document::parse(text.as_bytes()).unwrap();
        let refused = validate(document.root(), Options::default()).unwrap_err();
        assert!(
            refused
                .iter()
                .all(|violation| !violation.message.contains("s3cret"))
        );
    }
    let document_of = |text: &str| count(&with(text));
    assert_eq!(document_of(&format!("\"{secret}\":1")), 1);
}

#[test]
fn a_story_of_the_largest_snapshots() {
    let assets: Vec<_> = (0..4_000)
        .map(|i| format!("{{\"asset_id\":\"{i}\",\"asset_type\":\"CG\",\"status\":\"READY\"}}"))
        .collect();
    let forwards = with(&format!("\"assets\":[{}]", assets.join(",")));
    let backwards: Vec<_> = assets.iter().rev().skip(1).cloned().collect();
    let backwards = with(&format!("\"assets\":[{}]", backwards.join(",")));
    let (one, two) = (
        Document::parse(forwards.as_bytes()).unwrap(),
        Document::parse(backwards.as_bytes()).unwrap(),
    );
    let state = StoryState::first(one.root().get("payload").unwrap(), "c");
    let judgement = state.next(two.root().get("payload").unwrap(), "c");
    let rules: Vec<_> = judgement
        .refused
        .iter()
        .map(|violation| &*violation.rule)
        .collect();
    assert_eq!(
        rules,
        ["sequence_number.not_increasing", "snapshot.assets_dropped"]
    );
    assert!(judgement.refused[1].message.contains(": 1;"));
    assert!(serde_json::to_string(&state).unwrap().len() < LARGEST);
}
