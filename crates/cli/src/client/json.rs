//! JSON text laid out anew, token by token: numbers, escapes and the order of members stay as the producer wrote them.

/// How it is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// On one line, without white space.
    Line,
    /// Indented, for people.
    Indented,
}

/// Lays out a JSON text. What is not JSON comes back in some form, unharmed.
///
/// Control characters that a terminal would obey (JSON allows those from U+007F to U+009F unescaped) are escaped when it
/// is for people.
pub(crate) fn layout(text: &str, layout: Layout) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0_usize;
    let mut chars = text.chars().peekable();
    let indented = layout == Layout::Indented;
    let new_line = |out: &mut String, depth: usize| {
        if indented {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                out.push('"');
                let mut escaped = false;
                for c in chars.by_ref() {
                    if indented && commands(c) {
                        push_escaped(&mut out, c);
                    } else {
                        out.push(c);
                    }
                    match c {
                        '"' if !escaped => break,
                        _ => escaped = c == '\\' && !escaped,
                    }
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.peek().is_some_and(|c| c.is_ascii_whitespace()) {
                    chars.next();
                }
                if matches!(chars.peek(), Some('}' | ']')) {
                    out.extend(chars.next());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(if indented { ": " } else { ":" }),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

/// Text of unknown origin on one line, as a terminal may see it: what it would obey is escaped.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if commands(c) => push_escaped(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

fn push_escaped(out: &mut String, c: char) {
    out.push_str(&format!("\\u{:04x}", u32::from(c)));
}

/// What a terminal would obey.
fn commands(c: char) -> bool {
    c.is_control() || is_bidi(c)
}

/// Characters that turn the direction of text around: what is read is then not what is there.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_every_token() {
        let text = "{ \"b\" : 1.0e2,\n\t\"a\":[ ], \"c\": [1, {\"x\\\"y\": \"\\u00e9 { , : }\"}],\"b\":12345678901234567890}";
        assert_eq!(
            layout(text, Layout::Line),
            r#"{"b":1.0e2,"a":[],"c":[1,{"x\"y":"\u00e9 { , : }"}],"b":12345678901234567890}"#
        );
        let indented = layout(text, Layout::Indented);
        assert_eq!(indented.lines().nth(1), Some("  \"b\": 1.0e2,"));
        assert_eq!(indented.lines().nth(3), Some("  \"c\": ["));
        assert_eq!(layout(&indented, Layout::Line), layout(text, Layout::Line));
    }

    #[test]
    fn a_terminal_is_not_commanded() {
        assert_eq!(
            layout("\"a\u{9b}2J\u{7f}\u{202e}\"", Layout::Indented),
            "\"a\\u009b2J\\u007f\\u202e\""
        );
        assert_eq!(layout("\"a\u{9b}\"", Layout::Line), "\"a\u{9b}\"");
        assert_eq!(layout("\"back\\\\\"", Layout::Line), "\"back\\\\\"");
        layout("}]\"", Layout::Indented);
        assert_eq!(
            plain("a\u{1b}[2J\nb\u{9b}\u{2066}é"),
            "a\\u001b[2J\\nb\\u009b\\u2066é"
        );
    }
}
