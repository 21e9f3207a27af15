//! Rows of a file: objects whatever the file's layout, their ids, which column of them holds which field, and what its value says.

pub(crate) mod body;
pub(crate) mod cell;
pub(crate) mod columns;
pub(crate) mod cut;
pub(crate) mod digest;
pub(crate) mod field;
pub(crate) mod grades;
pub(crate) mod human;
pub(crate) mod ids;
pub(crate) mod messages;
pub(crate) mod options;
pub(crate) mod pair_verdict;
pub(crate) mod reading;
pub(crate) mod row;
pub(crate) mod texts;

use std::io::BufRead;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::files::foreign::BOM;
use crate::{Error, Input, InputReader, IntoInput, Place, Row, files::foreign};

/// How a file holds its objects, whatever its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One JSON array of objects.
    Array,
    /// One object per line; also a file that is a single object, on one line or on several.
    Lines,
}

/// The objects of a JSON or JSON lines file, one at a time: memory is that of the longest row.
///
/// The layout is told by the first character that is not white space. A byte order mark, CRLF and blank lines are
/// accepted. After the first error there are no further rows.
#[derive(Debug)]
pub struct Rows<R = InputReader> {
    reader: R,
    path: Arc<Path>,
    layout: Layout,
    /// Line and column of the next byte, from 1.
    line: usize,
    column: usize,
    state: State,
    peeked: Option<Row>,
    /// How many more rows are given.
    left: usize,
    is_of_table: bool,
}

const OVER_LINES: &str =
    "the object goes over several lines and another one follows; expected one object a line: `jq -c .` writes them so";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Between,
    Done,
}

impl Rows {
    /// Whether they are those of a table (CSV, TSV, Parquet).
    pub(crate) fn is_of_table(&self) -> bool {
        self.is_of_table
    }

    /// Opens a path, `-` for standard input, or an [`Input`] that is read several times.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened or read; as [`new`](Self::new).
    pub fn open(input: impl IntoInput) -> Result<Self, Error> {
        input.into_input()?.rows()
    }
}

impl Input {
    /// The rows, from the first.
    ///
    /// # Errors
    /// [`Error::InputChanged`] if the file is not what it was when it was opened; [`Error::Io`]; as [`Rows::new`]; whatever is
    /// wrong with the rows before a part.
    pub fn rows(&self) -> Result<Rows, Error> {
        let reader = self.reader()?;
        let is_of_table = reader.is_of_table();
        let mut rows = Rows { is_of_table, ..Rows::new(reader, self.path())? };
        if let Some(part) = self.part() {
            rows.keep(part.rows.clone())?;
        }
        Ok(rows)
    }
}

impl<R: BufRead> Rows<R> {
    /// Reads JSON from `reader`; `path` is what errors call it. A table (CSV, TSV, Parquet) is read by [`open`](Rows::open) alone.
    ///
    /// # Errors
    /// [`Error::Io`] if nothing can be read; [`Error::NotJson`] for a file whose first bytes are those of another format.
    pub fn new(reader: R, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = Arc::from(path.as_ref());
        let mut rows = Self {
            reader,
            path,
            layout: Layout::Lines,
            line: 1,
            column: 1,
            state: State::Start,
            peeked: None,
            left: usize::MAX,
            is_of_table: false,
        };
        let head = rows.reader.fill_buf().map_err(Error::reading(&rows.path))?;
        if let Some(error) = foreign::by_magic(head, &rows.path) {
            return Err(error);
        }
        if rows.byte()? == Some(BOM[0]) {
            for &byte in BOM {
                if rows.byte()? != Some(byte) {
                    return Err(Error::Utf8 { place: rows.place(), column: rows.column });
                }
                rows.reader.consume(1); // the mark is not counted as a column
            }
        }
        rows.skip_space()?;
        if rows.byte()? == Some(b'[') {
            rows.layout = Layout::Array;
            rows.advance(b'[');
        }
        Ok(rows)
    }

    /// How the file holds its objects.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next row, which stays the next row; `None` at the end. What a file holds can be told from it.
    ///
    /// # Errors
    /// As the iterator's.
    pub fn peek(&mut self) -> Result<Option<&Row>, Error> {
        if self.peeked.is_none() {
            self.peeked = self.next().transpose()?;
        }
        Ok(self.peeked.as_ref())
    }

    /// Gives only these of the rows from here on. What is before them is passed over; of lines, nothing but their ends is looked at.
    pub(crate) fn keep(&mut self, rows: Range<usize>) -> Result<(), Error> {
        let mut passed = Vec::new();
        for _ in 0..rows.start {
            let is_line = self.layout == Layout::Lines && self.state == State::Between && self.peeked.is_none();
            let was_there =
                if is_line { self.read_line(&mut passed)?.is_some() } else { self.next().transpose()?.is_some() };
            if !was_there {
                break;
            }
        }
        self.left = rows.len();
        Ok(())
    }

    fn place(&self) -> Place {
        Place { path: self.path.to_path_buf(), line: self.line }
    }

    fn byte(&mut self) -> Result<Option<u8>, Error> {
        match self.reader.fill_buf() {
            Ok(bytes) => Ok(bytes.first().copied()),
            Err(source) => Err(Error::reading(&self.path)(source)),
        }
    }

    /// Consumes `byte`, which `byte` has shown.
    fn advance(&mut self, byte: u8) {
        self.reader.consume(1);
        if byte == b'\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
    }

    fn skip_space(&mut self) -> Result<(), Error> {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.byte()? {
            self.advance(byte);
        }
        Ok(())
    }

    fn syntax<T>(&mut self, expected: &'static str) -> Result<T, Error> {
        let found = self.byte()?.map(char::from);
        Err(Error::Syntax { place: self.place(), column: self.column, expected, found })
    }

    fn next_element(&mut self) -> Result<Option<Row>, Error> {
        self.skip_space()?;
        match (self.state, self.byte()?) {
            (State::Start, Some(b']')) => return self.end_of_array(),
            (State::Start, _) => {}
            (_, Some(b']')) => return self.end_of_array(),
            (_, Some(b',')) => {
                self.advance(b',');
                self.skip_space()?;
            }
            _ => return self.syntax("`,` or `]` after an array element"),
        }
        let (place, column) = (self.place(), self.column);
        let text = self.element()?;
        if text.is_empty() {
            return self.syntax("an object");
        }
        self.state = State::Between;
        parse(place, column, &text).map(Some)
    }

    /// The bytes up to the comma or bracket that ends this element, without white space at the end. What is
    /// between them is for the JSON parser to judge, so that it can say where it is wrong.
    fn element(&mut self) -> Result<Vec<u8>, Error> {
        let (mut text, mut depth, mut in_string, mut escaped) = (Vec::new(), 0_usize, false, false);
        while let Some(byte) = self.byte()? {
            if in_string {
                in_string = escaped || byte != b'"';
                escaped = !escaped && byte == b'\\';
            } else {
                match byte {
                    b',' | b']' | b'}' if depth == 0 => break,
                    b'"' => in_string = true,
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth -= 1,
                    _ => {}
                }
            }
            text.push(byte);
            self.advance(byte);
        }
        text.truncate(text.trim_ascii_end().len());
        Ok(text)
    }

    fn end_of_array(&mut self) -> Result<Option<Row>, Error> {
        self.advance(b']');
        self.skip_space()?;
        match self.byte()? {
            None => Ok(None),
            Some(_) => self.syntax("the end of the file after the array"),
        }
    }

    /// Where the next line that is not blank begins, which takes the place of `text`; `None` at the end.
    fn read_line(&mut self, text: &mut Vec<u8>) -> Result<Option<(Place, usize)>, Error> {
        loop {
            self.skip_space()?;
            let (place, column) = (self.place(), self.column);
            text.clear();
            if self.append_line(text)? == 0 {
                return Ok(None);
            }
            // Files that were put together have a mark within. It is not counted as a column.
            while text.starts_with(BOM) {
                text.drain(..BOM.len());
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some((place, column)));
            }
        }
    }

    fn next_line(&mut self) -> Result<Option<Row>, Error> {
        let mut text = Vec::new();
        let Some((place, column)) = self.read_line(&mut text)? else { return Ok(None) };
        let row = parse(place.clone(), column, &text);
        if self.state == State::Start && row.as_ref().is_err_and(Error::is_unfinished) {
            return self.only_object(place, column, text);
        }
        self.state = State::Between;
        row.map(Some)
    }

    /// The first line is the beginning of a longer object: takes more lines until it is whole or plainly wrong.
    /// Each try parses twice as much as the last, so the work stays linear.
    fn only_object(&mut self, place: Place, column: usize, mut text: Vec<u8>) -> Result<Option<Row>, Error> {
        loop {
            let enough = 2 * text.len();
            let mut added = 0;
            while text.len() < enough {
                match self.append_line(&mut text)? {
                    0 => break,
                    n => added += n,
                }
            }
            let row = parse(place.clone(), column, &text);
            if added == 0 || !row.as_ref().is_err_and(Error::is_unfinished) {
                self.state = State::Between;
                let is_followed = row.is_err() && is_followed_by_another(&text);
                return if is_followed { Err(Error::at(&place, OVER_LINES)) } else { row.map(Some) };
            }
        }
    }

    /// Appends the rest of the line, its end included, and says how many bytes that was.
    fn append_line(&mut self, text: &mut Vec<u8>) -> Result<usize, Error> {
        let read = self.reader.read_until(b'\n', text).map_err(Error::reading(&self.path))?;
        if text.ends_with(b"\n") && read > 0 {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += read;
        }
        Ok(read)
    }
}

impl<R: BufRead> Iterator for Rows<R> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.peeked.take() {
            return Some(Ok(row));
        }
        if self.state == State::Done || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let row = match self.layout {
            Layout::Array => self.next_element(),
            Layout::Lines => self.next_line(),
        };
        if !matches!(row, Ok(Some(_))) {
            self.state = State::Done;
        }
        row.transpose().map(|row| row.map(|row| row.noted(self.is_of_table)))
    }
}

/// Whether a text is an object that is whole, and the beginning of another.
fn is_followed_by_another(text: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    values.next().is_some_and(|value| value.is_ok())
        && text[values.byte_offset()..].trim_ascii_start().starts_with(b"{")
}

fn parse(place: Place, column: usize, bytes: &[u8]) -> Result<Row, Error> {
    // What is cut off is cut off on its own line, not at the beginning of the next.
    let bytes = bytes.trim_ascii_end();
    match std::str::from_utf8(bytes) {
        Ok(text) => Row::parse(place, column, text),
        Err(e) => {
            let before = &bytes[..e.valid_up_to()]; // the index is the standard library's own
            let line = place.line + before.iter().filter(|&&b| b == b'\n').count();
            let start = before.iter().rposition(|&b| b == b'\n').map_or(column, |newline| before.len() - newline);
            let column = if line == place.line { column + before.len() } else { start };
            Err(Error::Utf8 { place: Place { line, ..place }, column })
        }
    }
}
