//! Files that one process at a time may write.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use crate::Error;

/// Whether an unfinished output is protected from a second writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// An advisory lock of the operating system (`flock`), released when the process ends, however it ends. A second
    /// writer gets [`Error::Locked`], a file system without locks [`Error::NoLocks`].
    #[default]
    Exclusive,
    /// No lock: for file systems without them (Lustre, some NFS mounts), where the caller sees to it that no output has two writers.
    None,
}

/// Opens a file for reading and appending, empty if it is new, and takes its lock.
///
/// The file may have been renamed or removed between the opening and the lock, by the process that held it. Writing to it would then
/// change or lose a file that is no longer at `path`, so the two are compared under the lock.
///
/// # Errors
/// [`Error::Locked`] if another process has it, [`Error::NoLocks`] where the file system knows none, [`Error::Io`].
pub fn open(path: &Path, locking: Locking) -> Result<File, Error> {
    loop {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = file.map_err(Error::io("open", path))?;
        if locking == Locking::None {
            return Ok(file);
        }
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: path.to_path_buf(), pid: holder(&file) });
            }
            Err(TryLockError::Error(source)) => return Err(Error::NoLocks { path: path.to_path_buf(), source }),
        }
    }
}

/// Refuses a file that another process is writing. It is opened for reading alone, and stays as it is.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    // What is no file, or cannot be opened or locked, is not being written by one of ours.
    let Some(file) = Some(path).filter(|path| path.is_file()).and_then(|path| File::open(path).ok()) else {
        return Ok(());
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: path.to_path_buf(), pid: holder(&file) }),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> Result<bool, Error> {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let opened = file.metadata().map_err(Error::io("read", path))?;
    match fs::metadata(path) {
        Ok(named) => Ok(identity(named) == identity(opened)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Elsewhere a file that is open can be neither renamed nor removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> Result<bool, Error> {
    Ok(true)
}

/// The process that holds the lock, where the system says so: one line of `/proc/locks` has the file's inode.
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    // "12: FLOCK  ADVISORY  WRITE 4711 08:01:131074 0 EOF"; a waiting lock has "->" after its number.
    let mut holders = locks.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, _, pid, file, ..] = fields.as_slice() else { return None };
        let pid = pid.parse::<u32>().ok().filter(|&pid| pid > 0)?; // a process of another container has no number here
        (file.rsplit(':').next() == Some(&inode)).then_some(pid)
    });
    // Inodes of two file systems may be equal: better no process than a wrong one.
    holders.next().filter(|_| holders.next().is_none())
}

#[cfg(not(target_os = "linux"))]
fn holder(_: &File) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_writer_is_told_who_the_first_is() {
        let _alone = crate::kill_tests::alone();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let first = open(&path, Locking::Exclusive).unwrap();
        let Err(Error::Locked { pid, .. }) = open(&path, Locking::Exclusive) else { panic!("two writers") };
        if cfg!(target_os = "linux") {
            assert!(pid.is_none_or(|pid| pid == std::process::id()), "{pid:?}");
        }
        open(&path, Locking::None).unwrap();
        drop(first);
        open(&path, Locking::Exclusive).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_no_longer_at_its_path_is_not_taken() {
        let _alone = crate::kill_tests::alone();
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("x"), folder.path().join("y"));
        let file = open(&path, Locking::Exclusive).unwrap();
        assert!(is_at(&file, &path).unwrap());
        fs::rename(&path, &moved).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        fs::write(&path, "another").unwrap();
        assert!(!is_at(&file, &path).unwrap() && is_at(&file, &moved).unwrap());
    }
}
