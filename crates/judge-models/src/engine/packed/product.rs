//! What a product takes in and what becomes of its sums: [`Activations`] and [`Results`].
//!
//! A product reads every row of activations once, to pack it, and writes every result once. Norms,
//! gated activations, biases and residual sums work on the same rows, so they ride along and need no
//! walk over activations of their own:
//!
//! ```text
//! rows ── make: norm or gate, one row at a time ──► packed words ── kernels ──► sums ── + bias ── onto ──► out
//! ```
//!
//! `pack.rs`, `blocked.rs` and `integers.rs` multiply; `block_ops.rs` and `encoder.rs` say what is
//! made of rows and of sums. The arithmetic is that of `vector.rs`, in the same order as in walks of
//! its own, and so are the bits.

use std::ops::Range;

use super::columns::Columns;
use super::vector;

/// Makes a row that is multiplied, `[d_in]`, of a row of activations, `[width]`. It writes all of it.
pub(crate) type Make<'a> = dyn Fn(&[f32], &mut [f32]) + Sync + 'a;

/// The rows that a product multiplies.
#[derive(Clone, Copy)]
pub(crate) struct Activations<'a> {
    /// `[count, width]`.
    rows: &'a [f32],
    /// Numbers of a row.
    width: usize,
    /// What is made of each row before it is multiplied; `None`: rows are multiplied as they are.
    make: Option<&'a Make<'a>>,
}

impl<'a> Activations<'a> {
    /// Rows `[count, width]` as they are.
    pub(crate) fn new(rows: &'a [f32], width: usize) -> Self {
        Self { rows, width, make: None }
    }

    /// What `make` makes of each of these rows, `[count, width]`.
    pub(crate) fn made(rows: &'a [f32], width: usize, make: &'a Make<'a>) -> Self {
        Self { rows, width, make: Some(make) }
    }

    /// Number of rows; 0 if the width is.
    pub(crate) fn count(&self) -> usize {
        self.rows.len() / self.width.max(1)
    }

    /// Whether these can be the rows of a product with `d_in` columns.
    pub(super) fn have(&self, d_in: usize) -> bool {
        self.rows.len() == self.count() * self.width && (self.make.is_some() || self.width == d_in)
    }

    /// Some rows as they are multiplied, `[rows, d_in]`; in `buffer` if they are to be made. What
    /// the buffer holds does not matter.
    pub(super) fn rows<'b>(&self, rows: Range<usize>, d_in: usize, buffer: &'b mut Vec<f32>) -> &'b [f32]
    where
        'a: 'b,
    {
        let stored = &self.rows[rows.start * self.width..rows.end * self.width];
        let Some(make) = self.make else { return stored };
        buffer.resize(rows.len() * d_in, 0.0);
        buffer.chunks_exact_mut(d_in).zip(stored.chunks_exact(self.width)).for_each(|(out, row)| make(row, out));
        buffer
    }
}

/// What becomes of a product's sums `y`, once the bias is added to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Onto {
    /// `out = y`.
    Nothing,
    /// `out += y`.
    Sum,
    /// `out += factor * y`.
    Scaled(f32),
}

/// Where a product's results go.
pub(crate) struct Results<'a> {
    /// `[count, d_out]`.
    out: &'a mut [f32],
    /// `[d_out]`, added to each row of sums.
    bias: Option<&'a [f32]>,
    /// What `out` is to be.
    onto: Onto,
}

impl<'a> Results<'a> {
    /// Results `[count, d_out]` with the bias, `[d_out]`. With [`Onto::Nothing`] all of `out` is
    /// written, and what it holds does not matter.
    pub(crate) fn new(out: &'a mut [f32], bias: Option<&'a [f32]>, onto: Onto) -> Self {
        Self { out, bias, onto }
    }

    /// Number of results.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether what `out` holds is written over, and never read.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn replace(&self) -> bool {
        self.onto == Onto::Nothing
    }

    /// Whether the first result begins a line of the caches.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn begin_a_line(&self) -> bool {
        self.out.as_ptr().addr().is_multiple_of(64)
    }

    /// The same for several threads, each of which writes results of its own.
    ///
    /// # Panics
    /// If the bias has not `d_out` numbers.
    pub(super) fn shared(self, d_out: usize) -> SharedResults<'a> {
        assert!(self.bias.is_none_or(|bias| bias.len() == d_out));
        SharedResults { out: Columns::new(self.out, d_out), d_out, bias: self.bias, onto: self.onto }
    }
}

/// [`Results`] that several threads write.
pub(super) struct SharedResults<'a> {
    /// `[count, d_out]`.
    out: Columns<'a>,
    /// Results of a row.
    d_out: usize,
    /// As in [`Results`].
    bias: Option<&'a [f32]>,
    /// As in [`Results`].
    onto: Onto,
}

impl SharedResults<'_> {
    /// Makes results of the sums of row `row` and columns `first..`, and writes them with `write`
    /// where they replace what is there. Sums behind the last column are left out. The bias is added
    /// to `sums` in place.
    ///
    /// # Safety
    /// The row must be one of the results, nobody else may use these columns of it meanwhile.
    pub(super) unsafe fn put_with(
        &self,
        row: usize,
        first: usize,
        sums: &mut [f32],
        write: impl FnOnce(&[f32], &mut [f32]),
    ) {
        let lanes = sums.len().min(self.d_out - first);
        let sums = &mut sums[..lanes];
        if let Some(bias) = self.bias {
            vector::add(sums, &bias[first..]);
        }
        // SAFETY: the caller's promise; a row has `d_out` numbers.
        let out = unsafe { self.out.row(row, first, lanes) };
        match self.onto {
            Onto::Nothing => write(sums, out),
            Onto::Sum => vector::add(out, sums),
            Onto::Scaled(factor) => vector::add_scaled(out, sums, factor),
        }
    }

    /// [`put_with`](Self::put_with), written through the caches.
    ///
    /// # Safety
    /// The same.
    pub(super) unsafe fn put(&self, row: usize, first: usize, sums: &mut [f32]) {
        // SAFETY: the caller's promise.
        unsafe { self.put_with(row, first, sums, |sums, out| out.copy_from_slice(sums)) }
    }
}
