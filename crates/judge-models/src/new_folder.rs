//! A folder that appears under its name when all is in it.
//!
//! `merge.rs` and `train` write models and adapters through it. Until a folder is whole it is a hidden one
//! beside its place, `.NAME.partial`, on the same file system, so that it can be renamed. The lock of `.NAME.lock` says
//! that somebody is writing it: it ends with the process, however that ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::{Error, WeightsError};

/// A folder that is being written. Dropped before [`finish`](Self::finish), it is deleted.
pub(crate) struct NewFolder {
    /// The name that it will have, absolute.
    output: PathBuf,
    /// Where it is now.
    partial: PathBuf,
    /// Whether it has its name.
    is_done: bool,
    /// Says that it is being written.
    _lock: Lock,
}

impl NewFolder {
    /// Checks that `output` is free: absent or an empty folder. Makes the hidden folder, in the place of one that
    /// an earlier call has left behind; `is_ours` says of a file's name whether such a call may have written it.
    ///
    /// # Errors
    /// [`Error::OutputExists`] for a place that is not free or a hidden folder with other files, [`Error::OutputHeld`] for
    /// one that another process is writing, and [`Error::Write`] or [`WeightsError::Read`] where the system refuses.
    pub(crate) fn begin(output: &Path, is_ours: impl Fn(&str) -> bool) -> Result<Self, Error> {
        // With a name also where `.` was given, which the hidden folder beside it needs.
        let output = std::path::absolute(output).ok().filter(|path| path.file_name().is_some()).ok_or_else(|| {
            Error::Write { path: output.to_owned(), source: std::io::ErrorKind::InvalidFilename.into() }
        })?;
        if !is_free(&output)? {
            return Err(Error::OutputExists { path: output });
        }
        let hidden = |ending: &str| {
            let mut name = std::ffi::OsString::from(".");
            name.push(output.file_name().unwrap_or_default());
            name.push(ending);
            output.with_file_name(name)
        };
        let partial = hidden(".partial");
        let lock = Lock::take(hidden(".lock"), &output)?;
        // Whoever had the lock may have finished.
        if !is_free(&output)? {
            return Err(Error::OutputExists { path: output });
        }
        if !is_begun(&partial, is_ours)? {
            return Err(Error::OutputExists { path: partial });
        }
        remove(&partial)?;
        fs::create_dir(&partial).map_err(|source| Error::Write { path: partial.clone(), source })?;
        Ok(Self { output, partial, is_done: false, _lock: lock })
    }

    /// Where files are to be written.
    pub(crate) fn path(&self) -> &Path {
        &self.partial
    }

    /// Gives the folder its name.
    ///
    /// # Errors
    /// [`Error::Write`]; the hidden folder is then deleted.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        if self.output.is_dir() { fs::remove_dir(&self.output) } else { Ok(()) }
            .and_then(|()| fs::rename(&self.partial, &self.output))
            .map_err(|source| Error::Write { path: self.output.clone(), source })?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.is_done
            && let Err(error) = remove(&self.partial)
        {
            tracing::warn!("what was begun is left behind: {error}");
        }
    }
}

/// A file that one process at a time has. Dropped, it is deleted.
struct Lock {
    /// The file.
    path: PathBuf,
    /// As it is open.
    _file: File,
}

impl Lock {
    /// Takes it for the folder `output`, and makes it and the folder that it is in.
    ///
    /// # Errors
    /// [`Error::OutputHeld`] if another process has it, and [`Error::Write`] where the system refuses.
    fn take(path: PathBuf, output: &Path) -> Result<Self, Error> {
        let fault = |source| Error::Write { path: path.clone(), source };
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(fault)?;
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(fault)?;
            match file.try_lock() {
                // Whoever had it may have deleted it since it was opened.
                Ok(()) if !is_at(&file, &path) => continue,
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(Error::OutputHeld { path: output.to_owned() }),
                Err(TryLockError::Error(error)) => {
                    tracing::warn!(
                        "{}: this file system has no locks ({error}): let no other process write this folder",
                        output.display()
                    );
                }
            }
            return Ok(Self { path, _file: file });
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("{} is left behind: {error}", self.path.display());
        }
    }
}

/// Whether an open file is still the one at its path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(opened), Ok(named)) => identity(opened) == identity(named),
        _ => false,
    }
}

/// Elsewhere the next process cannot make another one while a file is open.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Whether nothing is at a path, or a folder without content. A file is not free.
fn is_free(path: &Path) -> Result<bool, Error> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(false),
        Err(source) => Err(WeightsError::Read { path: path.to_owned(), source }.into()),
    }
}

/// Whether nothing is at the path of an unfinished folder, or one with nothing in it but files that are ours.
fn is_begun(partial: &Path, is_ours: impl Fn(&str) -> bool) -> Result<bool, Error> {
    if !partial.is_dir() {
        return is_free(partial);
    }
    let fault = |source| WeightsError::Read { path: partial.to_owned(), source };
    for entry in fs::read_dir(partial).map_err(fault)? {
        if !entry.map_err(fault)?.file_name().to_str().is_some_and(&is_ours) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes a folder with all that is in it. One that is absent is no error.
fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Write { path: folder.to_owned(), source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_writes_a_folder() {
        let at = tempfile::tempdir().unwrap();
        let output = at.path().join("in/out");
        let begin = || NewFolder::begin(&output, |name| name == "a");
        // What a process that was killed has left is in nobody's way.
        fs::create_dir_all(at.path().join("in/.out.partial")).unwrap();
        fs::write(at.path().join("in/.out.partial/a"), "old").unwrap();
        fs::write(at.path().join("in/.out.lock"), "").unwrap();
        let first = begin().unwrap();
        fs::write(first.path().join("a"), "mine").unwrap();
        assert!(matches!(begin(), Err(Error::OutputHeld { path }) if path == output));
        first.finish().unwrap();
        assert_eq!(fs::read(output.join("a")).unwrap(), b"mine");
        assert!(matches!(begin(), Err(Error::OutputExists { .. })));
        fs::remove_dir_all(&output).unwrap();
        drop(begin().unwrap());
        assert_eq!(fs::read_dir(at.path().join("in")).unwrap().count(), 0);
    }
}
