//! What is behind compressed data: more of them, padding, or something else.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use super::compression::Compression;
use super::opened::Opened;

/// Bytes of what is behind that are shown.
const SHOWN: usize = 16;

/// A reader that can be looked into.
#[derive(Debug)]
pub(super) struct Behind<R> {
    /// What was looked at and comes first.
    head: Vec<u8>,
    reader: R,
    compression: Compression,
    /// Whether what is compressed is a table, so that any text behind it may be more of its rows.
    is_table: bool,
    opened: Arc<Opened>,
}

impl<R: BufRead> Behind<R> {
    pub(super) fn new(reader: R, compression: Compression, opened: Arc<Opened>) -> Self {
        Self { head: Vec::new(), reader, compression, is_table: false, opened }
    }

    /// Notes that what is compressed is a table.
    pub(super) fn of_table(&mut self) {
        self.is_table = true;
    }

    /// The next bytes, fewer than `most` at the end alone.
    pub(super) fn peek(&mut self, most: usize) -> io::Result<&[u8]> {
        if self.head.len() < most {
            let missing = (most - self.head.len()) as u64;
            self.reader.by_ref().take(missing).read_to_end(&mut self.head)?;
        }
        Ok(&self.head[..most.min(self.head.len())])
    }

    /// Whether more compressed data follow those that have ended. Zeros, with which tapes and blocks are filled, are passed over, as gzip
    /// does. Anything else is passed over with a note, unless it may be rows.
    pub(super) fn goes_on(&mut self) -> io::Result<bool> {
        let (compression, is_table) = (self.compression, self.is_table);
        loop {
            let zeros = self.fill_buf()?.iter().take_while(|&&byte| byte == 0).count();
            match zeros {
                0 => break,
                zeros => self.consume(zeros),
            }
        }
        let head = self.peek(SHOWN)?;
        if head.is_empty() {
            return Ok(false);
        }
        if compression.is_cut(head) {
            return Err(compression.corrupt("the file ends within the next of its parts"));
        }
        let refused = |found: &str| {
            let name = compression.name();
            let words = format!(
                "{found} behind the {name} data; write all rows into one file that is compressed as a whole, or not at all"
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, words))
        };
        match Compression::of(head) {
            Some(found) if found == compression => return Ok(true),
            Some(found) => return refused(&format!("expected nothing, found {} data", found.name())),
            None if head.trim_ascii_start().starts_with(b"{") || head.trim_ascii_start().starts_with(b"[") => {
                return refused("expected nothing, found JSON that is not compressed");
            }
            None if is_table && is_text(head) => return refused("expected nothing, found text that is not compressed"),
            None => {}
        }
        let shown = head.escape_ascii().to_string();
        let rest = io::copy(self, &mut io::sink())?;
        let (path, name) = (self.opened.path.display(), compression.name());
        let bytes = if rest == 1 { "byte" } else { "bytes" };
        self.opened
            .notes
            .say(format!("{path}: {rest} {bytes} behind the {name} data are not read; they begin with \"{shown}\""));
        Ok(false)
    }
}

/// Whether bytes, which may end within a character, are text and not white space alone.
fn is_text(bytes: &[u8]) -> bool {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.trim().is_empty() && text.chars().all(|c| !c.is_control() || c.is_whitespace())
}

impl<R: BufRead> Read for Behind<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut available = self.fill_buf()?;
        let read = available.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Behind<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.head.is_empty() { self.reader.fill_buf() } else { Ok(&self.head) }
    }

    fn consume(&mut self, amount: usize) {
        match self.head.is_empty() {
            true => self.reader.consume(amount),
            false => drop(self.head.drain(..amount)),
        }
    }
}
