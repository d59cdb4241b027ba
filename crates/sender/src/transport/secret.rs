//! Text that is shown to nobody.

use std::fmt;
use std::path::{Path, PathBuf};

/// A secret: it has no `Display`, is not serialised, and its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Where a client's id and secret are kept. What it is asked for stands in a file, so it answers at once.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// Both as they are now. An error is for people, and never repeats what was found.
    fn read(&self) -> Result<(String, Secret), String>;
}

/// The secret is not where it should be. The text names the place and never what was found there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// No such variable, or not text.
    #[error("the environment variable {0} is not set, or is not text")]
    Variable(String),
    /// No such file, or not readable.
    #[error("{path} cannot be read: {reason}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is nothing in it.
    #[error("{0} holds nothing")]
    Empty(String),
}

/// The most bytes of a file that a secret is read from.
const MAX_FILE: u64 = 64 * 1024;

impl Secret {
    /// This text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The content of a file, without the line end that editors put after it.
    pub fn from_file(path: &Path) -> Result<Self, NoSecret> {
        let failed = |reason: String| NoSecret::File {
            path: path.to_owned(),
            reason,
        };
        let size = std::fs::metadata(path).map_err(|e| failed(e.to_string()))?.len();
        if size > MAX_FILE {
            return Err(failed(format!(
                "it has {size} bytes, which is too much for a secret"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            return Err(NoSecret::Empty(path.display().to_string()));
        }
        Ok(Self::new(text))
    }

    /// The text itself: for the request that needs it, and nothing else.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_of_it() {
        let secret = Some(Secret::new("hunter2"));
        assert!(!format!("{secret:?} {secret:#?}").contains("hunter2"));
    }

    #[test]
    fn a_file_gives_its_text_without_the_line_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        for (content, text) in [("abc\n", "abc"), ("abc\r\n", "abc"), (" a b ", " a b ")] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(Secret::from_file(&path).unwrap().expose(), text);
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(Secret::from_file(&path), Err(NoSecret::Empty(_))));
        std::fs::write(&path, vec![b'a'; 70_000]).unwrap();
        assert!(matches!(Secret::from_file(&path), Err(NoSecret::File { .. })));
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(Secret::from_file(&path), Err(NoSecret::File { .. })));
        let nowhere = dir.path().join("nowhere");
        let error = Secret::from_file(&nowhere).unwrap_err();
        assert!(error.to_string().contains("nowhere cannot be read"), "{error}");
    }
}
