//! Numbers that begin with a line of the caches: vectors and tiles that lie across two lines cost two accesses each.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::slice;

/// A line of the caches.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; Line::LEN]);

impl Line {
    /// Numbers of a line.
    const LEN: usize = 16;
}

/// What [`Lines`] hold.
///
/// # Safety
/// It has the size of a `u32`, no stricter alignment, and every pattern of bits is one.
pub(crate) unsafe trait Number: Copy {}

// SAFETY: it is one.
unsafe impl Number for u32 {}

// SAFETY: four bytes, and all patterns are numbers or NaN.
unsafe impl Number for f32 {}

/// A vector of numbers whose first stands at the beginning of a line.
pub(crate) struct Lines<T> {
    lines: Vec<Line>,
    len: usize,
    numbers: PhantomData<T>,
}

impl<T: Number> Lines<T> {
    /// So many zeros, in memory that the system clears when it is first touched.
    pub(crate) fn zeros(len: usize) -> Self {
        let lines = Box::<[Line]>::new_zeroed_slice(len.div_ceil(Line::LEN));
        // SAFETY: zeros are numbers.
        let lines = unsafe { lines.assume_init() }.into_vec();
        Self { lines, len, numbers: PhantomData }
    }

    /// As many numbers, of which those that are there stay as they are, and others may be anything.
    pub(crate) fn resize(&mut self, len: usize) {
        self.lines.resize(len.div_ceil(Line::LEN), Line([0; Line::LEN]));
        self.len = len;
    }

    /// How many numbers there is memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.lines.capacity() * Line::LEN
    }
}

impl<T> Default for Lines<T> {
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
