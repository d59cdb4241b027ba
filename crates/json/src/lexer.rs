//! The tokens of a JSON text: strings, numbers and literals, each read from a given offset.

use std::fmt;

/// The text is not JSON (RFC 8259).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte offset of the first byte that cannot stand there; the text's length when it ends too early.
    pub offset: usize,
    /// What is wrong, as a lower-case fragment.
    pub reason: &'static str,
}

impl SyntaxError {
    pub(crate) fn new(offset: usize, reason: &'static str) -> Self {
        Self { offset, reason }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for SyntaxError {}

pub(crate) const UNEXPECTED_END: &str = "unexpected end of text";

/// A byte in every lane of a word.
const fn lanes(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The top bit of every lane that holds a quote, a backslash or a control character.
///
/// Lanes above the first hit may be wrong (a borrow runs upwards), so only the lowest bit counts.
fn specials(word: u64) -> u64 {
    let quote = word ^ lanes(b'"');
    let backslash = word ^ lanes(b'\\');
    let below = |lane: u64, limit: u8| lane.wrapping_sub(lanes(limit)) & !lane;
    (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & lanes(0x80)
}

/// Offset of the first byte at or after `at` that ends a run of plain string content.
#[inline]
pub(crate) fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = specials(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at)
        && byte >= 0x20
        && byte != b'"'
        && byte != b'\\'
    {
        at += 1;
    }
    at
}

/// Appends the unescaped string whose content starts at `from` and whose first special byte is at `stop`.
/// Returns the offset behind the closing quote.
pub(crate) fn unescape(
    text: &str,
    mut from: usize,
    mut stop: usize,
    out: &mut String,
) -> Result<usize, SyntaxError> {
    let bytes = text.as_bytes();
    loop {
        out.push_str(&text[from..stop]);
        match bytes.get(stop) {
            Some(b'"') => return Ok(stop + 1),
            Some(b'\\') => {
                let (character, next) = escape(bytes, stop)?;
                out.push(character);
                from = next;
                stop = plain_end(bytes, from);
            }
            Some(_) => return Err(SyntaxError::new(stop, "unescaped control character in a string")),
            None => return Err(SyntaxError::new(stop, UNEXPECTED_END)),
        }
    }
}

/// The character that the escape at `at` (a backslash) stands for, and the offset behind it.
fn escape(bytes: &[u8], at: usize) -> Result<(char, usize), SyntaxError> {
    let simple = match bytes.get(at + 1) {
        Some(b'u') => return unicode_escape(bytes, at),
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(_) => return Err(SyntaxError::new(at + 1, "unknown escape in a string")),
        None => return Err(SyntaxError::new(at + 1, UNEXPECTED_END)),
    };
    Ok((simple, at + 2))
}

fn unicode_escape(bytes: &[u8], at: usize) -> Result<(char, usize), SyntaxError> {
    let lone = SyntaxError::new(at, "lone surrogate escape in a string");
    let first = hex(bytes, at + 2)?;
    if let Some(character) = char::from_u32(first) {
        return Ok((character, at + 6));
    }
    if first >= 0xDC00 || bytes.get(at + 6) != Some(&b'\\') || bytes.get(at + 7) != Some(&b'u') {
        return Err(lone);
    }
    let second = hex(bytes, at + 8)?;
    if !(0xDC00..0xE000).contains(&second) {
        return Err(lone);
    }
    let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    char::from_u32(code)
        .map(|character| (character, at + 12))
        .ok_or(lone)
}

/// Four hexadecimal digits.
fn hex(bytes: &[u8], at: usize) -> Result<u32, SyntaxError> {
    (at..at + 4).try_fold(0, |code, offset| {
        let &byte = bytes
            .get(offset)
            .ok_or(SyntaxError::new(offset, UNEXPECTED_END))?;
        let digit = char::from(byte)
            .to_digit(16)
            .ok_or(SyntaxError::new(offset, "expected a hexadecimal digit"))?;
        Ok(code * 16 + digit)
    })
}

/// The end of the number that starts at `at`, and whether it is digits only (with a sign at most).
#[inline]
pub(crate) fn number_end(bytes: &[u8], at: usize) -> Result<(usize, bool), SyntaxError> {
    let start = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut end = digits_end(bytes, start)?;
    if bytes.get(start) == Some(&b'0') && end > start + 1 {
        return Err(SyntaxError::new(start + 1, "leading zero in a number"));
    }
    let mut whole = true;
    if bytes.get(end) == Some(&b'.') {
        whole = false;
        end = digits_end(bytes, end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        whole = false;
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits_end(bytes, end + 1 + sign)?;
    }
    Ok((end, whole))
}

/// The end of a run of at least one digit.
#[inline]
fn digits_end(bytes: &[u8], start: usize) -> Result<usize, SyntaxError> {
    let mut end = start;
    while let Some(b'0'..=b'9') = bytes.get(end) {
        end += 1;
    }
    if end > start {
        return Ok(end);
    }
    let reason = if end < bytes.len() {
        "expected a digit"
    } else {
        UNEXPECTED_END
    };
    Err(SyntaxError::new(end, reason))
}

/// The end of the literal `word`, whose first byte is at `at`.
#[inline]
pub(crate) fn literal_end(bytes: &[u8], at: usize, word: &'static [u8]) -> Result<usize, SyntaxError> {
    let rest = bytes.get(at..).unwrap_or_default();
    if rest.starts_with(word) {
        return Ok(at + word.len());
    }
    let agreed = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
    let reason = if agreed < rest.len() {
        "unknown literal"
    } else {
        UNEXPECTED_END
    };
    Err(SyntaxError::new(at + agreed, reason))
}
