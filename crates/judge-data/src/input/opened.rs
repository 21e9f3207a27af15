//! A file that is held open, and its stored bytes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use super::spool::read_at;

/// What was opened, with what tells whether it is still the same.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) modified: Option<SystemTime>,
    pub(super) blake3: OnceLock<String>,
    pub(super) notes: Notes,
}

/// What is odd about a file and costs nothing but what it is about: each is said once, however often the file is read.
#[derive(Debug, Default)]
pub(super) struct Notes {
    said: Mutex<BTreeSet<String>>,
    listener: OnceLock<fn(&str)>,
}

impl Notes {
    /// Has further notes said to somebody; who was first stays.
    pub(super) fn tell(&self, listener: fn(&str)) {
        let _ = self.listener.set(listener);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn say(&self, note: String) {
        let is_new = self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(note.clone());
        if let Some(listener) = self.listener.get().filter(|_| is_new) {
            listener(&note);
        }
    }
}

impl Opened {
    /// How it differs from what was opened, if it does.
    pub(super) fn changed(&self) -> Option<Changed> {
        let metadata = self.file.metadata().ok()?;
        let rewritten = self.modified.is_some() && metadata.modified().ok() != self.modified;
        let changed = Changed { bytes_before: self.bytes, bytes_now: metadata.len() };
        (changed.bytes_now != changed.bytes_before || rewritten).then_some(changed)
    }
}

/// Travels as an [`io::Error`] until a path is known, see [`Error::reading`].
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the file was changed")]
pub(crate) struct Changed {
    pub(crate) bytes_before: u64,
    pub(crate) bytes_now: u64,
}

/// The stored bytes from the first to the one that was last when the input was opened.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) opened: Arc<Opened>,
    pub(super) position: u64,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.opened.bytes - self.position).unwrap_or(usize::MAX).min(buffer.len());
        if left == 0 {
            return Ok(0);
        }
        match read_at(&self.opened.file, &mut buffer[..left], self.position)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()), // the file was cut
            read => {
                self.position += read as u64;
                Ok(read)
            }
        }
    }
}

/// Compressed data that seem corrupt may be of a file that is being written.
pub(super) fn explain(opened: &Opened, source: io::Error) -> io::Error {
    match opened.changed() {
        Some(changed) if source.kind() != io::ErrorKind::Interrupted => io::Error::other(changed),
        _ => source,
    }
}
