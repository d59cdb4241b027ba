//! `application/x-www-form-urlencoded`, as RFC 6749 (appendix B) wants it.

use std::collections::HashMap;

use super::percent::decode;

/// The parameters of a form, decoded. Those without a value count as omitted (RFC 6749 §3.2).
pub(crate) struct Form(HashMap<String, String>);

impl Form {
    /// Reads a form; an `Err` says what is wrong with it, in ASCII.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "the form is not UTF-8")?;
        let mut parameters = HashMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let malformed = "the form is not percent-encoded UTF-8";
            let name = decode(name, true).ok_or(malformed)?;
            let value = decode(value, true).ok_or(malformed)?;
            if parameters.insert(name, value).is_some() {
                return Err("a parameter is given more than once");
            }
        }
        parameters.retain(|_, value: &mut String| !value.is_empty());
        Ok(Self(parameters))
    }

    /// A parameter's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn forms() {
        let form = Form::parse(b"grant_type=client_credentials&scope=&x&client_id=a%2Bb+c&")
            .ok()
            .unwrap();
        assert_eq!(form.get("grant_type"), Some("client_credentials"));
        assert_eq!(form.get("client_id"), Some("a+b c"));
        assert_eq!(
            (form.get("scope"), form.get("x"), form.get("y")),
            (None, None, None)
        );
        for bad in [&b"a=1&a=2"[..], b"a=&a=", b"a=1&%61=2", b"a=%", b"a=%ff", b"\xff"] {
            assert!(Form::parse(bad).is_err(), "{bad:?}");
        }
    }
}
