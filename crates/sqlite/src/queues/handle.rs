//! Receipt handles.

use std::fmt;

/// Which receive of which message: the queue's id, the message's position in it, and a token of the receive. Queue ids and
/// positions are never used again, and the token is random, so a handle of another receive never fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) queue: i64,
    pub(crate) position: i64,
    pub(crate) token: i64,
}

const PART: usize = 16;

impl Handle {
    /// One of this queue's handles.
    pub(crate) fn parse(text: &str, queue: i64) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 3 * PART || !text.bytes().all(hex) {
            return None;
        }
        let part = |n: usize| {
            let digits = text.get(n * PART..(n + 1) * PART)?;
            u64::from_str_radix(digits, 16).ok().map(u64::cast_signed)
        };
        let handle = Self {
            queue: part(0)?,
            position: part(1)?,
            token: part(2)?,
        };
        (handle.queue == queue).then_some(handle)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}{:016x}", self.queue, self.position, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_text_is_a_handle() {
        let handle = Handle {
            queue: 7,
            position: 1 << 40,
            token: -5,
        };
        let text = handle.to_string();
        assert_eq!(Handle::parse(&text, 7), Some(handle));
        assert_eq!(Handle::parse(&text, 8), None);
        for bad in [
            "",
            "x",
            &text.to_uppercase(),
            &format!("{text}0"),
            &text[1..],
            &"é".repeat(24),
            &"+".repeat(48),
        ] {
            assert_eq!(Handle::parse(bad, 7), None, "{bad}");
        }
    }
}
