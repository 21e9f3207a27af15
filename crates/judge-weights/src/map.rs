//! Files that are mapped into memory, and how they will be read, told to the system.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps all of a file, to be read.
///
/// A file that somebody shortens meanwhile ends the process with SIGBUS, and one that somebody writes to may change what was read. There is
/// no portable defence but a copy: give it files that are replaced by renaming, as this project's own are, or checkpoints.
///
/// # Errors
/// If the system does not map it; an empty file cannot be mapped.
pub fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only; what others do to the file meanwhile is said above.
    unsafe { Mmap::map(file) }
}

/// Tells the system how a mapped file will be read; see [`Store::reads_are_scattered`](crate::tensors::Store::reads_are_scattered). After
/// scattered reads, pages that they touched are given back: a system that keeps files in large pages
/// would count almost the whole file as memory of this process. A failure is harmless and only logged.
/// On systems other than Unix nothing happens.
pub fn advise(map: &Mmap, are_scattered: bool) {
    #[cfg(unix)]
    {
        let advised = if are_scattered {
            map.advise(memmap2::Advice::Random)
        } else {
            // SAFETY: the map is a read-only map of a file: pages dropped are read from the file again.
            let given_back = unsafe { map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
            map.advise(memmap2::Advice::Normal).and(given_back)
        };
        if let Err(error) = advised {
            tracing::debug!(%error, "the system does not take advice about reading weights");
        }
    }
    #[cfg(not(unix))]
    let _ = (map, are_scattered);
}
