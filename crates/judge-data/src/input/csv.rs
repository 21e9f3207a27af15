//! Tables separated by commas, semicolons or tabs as JSON lines: their rows in the form in which all else is read.

mod quotes;

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

use csv::{ErrorKind, ReaderBuilder, StringRecord, Terminator};

use self::quotes::{Quotes, damaged};
use crate::files::foreign::{self, BOM};

/// What separates the cells of a table, by its name, else by its first lines; `None` for what is none. What begins as JSON or a file of
/// another format does is none, whatever its name.
pub(super) fn separator(head: &[u8], path: &Path) -> Option<u8> {
    if foreign::by_magic(head, path).is_some() {
        return None;
    }
    let head = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    if matches!(head.first(), None | Some(b'{' | b'[')) {
        return None;
    }
    let mut lines = head.splitn(3, |&byte| byte == b'\n');
    let found = foreign::separator(lines.next()?, lines.next());
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("tsv" | "tab") => Some(b'\t'),
        Some("csv") => found.or(Some(b',')),
        _ => found,
    }
}

/// A table as text: one JSON object for each row, with the columns in their order, on the line where the row begins. A cell is a text;
/// an empty one, and one that a short row lacks, is `null`. A column without a name is `Unnamed: N`, as pandas calls it.
pub(super) struct Lines<R> {
    rows: csv::Reader<Quotes<R>>,
    /// Names of the columns, as JSON.
    names: Vec<String>,
    row: StringRecord,
    /// The line that is written next.
    line: u64,
    text: String,
    /// How much of the text is given.
    given: usize,
}

impl<R> fmt::Debug for Lines<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("line", &self.line).finish_non_exhaustive()
    }
}

impl<R: BufRead> Lines<R> {
    /// Reads the names of the columns.
    ///
    /// # Errors
    /// A name that is there twice; as for a row.
    pub(super) fn open(mut table: R, separator: u8) -> io::Result<Self> {
        let has_cr = ends_in_cr(table.fill_buf()?);
        let rows = ReaderBuilder::new()
            .delimiter(separator)
            .terminator(Terminator::Any(b'\n'))
            .flexible(true)
            .has_headers(false)
            .from_reader(Quotes::new(table, separator, has_cr));
        let mut lines =
            Self { rows, names: Vec::new(), row: StringRecord::new(), line: 1, text: String::new(), given: 0 };
        if !lines.next_row()? {
            return Ok(lines);
        }
        if lines.row.get(0).is_some_and(|name| name.trim_start_matches('\u{feff}').starts_with("sep=")) {
            return Err(damaged(
                1,
                "expected names of columns, found a separator, as Excel alone reads it: delete the line",
            ));
        }
        let mut seen = HashSet::new();
        for (place, name) in lines.row.iter().enumerate() {
            let name = if place == 0 { name.trim_start_matches('\u{feff}') } else { name }.trim();
            let name = if name.is_empty() { format!("Unnamed: {place}") } else { name.to_owned() };
            if !seen.insert(name.clone()) {
                return Err(damaged(
                    1,
                    &format!("the column {name:?} is named twice; give each column a name of its own"),
                ));
            }
            lines.names.push(serde_json::Value::from(name).to_string());
        }
        Ok(lines)
    }

    /// Whether there was another row.
    fn next_row(&mut self) -> io::Result<bool> {
        self.rows.read_record(&mut self.row).map_err(|error| {
            let line = error.position().map_or(self.line, csv::Position::line);
            match error.into_kind() {
                ErrorKind::Io(source) => source,
                ErrorKind::Utf8 { err, .. } => {
                    damaged(line, &format!("the text is not UTF-8: {err}; save the table as UTF-8"))
                }
                other => damaged(line, &format!("{other:?}")),
            }
        })
    }

    /// Makes text of the next row; behind the last it stays empty.
    fn write_row(&mut self) -> io::Result<()> {
        self.given = 0;
        self.text.clear();
        if self.names.is_empty() || !self.next_row()? {
            return Ok(());
        }
        let line = self.row.position().map_or(self.line, csv::Position::line);
        if let Some(cell) = self.row.iter().skip(self.names.len()).find(|cell| !cell.is_empty()) {
            let (found, expected) = (self.row.len(), self.names.len());
            let cell: String = cell.chars().take(20).collect();
            return Err(damaged(
                line,
                &format!(
                    "expected {expected} cells, as the first line names, found {found}, the first too many {cell:?}; \
                 is a cell that holds the separator without its quotes?"
                ),
            ));
        }
        while self.line < line {
            self.text.push('\n');
            self.line += 1;
        }
        for (place, name) in self.names.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            self.text += name;
            self.text.push(':');
            match self.row.get(place).filter(|cell| !cell.is_empty()) {
                Some(cell) => self.text += &serde_json::Value::from(cell).to_string(),
                None => self.text += "null",
            }
        }
        self.text += "}\n";
        self.line += 1;
        Ok(())
    }
}

/// Whether lines end in CR alone, as the first does. Elsewhere a CR without LF behind it is text.
fn ends_in_cr(head: &[u8]) -> bool {
    let mut is_quoted = false;
    let end = head.iter().position(|&byte| {
        is_quoted ^= byte == b'"';
        !is_quoted && matches!(byte, b'\r' | b'\n')
    });
    // Behind the last byte that has been read there may be a LF.
    end.is_some_and(|end| head[end] == b'\r' && head.get(end + 1).is_some_and(|&next| next != b'\n'))
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() && !buffer.is_empty() {
            self.write_row()?;
        }
        let length = (&self.text.as_bytes()[self.given..]).read(buffer)?;
        self.given += length;
        Ok(length)
    }
}
