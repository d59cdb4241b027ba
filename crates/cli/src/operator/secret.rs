//! A secret that the bus shows once: on the terminal, or in a file that only its owner reads.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use serde_json::Value;

use super::api::Document;
use super::out::{self, Cell, Tone};
use crate::exit::{self, Failure};
use crate::private_file;

/// Where a new secret goes.
#[derive(Debug, Clone, Args)]
pub struct SecretFile {
    /// Write the secret to a new file, mode 600, instead of showing it; --client-secret-file reads it
    #[arg(long, value_name = "FILE")]
    pub(super) secret_file: Option<PathBuf>,
}

/// Whether the file can take the secret, before there is one.
pub(super) fn check(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    if file.exists() {
        // It may hold a secret that is in use.
        return Err(Failure::unusable(format!(
            "{} is there already; give the name of a new file",
            file.display()
        )));
    }
    private_file::check(file).map_err(|e| Failure::unusable(format!("cannot write {}: {e}", file.display())))
}

/// Hands over the secret of a document, once.
pub(super) fn handed_over(
    made: &Document,
    file: Option<&Path>,
    json: bool,
    fields: impl FnOnce(&Value) -> Vec<(&'static str, Cell)>,
) -> Result<(), Failure> {
    let mut value = made.value()?;
    let secret = value
        .as_object_mut()
        .and_then(|o| o.remove("client_secret"))
        .and_then(|s| s.as_str().map(str::to_owned))
        .ok_or_else(|| anyhow!("the answer has no secret; is the URL right?"))?;
    let secret_id = Cell::of(&value, "secret_id");
    if let Some(file) = file {
        private_file::write(file, format!("{secret}\n").as_bytes()).map_err(|e| {
            Failure::new(
                exit::FAILED,
                anyhow!(
                    "it was made, but its secret cannot be written to {}: {e}\n  The secret is lost: storybus secrets create makes another, storybus secrets delete removes this one",
                    file.display()
                ),
            )
        })?;
        if json {
            return out::value(&value);
        }
    } else if json {
        return out::document(made);
    }
    let mut all = fields(&value);
    all.push(("secret id", secret_id));
    all.push((
        "secret",
        match file {
            Some(file) => Cell::new(format!("in {}", file.display())),
            None => Cell::new(&secret).toned(Tone::Warn),
        },
    ));
    out::fields(&all)?;
    if file.is_none() {
        out::note("The secret is shown this once; the bus keeps only a hash of it.");
    }
    Ok(())
}
