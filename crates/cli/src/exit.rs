//! How the process ends: documented in `storybus --help`.

use std::process::ExitCode;

/// Everything was done. A publish: accepted, or a duplicate of what was accepted before. A send: delivered.
pub const DONE: u8 = 0;
/// It failed; the message says why.
pub const FAILED: u8 = 1;
/// Nothing was begun: the command line, the data directory, the address or a file cannot be used.
pub const UNUSABLE: u8 = 2;
/// The bus refused: the same again will be refused again. A send: one or more were refused, whatever became of the others.
pub const REFUSED: u8 = 3;
/// No final answer in time: the same again later is safe. A send: none was refused, but some are kept in the outbox, parked or pending.
pub const GAVE_UP: u8 = 4;
/// The store failed while the bus ran: nothing more could be promised. Start it again when the disk is well.
pub const STORE_FAILED: u8 = 5;
/// A job that was waited for has failed or was cancelled.
pub const JOB_NOT_DONE: u8 = 6;
/// The answer was lost, and the same again might do it twice: look first.
pub const UNKNOWN: u8 = 7;

/// A job that was waited for is done, and had nothing to move.
pub const NOTHING_MOVED: u8 = 8;

/// The text for `--help`.
pub const HELP: &str = "Exit codes:
  0  done (publish: accepted, or a duplicate of what was accepted before)
  1  failed; the message says why
  2  nothing was begun: the command line, the data directory, the address or a file cannot be used
  3  the bus refused; the same again will be refused again
  4  gave up without a final answer; the same again later is safe (send: the outbox keeps the message)
  5  the store failed while the bus ran; start it again when the disk is well
  6  a job that was waited for has failed or was cancelled
  7  nobody knows whether it was done: the answer was lost, and it might be done twice. The message says where to look
  8  a job that was waited for is done and has moved nothing: nothing was there that fits";

/// An error with the code that the process ends with.
#[derive(Debug)]
pub struct Failure {
    /// The code.
    pub code: u8,
    /// What happened, whose fault it is, what to do.
    pub error: anyhow::Error,
}

impl Failure {
    /// With this code.
    pub fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code,
            error: error.into(),
        }
    }

    /// Nothing was begun.
    pub fn unusable(message: impl std::fmt::Display) -> Self {
        Self::new(UNUSABLE, anyhow::anyhow!("{message}"))
    }

    /// The code for the operating system.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(FAILED, error)
    }
}
