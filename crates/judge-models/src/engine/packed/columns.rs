//! A matrix of which several threads write different parts at the same time.

use std::marker::PhantomData;
use std::slice;

/// A borrowed matrix, `[.., stride]`, whose elements are handed out by the promise of whoever asks.
pub(crate) struct Columns<'a> {
    start: *mut f32,
    stride: usize,
    matrix: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is only used to write, each element from one thread.
unsafe impl Sync for Columns<'_> {}

impl<'a> Columns<'a> {
    pub(crate) fn new(matrix: &'a mut [f32], stride: usize) -> Self {
        Self { start: matrix.as_mut_ptr(), stride, matrix: PhantomData }
    }

    /// Elements `column..column + count` of a row.
    ///
    /// # Safety
    /// They must be inside the matrix, and nobody else's while they are used.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that the columns are its own")]
    pub(crate) unsafe fn row(&self, row: usize, column: usize, count: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.start.add(row * self.stride + column), count) }
    }
}
