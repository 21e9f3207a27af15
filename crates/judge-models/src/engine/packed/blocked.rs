//! Products on the matrix unit: rows of activations packed into whole tiles, in blocks that stay in a core's cache while the weights'
//! panels pass by, results written once.
//!
//! A block's rows meet a panel for a piece of their width, while the next panel is fetched; where there are several pieces, sums wait
//! between them. Few rows meet the same panels in the same way, at the speed at which these come from memory. How a product is cut depends on its
//! shape and on the number of threads, and does not show in the result: an element's sum is that of [`Unit::multiply`] in the order of its
//! pairs.

use std::ops::Range;

use rayon::prelude::*;

use super::columns::Columns;
use super::lines::Lines;
use super::tile::{LANES, Words};
use super::unit::{HasUnit, PAIRS, ROWS, Sums, Tile, Unit, share};

/// Tiles of rows that a block has at once, a megabyte: half of the cache that every processor with the unit has for a core.
const TILES: usize = 1024;

/// Tiles of rows above one another in a block: more would not spare the panels' reading much.
const STRIPS: usize = 32;

/// Tiles along a row that are summed before sums are put away: sums that move cost more than panels that are read more often.
const STEPS: usize = 64;

/// Panels that a block meets before its next piece. Their sums wait in the other half of the cache.
const PANELS: usize = 32;

/// Tasks that keep all threads busy until the end.
const TASKS_PER_THREAD: usize = 4;

/// Results of so many numbers are written past the caches: they would not be there any more when they are read.
const MANY: usize = 1 << 20;

/// Weights as the unit takes them: panels of [`LANES`] of the matrix's rows, each `[pairs][LANES]` words of two bf16 numbers.
pub(super) struct Panels<'a> {
    pub(super) words: &'a [u32],
    /// Of a row, a multiple of [`PAIRS`].
    pub(super) pairs: usize,
    pub(super) d_in: usize,
    pub(super) d_out: usize,
}

impl Panels<'_> {
    fn count(&self) -> usize {
        self.d_out.div_ceil(LANES)
    }

    /// A piece of a panel; nothing behind the last.
    fn piece(&self, panel: usize, steps: &Range<usize>) -> &[u32] {
        const STEP: usize = PAIRS * LANES;
        let start = panel * self.pairs * LANES;
        if panel < self.count() { &self.words[start + steps.start * STEP..start + steps.end * STEP] } else { &[] }
    }

    /// `out = x · weightᵀ`: `x` `[rows, d_in]`, `out` `[rows, d_out]`, neither of them empty. `scratch` is for reuse.
    pub(super) fn apply(&self, unit: HasUnit, x: &[f32], out: &mut [f32], scratch: &mut Lines<u32>) {
        let (rows, steps) = (x.len() / self.d_in, self.pairs / PAIRS);
        let n_strips = rows.div_ceil(ROWS);
        scratch.resize(n_strips * steps * (ROWS * PAIRS));
        let cut = Cut::new(n_strips, steps, self.count(), rayon::current_num_threads());
        let streams = out.len() >= MANY && self.d_out.is_multiple_of(LANES) && out.as_ptr().addr().is_multiple_of(64);
        let out = Columns::new(out, self.d_out);
        let (tiles, _) = scratch.as_chunks_mut::<{ ROWS * PAIRS }>();
        let blocks = tiles.par_chunks_mut(cut.strips * steps).zip(x.par_chunks(cut.strips * ROWS * self.d_in));
        // Whoever packs a block goes on with it while it is near; others help when they have nothing to do.
        blocks.enumerate().for_each(|(block, (tiles, x))| {
            let strips = tiles.par_chunks_exact_mut(steps).zip(x.par_chunks(ROWS * self.d_in));
            let worth_a_task = (1 << 15) / (ROWS * self.d_in) + 1;
            strips.with_min_len(worth_a_task).for_each(|(tiles, x)| unit.hold().pack(x.chunks_exact(self.d_in), tiles));
            let (tiles, first_row) = (&*tiles, block * cut.strips * ROWS);
            let rows = first_row..rows.min(first_row + cut.strips * ROWS);
            (0..self.count().div_ceil(cut.panels)).into_par_iter().for_each_init(Vec::new, |sums, group| {
                let panels = group * cut.panels..self.count().min((group + 1) * cut.panels);
                let rows = rows.clone();
                let task = Task { weights: self, tiles, rows, panels, piece: cut.piece, out: &out, streams };
                task.run(&unit.hold(), sums);
            });
        });
    }
}

/// How a product is cut into tasks: a block of rows, and some panels.
struct Cut {
    /// Of rows, in a block.
    strips: usize,
    panels: usize,
    /// Tiles along a row that are summed before sums are put away.
    piece: usize,
}

impl Cut {
    /// Tasks as large as they may be, but enough of them: first with fewer panels, then with fewer rows.
    fn new(n_strips: usize, n_steps: usize, n_panels: usize, threads: usize) -> Self {
        let n_tasks = TASKS_PER_THREAD * threads;
        let piece = n_steps.div_ceil(n_steps.div_ceil(STEPS));
        let blocks = n_strips.div_ceil(STRIPS.min(TILES / piece));
        let panels = (n_panels * blocks / n_tasks).clamp(1, PANELS);
        let blocks = blocks.max(n_tasks.div_ceil(n_panels.div_ceil(panels)));
        // Of the same size, in whole pairs.
        Self { strips: n_strips.div_ceil(blocks).next_multiple_of(2), panels, piece }
    }
}

/// A block of rows and some panels.
struct Task<'a> {
    weights: &'a Panels<'a>,
    /// Of the block's rows: strip by strip, each its tiles along a row.
    tiles: &'a [Tile],
    rows: Range<usize>,
    panels: Range<usize>,
    piece: usize,
    out: &'a Columns<'a>,
    streams: bool,
}

impl Task<'_> {
    fn run(&self, unit: &Unit, sums: &mut Vec<Sums>) {
        let steps = self.weights.pairs / PAIRS;
        let n_strips = self.tiles.len() / steps;
        let n_pairs = n_strips.div_ceil(2);
        let waits = steps > self.piece;
        sums.resize(if waits { self.panels.len() * n_pairs } else { 1 }, Sums::ZERO);
        for from in (0..steps).step_by(self.piece) {
            let piece = from..steps.min(from + self.piece);
            for (at, panel) in self.panels.clone().enumerate() {
                let b = Words { data: self.weights.piece(panel, &piece), stride: LANES };
                let coming = self.after(panel, &piece);
                for (index, strip) in (0..n_strips).step_by(2).enumerate() {
                    let tiles = |strip: usize| &self.tiles[strip * steps..][piece.clone()];
                    let second = (strip + 1 < n_strips).then(|| tiles(strip + 1));
                    let sums = &mut sums[if waits { at * n_pairs + index } else { 0 }];
                    let coming = share(coming, index, n_pairs);
                    unit.multiply((tiles(strip), second), b, from > 0, sums, coming);
                    if piece.end == steps {
                        self.write(sums, strip, panel);
                    }
                }
            }
        }
        if self.streams {
            fence();
        }
    }

    /// What is wanted after a piece of a panel: the next panel's, or the next piece of the first, or the next task's.
    fn after(&self, panel: usize, piece: &Range<usize>) -> &[u32] {
        let steps = self.weights.pairs / PAIRS;
        if panel + 1 < self.panels.end {
            self.weights.piece(panel + 1, piece)
        } else if piece.end < steps {
            self.weights.piece(self.panels.start, &(piece.end..steps.min(piece.end + self.piece)))
        } else {
            self.weights.piece(panel + 1, &(0..steps.min(self.piece)))
        }
    }

    /// Writes the sums of a strip, and of the next one where the block has it, with a panel.
    fn write(&self, sums: &Sums, strip: usize, panel: usize) {
        let first = self.rows.start + strip * ROWS;
        let count = (self.rows.end - first).min(2 * ROWS);
        let lanes = LANES.min(self.weights.d_out - panel * LANES);
        for (row, sums) in sums.0[..count].iter().enumerate() {
            // SAFETY: each row has `d_out` numbers; the lanes of this task's panels are its own in the rows of its block.
            let out = unsafe { self.out.row(first + row, panel * LANES, lanes) };
            match out.as_mut_array() {
                Some(out) if self.streams => stream(sums, out),
                _ => out.copy_from_slice(&sums[..lanes]),
            }
        }
    }
}

/// Writes lanes past the caches. They begin with a line.
fn stream(sums: &[f32; LANES], out: &mut [f32; LANES]) {
    use std::arch::x86_64::{_mm512_load_ps, _mm512_stream_ps};
    debug_assert!(out.as_ptr().addr().is_multiple_of(64));
    #[target_feature(enable = "avx512f")]
    unsafe fn lines(from: *const f32, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            _mm512_stream_ps(to, _mm512_load_ps(from));
            _mm512_stream_ps(to.add(16), _mm512_load_ps(from.add(16)));
        }
    }
    // SAFETY: where there is a unit there is AVX-512; both are two whole lines.
    unsafe { lines(sums.as_ptr(), out.as_mut_ptr()) }
}

/// Lets other threads see what was written past the caches, when they see what this thread does next.
fn fence() {
    // SAFETY: every processor of 64 bits has the instruction.
    unsafe { std::arch::x86_64::_mm_sfence() }
}
