//! What a product takes in and what becomes of its sums: [`Activations`] and [`Results`].
//!
//! A product reads every row of activations once, to pack it, and writes every result once. Norms,
//! gated activations, biases and residual sums work on the same rows, so they ride along and need no
//! walk over activations of their own:
//!
//! ```text
//! rows ── make: norm, one row at a time ──► packed words ── kernels ──► sums ── + bias ── f, gate, or sum: onto ──► out
//! ```
//!
//! A gate and what it gates are rows of one matrix, the gates before the others. Panels of a task are taken in an order in which
//! both are ready together (`SharedResults::panel`), so that twice as many sums as results are never in memory.
//!
//! `pack.rs`, `blocked.rs` and `integers.rs` multiply; `block_ops.rs` and `encoder.rs` say what is
//! made of rows and of sums. The arithmetic is that of `vector.rs`, in the same order as in walks of
//! its own, and so are the bits.

use std::cell::RefCell;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use rayon::prelude::*;

use super::columns::Columns;
use super::piece::Sums;
use super::tile::LANES;
use super::vector::{self, worth_a_task};
use crate::functions::Activation;

thread_local! {
    /// Rows that this thread has made for a product and that are being packed. It only grows: fresh
    /// memory must be cleared by the system.
    static MADE: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Makes a row that is multiplied, `[d_in]`, of a row of activations, `[width]`. It writes all of it.
pub type Make<'a> = dyn Fn(&[f32], &mut [f32]) + Sync + 'a;

/// The rows that a product multiplies.
#[derive(Clone, Copy)]
pub struct Activations<'a> {
    /// `[count, width]`.
    rows: &'a [f32],
    /// Numbers of a row.
    width: usize,
    /// What is made of each row before it is multiplied; `None`: rows are multiplied as they are.
    make: Option<&'a Make<'a>>,
}

impl<'a> Activations<'a> {
    /// Rows `[count, width]` as they are.
    pub fn new(rows: &'a [f32], width: usize) -> Self {
        Self { rows, width, make: None }
    }

    /// What `make` makes of each of these rows, `[count, width]`.
    pub fn made(rows: &'a [f32], width: usize, make: &'a Make<'a>) -> Self {
        Self { rows, width, make: Some(make) }
    }

    /// Number of rows; 0 if the width is.
    pub fn count(&self) -> usize {
        self.rows.len() / self.width.max(1)
    }

    /// Whether these can be the rows of a product with `d_in` columns.
    pub(crate) fn have(&self, d_in: usize) -> bool {
        self.rows.len() == self.count() * self.width && (self.make.is_some() || self.width == d_in)
    }

    /// Rows that a task should have at least to make and pack them.
    pub(crate) fn worth_a_task(&self, d_in: usize) -> usize {
        worth_a_task(self.width.max(d_in))
    }

    /// Hands some rows as they are multiplied, `[rows, d_in]`, to `take`, which must not make others.
    pub(crate) fn with(&self, rows: Range<usize>, d_in: usize, take: impl FnOnce(&[f32])) {
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
    pub(crate) fn made_beforehand(&self, d_in: usize) -> Option<Vec<f32>> {
        let make = self.make?;
        let mut made = vec![0.0; self.count() * d_in];
        let rows = made.par_chunks_exact_mut(d_in).zip(self.rows.par_chunks_exact(self.width));
        rows.with_min_len(self.worth_a_task(d_in)).for_each(|(out, row)| make(row, out));
        Some(made)
    }
}

/// What becomes of a product's sums `y`, once the bias is added to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Onto {
    /// `out = y`.
    Nothing,
    /// `out += y`.
    Sum,
    /// `out += factor * y`.
    Scaled(f32),
    /// `out = f(y)`.
    Activated(Activation),
    /// `out = f(gate) * up`, where `y` is `[gate | up]`: half as many results as sums, both whole panels.
    Gated(Activation),
}

impl Onto {
    /// Panels of the matrix that make results together.
    fn together(self) -> usize {
        if matches!(self, Self::Gated(_)) { 2 } else { 1 }
    }
}

/// Where a product's results go.
pub struct Results<'a> {
    /// `[count, d_out]`, or half as wide; see [`Onto`].
    out: &'a mut [f32],
    /// `[d_out]`, added to each row of sums.
    bias: Option<&'a [f32]>,
    /// What `out` is to be.
    onto: Onto,
}

impl<'a> Results<'a> {
    /// Results `[count, d_out]`, or half as wide, with the bias, `[d_out]`. What `out` holds does not matter, and all of it is
    /// written, unless results are added to it.
    pub fn new(out: &'a mut [f32], bias: Option<&'a [f32]>, onto: Onto) -> Self {
        Self { out, bias, onto }
    }

    /// Number of results.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Results of a row, of `d_out` sums.
    pub(crate) fn width(&self, d_out: usize) -> usize {
        d_out / self.onto.together()
    }

    /// Whether what `out` holds is written over, and never read.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn replace(&self) -> bool {
        !matches!(self.onto, Onto::Sum | Onto::Scaled(_))
    }

    /// Whether the first result begins a line of the caches.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn begin_a_line(&self) -> bool {
        self.out.as_ptr().addr().is_multiple_of(64)
    }

    /// The same for several threads, each of which writes results of its own.
    ///
    /// # Panics
    /// If the bias has not `d_out` numbers, or what is gated are no whole panels.
    pub(crate) fn shared(self, d_out: usize) -> SharedResults<'a> {
        assert!(self.bias.is_none_or(|bias| bias.len() == d_out));
        let width = self.width(d_out);
        assert!(self.onto.together() == 1 || width.is_multiple_of(LANES));
        SharedResults { out: Columns::new(self.out, width), width, d_out, bias: self.bias, onto: self.onto }
    }
}

/// [`Results`] that several threads write.
pub(crate) struct SharedResults<'a> {
    /// `[count, width]`.
    out: Columns<'a>,
    /// Results of a row.
    width: usize,
    /// Sums of a row.
    d_out: usize,
    /// As in [`Results`].
    bias: Option<&'a [f32]>,
    /// As in [`Results`].
    onto: Onto,
}

impl SharedResults<'_> {
    /// Panels that make results together. Tasks have whole groups of them.
    pub(crate) fn together(&self) -> usize {
        self.onto.together()
    }

    /// The panel of the matrix that is multiplied at some place of the order: a gate's before that which it gates.
    pub(crate) fn panel(&self, place: usize) -> usize {
        match self.onto {
            Onto::Gated(_) => place / 2 + place % 2 * (self.width / LANES),
            _ => place,
        }
    }

    /// Makes results of the sums of some rows and of the panels from `place` on that make results together, and writes them
    /// with `write` where they replace what is there. Sums behind the last column are left out. Results are made in place.
    ///
    /// # Safety
    /// Rows and panels must be those of the results, and nobody else may use these results meanwhile.
    pub(crate) unsafe fn put_with(
        &self,
        first_row: usize,
        place: usize,
        sums: &mut [&mut [Sums]],
        write: impl Fn(&[f32], &mut [f32]),
    ) {
        debug_assert!(sums.len() == self.together() && place.is_multiple_of(self.together()));
        if let Some(bias) = self.bias {
            for (at, sums) in sums.iter_mut().enumerate() {
                let first = self.panel(place + at) * LANES;
                let bias = &bias[first..self.d_out.min(first + LANES)];
                sums.iter_mut().for_each(|sums| vector::add(sums, bias));
            }
        }
        let made: &[Sums] = match (self.onto, sums) {
            (Onto::Gated(function), [gate, up]) => {
                vector::gate(gate.as_flattened(), up.as_flattened_mut(), function);
                up
            }
            (Onto::Activated(function), [sums]) => {
                vector::activate(sums.as_flattened_mut(), function);
                sums
            }
            (_, [sums, ..]) => sums,
            (_, []) => return,
        };
        let column = place / self.together() * LANES;
        let lanes = LANES.min(self.width - column);
        for (row, made) in made.iter().enumerate() {
            // SAFETY: the caller's promise; a row has `width` numbers.
            let out = unsafe { self.out.row(first_row + row, column, lanes) };
            match self.onto {
                Onto::Sum => vector::add(out, made),
                Onto::Scaled(factor) => vector::add_scaled(out, made, factor),
                _ => write(&made[..lanes], out),
            }
        }
    }

    /// [`put_with`](Self::put_with), written through the caches.
    ///
    /// # Safety
    /// The same.
    pub(crate) unsafe fn put(&self, first_row: usize, place: usize, sums: &mut [&mut [Sums]]) {
        // SAFETY: the caller's promise.
        unsafe { self.put_with(first_row, place, sums, |sums, out| out.copy_from_slice(sums)) }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::cases::{fill, numbers, of_codes};
    use crate::codes::{CodeNumbers, Coding};
    use crate::kernel::Kernel;
    use crate::lines::Lines;
    use crate::numbers::Numbers;
    use crate::pack::PackedLinear;
    use crate::supported::Supported;
    use crate::tile::Word;

    /// A matrix of numbers, or of codes.
    fn matrix(kernel: Supported, word: Word, d_out: usize, d_in: usize, coding: Option<&Coding>) -> PackedLinear {
        let Some(coding) = coding else {
            let weight = numbers(1, d_out * d_in);
            let mut matrix = PackedLinear::zeros(kernel, word, d_out, d_in);
            let halves: Vec<bf16> = weight.iter().map(|&x| bf16::from_f32(x)).collect();
            matrix.fill(0, if word == Word::Pair { Numbers::Bf16(&halves) } else { Numbers::F32(&weight) });
            return matrix;
        };
        let mut matrix = of_codes(kernel, word, &[(d_out, coding)]);
        fill(&mut matrix, 0, coding, d_out, 1);
        matrix
    }

    /// Rows made as a product packs them, and results made as it writes them, against the same in walks of their own.
    #[test]
    fn what_rides_along_has_the_bits_of_walks_of_its_own() {
        const FUNCTION: Activation = Activation::Silu;
        let unsigned = Coding { has_minima: true, ..Coding::scaled(4, CodeNumbers::Unsigned, 96, 32) };
        // Of whole steps of the matrix unit, and not.
        let codings = [(72, None), (96, Some(Coding::scaled(8, CodeNumbers::Signed, 96, 32))), (96, Some(unsigned))];
        for (kernel, word) in Supported::all().flat_map(|kernel| [(kernel, Word::Pair), (kernel, Word::Single)]) {
            for (rows, d_out) in [
                (1, 33),
                (15, 1),
                (17, 100),
                (33, 32),
                (1, 192),
                (2, 320),
                (33, 64),
                (250, 100),
                (600, 128),
                (1100, 2048),
            ] {
                for (d_in, coding) in &codings {
                    // The largest is for results past the caches.
                    let (d_in, is_largest) = (*d_in, rows * d_out > 1 << 20);
                    let is_large = rows * d_out > 1 << 14;
                    if is_large && coding.is_some() || is_largest && kernel.of_floats() != Kernel::Amx {
                        continue;
                    }
                    let matrix = matrix(kernel, word, d_out, d_in, coding.as_ref());
                    let weight = vec![1.5; d_in];
                    let norm = |x: &[f32], out: &mut [f32]| vector::rms_norm(x, &weight, 1e-6, out);
                    let half = |row: &[f32], out: &mut [f32]| out.copy_from_slice(&row[d_in..]);
                    let makes: [(usize, &Make<'_>); 2] = [(d_in, &norm), (2 * d_in, &half)];
                    let (bias, before) = (numbers(2, d_out), numbers(3, rows * d_out));
                    let mut scratch = Lines::default();
                    for (width, make) in makes.into_iter().take(if is_largest { 1 } else { 2 }) {
                        let x = numbers(4, rows * width);
                        let mut made = vec![0.0; rows * d_in];
                        made.chunks_exact_mut(d_in).zip(x.chunks_exact(width)).for_each(|(out, x)| make(x, out));
                        let mut y = vec![0.0; rows * d_out];
                        matrix.apply(&made, rows, &mut y, &mut scratch);
                        y.chunks_exact_mut(d_out).for_each(|y| vector::add(y, &bias));
                        let mut all = vec![Onto::Nothing, Onto::Sum, Onto::Scaled(0.3), Onto::Activated(FUNCTION)];
                        all.extend(d_out.is_multiple_of(2 * LANES).then_some(Onto::Gated(FUNCTION)));
                        all.retain(|onto| !is_largest || matches!(onto, Onto::Nothing | Onto::Gated(_)));
                        for onto in all {
                            let mut expected = before.clone();
                            match onto {
                                Onto::Nothing => expected.copy_from_slice(&y),
                                Onto::Sum => vector::add(&mut expected, &y),
                                Onto::Scaled(factor) => vector::add_scaled(&mut expected, &y, factor),
                                Onto::Activated(function) => {
                                    expected.copy_from_slice(&y);
                                    vector::activate(&mut expected, function);
                                }
                                Onto::Gated(function) => {
                                    expected.truncate(rows * d_out / 2);
                                    let made = expected.chunks_exact_mut(d_out / 2).zip(y.chunks_exact(d_out));
                                    made.for_each(|(out, y)| vector::activate_row(y, function, out));
                                }
                            }
                            let mut out = Lines::zeros(expected.len());
                            out.copy_from_slice(&before[..expected.len()]);
                            let results = Results::new(&mut out, Some(&bias), onto);
                            matrix.product(Activations::made(&x, width, make), results, &mut scratch);
                            let same = out.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                            assert!(same, "{kernel:?}, {word:?}, {rows} rows to {d_out}, {onto:?}, {coding:?}");
                        }
                    }
                }
            }
        }
    }
}
