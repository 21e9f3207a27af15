//! Quotes of a table that do not close where they should. A reader of tables takes all that follows an open quote for one cell, so rows
//! would be lost without a word.

use std::io::{self, Read};

use crate::foreign::BOM;

/// The bytes of a table, of which a cell is an error that a quote opens and that goes on to the end of the table, or over lines to a quote
/// with text behind it. Text behind a quote in one line is as other programs read it.
pub(super) struct Quotes<R> {
    table: R,
    separator: u8,
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

impl<R: Read> Quotes<R> {
    pub(super) fn new(table: R, separator: u8) -> Self {
        Self { table, separator, at: At::Beginning, read: 0, line: 1, opened: 1 }
    }

    fn see(&mut self, byte: u8) -> io::Result<()> {
        if self.read < BOM.len() {
            self.read += 1;
            if byte == BOM[self.read - 1] {
                return Ok(());
            }
            self.read = BOM.len();
        }
        let ends = byte == self.separator || byte == b'\n' || byte == b'\r';
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
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.table.read(buffer)?;
        buffer[..n].iter().try_for_each(|&byte| self.see(byte))?;
        if n == 0 && !buffer.is_empty() && matches!(self.at, At::Quoted) {
            return Err(damaged(self.opened, "a quote opens a cell here and is never closed; is one missing?"));
        }
        Ok(n)
    }
}

/// What is wrong with a table, by its line from 1.
pub(super) fn damaged(line: u64, problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("table, line {line}: {problem}"))
}
