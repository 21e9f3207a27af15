//! Names of files: where a path leads, and what lies beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, OutputProblem};

/// Links that are followed before they are taken for a circle, as Linux does it.
const MAX_LINKS: usize = 40;

/// The file that is written when `path` is the output: links are followed, also one that leads to a name without a file.
///
/// # Errors
/// [`Error::Output`] for `-`, a folder that does not exist, and what is there and no regular file; [`Error::Io`].
pub(crate) fn target(path: &Path) -> Result<PathBuf, Error> {
    let refuse = |problem| Error::Output { path: path.to_path_buf(), problem };
    if path == Path::new("-") {
        return Err(refuse(OutputProblem::StandardOutput));
    }
    let found = follow(path)?;
    let Some(name) = found.file_name() else {
        return Err(refuse(OutputProblem::NotAFile { kind: "a folder" }));
    };
    let parent = folder(&found);
    let parent = match parent.canonicalize() {
        Ok(canonical) if canonical.is_dir() => canonical,
        Ok(_) => return Err(refuse(OutputProblem::NoFolder { folder: parent.to_path_buf() })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(refuse(OutputProblem::NoFolder { folder: parent.to_path_buf() }));
        }
        Err(error) => return Err(Error::io("look at", parent)(error)),
    };
    // /dev/stdout and /dev/fd/1 lead here. A file put in their place would not be what they were redirected to.
    if parent.starts_with("/proc") {
        return Err(refuse(OutputProblem::NotAFile { kind: "an open stream of a process" }));
    }
    let target = parent.join(name);
    match fs::symlink_metadata(&target) {
        Ok(metadata) if metadata.is_file() => Ok(target),
        Ok(metadata) => Err(refuse(OutputProblem::NotAFile { kind: kind(&metadata) })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

/// What the last link of a chain leads to. Links on the way, in the names of folders, are left to the operating system.
fn follow(path: &Path) -> Result<PathBuf, Error> {
    let mut found = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        // What /proc has for an open stream is no link to follow by its text: `pipe:[4711]`. /dev/fd is /proc/self/fd by another name.
        let parent = folder(&found).canonicalize();
        if parent.is_ok_and(|parent| parent.starts_with("/proc"))
            || !fs::symlink_metadata(&found).is_ok_and(|metadata| metadata.is_symlink())
        {
            return Ok(found);
        }
        let link = fs::read_link(&found).map_err(Error::io("follow the link", path))?;
        found = folder(&found).join(link);
    }
    Err(Error::io("follow the link", path)(io::Error::other("it leads in a circle")))
}

fn kind(metadata: &fs::Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    if metadata.is_dir() { "a folder" } else { "something else than a file" }
}

/// `path` with `suffix` appended to its file name: `out.jsonl` → `out.jsonl.partial`.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What lies in a folder, in no order.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = fs::read_dir(folder).and_then(|found| found.map(|entry| entry.map(|entry| entry.path())).collect());
    paths.map_err(Error::io("list", folder))
}

/// Where a file lies.
pub(crate) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
