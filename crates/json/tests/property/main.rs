//! Equal hashes if and only if equal as JSON values, over generated values and their many texts.

mod model;
mod render;

use std::cmp::Ordering;
use std::collections::HashSet;

use proptest::prelude::*;
use storybus_json::{Document, Kind, Number, Value};

use model::{Decimal, Json, any_decimal, any_json, near_decimal};
use render::{Chance, render, render_number};

fn parse(text: &[u8]) -> Document<'_> {
    Document::parse(text).expect("rendered as JSON")
}

fn canonical(value: Value<'_>) -> String {
    let mut out = Vec::new();
    value.write_canonical(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

/// Whether the document says what the model says, through every accessor.
fn reads(value: Value<'_>, model: &Json) -> bool {
    match (value.kind(), model) {
        (Kind::Null, Json::Null) => true,
        (Kind::Bool(found), Json::Bool(expected)) => found == *expected,
        (Kind::String(found), Json::String(expected)) => found == expected,
        (Kind::Number(found), Json::Number(expected)) => {
            found.canonical() == expected.canonical() && found.is_integer() == expected.is_integer()
        }
        (Kind::Array(found), Json::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().count() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(element, expected)| reads(element, expected))
        }
        (Kind::Object(found), Json::Object(expected)) => {
            let names: HashSet<&str> = found.iter().map(|(name, _)| name).collect();
            found.len() == expected.len()
                && names.len() == expected.len()
                && expected
                    .iter()
                    .all(|(name, expected)| found.get(name).is_some_and(|member| reads(member, expected)))
                && found.iter().all(|(name, member)| reads(member, &expected[name]))
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_texts_of_a_value_share_their_hash(value in any_json(), seeds in any::<[u64; 2]>()) {
        let [one, other] = seeds.map(|seed| render(&value, &mut Chance::new(seed)));
        let (one, other) = (parse(one.as_bytes()), parse(other.as_bytes()));
        prop_assert_eq!(canonical(one.root()), value.canonical());
        prop_assert_eq!(canonical(other.root()), value.canonical());
        prop_assert_eq!(one.root().content_hash(), other.root().content_hash());
        prop_assert_eq!(one.root(), other.root());
        for document in [&one, &other] {
            prop_assert_eq!(document.depth(), value.depth());
            prop_assert_eq!(document.duplicate_member(), None);
            prop_assert!(reads(document.root(), &value));
        }
    }

    #[test]
    fn the_canonical_form_is_a_text_of_the_value(value in any_json()) {
        let form = value.canonical();
        let document = parse(form.as_bytes());
        prop_assert!(reads(document.root(), &value));
        prop_assert_eq!(canonical(document.root()), form);
    }

    #[test]
    fn one_change_changes_the_hash(value in any_json(), seeds in any::<[u64; 3]>()) {
        let changed = model::mutate(&value, &mut Chance::new(seeds[0]));
        prop_assert_ne!(&changed, &value);
        let one = render(&value, &mut Chance::new(seeds[1]));
        let other = render(&changed, &mut Chance::new(seeds[2]));
        let (one, other) = (parse(one.as_bytes()), parse(other.as_bytes()));
        prop_assert_ne!(one.root().content_hash(), other.root().content_hash());
        prop_assert_ne!(one.root(), other.root());
    }

    #[test]
    fn hashes_are_equal_when_values_are(one in any_json(), other in any_json(), seed in any::<u64>()) {
        let mut chance = Chance::new(seed);
        let texts = [&one, &other].map(|value| render(value, &mut chance));
        let [a, b] = [parse(texts[0].as_bytes()), parse(texts[1].as_bytes())];
        prop_assert_eq!(a.root().content_hash() == b.root().content_hash(), one == other);
        prop_assert_eq!(a.root() == b.root(), one == other);
    }

    #[test]
    fn a_repeated_member_is_found(value in any_json(), name in model::any_name(), seed in any::<u64>()) {
        // The value is within an object that has the name twice, spelt in two ways.
        let mut chance = Chance::new(seed);
        let [first, second] = [(); 2].map(|()| render::render_string(&name, &mut chance));
        let text = format!("[0,{{{first}:{},{second}:1}}]", render(&value, &mut chance));
        let pointer = format!("/1/{}", name.replace('~', "~0").replace('/', "~1"));
        prop_assert_eq!(parse(text.as_bytes()).duplicate_member(), Some(pointer));
    }

    #[test]
    fn numbers_order_as_their_values(one in near_decimal(), other in near_decimal(), seed in any::<u64>()) {
        let mut chance = Chance::new(seed);
        let texts = [&one, &other].map(|number| render_number(number, &mut chance));
        let [a, b] = [Number::parse(&texts[0]), Number::parse(&texts[1])].map(Option::unwrap);
        let (scaled_a, scaled_b) = (one.scaled(), other.scaled());
        prop_assert_eq!(a.cmp(&b), scaled_a.cmp(&scaled_b));
        prop_assert_eq!(a == b, scaled_a == scaled_b);
        prop_assert_eq!(a.is_successor_of(b), scaled_a == scaled_b + model::SCALE);
        let whole = scaled_a % model::SCALE == 0;
        prop_assert_eq!(a.is_integer(), whole);
        prop_assert_eq!(a.to_i64(), i64::try_from(scaled_a / model::SCALE).ok().filter(|_| whole));
    }

    #[test]
    fn the_next_number_is_the_successor(number in near_decimal(), seed in any::<u64>()) {
        let mut chance = Chance::new(seed);
        let next = Decimal::from_scaled(number.scaled() + model::SCALE);
        let [low, high] = [&number, &next].map(|number| render_number(number, &mut chance));
        let (low, high) = (Number::parse(&low).unwrap(), Number::parse(&high).unwrap());
        prop_assert!(high.is_successor_of(low));
        prop_assert!(!low.is_successor_of(high));
        prop_assert_eq!(low.cmp(&high), Ordering::Less);
    }

    #[test]
    fn the_canonical_number_is_the_value(number in any_decimal(), seeds in any::<[u64; 2]>()) {
        let [one, other] = seeds.map(|seed| render_number(&number, &mut Chance::new(seed)));
        let (a, b) = (Number::parse(&one).unwrap(), Number::parse(&other).unwrap());
        prop_assert_eq!(a, b);
        prop_assert_eq!(a.canonical(), number.canonical());
        let form = number.canonical();
        prop_assert_eq!(Number::parse(&form), Some(b));
        prop_assert!(!a.is_successor_of(b));
    }
}
