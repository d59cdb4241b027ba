//! What `storybus send` is given: files, or the standard input, in portions that fit into memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::anyhow;
use storybus_sender::message::{Key, Message, PayloadHash, Target};
use tokio::sync::mpsc;

use super::maker::Maker;
use super::{SendArgs, unusable};
use crate::exit::Failure;

/// How many bytes of messages a portion has at most, and how many messages.
const PORTION_BYTES: usize = 4 * 1024 * 1024;
const PORTION_MESSAGES: usize = 1_000;
/// How many bytes of files are kept between the check and the enqueueing; the others are read again.
const KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Messages that are enqueued together, each with the name of what it was read from.
#[derive(Debug, Default)]
pub(super) struct Portion {
    names: Vec<String>,
    messages: Vec<Message>,
    bytes: usize,
}

impl Portion {
    fn push(&mut self, name: String, message: Message) {
        self.bytes += message.body.len();
        self.names.push(name);
        self.messages.push(message);
    }

    fn is_full(&self) -> bool {
        self.bytes >= PORTION_BYTES || self.messages.len() >= PORTION_MESSAGES
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(super) fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", String::as_str)
    }

    pub(super) fn into_named(self) -> impl Iterator<Item = (String, Message)> {
        self.names.into_iter().zip(self.messages)
    }

    /// Takes the kept bytes for those given when they differ in nothing but a line end at their end, as a file and a line of NDJSON do. Whether
    /// they do.
    pub(super) fn mend(&mut self, place: usize, kept: PayloadHash) -> bool {
        let Some(message) = self.messages.get_mut(place) else {
            return false;
        };
        let bare = bare(&message.body);
        let ends: [&[u8]; 3] = [b"", b"\n", b"\r\n"];
        let same = ends
            .iter()
            .map(|end| [bare, *end].concat())
            .find(|body| *body != message.body && PayloadHash::of(body) == kept);
        match same {
            Some(body) => {
                message.body = body;
                true
            }
            None => false,
        }
    }
}

/// Without a line end at its end.
fn bare(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

/// Where messages come from.
#[derive(Debug)]
pub(super) enum Input {
    /// Files that were checked.
    Files {
        maker: Maker,
        checked: std::vec::IntoIter<Checked>,
    },
    /// A thread that reads the standard input.
    Standard(mpsc::Receiver<Result<Portion, Failure>>),
}

/// A file that was checked.
#[derive(Debug)]
pub(super) struct Checked {
    path: PathBuf,
    hash: PayloadHash,
    /// Unless there are too many to keep them.
    message: Option<Message>,
}

impl Input {
    /// Checks all files; of the standard input nothing is read yet.
    pub(super) fn open(args: &SendArgs, target: &Target) -> Result<Self, Failure> {
        let maker = Maker::new(args, target)?;
        let standard = args.files.iter().any(|file| file.as_os_str() == "-");
        if standard && args.files.len() > 1 {
            return Err(unusable("-", "the standard input is read alone, without files"));
        }
        if !standard && args.files.len() > 1 && args.key.is_some() {
            return Err(unusable(
                "--key",
                "it is of a single message, and there are several files",
            ));
        }
        if standard {
            let (to, from) = mpsc::channel(1);
            thread::spawn(move || {
                let sent = lines(BufReader::new(io::stdin().lock()), &maker, |portion| {
                    to.blocking_send(Ok(portion)).is_ok()
                });
                if let Err(failure) = sent {
                    // Nobody is left when the command has ended.
                    let _ = to.blocking_send(Err(failure));
                }
            });
            return Ok(Self::Standard(from));
        }
        let checked = check(&args.files, &maker)?;
        Ok(Self::Files {
            maker,
            checked: checked.into_iter(),
        })
    }

    /// The next portion.
    pub(super) async fn next(&mut self) -> Result<Option<Portion>, Failure> {
        match self {
            Self::Standard(from) => from.recv().await.transpose(),
            Self::Files { maker, checked } => {
                let mut portion = Portion::default();
                while !portion.is_full() {
                    let Some(file) = checked.next() else {
                        break;
                    };
                    let name = file.path.display().to_string();
                    let message = match file.message {
                        Some(message) => message,
                        None => maker.make(&name, read(&file.path, maker.most())?)?,
                    };
                    if PayloadHash::of(&message.body) != file.hash {
                        return Err(unusable(&name, "it was changed since it was checked"));
                    }
                    portion.push(name, message);
                }
                Ok((!portion.messages.is_empty()).then_some(portion))
            }
        }
    }
}

fn check(files: &[PathBuf], maker: &Maker) -> Result<Vec<Checked>, Failure> {
    let mut checked: Vec<Checked> = Vec::with_capacity(files.len());
    let mut keys: HashMap<Key, usize> = HashMap::new();
    let mut kept = 0;
    for (place, path) in files.iter().enumerate() {
        let name = path.display().to_string();
        let message = maker.make(&name, read(path, maker.most())?)?;
        let hash = PayloadHash::of(&message.body);
        let first = *keys.entry(message.key.clone()).or_insert(place);
        if let Some(other) = checked.get(first)
            && other.hash != hash
        {
            return Err(unusable(
                &name,
                format_args!(
                    "it has the message_id of {} and other content (SHA-256 {hash}, there {}): a changed message needs an id of its own",
                    other.path.display(),
                    other.hash
                ),
            ));
        }
        let size = message.body.len();
        // What is no regular file gives its content only once.
        let keep = kept + size <= KEPT_BYTES || !path.metadata().is_ok_and(|file| file.is_file());
        if keep {
            kept += size;
        }
        checked.push(Checked {
            path: path.clone(),
            hash,
            message: keep.then_some(message),
        });
    }
    Ok(checked)
}

/// A file's bytes, and one more than `most` when it has more.
fn read(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit(most)).read_to_end(&mut bytes))
        .map_err(|error| unusable(&name, format_args!("cannot read it: {error}")))?;
    if bytes.is_empty() {
        return Err(unusable(&name, "it is empty"));
    }
    Ok(bytes)
}

fn limit(most: usize) -> u64 {
    u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1)
}

/// Reads one message, or one a line, and hands them on in portions until nobody takes them.
fn lines(
    mut reader: impl BufRead,
    maker: &Maker,
    mut hand_on: impl FnMut(Portion) -> bool,
) -> Result<(), Failure> {
    const NAME: &str = "standard input";
    let broken = |error: io::Error| unusable(NAME, format_args!("cannot read it: {error}"));
    let mut portion = Portion::default();
    // Of a message that stands there alone, the empty lines before it are a part.
    let mut before = Vec::new();
    let mut several = false;
    let mut number = 0_u64;
    if !maker.is_for_bus() {
        // What a partner takes is of any form, and there is one key.
        let mut bytes = Vec::new();
        reader
            .take(limit(maker.most()))
            .read_to_end(&mut bytes)
            .map_err(broken)?;
        portion.push(NAME.to_owned(), maker.make(NAME, bytes)?);
        hand_on(portion);
        return Ok(());
    }
    loop {
        let mut line = Vec::new();
        // With its line end, and one byte more than a message may have.
        let most = limit(maker.most()) + 2;
        let read = reader
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut line)
            .map_err(broken)?;
        if read == 0 {
            break;
        }
        number += 1;
        let name = format!("line {number}");
        if line.iter().all(u8::is_ascii_whitespace) {
            if !several && before.len() < maker.most() {
                before.append(&mut line);
            }
            continue;
        }
        if !several && !is_whole(&line) {
            before.append(&mut line);
            let rest = limit(maker.most()).saturating_sub(u64::try_from(before.len()).unwrap_or(u64::MAX));
            reader.take(rest).read_to_end(&mut before).map_err(broken)?;
            portion.push(NAME.to_owned(), maker.make(NAME, before)?);
            hand_on(portion);
            return Ok(());
        }
        several = true;
        if maker.key.is_some() && !portion.messages.is_empty() {
            return Err(unusable(
                "--key",
                "it is of a single message, and the standard input has several",
            ));
        }
        let message = maker.make(&name, bare(&line).to_vec()).map_err(of_line)?;
        portion.push(name, message);
        if portion.is_full() && !hand_on(std::mem::take(&mut portion)) {
            return Ok(());
        }
    }
    if !several {
        return Err(unusable(NAME, "it is empty"));
    }
    if !portion.messages.is_empty() {
        hand_on(portion);
    }
    Ok(())
}

/// The parser counts lines too, and knows of one.
fn of_line(failure: Failure) -> Failure {
    let text = format!("{:#}", failure.error).replace("(line 1, column ", "(column ");
    Failure::new(failure.code, anyhow!(text))
}

/// Whether a line is JSON by itself.
fn is_whole(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::settings::BUS;
    use storybus_sender::envelope::MAX_BUS_MESSAGE;

    fn maker(key: Option<&str>) -> Maker {
        Maker {
            target: Target::new(BUS).unwrap(),
            key: key.map(|key| Key::new(key).unwrap()),
            group: None,
        }
    }

    fn envelope(n: u32) -> String {
        format!(
            r#"{{"message_id":"0199a1c4-7a2e-7b31-8c55-4d2f{n:08x}","correlation_id":"0199a1c4-7a2e-7b31-8c55-4d2f9e6a1b08"}}"#
        )
    }

    fn read_all(text: &str, key: Option<&str>) -> Result<Vec<(String, String)>, String> {
        let mut all = Vec::new();
        lines(text.as_bytes(), &maker(key), |portion| {
            all.extend(
                portion
                    .into_named()
                    .map(|(name, message)| (name, String::from_utf8(message.body).unwrap())),
            );
            true
        })
        .map(|()| all)
        .map_err(|failure| failure.error.to_string())
    }

    #[test]
    fn the_first_line_says_whether_every_line_is_a_message() {
        let (one, two) = (envelope(1), envelope(2));
        let all = read_all(&format!("\n{one}\r\n\n{two}"), None).unwrap();
        assert_eq!(
            all,
            [("line 2".to_owned(), one.clone()), ("line 4".to_owned(), two)]
        );
        let pretty = format!("\n{}\n", one.replacen('{', "{\n  ", 1));
        assert_eq!(
            read_all(&pretty, None).unwrap(),
            [("standard input".to_owned(), pretty)]
        );
        assert_eq!(
            read_all(&format!("{one}\n"), None).unwrap(),
            [("line 1".to_owned(), one)]
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let one = envelope(1);
        for (text, key, told) in [
            (String::new(), None, "standard input: it is empty"),
            (" \n\n".to_owned(), None, "standard input: it is empty"),
            (
                format!("{one}\nhunter2\n"),
                None,
                "line 2: the message is no SOM envelope: it is not JSON (column 1)",
            ),
            (
                "hunter2".to_owned(),
                None,
                "standard input: the message is no SOM envelope",
            ),
            (
                format!("{one}\n{one}"),
                Some("0199a1c4-7a2e-7b31-8c55-4d2f00000001"),
                "--key: it is of a single message",
            ),
            (one.clone(), Some("k"), "the envelope's message_id is 0199a1c4"),
            (
                format!("{one}\n\"{}\"", "x".repeat(MAX_BUS_MESSAGE)),
                None,
                "line 2: it has more than 240000 bytes",
            ),
            (
                "[".repeat(300_000),
                None,
                "standard input: it has more than 240000 bytes",
            ),
        ] {
            let wrong = read_all(&text, key).unwrap_err();
            assert!(wrong.starts_with(told) || wrong.contains(told), "{wrong}");
            assert!(!wrong.contains("hunter2"));
        }
    }

    #[test]
    fn a_long_input_comes_in_portions() {
        let text: String = (0..2_500).map(|n| format!("{}\n", envelope(n))).collect();
        let mut sizes = Vec::new();
        lines(text.as_bytes(), &maker(None), |portion| {
            sizes.push(portion.messages().len());
            true
        })
        .unwrap();
        assert_eq!(sizes, [1_000, 1_000, 500]);
    }

    #[test]
    fn a_line_end_at_the_end_makes_no_other_message() {
        let message = |end: &str| {
            maker(None)
                .make("f", format!("{}{end}", envelope(1)).into_bytes())
                .unwrap()
        };
        for (given, kept) in [("", "\n"), ("\n", ""), ("\r\n", "\n"), ("", "\r\n")] {
            let mut portion = Portion::default();
            portion.push("f".to_owned(), message(given));
            assert!(portion.mend(0, PayloadHash::of(&message(kept).body)));
            assert_eq!(portion.messages()[0], message(kept));
        }
        let mut portion = Portion::default();
        portion.push("f".to_owned(), message(""));
        assert!(!portion.mend(0, PayloadHash::of(b"other")));
    }
}
