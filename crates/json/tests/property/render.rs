//! The many texts of a value.

use crate::model::{Decimal, Json};

/// Choices, the same for the same seed.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next of a splitmix sequence, below the limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed >> 33) as usize % limit
    }

    pub(crate) fn one_in(&mut self, limit: usize) -> bool {
        self.below(limit) == 0
    }
}

pub(crate) fn render(value: &Json, chance: &mut Chance) -> String {
    let mut out = String::new();
    // Some texts are minified, others full of white space.
    let spaced = chance.one_in(2);
    write(value, spaced, chance, &mut out);
    out
}

fn space(spaced: bool, chance: &mut Chance, out: &mut String) {
    while spaced && chance.one_in(2) {
        out.push([' ', '\n', '\t', '\r'][chance.below(4)]);
    }
}

fn write(value: &Json, spaced: bool, chance: &mut Chance, out: &mut String) {
    space(spaced, chance, out);
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&render_number(number, chance)),
        Json::String(string) => out.push_str(&render_string(string, chance)),
        Json::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(element, spaced, chance, out);
            }
            space(spaced, chance, out);
            out.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for last in (1..members.len()).rev() {
                members.swap(last, chance.below(last + 1));
            }
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                space(spaced, chance, out);
                out.push_str(&render_string(name, chance));
                space(spaced, chance, out);
                out.push(':');
                write(member, spaced, chance, out);
            }
            space(spaced, chance, out);
            out.push('}');
        }
    }
    space(spaced, chance, out);
}

pub(crate) fn render_string(string: &str, chance: &mut Chance) -> String {
    let mut out = String::from("\"");
    let rarely_escaped = chance.one_in(2);
    for character in string.chars() {
        let must = character < ' ' || character == '"' || character == '\\';
        let may = chance.one_in(if rarely_escaped { 40 } else { 2 });
        let short = match character {
            '"' | '\\' | '/' => Some(character),
            '\u{8}' => Some('b'),
            '\u{c}' => Some('f'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            _ => None,
        };
        match short {
            Some(short) if (must || may) && chance.one_in(2) => out.extend(['\\', short]),
            _ if must || may => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let hex = if chance.one_in(2) {
                        format!("{unit:04x}")
                    } else {
                        format!("{unit:04X}")
                    };
                    out.push_str("\\u");
                    out.push_str(&hex);
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
    out
}

/// One of the notations of a number: trailing zeros, the point anywhere, the exponent to match.
pub(crate) fn render_number(number: &Decimal, chance: &mut Chance) -> String {
    let mut exponent = number.exponent;
    let mut digits = number.digits.clone();
    if digits.is_empty() {
        digits.push('0');
        exponent = chance.below(7) as i128 * 1_000_000_000_000 - 3_000_000_000_000;
    }
    let zeros = match exponent {
        1..=40 if chance.one_in(2) => exponent as usize,
        _ => chance.below(3) * chance.below(3),
    };
    digits.push_str(&"0".repeat(zeros));
    exponent -= zeros as i128;

    let behind = match exponent {
        // Often just so many digits that no exponent is needed.
        -40..0 if chance.one_in(2) => exponent.unsigned_abs() as usize,
        _ if chance.one_in(2) => 0,
        _ => chance.below(digits.len() + 3),
    };
    exponent += behind as i128;
    if digits.len() <= behind {
        digits.insert_str(0, &"0".repeat(behind + 1 - digits.len()));
    }
    let (whole, fraction) = digits.split_at(digits.len() - behind);
    let whole = whole.trim_start_matches('0');

    let mut out = String::new();
    if number.negative || (number.digits.is_empty() && chance.one_in(2)) {
        out.push('-');
    }
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    if exponent != 0 || chance.one_in(4) {
        out.push(if chance.one_in(2) { 'e' } else { 'E' });
        if exponent < 0 {
            out.push('-');
        } else if chance.one_in(2) {
            out.push('+');
        }
        out.push_str(&"0".repeat(chance.below(3)));
        out.push_str(&exponent.unsigned_abs().to_string());
    }
    out
}
