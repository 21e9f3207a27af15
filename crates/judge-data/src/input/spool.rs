//! Files that are read by position, so that several readers share one handle.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::Error;

/// Bytes that are read at a time.
pub(super) const BUFFER: usize = 1 << 16;

/// Copies everything into an unnamed temporary file; gives it with its length and BLAKE3 hash.
pub(super) fn copy(mut reader: impl Read, path: &Path) -> Result<(File, u64, String), Error> {
    let folder = std::env::temp_dir();
    let write = |source| Error::io("write a temporary copy of the input in", &folder)(source);
    let mut file = tempfile::tempfile().map_err(write)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&buffer[..read]);
                file.write_all(&buffer[..read]).map_err(write)?;
            }
            Err(source) if source.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(Error::io("read", path)(source)),
        }
    }
    Ok((file, hasher.count(), hasher.finalize().to_hex().to_string()))
}

#[cfg(unix)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, position)
}

#[cfg(windows)]
pub(super) fn read_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, position)
}
