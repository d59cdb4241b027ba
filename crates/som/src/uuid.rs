//! UUIDs as SOM writes them.

/// Whether a text is a UUID in its hyphenated form, 8-4-4-4-12 hexadecimal digits in any letter case. Any version and
/// variant will do.
pub(crate) fn is_uuid(text: &str) -> bool {
    let Ok(bytes) = <&[u8; 36]>::try_from(text.as_bytes()) else {
        return false;
    };
    // Without a branch for each byte: the compiler looks at many together.
    let (mut fits, mut hyphens) = (true, 0);
    for byte in bytes {
        let hyphen = *byte == b'-';
        hyphens += u8::from(hyphen);
        fits &= byte.is_ascii_hexdigit() | hyphen;
    }
    fits && hyphens == 4 && [8, 13, 18, 23].iter().all(|at| bytes.get(*at) == Some(&b'-'))
}

#[cfg(test)]
mod tests {
    use super::is_uuid;

    #[test]
    fn what_a_uuid_is() {
        assert!(is_uuid("0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07"));
        assert!(is_uuid("0199A1C4-7A2E-7B31-8C55-4d2f9e6a1b07"));
        assert!(is_uuid("00000000-0000-0000-0000-000000000000"));
        for bad in [
            "",
            "0199a1c47a2e7b318c554d2f9e6a1b07",
            "{0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b0}",
            "urn:uuid:0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b07",
            "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b0g",
            "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b071",
            "0199a1c47-a2e-7b31-8c55-4d2f9e6a1b07",
            "0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b\u{e9}",
        ] {
            assert!(!is_uuid(bad), "{bad}");
        }
    }
}
