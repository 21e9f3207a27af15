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

use std::cell::RefCell;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use rayon::prelude::*;

use super::columns::Columns;
use super::vector::{self, worth_a_task};

thread_local! {
    /// Rows that this thread has made for a product and that are being packed. It only grows: fresh
    /// memory must be cleared by the system.
    static MADE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

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

    /// Rows that a task should have at least to make and pack them.
    pub(super) fn worth_a_task(&self, d_in: usize) -> usize {
        worth_a_task(self.width.max(d_in))
    }

    /// Hands some rows as they are multiplied, `[rows, d_in]`, to `take`, which must not make others.
    pub(super) fn with(&self, rows: Range<usize>, d_in: usize, take: impl FnOnce(&[f32])) {
        let stored = &self.rows[rows.start * self.width..rows.end * self.width];
        let Some(make) = self.make else { return take(stored) };
        MADE.with_borrow_mut(|buffer| {
            let len = rows.len() * d_in;
            if buffer.len() < len {
                buffer.resize(len, 0.0);
            }
            let made = &mut buffer[..len];
            made.chunks_exact_mut(d_in).zip(stored.chunks_exact(self.width)).for_each(|(out, row)| make(row, out));
            take(made);
        });
    }

    /// All rows as they are multiplied, `[count, d_in]`, made by all threads; `None` if there is
    /// nothing to make.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn made_beforehand(&self, d_in: usize) -> Option<Vec<f32>> {
        let make = self.make?;
        let mut made = vec![0.0; self.count() * d_in];
        let rows = made.par_chunks_exact_mut(d_in).zip(self.rows.par_chunks_exact(self.width));
        rows.with_min_len(self.worth_a_task(d_in)).for_each(|(out, row)| make(row, out));
        Some(made)
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
    /// `row` must be a row of the results and `first` one of its columns, and nobody else may use
    /// these columns of it meanwhile.
    pub(super) unsafe fn put_with(
        &self,
        row: usize,
        first: usize,
        sums: &mut [f32],
        write: impl FnOnce(&[f32], &mut [f32]),
    ) {
        debug_assert!(first < self.d_out);
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

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::arch::Activation;
    use crate::engine::packed::cases::numbers;
    use crate::engine::packed::lines::Lines;
    use crate::engine::packed::pack::PackedLinear;
    use crate::engine::packed::supported::Supported;
    use crate::engine::packed::tile::Word;
    use crate::weights::Numbers;

    /// Rows made as a product packs them, and results added as it writes them, against the same in walks of their own.
    #[test]
    fn what_rides_along_has_the_bits_of_walks_of_its_own() {
        const D_IN: usize = 72;
        let norm = |x: &[f32], out: &mut [f32]| vector::rms_norm(x, &[1.5; D_IN], 1e-6, out);
        let gate = |row: &[f32], out: &mut [f32]| vector::gated_halves(row, Activation::Silu, out);
        let makes: [(usize, &Make<'_>); 2] = [(D_IN, &norm), (2 * D_IN, &gate)];
        for (kernel, word) in Supported::all().flat_map(|kernel| [(kernel, Word::Pair), (kernel, Word::Single)]) {
            for (rows, d_out) in [(1, 33), (15, 1), (17, 100), (33, 32), (250, 100), (1100, 1024)] {
                let (weight, bias) = (numbers(1, d_out * D_IN), numbers(2, d_out));
                let mut matrix = PackedLinear::zeros(kernel, word, d_out, D_IN);
                match word {
                    Word::Pair => {
                        let weight: Vec<bf16> = weight.iter().map(|&x| bf16::from_f32(x)).collect();
                        matrix.fill(0, Numbers::Bf16(&weight));
                    }
                    Word::Single => matrix.fill(0, Numbers::F32(&weight)),
                }
                let (mut scratch, before) = (Lines::default(), numbers(3, rows * d_out));
                for (width, make) in makes {
                    let x = numbers(4, rows * width);
                    let mut made = vec![0.0; rows * D_IN];
                    made.chunks_exact_mut(D_IN).zip(x.chunks_exact(width)).for_each(|(out, x)| make(x, out));
                    let mut y = vec![0.0; rows * d_out];
                    matrix.apply(&made, rows, &mut y, &mut scratch);
                    y.chunks_exact_mut(d_out).for_each(|y| vector::add(y, &bias));
                    for onto in [Onto::Nothing, Onto::Sum, Onto::Scaled(0.3)] {
                        let mut expected = before.clone();
                        match onto {
                            Onto::Nothing => expected.copy_from_slice(&y),
                            Onto::Sum => vector::add(&mut expected, &y),
                            Onto::Scaled(factor) => vector::add_scaled(&mut expected, &y, factor),
                        }
                        let mut out = Lines::zeros(before.len());
                        out.copy_from_slice(&before);
                        let results = Results::new(&mut out, Some(&bias), onto);
                        matrix.product(Activations::made(&x, width, make), results, &mut scratch);
                        let same = out.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(same, "{kernel:?}, {word:?}, {rows} rows to {d_out}, {onto:?}");
                    }
                }
            }
        }
    }
}
