//! Weights in bf16, packed once, and their product with rows of activations.

use half::bf16;
use rayon::prelude::*;

use super::Kernel;
use super::tile::{LANES, Shape, Words, multiply_add};
use super::vector::pack_pairs;

/// A matrix `[d_out, d_in]` in bf16, packed for products with rows of activations.
///
/// Panels of [`LANES`] of its rows lie behind one another, each as a tile `[pairs][LANES]`: pairs of successive coordinates, for all
/// rows of the panel. It takes the checkpoint's size, but for the last panel and an odd `d_in`.
pub(crate) struct PackedLinear {
    kernel: Kernel,
    d_out: usize,
    d_in: usize,
    words: Vec<u32>,
}

impl PackedLinear {
    /// A matrix of zeros, to be filled row by row.
    pub(crate) fn zeros(kernel: Kernel, d_out: usize, d_in: usize) -> Self {
        let words = vec![0; d_out.next_multiple_of(LANES) * d_in.div_ceil(2)];
        Self { kernel, d_out, d_in, words }
    }

    pub(crate) fn out_features(&self) -> usize {
        self.d_out
    }

    fn pairs(&self) -> usize {
        self.d_in.div_ceil(2)
    }

    fn panel(&self) -> usize {
        self.pairs() * LANES
    }

    /// Fills rows `first..` from `rows`, `[.., d_in]` row-major.
    pub(crate) fn fill(&mut self, first: usize, rows: &[bf16]) {
        let (d_in, panel) = (self.d_in, self.panel());
        let count = rows.len() / d_in.max(1);
        self.words.par_chunks_exact_mut(panel.max(1)).enumerate().for_each(|(index, panel)| {
            let mine = (index * LANES).max(first)..((index + 1) * LANES).min(first + count);
            for row in mine {
                let lane = row % LANES;
                let (pairs, rest) = rows[(row - first) * d_in..][..d_in].as_chunks::<2>();
                let words = panel.iter_mut().skip(lane).step_by(LANES);
                let last = rest.first().map(|&x| [x, bf16::ZERO]);
                for (word, pair) in words.zip(pairs.iter().copied().chain(last)) {
                    *word = u32::from(pair[0].to_bits()) | u32::from(pair[1].to_bits()) << 16;
                }
            }
        });
    }

    /// Row `index`, `[d_in]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn row(&self, index: usize, out: &mut [f32]) {
        let panel = &self.words[index / LANES * self.panel()..][..self.panel()];
        for (out, word) in out.chunks_mut(2).zip(panel.iter().skip(index % LANES).step_by(LANES)) {
            out[0] = f32::from_bits(word << 16);
            if let Some(second) = out.get_mut(1) {
                *second = f32::from_bits(word & 0xffff_0000);
            }
        }
    }

    /// `out = x · weightᵀ`: `x` `[rows, d_in]`, `out` `[rows, d_out]`. Activations are rounded to bf16, sums are f32. A row of the
    /// result depends on that row of `x` alone.
    pub(crate) fn apply(&self, x: &[f32], rows: usize, out: &mut [f32]) {
        assert!(x.len() == rows * self.d_in && out.len() == rows * self.d_out);
        let pairs = self.pairs();
        let mut words = vec![0; rows * pairs];
        words
            .par_chunks_exact_mut(pairs)
            .zip(x.par_chunks_exact(self.d_in))
            .with_min_len(8)
            .for_each(|(words, x)| pack_pairs(x, words));
        let out = Columns { start: out.as_mut_ptr(), stride: self.d_out };
        self.words.par_chunks_exact(self.panel()).enumerate().for_each(|(index, panel)| {
            let a = Words { data: &words, stride: pairs };
            let b = Words { data: panel, stride: LANES };
            let mut sums = vec![0.0; rows * LANES];
            multiply_add(self.kernel, Shape { rows, pairs, lanes: LANES }, a, b, &mut sums, LANES);
            let lanes = LANES.min(self.d_out - index * LANES);
            for (row, sums) in sums.chunks_exact(LANES).enumerate() {
                // SAFETY: row `row` has `d_out` numbers, of which these lanes are this panel's alone.
                unsafe { out.row(row, index * LANES, lanes) }.copy_from_slice(&sums[..lanes]);
            }
        });
    }
}

/// A matrix of which several threads write different columns.
struct Columns {
    start: *mut f32,
    stride: usize,
}

// SAFETY: it is only used to write, each element from one thread.
unsafe impl Sync for Columns {}

impl Columns {
    /// # Safety
    /// The elements must be inside the matrix and nobody else's.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that the columns are its own")]
    unsafe fn row(&self, row: usize, column: usize, count: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.stride + column), count) }
    }
}
