//! Text from outside, made fit for a log, a terminal and a database.

/// The most characters of a detail.
const MAX: usize = 1_000;

/// The text without what would move a terminal's cursor, break a line or turn the reading direction; at most 1,000 characters.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if is_plain(c) { c } else { ' ' })
        .take(MAX)
        .collect()
}

fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// The text with every occurrence of a secret taken out: what answers there may send back what it was sent.
pub(crate) fn without(text: String, secrets: &[&str]) -> String {
    let hidden = |text: String, secret: &&str| {
        if secret.is_empty() || !text.contains(secret) {
            text
        } else {
            text.replace(secret, "[hidden]")
        }
    };
    secrets.iter().fold(text, hidden)
}

/// Whether this can be a JSON object. A list would do for a Rust structure as well: its members, in their order.
pub(crate) fn is_object(json: &[u8]) -> bool {
    json.trim_ascii_start().first() == Some(&b'{')
}

/// Every byte but the unreserved characters of RFC 3986 as `%XX`.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_taken_out() {
        assert_eq!(clean("a\x1b[31m\r\nb\u{202e}c\u{85}d é"), "a [31m  b c d é");
        assert_eq!(clean(&"é".repeat(2_000)).chars().count(), 1_000);
    }

    #[test]
    fn secrets_are_taken_out_wherever_they_stand() {
        let text = without("Bearer abc.def and abc.def, x".to_owned(), &["abc.def", "", "zz"]);
        assert_eq!(text, "Bearer [hidden] and [hidden], x");
    }

    #[test]
    fn encoding_leaves_only_what_means_nothing() {
        assert_eq!(percent_encoded("aZ0-._~"), "aZ0-._~");
        assert_eq!(percent_encoded("a b/c:?é"), "a%20b%2Fc%3A%3F%C3%A9");
    }
}
