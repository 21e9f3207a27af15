//! [`Lines`]: vectors of 32-bit numbers that begin on a cache line (64 bytes).
//!
//! A vector register or a tile that crosses from one line into the next costs two accesses. Packed
//! weights, keys, values and activations are therefore kept in [`Lines`], whose multiples of 16
//! numbers all begin a line. This file owns the allocation and the casts; what the numbers mean is
//! up to the users: `pack.rs` and `kv_cache.rs` keep words of weights, keys and values, and `rows.rs`
//! keeps f32 numbers. `blocked.rs` looks at the alignment before it writes whole lines past the
//! caches.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::slice;
use std::sync::Arc;

use memmap2::Mmap;

/// One cache line of every processor that the kernels are written for: 64 bytes, so aligned.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; Line::LEN]);

impl Line {
    /// 32-bit numbers in one line.
    const LEN: usize = 16;
}

/// What [`Lines`] can hold: `u32` words, or `f32`.
///
/// # Safety
/// The type has the size of a `u32`, needs no stricter alignment, and every pattern of bits is a
/// valid value of it.
pub unsafe trait Number: Copy {}

// SAFETY: it is one.
unsafe impl Number for u32 {}

// SAFETY: four bytes, and all patterns are numbers or NaN.
unsafe impl Number for f32 {}

/// A vector of numbers whose first one begins a cache line. It dereferences to a slice of `len`
/// numbers.
pub struct Lines<T> {
    /// The memory, in whole lines; at least `len` numbers.
    lines: Vec<Line>,
    /// Numbers that are in use.
    len: usize,
    /// The type that the words are read as.
    numbers: PhantomData<T>,
}

impl<T: Number> Lines<T> {
    /// `len` zeros. The allocator is asked for zeroed memory, so large vectors are cleared by the
    /// system, page by page, as they are first touched. A matrix that is filled by all threads is
    /// cleared by them.
    pub fn zeros(len: usize) -> Self {
        let lines = Box::<[Line]>::new_zeroed_slice(len.div_ceil(Line::LEN));
        // SAFETY: zeros are numbers.
        let lines = unsafe { lines.assume_init() }.into_vec();
        Self { lines, len, numbers: PhantomData }
    }

    /// [`zeros`](Self::zeros) that will all be written, in huge pages if the system has them. Memory
    /// that stays empty in part should not be asked for like this: a page is there as a whole.
    pub(crate) fn to_be_filled(len: usize) -> Self {
        let zeros = Self::zeros(len);
        in_huge_pages(&zeros.lines);
        zeros
    }

    /// Changes the length. Numbers within the old and the new length keep their values. Further
    /// ones are unspecified: zeros, or what an earlier use left there.
    pub fn resize(&mut self, len: usize) {
        let count = len.div_ceil(Line::LEN);
        if count > self.lines.capacity() && count * size_of::<Line>() >= HUGE {
            // Before anything is written, while no page is there.
            let mut lines = Vec::with_capacity(count);
            in_huge_pages(&lines);
            lines.extend_from_slice(&self.lines);
            self.lines = lines;
        }
        // What is left of an earlier use is not cleared again.
        self.lines.resize(count.max(self.lines.len()), Line([0; Line::LEN]));
        self.len = len;
    }

    /// How long the vector can become without a new allocation.
    pub fn capacity(&self) -> usize {
        self.lines.capacity() * Line::LEN
    }
}

/// Bytes from which on memory is asked for in huge pages: several of those of x86-64 and ARM.
const HUGE: usize = 8 << 20;

/// Asks the system for huge pages where this vector will be written: matrices are read from end to
/// end again and again, and with pages of 4 KiB the processor waits for their addresses. A system that
/// has none, or does not give any, gives others; a failure is harmless.
fn in_huge_pages(lines: &Vec<Line>) {
    #[cfg(target_os = "linux")]
    {
        /// Bytes that the range must begin and end at multiples of; the largest page size in use.
        const PAGE: usize = 1 << 16;
        let bytes = lines.capacity() * size_of::<Line>();
        let start = lines.as_ptr().addr();
        let (from, to) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
        if bytes >= HUGE {
            let first = lines.as_ptr().wrapping_byte_add(from - start).cast_mut();
            // SAFETY: the pages are within the vector's memory, and what they hold does not change.
            let refused = unsafe { libc::madvise(first.cast(), to - from, libc::MADV_HUGEPAGE) } != 0;
            if refused {
                tracing::debug!("the system has no huge pages to give");
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = lines;
}

/// Words in a mapped file, of which the first begins a cache line.
pub struct MappedLines {
    /// The file.
    map: Arc<Mmap>,
    /// The words' bytes in it.
    bytes: Range<usize>,
}

impl MappedLines {
    /// `len` words from byte `start` on; `None` if they are not all there, or `start` is within a
    /// line.
    pub fn new(map: Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let bytes = start..start.checked_add(len.checked_mul(4)?)?;
        let first = map.get(bytes.clone())?.as_ptr();
        first.addr().is_multiple_of(size_of::<Line>()).then_some(Self { map, bytes })
    }
}

impl Deref for MappedLines {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        let bytes = &self.map[self.bytes.clone()];
        // SAFETY: the bytes begin a line, so they are aligned; they are whole words, and every
        // pattern of bits is one.
        unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 4) }
    }
}

impl<T> Default for Lines<T> {
    /// An empty vector, which allocates nothing.
    fn default() -> Self {
        Self { lines: Vec::new(), len: 0, numbers: PhantomData }
    }
}

impl<T: Number> Deref for Lines<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the lines hold at least `len` words, and every one of them is a `T`.
        unsafe { slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl<T: Number> DerefMut for Lines<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and whatever `T` is written leaves a word.
        unsafe { slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl<T> fmt::Debug for Lines<T> {
    /// Shows the length and no numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_with_a_line_and_stay_where_more_come() {
        for len in [0, 1, 15, 16, 17, 1000] {
            let mut numbers = Lines::<f32>::zeros(len);
            assert_eq!(numbers.as_ptr().addr() % 64, 0);
            assert_eq!(*numbers, vec![0.0; len]);
            numbers.iter_mut().enumerate().for_each(|(i, x)| *x = i as f32);
            numbers.resize(3000);
            assert!(numbers.len() == 3000 && numbers.capacity() >= 3000 && numbers.as_ptr().addr().is_multiple_of(64));
            assert!(numbers[..len].iter().enumerate().all(|(i, &x)| x == i as f32));
            numbers.resize(len / 2);
            assert_eq!(numbers.len(), len / 2);
        }
    }
}
