//! Quotes of a table that do not close where they should. A reader of tables takes all that follows an open quote for one cell, so rows
//! would be lost without a word.

use std::io::{self, BufRead, Read};

use crate::files::foreign::BOM;

/// The bytes of a table, of which a cell is an error that a quote opens and that goes on to the end of the table, or over lines to a quote
/// with text behind it. Text behind a quote in one line is as other programs read it. Every line comes with LF as its end.
pub(super) struct Quotes<R> {
    table: R,
    separator: u8,
    /// Whether a CR alone ends a line.
    has_cr: bool,
    at: At,
    /// Bytes that were read, up to those of a byte order mark.
    read: usize,
    /// The line that is read, from 1.
    line: u64,
    /// The line where the last quote opened.
    opened: u64,
}

/// Where in a cell.
#[derive(Clone, Copy)]
enum At {
    Beginning,
    Plain,
    Quoted,
    /// Behind a quote within quotes, which ends the cell unless it is doubled.
    Quote,
}

impl<R: BufRead> Quotes<R> {
    pub(super) fn new(table: R, separator: u8, has_cr: bool) -> Self {
        Self { table, separator, has_cr, at: At::Beginning, read: 0, line: 1, opened: 1 }
    }

    fn see(&mut self, byte: u8) -> io::Result<()> {
        if self.read < BOM.len() {
            self.read += 1;
            if byte == BOM[self.read - 1] {
                return Ok(());
            }
            self.read = BOM.len();
        }
        let ends = byte == self.separator || byte == b'\n';
        self.at = match (self.at, byte) {
            (At::Quoted, b'"') => At::Quote,
            (At::Quoted, _) => At::Quoted,
            (At::Quote, b'"') => At::Quoted,
            (At::Beginning, b'"') => {
                self.opened = self.line;
                At::Quoted
            }
            (_, _) if ends => At::Beginning,
            (At::Quote, _) if self.opened < self.line => {
                return Err(damaged(
                    self.opened,
                    &format!(
                        "a quote opens a cell here that ends in line {} with text behind its quote; is a quote missing, or one within the \
                         cell not doubled?",
                        self.line
                    ),
                ));
            }
            (_, _) => At::Plain,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }

    /// Sees bytes, whose lines end in LF then; `next` is what follows them. Returns how many are left.
    fn keep(&mut self, bytes: &mut [u8], next: Option<u8>) -> io::Result<usize> {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let is_cr = bytes[at] == b'\r' && !matches!(self.at, At::Quoted);
            if is_cr && bytes.get(at + 1).copied().or(next) == Some(b'\n') {
                continue;
            }
            let byte = if is_cr && self.has_cr { b'\n' } else { bytes[at] };
            self.see(byte)?;
            bytes[kept] = byte;
            kept += 1;
        }
        Ok(kept)
    }
}

impl<R: BufRead> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.table.read(buffer)?;
            if n == 0 && !buffer.is_empty() && matches!(self.at, At::Quoted) {
                return Err(damaged(self.opened, "a quote opens a cell here and is never closed; is one missing?"));
            }
            let next = if buffer[..n].ends_with(b"\r") { self.table.fill_buf()?.first().copied() } else { None };
            let kept = self.keep(&mut buffer[..n], next)?;
            if kept > 0 || n == 0 {
                return Ok(kept);
            }
        }
    }
}

/// What is wrong with a table, by its line from 1.
pub(super) fn damaged(line: u64, problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("table, line {line}: {problem}"))
}
