//! Where the tests may end the process, as `kill -9` would: between two steps that change a disk.

/// A point at which a run may be killed. Does nothing but in this crate's own tests.
#[cfg(not(test))]
#[inline]
pub(crate) fn point() {}

#[cfg(test)]
pub(crate) use injected::{end_at, point};

#[cfg(test)]
mod injected {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Points that are still passed; `usize::MAX` where no fault is wanted. Of the whole process: set in child processes alone.
    static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// Ends the process without running any destructor when it passes the point of this number, from 0.
    pub(crate) fn end_at(point: usize) {
        LEFT.store(point, Ordering::Relaxed);
    }

    pub(crate) fn point() {
        match LEFT.load(Ordering::Relaxed) {
            usize::MAX => {}
            0 => std::process::abort(),
            left => LEFT.store(left - 1, Ordering::Relaxed),
        }
    }
}
