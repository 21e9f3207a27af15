//! A matrix of which several threads write different parts at the same time.
//!
//! Rayon can split a matrix by rows but not by columns. Products (`pack.rs`, `blocked.rs`) give
//! each task some columns of some rows, and walks over keys (`attention.rs`) some heads of some
//! queries, so they share the output through this type. It checks nothing: a caller that asks for
//! elements promises that they are its own.

use std::marker::PhantomData;
use std::slice;

/// A mutably borrowed matrix, `[.., stride]` row-major, whose elements are handed out by the
/// promise of the caller. The borrow lasts as long as this, so nothing else can look at the matrix
/// meanwhile.
pub struct Columns<'a> {
    /// The first element.
    start: *mut f32,
    /// Elements from one row to the next.
    stride: usize,
    /// Keeps the borrow of the matrix.
    matrix: PhantomData<&'a mut [f32]>,
}

// SAFETY: each element is read and written by one thread alone, as the callers of `row` promise.
unsafe impl Sync for Columns<'_> {}

impl<'a> Columns<'a> {
    /// Borrows `matrix`, whose rows are `stride` elements apart.
    pub fn new(matrix: &'a mut [f32], stride: usize) -> Self {
        Self { start: matrix.as_mut_ptr(), stride, matrix: PhantomData }
    }

    /// Elements `column..column + count` of row `row`. They may go on into the following rows.
    ///
    /// # Safety
    /// The elements must be inside the matrix, and nobody else may use any of them while they are
    /// borrowed.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that the columns are its own")]
    pub unsafe fn row(&self, row: usize, column: usize, count: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.start.add(row * self.stride + column), count) }
    }
}
