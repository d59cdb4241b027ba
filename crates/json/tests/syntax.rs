//! What is JSON and what is not, and where it stops being so.

use storybus_json::{Document, Kind, SyntaxError};

#[track_caller]
fn refused(text: impl AsRef<[u8]>, offset: usize, reason: &'static str) {
    let text = text.as_ref();
    assert_eq!(
        Document::parse(text).err(),
        Some(SyntaxError { offset, reason }),
        "{}",
        String::from_utf8_lossy(text)
    );
}

const END: &str = "unexpected end of text";
const VALUE: &str = "expected a value";
const LONE: &str = "lone surrogate escape in a string";
const CONTROL: &str = "unescaped control character in a string";
const TRAILING: &str = "trailing data after the value";

#[test]
fn empty_texts() {
    refused("", 0, END);
    refused(" \n\r\t", 4, END);
}

#[test]
fn encoding() {
    refused(b"\xEF\xBB\xBF{}", 0, "byte order mark before the value");
    refused(b"\xEF\xBB", 0, "invalid UTF-8");
    refused(b" \xEF\xBB\xBF{}", 1, VALUE);
    refused(b"\"a\xFF\"", 2, "invalid UTF-8");
    refused(b"\"\xC0\xAF\"", 1, "invalid UTF-8");
    refused(b"\"\xED\xA0\x80\"", 1, "invalid UTF-8");
    refused(b"\"\xF4\x90\x80\x80\"", 1, "invalid UTF-8");
    refused(b"{}\xFF", 2, "invalid UTF-8");
    refused(b"\"\xE2\x82", 1, "invalid UTF-8");
    // UTF-16, with and without its mark.
    refused(b"\xFF\xFE[\0]\0", 0, "invalid UTF-8");
    refused(b"[\0]\0", 1, VALUE);
}

#[test]
fn the_first_fault_counts() {
    refused(b"[1,,\"\xFF\"]", 3, VALUE);
    refused(b"[\"\xFF\",,]", 2, "invalid UTF-8");
}

#[test]
fn surplus_and_lack() {
    refused("1 2", 2, TRAILING);
    refused("{}}", 2, TRAILING);
    refused("[]\0", 2, TRAILING);
    refused("\"a\" // why", 4, TRAILING);
    refused("[", 1, END);
    refused("[1", 2, END);
    refused("[1,", 3, END);
    refused("{", 1, END);
    refused("{\"a\"", 4, END);
    refused("{\"a\":", 5, END);
    refused("{\"a\":1", 6, END);
    refused("{\"a\":1,", 7, END);
}

#[test]
fn containers() {
    refused("]", 0, VALUE);
    refused("[,]", 1, VALUE);
    refused("[1,]", 3, VALUE);
    refused("[1 2]", 3, "expected a comma or the end of the array");
    refused("[1}", 2, "expected a comma or the end of the array");
    refused("{\"a\":1]", 6, "expected a comma or the end of the object");
    refused(
        "{\"a\":1 \"b\":2}",
        7,
        "expected a comma or the end of the object",
    );
    refused("{a:1}", 1, "expected a member name or the end of the object");
    refused("{,}", 1, "expected a member name or the end of the object");
    refused("{1:1}", 1, "expected a member name or the end of the object");
    refused("{\"a\":1,}", 7, "expected a member name");
    refused("{\"a\":1,null:1}", 7, "expected a member name");
    refused("{\"a\" 1}", 5, "expected a colon");
    refused("{\"a\"}", 4, "expected a colon");
    refused("{\"a\":}", 5, VALUE);
    refused("{\"a\"::1}", 5, VALUE);
}

#[test]
fn white_space_is_four_characters() {
    assert!(Document::parse(b" \t\r\n[ \t\r\n1 \t\r\n, {\"a\" \n:\t2\r} ] \t\r\n").is_ok());
    refused("[1,\x0C2]", 3, VALUE);
    refused("\x0B1", 0, VALUE);
    refused("\u{A0}1", 0, VALUE);
    refused("1\u{2028}", 1, TRAILING);
    refused("\u{FEFF}1", 0, "byte order mark before the value");
}

#[test]
fn literals() {
    refused("tru", 3, END);
    refused("trux", 3, "unknown literal");
    refused("True", 0, VALUE);
    refused("nul]", 3, "unknown literal");
    refused("falsey", 5, TRAILING);
    refused("NaN", 0, VALUE);
    refused("-NaN", 1, "expected a digit");
    refused("nan", 1, "unknown literal");
    refused("Infinity", 0, VALUE);
    refused("-Infinity", 1, "expected a digit");
    refused("undefined", 0, VALUE);
    refused("'a'", 0, VALUE);
}

#[test]
fn numbers() {
    for text in [
        "0",
        "-0",
        "1",
        "-10",
        "0.0",
        "1.50",
        "1e5",
        "1E+05",
        "1e-00",
        "0e0",
        "-0.0E-0",
        "123456789012345678901234567890.5",
    ] {
        assert!(Document::parse(text.as_bytes()).is_ok(), "{text}");
    }
    refused("-", 1, END);
    refused("- 1", 1, "expected a digit");
    refused("+1", 0, VALUE);
    refused(".5", 0, VALUE);
    refused("1.", 2, END);
    refused("[1.]", 3, "expected a digit");
    refused("1.e5", 2, "expected a digit");
    refused("1e", 2, END);
    refused("1e+", 3, END);
    refused("1e+-1", 3, "expected a digit");
    refused("1e1.5", 3, TRAILING);
    refused("01", 1, "leading zero in a number");
    refused("-012", 2, "leading zero in a number");
    refused("00", 1, "leading zero in a number");
    refused("0x10", 1, TRAILING);
    refused("1_000", 1, TRAILING);
    refused("1.5.5", 3, TRAILING);
    refused("\u{FF11}", 0, VALUE);
}

#[test]
fn strings() {
    refused("\"", 1, END);
    refused("\"abc", 4, END);
    refused("\"abc\\", 5, END);
    refused("\"abc\\\"", 6, END);
    refused("\"\\x41\"", 2, "unknown escape in a string");
    refused("\"\\'\"", 2, "unknown escape in a string");
    refused("\"\\U0041\"", 2, "unknown escape in a string");
    refused("\"\\u\"", 3, "expected a hexadecimal digit");
    refused("\"\\u00g0\"", 5, "expected a hexadecimal digit");
    refused("\"\\u+041\"", 3, "expected a hexadecimal digit");
    refused("\"\\u004", 6, END);
}

#[test]
fn control_characters_wherever_they_stand_in_a_word() {
    for control in (0..0x20).map(char::from) {
        for length in 0..20 {
            let padding = "\u{7f}".repeat(length);
            refused(format!("\"{padding}{control}é{padding}\""), length + 1, CONTROL);
            refused(format!("\"\\n{padding}{control}\""), length + 3, CONTROL);
        }
    }
    assert!(Document::parse("\"\u{7f}\u{80}\u{9f}\u{2028}\"".as_bytes()).is_ok());
}

#[test]
fn surrogates() {
    for lone in [
        "\\ud800",
        "\\uDFFF",
        "\\udc00\\ud800",
        "\\ud800\\ud800",
        "\\ud800x",
        "\\ud800\\n",
        "\\uD800\\u0041",
    ] {
        refused(format!("\"ab{lone}\""), 3, LONE);
        refused(format!("{{\"ab{lone}\":1}}"), 4, LONE);
    }
    refused("\"\\ud83d\\ude00\\ude00\"", 13, LONE);
    refused("\"\\ud800\\u00", 11, END);
    let document = Document::parse(br#""\uD83D\ude00\ud800\udc00\uDBFF\uDFFF\ud7ff\ue000""#).unwrap();
    assert_eq!(
        document.root().as_str(),
        Some("😀\u{10000}\u{10FFFF}\u{D7FF}\u{E000}")
    );
}

#[test]
fn escapes() {
    let document = Document::parse(br#""\"\\\/\b\f\n\r\t\u0000\u00e9\uFFFF plain \u005C\u0022""#).unwrap();
    assert_eq!(
        document.root().as_str(),
        Some("\"\\/\u{8}\u{c}\n\r\t\0é\u{FFFF} plain \\\"")
    );
}

#[test]
fn every_proper_prefix_ends_too_early() {
    let text =
        "{\"a\\n\":[1.5e+3,true,{\"é😀\":null}],\"b\":\"\\u00e9\\ud83d\\ude00x\",\"c\":false}".as_bytes();
    assert!(Document::parse(text).is_ok());
    for end in 0..text.len() {
        let error = Document::parse(&text[..end]).unwrap_err();
        if error.reason == "invalid UTF-8" {
            assert!(std::str::from_utf8(&text[..end]).is_err());
        } else if error.reason == LONE {
            assert!(end - error.offset < 12, "a pair cut short");
        } else {
            assert_eq!(
                error,
                SyntaxError {
                    offset: end,
                    reason: END
                },
                "{end}"
            );
        }
    }
}

#[test]
fn any_depth() {
    let open = vec![b'['; 240_000];
    refused(&open, 240_000, END);
    refused("{\"\":".repeat(60_000), 240_000, END);
    refused([&open[..], b"x"].concat(), 240_000, VALUE);

    let text = format!("{}{}", "[".repeat(120_000), "]".repeat(120_000));
    assert_eq!(Document::parse(text.as_bytes()).unwrap().depth(), 120_000);
    let text = format!("{}1{}", "{\"a\":[".repeat(30_000), "]}".repeat(30_000));
    assert_eq!(Document::parse(text.as_bytes()).unwrap().depth(), 60_000);
}

#[test]
fn errors_read_as_fragments() {
    let error = Document::parse(b"[1,]").unwrap_err();
    assert_eq!(error.to_string(), "expected a value at byte 3");
}

#[test]
fn a_scalar_is_a_text() {
    assert!(matches!(
        Document::parse(b" null ").unwrap().root().kind(),
        Kind::Null
    ));
    assert!(matches!(
        Document::parse(b"true").unwrap().root().kind(),
        Kind::Bool(true)
    ));
    assert!(matches!(
        Document::parse(b"false").unwrap().root().kind(),
        Kind::Bool(false)
    ));
    assert!(matches!(
        Document::parse(b"\"\"").unwrap().root().kind(),
        Kind::String("")
    ));
}
