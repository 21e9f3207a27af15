use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::Error;

/// A file that appears whole or not at all.
///
/// What is written goes to a temporary file in the target's own folder; [`commit`](Self::commit) brings it to disk and
/// renames it into place, replacing what was there. Dropped without a commit, it leaves the target as it was.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    writer: BufWriter<NamedTempFile>,
}

impl AtomicFile {
    /// Starts a new version of the file at `path`, whose folder must exist.
    ///
    /// # Errors
    /// [`Error::Io`] if no file can be created in that folder.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let mut builder = Builder::new();
        builder.prefix(".").suffix(".tmp");
        #[cfg(unix)]
        {
            // Temporary files are private by default; a result is as readable as the user's umask says.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder(&path)).map_err(Error::io("create a file beside", &path))?;
        Ok(Self { path, writer: BufWriter::new(file) })
    }

    /// Where the file will appear.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings the content to disk and puts it in place.
    ///
    /// # Errors
    /// [`Error::Io`]; the target is then as it was.
    pub fn commit(self) -> Result<(), Error> {
        let Self { path, writer } = self;
        let file = writer.into_inner().map_err(|e| Error::io("write", &path)(e.into_error()))?;
        file.as_file().sync_all().map_err(Error::io("write", &path))?;
        file.persist(&path).map_err(|e| Error::io("replace", &path)(e.error))?;
        sync_folder(&path)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a small file whole or not at all; see [`AtomicFile`].
///
/// # Errors
/// [`Error::Io`].
pub fn write_atomic(path: impl Into<PathBuf>, bytes: &[u8]) -> Result<(), Error> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(Error::io("write", file.path()))?;
    file.commit()
}

/// Renames within one folder and makes the new name durable.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(Error::io("replace", to))?;
    sync_folder(to)
}

/// `path` with `suffix` appended to its file name: `out.jsonl` → `out.jsonl.partial`.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Where a file lies.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Without this the rename itself may be lost with the power. Only Unix lets a folder be opened and synced.
fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let folder = folder(path);
        File::open(folder).and_then(|f| f.sync_all()).map_err(Error::io("sync the folder", folder))?;
    }
    Ok(())
}
