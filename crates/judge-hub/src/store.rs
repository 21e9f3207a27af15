//! One file into the cache: a lock, a partial file, a comparison, and a link.
//!
//! ```text
//! CACHE/.locks/models--ORG--NAME/ETAG.lock    held by the one program that fetches this content
//! blobs/ETAG.incomplete                       what has come of it; it stays where a download breaks off, and is taken up again,
//!                                             once from its beginning where it is not what the hub states
//! blobs/ETAG                                  the same file, renamed once it is what the hub states
//! snapshots/COMMIT/NAME                       a link to it
//! ```
//!
//! These are the places and names of Hugging Face's `huggingface_hub`, and its locks (`flock`), so that both can fetch into one cache
//! at a time. What the hub sent has been checked by `snapshot` before it becomes a part of a path here.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::symlink;
#[cfg(windows)]
use std::os::windows::fs::symlink_file as symlink;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::client::Stated;
use crate::error::{HubError, HubFileProblem};

/// Where a file belongs.
pub(crate) struct Place<'a> {
    /// The cache.
    pub(crate) cache: &'a Path,
    /// The repository's folder in it.
    pub(crate) repo: &'a Path,
    /// The commit.
    pub(crate) commit: &'a str,
    /// The file's name in the repository.
    pub(crate) name: &'a str,
}

/// Puts a file into its snapshot. `download` appends to a partial file what it lacks; it is not called where the content is in the
/// cache already, from another revision, or where another program fetched the file in the meantime.
///
/// A file that is not what the hub states is deleted, and the difference is returned.
///
/// # Errors
/// Those of `download`, [`HubError::Read`] and [`HubError::Write`].
pub(crate) fn store(
    place: &Place<'_>,
    stated: &Stated,
    download: &mut dyn FnMut(&mut File) -> Result<(), HubError>,
) -> Result<Option<HubFileProblem>, HubError> {
    let link = place.repo.join("snapshots").join(place.commit).join(place.name);
    let _lock = lock(&place.cache.join(".locks").join(place.repo.file_name().unwrap_or_default()), &stated.etag)?;
    if link.is_file() {
        return Ok(None);
    }
    let blob = place.repo.join("blobs").join(&stated.etag);
    if !blob.is_file() || problem(&blob, stated)?.is_some() {
        let partial = place.repo.join("blobs").join(format!("{}.incomplete", stated.etag));
        make_parent(&partial)?;
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&partial).map_err(write(&partial))?;
        let mut is_resumed = file.metadata().map_err(write(&partial))?.len() > 0;
        loop {
            download(&mut file)?;
            match problem(&partial, stated)? {
                None => break,
                // The fault may be in what was there.
                Some(_) if is_resumed => file.set_len(0).map_err(write(&partial))?,
                Some(problem) => {
                    fs::remove_file(&partial).map_err(write(&partial))?;
                    return Ok(Some(problem));
                }
            }
            is_resumed = false;
        }
        fs::rename(&partial, &blob).map_err(write(&blob))?;
    }
    make_parent(&link)?;
    // A link that leads nowhere, of a content that somebody deleted.
    if fs::symlink_metadata(&link).is_ok() {
        fs::remove_file(&link).map_err(write(&link))?;
    }
    // Out of the folders of the file's name, of the commit, and of the snapshots.
    let up: PathBuf = Path::new(place.name).components().map(|_| "..").chain([".."]).collect();
    // Some file systems, and some users of Windows, may not make links: the content itself is moved there.
    symlink(up.join("blobs").join(&stated.etag), &link).or_else(|_| fs::rename(&blob, &link)).map_err(write(&link))?;
    Ok(None)
}

/// Waits for the lock of a content, which is held until the file is dropped. Without locks in the file system there is none, with a
/// warning: two programs that fetch the same file at a time then spoil each other's download, which the comparison finds.
fn lock(folder: &Path, etag: &str) -> Result<File, HubError> {
    let path = folder.join(format!("{etag}.lock"));
    make_parent(&path)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(write(&path))?;
    let locked = match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            tracing::info!(path = %path.display(), "another program fetches this file: waiting for it");
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    match locked {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            tracing::warn!(path = %path.display(), "the file system has no locks: fetch a model by one program at a time");
        }
        locked => locked.map_err(write(&path))?,
    }
    Ok(file)
}

/// Makes the folder of a path.
pub(crate) fn make_parent(path: &Path) -> Result<(), HubError> {
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(write(path))
}

/// The error of a path that cannot be written.
pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> HubError {
    |source| HubError::Write { path: path.to_owned(), source }
}

/// Elsewhere there are no links.
#[cfg(not(any(unix, windows)))]
fn symlink(_to: PathBuf, _link: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// How a downloaded file differs from what the hub states; `None` if it does not, as far as can be
/// told. The size is always compared. The SHA-256 is, where the hub's name of the content is one.
///
/// # Errors
/// If the file cannot be read.
fn problem(path: &Path, stated: &Stated) -> Result<Option<HubFileProblem>, HubError> {
    let read = |source| HubError::Read { path: path.to_owned(), source };
    let mut content = File::open(path).map_err(read)?;
    let (found, expected) = (content.metadata().map_err(read)?.len(), stated.size);
    if found != expected {
        return Ok(Some(HubFileProblem::Size { expected, found }));
    }
    // Files that are stored apart (the weights) are named by their SHA-256; others have a shorter
    // name, which is a Git hash.
    let expected = &stated.etag;
    if expected.len() != 64 || !expected.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let mut sum = Sha256::new();
    io::copy(&mut content, &mut sum).map_err(read)?;
    let found: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let is_same = found.eq_ignore_ascii_case(expected);
    Ok((!is_same).then(|| HubFileProblem::Checksum { expected: expected.clone(), found }))
}
