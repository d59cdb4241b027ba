//! A header's value: written down, or told where to find it.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::transport::{NoSecret, Secret};

/// A header's value: text, `{ env = "NAME" }` or `{ file = "PATH" }`, the latter two with an optional `prefix` such as `"Bearer "`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderText {
    /// This text. It is kept like a secret, since it may be one.
    Plain(Secret),
    /// What an environment variable holds when the transport is made.
    Variable {
        /// What stands before it.
        prefix: String,
        /// Its name.
        name: String,
    },
    /// What a file holds when the transport is made.
    File {
        /// What stands before it.
        prefix: String,
        /// Where it is.
        path: PathBuf,
    },
}

impl HeaderText {
    /// The value, and the part of it that is secret.
    pub(super) fn read(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(String, Secret), NoSecret> {
        let (prefix, secret) = match self {
            Self::Plain(text) => ("", text.clone()),
            Self::Variable { prefix, name } => {
                let text = variable(name).ok_or_else(|| NoSecret::Variable(name.clone()))?;
                if text.is_empty() {
                    return Err(NoSecret::Empty(format!("the environment variable {name}")));
                }
                (prefix.as_str(), Secret::new(text))
            }
            Self::File { prefix, path } => (prefix.as_str(), Secret::from_file(path)?),
        };
        Ok((format!("{prefix}{}", secret.expose()), secret))
    }
}

impl<'de> Deserialize<'de> for HeaderText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Reference {
            env: Option<String>,
            file: Option<PathBuf>,
            #[serde(default)]
            prefix: String,
        }
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = HeaderText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, { env = \"NAME\" } or { file = \"PATH\" }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<HeaderText, E> {
                Ok(HeaderText::Plain(Secret::new(text)))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HeaderText, A::Error> {
                let Reference { env, file, prefix } =
                    Reference::deserialize(MapAccessDeserializer::new(map))?;
                match (env, file) {
                    (Some(name), None) => Ok(HeaderText::Variable { prefix, name }),
                    (None, Some(path)) => Ok(HeaderText::File { prefix, path }),
                    _ => Err(de::Error::custom(
                        "a header's value comes from one place: env = \"NAME\" or file = \"PATH\"",
                    )),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<String, String> {
        let text: HeaderText = serde_json::from_str(json).map_err(|e| e.to_string())?;
        let variable = |name: &str| match name {
            "TOKEN" => Some("t0k".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        text.read(&variable)
            .map(|(value, _)| value)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_value_is_text_or_comes_from_one_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        std::fs::write(&path, "k3y\n").unwrap();
        assert_eq!(read(r#""application/json""#).as_deref(), Ok("application/json"));
        assert_eq!(
            read(r#"{"env":"TOKEN","prefix":"Bearer "}"#).as_deref(),
            Ok("Bearer t0k")
        );
        assert_eq!(read(&format!(r#"{{"file":{path:?}}}"#)).as_deref(), Ok("k3y"));
    }

    #[test]
    fn what_is_wrong_with_it_is_told() {
        for (json, told) in [
            (r#"{"env":"NONE"}"#, "the environment variable NONE is not set"),
            (
                r#"{"env":"EMPTY"}"#,
                "the environment variable EMPTY holds nothing",
            ),
            (r#"{"env":"TOKEN","file":"x"}"#, "comes from one place"),
            (r#"{"prefix":"x"}"#, "comes from one place"),
            (r#"{"enw":"TOKEN"}"#, "unknown field `enw`"),
            ("5", "expected a text, { env = \"NAME\" } or { file = \"PATH\" }"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
