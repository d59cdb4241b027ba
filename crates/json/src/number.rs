//! Exact decimal numbers. Nothing here writes out an exponent: time and memory go with the texts' lengths.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};

use crate::exponent::Exponent;
use crate::lexer;

/// A whole number of at most so many digits is written in full in the canonical form.
pub(crate) const MAX_PLAIN_DIGITS: usize = 21;

/// An exact decimal number as it stands in the text. Equality and order are by exact decimal value.
#[derive(Clone, Copy)]
pub struct Number<'d> {
    text: &'d str,
}

impl<'d> Number<'d> {
    /// Reads the text of one JSON number, with nothing before or behind it.
    pub fn parse(text: &'d str) -> Option<Self> {
        match lexer::number_end(text.as_bytes(), 0) {
            Ok((end, _)) if end == text.len() => Some(Self { text }),
            _ => None,
        }
    }

    /// A text that is known to be a number.
    pub(crate) fn of(text: &'d str) -> Self {
        Self { text }
    }

    /// The text of the number.
    pub fn text(self) -> &'d str {
        self.text
    }

    /// The one JSON text that all numbers of this value share: see [canonical form](crate::Value::write_canonical).
    pub fn canonical(self) -> Cow<'d, str> {
        if self.is_plain() {
            return Cow::Borrowed(self.text);
        }
        let decimal = Decimal::of(self.text);
        let digits = decimal.digits();
        if digits == 0 {
            return Cow::Borrowed("0");
        }
        let mut out = String::with_capacity(self.text.len().max(MAX_PLAIN_DIGITS + 1));
        if decimal.negative {
            out.push('-');
        }
        out.extend(decimal.iter().map(char::from));
        match decimal.unit() {
            Exponent::Small(zeros @ 0..)
                if zeros.saturating_add(digits as i64) <= MAX_PLAIN_DIGITS as i64 =>
            {
                out.extend((0..zeros).map(|_| '0'));
            }
            Exponent::Small(0) => {}
            exponent => {
                // Writing to a string cannot fail.
                let _ = write!(out, "e{exponent}");
            }
        }
        Cow::Owned(out)
    }

    /// Whether the text is the canonical form already, as far as a glance can tell.
    fn is_plain(self) -> bool {
        let digits = self.text.strip_prefix('-').unwrap_or(self.text);
        digits.len() <= MAX_PLAIN_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && (digits.len() == self.text.len() || digits != "0")
    }

    /// Whether the value is a whole number (`1.0` and `1e2` are).
    pub fn is_integer(self) -> bool {
        if self.text.bytes().all(|byte| byte.is_ascii_digit()) {
            return true;
        }
        let decimal = Decimal::of(self.text);
        decimal.digits() == 0 || decimal.unit() >= Exponent::Small(0)
    }

    /// The value, if it is a whole number of that range.
    pub fn to_i64(self) -> Option<i64> {
        let decimal = Decimal::of(self.text);
        if decimal.digits() == 0 {
            return Some(0);
        }
        let (Exponent::Small(zeros @ 0..), Exponent::Small(..=19)) = (decimal.unit(), decimal.point()) else {
            return None;
        };
        let digits = decimal.iter().chain((0..zeros).map(|_| b'0'));
        let magnitude = digits.fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
        i64::try_from(if decimal.negative { -magnitude } else { magnitude }).ok()
    }

    /// Whether this is exactly one more than the other.
    pub fn is_successor_of(self, other: Number<'_>) -> bool {
        let (high, low) = (Decimal::of(self.text), Decimal::of(other.text));
        match (high.is_negative(), low.is_negative()) {
            (false, false) => is_sum(&low, &Decimal::ONE, &high),
            (true, true) => is_sum(&high, &Decimal::ONE, &low),
            (false, true) => is_sum(&high, &low, &Decimal::ONE),
            (true, false) => false,
        }
    }
}

impl PartialEq for Number<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text || self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number<'_> {}

impl PartialOrd for Number<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (Decimal::of(self.text), Decimal::of(other.text));
        match (a.is_negative(), b.is_negative()) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => a.cmp_magnitude(&b),
            (true, true) => b.cmp_magnitude(&a),
        }
    }
}

impl Hash for Number<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical().hash(state);
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl fmt::Debug for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({})", self.text)
    }
}

/// A number taken apart: 0.`whole` `fraction` × 10^([`point`](Self::point)), where the digits of both parts
/// together neither start nor end with a zero. Zero has no digits.
struct Decimal<'d> {
    negative: bool,
    whole: &'d [u8],
    fraction: &'d [u8],
    exponent_negative: bool,
    exponent: &'d [u8],
    /// What has to be added to the written exponent to get the point.
    shift: i64,
}

impl<'d> Decimal<'d> {
    const ONE: Decimal<'static> = Decimal {
        negative: false,
        whole: b"1",
        fraction: b"",
        exponent_negative: false,
        exponent: b"",
        shift: 1,
    };

    fn of(text: &'d str) -> Self {
        let bytes = text.as_bytes();
        let (negative, bytes) = strip_sign(bytes);
        let (mantissa, exponent) = split(bytes, |byte| matches!(byte, b'e' | b'E'));
        let (whole, fraction) = split(mantissa, |byte| byte == b'.');
        let (exponent_negative, exponent) = strip_sign(exponent);

        let mut whole = trim_start(whole);
        let mut shift = whole.len() as i64;
        let mut fraction = trim_end(fraction);
        if whole.is_empty() {
            let significant = trim_start(fraction);
            shift = significant.len() as i64 - fraction.len() as i64;
            fraction = significant;
        }
        if fraction.is_empty() {
            whole = trim_end(whole);
        }
        Self {
            negative,
            whole,
            fraction,
            exponent_negative,
            exponent: trim_start(exponent),
            shift,
        }
    }

    /// How many digits.
    fn digits(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    /// Zero has no sign.
    fn is_negative(&self) -> bool {
        self.negative && self.digits() > 0
    }

    fn iter(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }

    /// The exponent of ten just above the first digit.
    fn point(&self) -> Exponent {
        Exponent::shifted(self.exponent_negative, self.exponent, self.shift)
    }

    /// The exponent of ten of the last digit.
    fn unit(&self) -> Exponent {
        Exponent::shifted(
            self.exponent_negative,
            self.exponent,
            self.shift - self.digits() as i64,
        )
    }

    fn cmp_magnitude(&self, other: &Decimal<'_>) -> Ordering {
        match (self.digits(), other.digits()) {
            (0, 0) => Ordering::Equal,
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            _ => self
                .point()
                .cmp(&other.point())
                .then_with(|| self.iter().cmp(other.iter())),
        }
    }

    /// The digit at 10^`place`, given the exponent of the last digit.
    fn digit(&self, unit: i64, place: i64) -> u8 {
        let from_end = place - unit;
        let Ok(from_end) = usize::try_from(from_end) else {
            return 0;
        };
        let Some(index) = self.digits().checked_sub(from_end + 1) else {
            return 0;
        };
        let digit = self
            .whole
            .get(index)
            .or_else(|| self.fraction.get(index - self.whole.len()));
        digit.map_or(0, |digit| digit - b'0')
    }
}

/// Whether a + b = c, by magnitude, where one of the three is 1.
fn is_sum(a: &Decimal<'_>, b: &Decimal<'_>, c: &Decimal<'_>) -> bool {
    let (mut low, mut high) = (0, 1);
    let mut units = [0; 3];
    for (decimal, unit) in [a, b, c].into_iter().zip(&mut units) {
        if decimal.digits() == 0 {
            continue;
        }
        // Numbers one apart have all their digits between the unit and the first digit in one of the texts,
        // which is far shorter than such an exponent.
        let (Exponent::Small(last), Exponent::Small(point)) = (decimal.unit(), decimal.point()) else {
            return false;
        };
        *unit = last;
        low = low.min(last);
        high = high.max(point);
    }
    // When one of two whole numbers one apart ends in a zero, the other does not; and two fractions one apart
    // end at the same place. Either way one of them has its digits written out, but for a carry at the top.
    let longest = a.digits().max(b.digits()).max(c.digits()) as i64;
    if high.saturating_sub(low) > longest + 1 {
        return false;
    }
    let [unit_a, unit_b, unit_c] = units;
    let mut carry = 0;
    for place in low..high {
        let sum = a.digit(unit_a, place) + b.digit(unit_b, place) + carry;
        if sum % 10 != c.digit(unit_c, place) {
            return false;
        }
        carry = sum / 10;
    }
    carry == 0
}

fn strip_sign(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    }
}

/// What stands before and behind the first byte of that kind; nothing behind, if there is none.
fn split(bytes: &[u8], at: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    match bytes.iter().position(|&byte| at(byte)) {
        Some(index) => (&bytes[..index], &bytes[index + 1..]),
        None => (bytes, &[]),
    }
}

fn trim_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros..]
}

fn trim_end(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
    &digits[..digits.len() - zeros]
}
