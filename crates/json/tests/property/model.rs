//! JSON values as plain data, where equality is plain: the measure for the crate's own.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::render::Chance;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Decimal),
    String(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

/// `digits` × 10^`exponent`; the digits neither start nor end with a zero, and there are none for zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    pub(crate) digits: String,
    pub(crate) exponent: i128,
}

/// What [`Decimal::scaled`] multiplies by.
pub(crate) const SCALE: i128 = 1_000_000_000_000;
const SCALE_DIGITS: i128 = 12;

impl Decimal {
    pub(crate) fn new(negative: bool, digits: &str, exponent: i128) -> Self {
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Self {
                negative: false,
                digits: String::new(),
                exponent: 0,
            };
        }
        let exponent = exponent + (digits.len() - significant.len()) as i128;
        Self {
            negative,
            digits: significant.to_owned(),
            exponent,
        }
    }

    pub(crate) fn from_scaled(scaled: i128) -> Self {
        Self::new(scaled < 0, &scaled.unsigned_abs().to_string(), -SCALE_DIGITS)
    }

    /// The value times a power of ten that makes it whole, for numbers that are near.
    pub(crate) fn scaled(&self) -> i128 {
        let power = u32::try_from(self.exponent + SCALE_DIGITS).expect("a number that is near");
        let magnitude: i128 = self.digits.parse().unwrap_or(0);
        let scaled = magnitude * 10_i128.pow(power);
        if self.negative { -scaled } else { scaled }
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    pub(crate) fn canonical(&self) -> String {
        let Self {
            negative,
            digits,
            exponent,
        } = self;
        if digits.is_empty() {
            return "0".to_owned();
        }
        let sign = if *negative { "-" } else { "" };
        let length = digits.len() as i128;
        match *exponent {
            zeros if zeros >= 0 && length + zeros <= 21 => {
                format!("{sign}{digits}{}", "0".repeat(zeros as usize))
            }
            0 => format!("{sign}{digits}"),
            exponent => format!("{sign}{digits}e{exponent}"),
        }
    }
}

impl Json {
    pub(crate) fn depth(&self) -> usize {
        match self {
            Json::Array(elements) => 1 + elements.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(members) => 1 + members.values().map(Json::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The canonical form, written from its description and without a thought for speed.
    pub(crate) fn canonical(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Bool(value) => value.to_string(),
            Json::Number(number) => number.canonical(),
            Json::String(string) => canonical_string(string),
            Json::Array(elements) => {
                let elements: Vec<String> = elements.iter().map(Json::canonical).collect();
                format!("[{}]", elements.join(","))
            }
            Json::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| format!("{}:{}", canonical_string(name), value.canonical()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn canonical_string(string: &str) -> String {
    let characters = string.chars().map(|character| match character {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\0'..' ' => format!("\\u{:04x}", u32::from(character)),
        other => other.to_string(),
    });
    format!("\"{}\"", characters.collect::<String>())
}

pub(crate) fn any_decimal() -> impl Strategy<Value = Decimal> {
    let digits = prop_oneof![
        4 => "[0-9]{1,4}",
        2 => "[0-9]{15,40}",
        1 => "(9|10|123)0{0,25}[19]{0,3}",
    ];
    let exponent = prop_oneof![
        4 => Just(0_i128),
        4 => -30..30_i128,
        1 => prop_oneof![Just(400), Just(-400), Just(308), Just(-324)],
        1 => (0..60_i128).prop_map(|n| i128::from(i64::MAX) - 30 + n),
        1 => (0..60_i128).prop_map(|n| i128::from(i64::MIN) - 30 + n),
        1 => -(10_i128.pow(30))..10_i128.pow(30),
    ];
    (any::<bool>(), digits, exponent)
        .prop_map(|(negative, digits, exponent)| Decimal::new(negative, &digits, exponent))
}

/// Numbers that a 128-bit integer holds when [scaled](Decimal::scaled), close enough together to meet.
pub(crate) fn near_decimal() -> impl Strategy<Value = Decimal> {
    prop_oneof![
        (-3..=3_i128).prop_map(|n| n * SCALE),
        (-30..=30_i128).prop_map(|n| n * SCALE / 10),
        (-10_000..=10_000_i128).prop_map(|n| n * SCALE / 100),
        (-2..=2_i128, -12..=12_i128).prop_map(
            |(n, k)| n * SCALE + k.signum() * 10_i128.pow(k.unsigned_abs() as u32 - u32::from(k != 0))
        ),
        (0..=20_u32, -2..=2_i128, any::<bool>()).prop_map(|(power, n, negative)| {
            let near = 10_i128.pow(power) * SCALE + n * SCALE;
            if negative { -near } else { near }
        }),
        (-2..=2_i128).prop_map(|n| (i128::from(i64::MAX) + n) * SCALE),
        (-2..=2_i128).prop_map(|n| (i128::from(i64::MIN) + n) * SCALE),
    ]
    .prop_map(Decimal::from_scaled)
}

fn any_string() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        6 => "[a-zA-Z0-9 _.-]",
        1 => "[\"\\\\/\\x00-\\x1f\\x7f]",
        1 => any::<char>().prop_map(String::from),
        1 => "[é～\u{fffe}\u{ffff}\u{2028}\u{feff}\u{d7ff}\u{e000}😀\u{10000}\u{10ffff}\u{301}]",
    ];
    proptest::collection::vec(character, 0..24).prop_map(|characters| characters.concat())
}

pub(crate) fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-c]{0,2}",
        2 => any_string(),
        1 => "abcdefgh[a-c]{0,2}",
        1 => "a?\\x00{0,9}",
        1 => Just("$serde_json::private::Number".to_owned()),
        1 => Just("$serde_json::private::RawValue".to_owned()),
        1 => "[~/]{1,3}",
    ]
}

pub(crate) fn any_json() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        3 => any_decimal().prop_map(Json::Number),
        3 => any_string().prop_map(Json::String),
        // Strings that look like other values.
        1 => prop_oneof![Just("null"), Just("1"), Just("[]"), Just("")].prop_map(|text| Json::String(text.to_owned())),
    ];
    scalar.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            proptest::collection::btree_map(any_name(), inner.clone(), 0..6).prop_map(Json::Object),
            proptest::collection::btree_map(any_name(), inner, 0..30).prop_map(Json::Object),
        ]
    })
}

/// The value with one thing in it changed.
pub(crate) fn mutate(value: &Json, chance: &mut Chance) -> Json {
    let mut changed = value.clone();
    mutate_within(&mut changed, chance);
    changed
}

fn mutate_within(place: &mut Json, chance: &mut Chance) {
    let stop = chance.one_in(3);
    match place {
        Json::Array(elements) if !stop && !elements.is_empty() => {
            let index = chance.below(elements.len());
            mutate_within(&mut elements[index], chance);
        }
        Json::Object(members) if !stop && !members.is_empty() => {
            let index = chance.below(members.len());
            mutate_within(members.values_mut().nth(index).expect("within the count"), chance);
        }
        here => mutate_here(here, chance),
    }
}

fn mutate_here(place: &mut Json, chance: &mut Chance) {
    match place {
        Json::Null => *place = Json::Bool(false),
        Json::Bool(value) => *value = !*value,
        Json::Number(number) => *number = mutate_number(number, chance),
        Json::String(string) => match chance.below(3) {
            0 => string.push('\0'),
            1 if !string.is_empty() => {
                string.pop();
            }
            _ => string.insert(0, 'e'),
        },
        Json::Array(elements) => match chance.below(4) {
            0 => elements.push(Json::Null),
            1 if !elements.is_empty() => {
                elements.pop();
            }
            2 if elements.first() != elements.last() => {
                let last = elements.len() - 1;
                elements.swap(0, last);
            }
            _ => *place = Json::Array(vec![place.clone()]),
        },
        Json::Object(members) => match (chance.below(3), members.pop_first()) {
            // The first member is gone, gets another name, or moves into an object of its own.
            (0, Some(_)) => {}
            (1, Some((name, member))) => {
                members.insert(format!("{name}\0"), Json::Null);
                members.insert(format!("{name} "), member);
            }
            (_, first) => {
                let inner = first.map(|(name, member)| Json::Object(BTreeMap::from([(name, member)])));
                members.insert("\u{10ffff} new".to_owned(), inner.unwrap_or(Json::Null));
            }
        },
    }
}

fn mutate_number(number: &Decimal, chance: &mut Chance) -> Decimal {
    let Decimal {
        negative,
        digits,
        exponent,
    } = number;
    if digits.is_empty() {
        return Decimal::new(chance.one_in(2), "1", -400);
    }
    match chance.below(4) {
        0 => Decimal::new(!negative, digits, *exponent),
        1 => Decimal::new(*negative, digits, exponent + 1),
        2 => Decimal::new(*negative, &format!("{digits}1"), exponent - 1),
        _ => Decimal::new(*negative, &format!("1{digits}"), *exponent),
    }
}
