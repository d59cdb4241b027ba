//! Exponents of ten with any number of digits.

use std::cmp::Ordering;
use std::fmt;

/// An exponent, exact. Each value has one representation, so that equality and hashing can be derived.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Exponent {
    Small(i64),
    /// Does not fit the other. Digits are ASCII, without leading zeros.
    Huge {
        negative: bool,
        digits: Vec<u8>,
    },
}

impl Exponent {
    /// The exponent with the given sign and digits (ASCII, without leading zeros), plus `shift`, which is at
    /// most the length of a text.
    pub(crate) fn shifted(negative: bool, digits: &[u8], shift: i64) -> Self {
        // 18 digits and a shift fit 64 bits together.
        if digits.len() <= 18 {
            let magnitude = digits
                .iter()
                .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
            return Self::Small(if negative {
                shift - magnitude
            } else {
                shift + magnitude
            });
        }
        // 19 digits outweigh the shift, so that the sign stays.
        let digits = add(digits, if negative { -shift } else { shift });
        if digits.len() <= 19 {
            let magnitude = digits
                .iter()
                .fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
            if let Ok(small) = i64::try_from(if negative { -magnitude } else { magnitude }) {
                return Self::Small(small);
            }
        }
        Self::Huge { negative, digits }
    }
}

/// A number in digits plus a smaller one, of either sign.
fn add(digits: &[u8], addend: i64) -> Vec<u8> {
    let mut sum = digits.to_vec();
    let mut carry = addend;
    for digit in sum.iter_mut().rev() {
        if carry == 0 {
            break;
        }
        let total = i64::from(*digit - b'0') + carry;
        *digit = b'0' + total.rem_euclid(10) as u8;
        carry = total.div_euclid(10);
    }
    if carry > 0 {
        sum.splice(0..0, carry.to_string().into_bytes());
    }
    let zeros = sum.iter().take_while(|&&digit| digit == b'0').count();
    sum.drain(..zeros);
    sum
}

impl Ord for Exponent {
    fn cmp(&self, other: &Self) -> Ordering {
        use Exponent::{Huge, Small};
        match (self, other) {
            (Small(a), Small(b)) => a.cmp(b),
            (Small(_), Huge { negative, .. }) => {
                if *negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (Huge { .. }, Small(_)) => other.cmp(self).reverse(),
            (Huge { negative: true, .. }, Huge { negative: false, .. }) => Ordering::Less,
            (Huge { negative: false, .. }, Huge { negative: true, .. }) => Ordering::Greater,
            (Huge { negative, digits: a }, Huge { digits: b, .. }) => {
                let magnitudes = a.len().cmp(&b.len()).then_with(|| a.cmp(b));
                if *negative {
                    magnitudes.reverse()
                } else {
                    magnitudes
                }
            }
        }
    }
}

impl PartialOrd for Exponent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Exponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small(value) => write!(f, "{value}"),
            Self::Huge { negative, digits } => {
                let sign = if *negative { "-" } else { "" };
                write!(f, "{sign}{}", str::from_utf8(digits).unwrap_or_default())
            }
        }
    }
}
