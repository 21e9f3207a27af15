use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::files::lock::{self, Locking};
use crate::files::paths::{folder, target};
use crate::{Error, OutputProblem, files::fault};

/// A file that appears whole or not at all.
///
/// What is written goes to `.NAME.judge-tmp` in the target's own folder; [`commit`](Self::commit) brings it to disk and renames it into
/// place, replacing what was there. Dropped without a commit, it leaves the target as it was. A link is followed: the file that it
/// leads to is the target. A file that already has that name is left alone, for it may be anybody's: `.NAME.judge-tmp-1` is taken then, and
/// so on. What a kill has left goes when a version is committed that begins with it, as the same command's does.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    target: PathBuf,
    temporary: Temporary,
    /// Files that have the names which come before that of the temporary one.
    before: Vec<PathBuf>,
}

/// Names that are tried for the temporary file.
const NAMES: usize = 100;

impl AtomicFile {
    /// Starts a new version of the file at `path`, whose folder must exist.
    ///
    /// # Errors
    /// [`Error::Output`] if its folder does not exist, it is something else than a regular file, or `-`; [`Error::Locked`] if another
    /// process is just writing it; [`Error::Io`] if no file can be created in that folder. A file system without locks is no error:
    /// of two that write the same file at the same moment there, either may win.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let target = target(&path)?;
        let mut before = Vec::new();
        for number in 0..NAMES {
            let mut name = OsString::from(".");
            name.push(target.file_name().unwrap_or_default());
            name.push(if number == 0 { ".judge-tmp".to_owned() } else { format!(".judge-tmp-{number}") });
            let temporary = target.with_file_name(name);
            if !is_free(&temporary)? {
                // In use by another process, or anybody's.
                lock::check(&temporary)?;
                before.push(temporary);
                continue;
            }
            let file = match lock::open(&temporary, Locking::Exclusive) {
                Err(Error::NoLocks { .. }) => lock::open(&temporary, Locking::None)?,
                file => file?,
            };
            let temporary = Temporary { path: temporary, writer: BufWriter::new(file), committed: false };
            return Ok(Self { path, target, temporary, before });
        }
        let left = before.swap_remove(0);
        Err(Error::Output { path, problem: OutputProblem::Taken { by: left } })
    }

    /// Where the file will appear, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the content in place of a file that is kept: where there is none, none with content, or one with the same content.
    ///
    /// # Errors
    /// [`Error::OutputExists`] for a file with other content, unless `overwrite`; [`Error::Io`]. The target is then as it was.
    pub fn commit_new(mut self, overwrite: bool) -> Result<(), Error> {
        if !overwrite && fs::metadata(&self.target).is_ok_and(|metadata| metadata.len() > 0) {
            self.temporary.writer.flush().map_err(Error::io("write", &self.path))?;
            return match is_same(&self.temporary.path, &self.target).map_err(Error::io("read", &self.path))? {
                true => Ok(()),
                false => Err(Error::OutputExists { path: self.path.clone(), differences: Vec::new() }),
            };
        }
        self.commit()
    }

    /// Puts the content in place as [`commit_new`](Self::commit_new) does, and another file beside it, whose path and content follow from
    /// the target and from what was written. Both are whole on the disk before anything changes. Then what is replaced goes, the other file
    /// comes, and this one last: whenever this is interrupted, it does not lie without the other.
    ///
    /// # Errors
    /// As there, and those of `content`.
    pub(crate) fn commit_beside(
        mut self,
        overwrite: bool,
        path: impl FnOnce(&Path) -> PathBuf,
        content: impl FnOnce(&Path, &Path) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        self.sync()?;
        let content = content(&self.temporary.path, &self.target)?;
        let mut beside = Self::create(path(&self.target))?;
        beside.write_all(&content).map_err(Error::io("write", &beside.path))?;
        beside.sync()?;
        if fs::metadata(&self.target).is_ok_and(|metadata| metadata.len() > 0) {
            if is_same(&self.temporary.path, &self.target).map_err(Error::io("read", &self.path))? {
                return beside.commit();
            }
            if !overwrite {
                return Err(Error::OutputExists { path: self.path.clone(), differences: Vec::new() });
            }
        }
        fault::point();
        remove(&self.target)?;
        fault::point();
        beside.commit()?;
        self.commit()
    }

    /// Brings the content to disk and puts it in place.
    ///
    /// # Errors
    /// [`Error::Io`]; the target is then as it was.
    pub fn commit(mut self) -> Result<(), Error> {
        self.sync()?;
        fault::point();
        fs::rename(&self.temporary.path, &self.target).map_err(Error::io("replace", &self.path))?;
        self.temporary.committed = true;
        for left in &self.before {
            // All of it is in the new file, so nothing is lost; that it cannot be removed says nothing of the new file.
            if matches!(begins_with(&self.target, left), Ok(true)) {
                let _ = fs::remove_file(left);
            }
        }
        sync_folder(&self.target)
    }

    /// Brings what was written to the disk.
    fn sync(&mut self) -> Result<(), Error> {
        let written = self.temporary.writer.flush().and_then(|()| self.temporary.writer.get_ref().sync_all());
        written.map_err(Error::io("write", &self.path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.writer.flush()
    }
}

/// Whether nothing has this name, or a file without content.
fn is_free(path: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(metadata.is_file() && metadata.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(fs::metadata(one)?.len() == fs::metadata(other)?.len() && begins_with(one, other)?)
}

/// Whether the content of `whole` begins with that of `start`, or is it.
fn begins_with(whole: &Path, start: &Path) -> io::Result<bool> {
    if !fs::symlink_metadata(start)?.is_file() || fs::metadata(whole)?.len() < fs::metadata(start)?.len() {
        return Ok(false);
    }
    let [mut whole, mut start] = [BufReader::new(File::open(whole)?), BufReader::new(File::open(start)?)];
    loop {
        let (a, b) = (whole.fill_buf()?, start.fill_buf()?);
        let length = a.len().min(b.len());
        if length == 0 || a[..length] != b[..length] {
            return Ok(b.is_empty());
        }
        whole.consume(length);
        start.consume(length);
    }
}

/// Removed unless it was put in place.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    writer: BufWriter<File>,
    committed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.committed {
            // Nobody is left to be told.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes a small file whole or not at all; see [`AtomicFile`].
///
/// # Errors
/// As [`AtomicFile::create`], and [`Error::Io`].
pub fn write_atomic(path: impl Into<PathBuf>, bytes: &[u8]) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(Error::io("write", file.path()))?;
    file.commit()
}

/// Writes a file that is kept: where there is none, none with content, or one with the same content; see [`AtomicFile::commit_new`].
///
/// # Errors
/// As there, and as [`write_atomic`].
pub fn write_new(path: impl AsRef<Path>, bytes: &[u8], overwrite: bool) -> Result<(), Error> {
    let mut file = AtomicFile::create(path.as_ref())?;
    file.write_all(bytes).map_err(Error::io("write", path.as_ref()))?;
    file.commit_new(overwrite)
}

/// Renames within one folder and makes the new name durable.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(Error::io("replace", to))?;
    sync_folder(to)
}

/// Removes a file, if it is there, for good.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => sync_folder(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

/// Without this the rename itself may be lost with the power. Only Unix lets a folder be opened and synced.
pub(crate) fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let folder = folder(path);
        File::open(folder).and_then(|f| f.sync_all()).map_err(Error::io("sync the folder", folder))?;
    }
    Ok(())
}
