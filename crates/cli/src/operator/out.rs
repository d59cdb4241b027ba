//! What the verbs print: a document as JSON, or a table, or fields. Nothing that a terminal would obey comes through.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use anyhow::Context;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::api::Document;
use crate::client::json::{Layout, layout, plain};
use crate::exit::Failure;

/// The widest a cell of a table may be, but for the last of a row: three ids.
const WIDEST: usize = 66;

/// Prints text. A reader that has gone is no failure.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write").into())
        }
        _ => Ok(()),
    }
}

/// Prints a document.
pub(super) fn document(document: &Document) -> Result<(), Failure> {
    if document.0.trim().is_empty() {
        return Ok(());
    }
    text(&format!("{}\n", layout(document.0.trim(), Layout::Indented)))
}

/// Prints a value that the bus did not write itself.
pub(crate) fn value(value: &Value) -> Result<(), Failure> {
    document(&Document(value.to_string()))
}

/// One line of JSON, with nothing in it that a terminal would obey.
pub(crate) fn line(json: &str) -> String {
    layout(&layout(json, Layout::Indented), Layout::Line)
}

/// Tells something beside the result.
pub(crate) fn note(text: &str) {
    // Nobody is left to tell when stderr is gone.
    let _ = writeln!(io::stderr(), "{text}");
}

/// How a cell looks where there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
    Faint,
}

/// A cell of a table, or the value of a field.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        Self {
            text: plain(text.as_ref()),
            tone: Tone::Plain,
        }
    }

    #[must_use]
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// A member of an object, in words: `-` for what is not there.
    pub(crate) fn of(object: &Value, member: &str) -> Self {
        Self::new(words(object.get(member).unwrap_or(&Value::Null)))
    }

    /// A list, of which an empty one means something.
    pub(crate) fn list(object: &Value, member: &str, empty: &str) -> Self {
        match object.get(member) {
            Some(Value::Array(entries)) if entries.is_empty() => Self::new(empty).toned(Tone::Faint),
            other => Self::new(words(other.unwrap_or(&Value::Null))),
        }
    }
}

/// A value in words.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => entries.iter().map(words).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A table with a line of headings.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Prints it; `none` when it has no rows.
    pub(crate) fn print(&self, none: &str) -> Result<(), Failure> {
        if self.rows.is_empty() {
            note(none);
            return Ok(());
        }
        // What goes into a pipe is looked through, and not looked at.
        let widest = if io::stdout().is_terminal() {
            WIDEST
        } else {
            usize::MAX
        };
        text(&self.laid_out(coloured(), widest))
    }

    fn laid_out(&self, coloured: bool, widest: usize) -> String {
        let last = self.head.len().saturating_sub(1);
        let mut cells: Vec<Vec<Cell>> = vec![
            self.head
                .iter()
                .map(|h| Cell::new(h).toned(Tone::Faint))
                .collect(),
        ];
        cells.extend(self.rows.iter().map(|row| {
            let cut = |(n, cell): (usize, &Cell)| {
                let text = if n == last {
                    cell.text.clone()
                } else {
                    cut(&cell.text, widest)
                };
                Cell {
                    text,
                    tone: cell.tone,
                }
            };
            row.iter().enumerate().map(cut).collect()
        }));
        let mut out = String::new();
        for row in &cells {
            for (n, cell) in row.iter().enumerate() {
                out.push_str(&painted(cell, coloured));
                if n < row.len() - 1 {
                    let widest = cells
                        .iter()
                        .filter_map(|r| r.get(n))
                        .map(|c| c.text.width())
                        .max()
                        .unwrap_or(0);
                    out.extend(std::iter::repeat_n(' ', widest + 2 - cell.text.width()));
                }
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
        out
    }
}

/// A row of a table that has no end: cells at least this wide.
pub(crate) fn columns(cells: &[Cell], widths: &[usize]) -> String {
    let coloured = coloured();
    let mut out = String::new();
    for (n, cell) in cells.iter().enumerate() {
        out.push_str(&painted(cell, coloured));
        if n < cells.len() - 1 {
            let padding = widths
                .get(n)
                .copied()
                .unwrap_or(0)
                .saturating_sub(cell.text.width());
            out.extend(std::iter::repeat_n(' ', padding + 2));
        }
    }
    out
}

/// Prints an object's fields, one a line.
pub(crate) fn fields(fields: &[(&str, Cell)]) -> Result<(), Failure> {
    text(&laid_out_fields(fields, coloured()))
}

fn laid_out_fields(fields: &[(&str, Cell)], coloured: bool) -> String {
    let widest = fields.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, cell) in fields {
        let padding = " ".repeat(widest - name.width() + 2);
        let name = painted(&Cell::new(name).toned(Tone::Faint), coloured);
        out.push_str(&format!("{name}{padding}{}\n", painted(cell, coloured)));
    }
    out
}

/// Commands to go on with, each with what it is for; or only a question to ask.
pub(crate) fn next(steps: &[(String, &str)]) -> Result<(), Failure> {
    if steps.is_empty() {
        return Ok(());
    }
    let widest = steps
        .iter()
        .map(|(command, _)| command.width())
        .max()
        .unwrap_or(0);
    let mut out = String::from("\nNext:\n");
    for (command, purpose) in steps {
        if command.is_empty() {
            out.push_str(&format!("  {purpose}\n"));
            continue;
        }
        let padding = " ".repeat(widest - command.width() + 2);
        out.push_str(&format!("  {}{padding}{purpose}\n", plain(command)));
    }
    text(&out)
}

fn cut(text: &str, widest: usize) -> String {
    if text.width() <= widest {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if out.width() >= widest - 1 {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

fn painted(cell: &Cell, coloured: bool) -> String {
    let code = match cell.tone {
        Tone::Plain => return cell.text.clone(),
        Tone::Good => "32",
        Tone::Warn => "33",
        Tone::Bad => "31",
        Tone::Faint => "2",
    };
    if !coloured {
        return cell.text.clone();
    }
    format!("\u{1b}[{code}m{}\u{1b}[0m", cell.text)
}

/// Colour is for a terminal that knows it, unless somebody does not want it (no-color.org).
fn coloured() -> bool {
    static COLOURED: OnceLock<bool> = OnceLock::new();
    *COLOURED.get_or_init(|| {
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|t| t == "dumb");
        io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
    })
}

/// A span of seconds in its largest unit.
pub(crate) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A number with its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Writes a line to stdout; whether somebody still reads.
pub(crate) fn read_on(line: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::Error::new(error).context("cannot write").into()),
    }
}

/// Asks on a terminal whether to go on; elsewhere `--yes` is needed.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::unusable(format!(
            "{}: give --yes to do it; nobody can be asked here",
            plain(what)
        )));
    }
    let _ = write!(io::stderr(), "{}? [y/N] ", plain(what));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::unusable("nothing was done"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_stand_below_each_other_whatever_is_in_them() {
        let mut table = Table::new(&["NAME", "N", "WHY"]);
        table.row(vec![Cell::new("日本"), Cell::new("1"), Cell::new("")]);
        table.row(vec![
            Cell::new("a\u{1b}[31m\nb"),
            Cell::new("10").toned(Tone::Bad),
            Cell::new("x"),
        ]);
        assert_eq!(
            table.laid_out(false, WIDEST),
            "NAME            N   WHY\n日本            1\na\\u001b[31m\\nb  10  x\n"
        );
        assert!(table.laid_out(true, WIDEST).contains("\u{1b}[31m10\u{1b}[0m"));
    }

    #[test]
    fn long_cells_are_cut_but_the_last() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![Cell::new("x".repeat(70)), Cell::new("y".repeat(70))]);
        let text = table.laid_out(false, WIDEST);
        assert!(text.contains(&format!("{}…  {}", "x".repeat(65), "y".repeat(70))));
        assert!(table.laid_out(false, usize::MAX).contains(&"x".repeat(70)));
    }

    #[test]
    fn values_in_words() {
        let object = json!({"n": null, "t": true, "l": ["a", "b"], "e": [], "s": "x", "i": 3});
        for (member, text) in [
            ("n", "-"),
            ("t", "yes"),
            ("l", "a,b"),
            ("s", "x"),
            ("i", "3"),
            ("none", "-"),
        ] {
            assert_eq!(Cell::of(&object, member).text, text);
        }
        assert_eq!(Cell::list(&object, "e", "all").text, "all");
        assert_eq!(span(90), "90 s");
        assert_eq!(span(7199), "119 min");
        assert_eq!(span(3 * 3600), "3 h");
        assert_eq!(span(14 * 86_400), "14 d");
    }
}
