//! Percent-encoding (RFC 3986 §2.1), and the form's `+` for a space.

/// The decoded text; `None` when an escape is not one or the bytes are not UTF-8.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'%' => {
                let [high, low, tail @ ..] = rest else { return None };
                bytes.push(hex(*high)? << 4 | hex(*low)?);
                rest = tail;
            }
            b'+' if plus_is_space => bytes.push(b' '),
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn escapes() {
        for (text, expected) in [
            ("", Some("")),
            ("a%20b+c", Some("a b c")),
            ("%c3%A9", Some("é")),
            ("%", None),
            ("%2", None),
            ("%zz", None),
            ("%+1", None),
            ("%ff", None),
            ("é", Some("é")),
        ] {
            assert_eq!(decode(text, true).as_deref(), expected, "{text}");
        }
        assert_eq!(decode("a+b", false).as_deref(), Some("a+b"));
    }
}
