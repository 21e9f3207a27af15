//! Products on the matrix unit (AMX): rows of activations, packed into whole tiles, times packed
//! weights.
//!
//! Owns how a product is cut for caches and threads. It does not own the layout of the weights
//! (`pack.rs`, which calls `Panels::product`) nor the instructions (`unit.rs`).
//!
//! ```text
//! activations  [rows, d_in]    packed into tiles of 16 rows by 32 coordinates (1 KiB of bf16)
//!              strip: 16 rows              step: 32 coordinates along a row
//!              block: `Cut::strips` strips, the rows of one task
//! weights      [d_out, d_in]   panel: 32 rows of the matrix, `[pairs][32]` words
//!              task:  one block and at most `Cut::panels` panels
//!              piece: at most `Cut::piece` steps of both
//! ```
//!
//! A task runs these loops. The innermost product adds two strips' piece to 32 by 32 sums:
//!
//! ```text
//! for piece of d_in                       the block's piece stays in the core's cache
//!     for two panels of the task          a piece of a panel comes from memory once
//!         for pair of strips of the block
//!             for each of the two panels
//!                 sums[panel][pair] += strips[pair][piece] · panel[piece]      meanwhile fetch what is next
//!             after the last piece: make results of the sums of both panels, and write them
//! ```
//!
//! With one piece a pair's sums are written at once; with more they wait until the last piece. A
//! product of few rows is one block, which reads each panel once, at the speed of the memory. A single strip is multiplied by both
//! panels at once: a sum waits for the product before it, and four of them wait together.
//!
//! One or two rows are multiplied by codes as these are dequantised, without the unit and to the same bits, where that can be
//! (`Panels::product_of_few`; the instructions are in `coded/x86.rs`).
//!
//! The cut depends on the product's shape and on the number of threads, and does not show in the
//! result: an element's sum is that of [`Unit::multiply`] in the order of its pairs, and putting
//! sums away between two pieces changes no bit. Sums are f32; activations are rounded to bf16 as
//! they are packed.

use std::ops::Range;

use rayon::prelude::*;

use super::coded::{MOST_IN_ORDER, are_large};
use super::lines::Lines;
use super::product::{Activations, Results, SharedResults};
use super::section::{Section, Sections};
use super::tile::{LANES, Word, Words, widen_row};
use super::unit::{HasUnit, PAIRS, ROWS, Sums, Tile, Unit, share};

/// Tiles of a block's piece that are multiplied over and over: 1 MiB, half of the cache that every
/// processor with the unit has for a core.
const TILES: usize = 1024;

/// Most strips of a block: with more, panels would be read hardly less often.
const STRIPS: usize = 32;

/// Most steps of a piece, 2,048 coordinates. Longer pieces spare moving sums away and back, which
/// costs more than reading panels more often with smaller blocks.
const STEPS: usize = 64;

/// Panels that are multiplied side by side.
const BESIDE: usize = 2;

/// Most panels of a task, a multiple of [`BESIDE`]. Between two pieces the sums of all of them wait in the other half of the
/// cache.
const PANELS: usize = 32;

/// Tasks for each thread, at least where a product is large enough, so that all threads are busy
/// until the end.
const TASKS_PER_THREAD: usize = 4;

/// Numbers of an output, 4 MiB, from which on it is written past the caches: it would no longer be
/// in them when it is read.
const MANY: usize = 1 << 20;

/// Weights as the unit takes them: panels of [`LANES`] of the matrix's rows, each `[pairs][LANES]`
/// words of two bf16 numbers. What the matrix does not have is zero.
pub(crate) struct Panels<'a> {
    /// What they are kept in. Pieces of panels that are kept as codes are dequantised as a task wants them.
    pub(crate) sections: &'a Sections,
    /// Pairs of a row, zeros at its end included: a multiple of [`PAIRS`].
    pub(crate) pairs: usize,
    /// Columns of the matrix.
    pub(crate) d_in: usize,
    /// Rows of the matrix; the last panel may have fewer than [`LANES`] of them.
    pub(crate) d_out: usize,
}

impl Panels<'_> {
    /// Number of panels.
    fn count(&self) -> usize {
        self.d_out.div_ceil(LANES)
    }

    /// The words of some steps of a panel; dequantised into `buffer` if they are made of codes.
    fn piece<'b>(&'b self, panel: usize, steps: &Range<usize>, buffer: &'b mut Lines<u32>) -> &'b [u32] {
        self.sections.tile(panel, steps.start * PAIRS..steps.end * PAIRS, buffer)
    }

    /// What is kept of some steps of a panel, to be fetched; empty behind the last panel.
    fn kept(&self, panel: usize, steps: &Range<usize>) -> &[u32] {
        self.sections.kept(panel, steps.start * PAIRS..steps.end * PAIRS)
    }

    /// See `PackedLinear::product`; `out` is not empty. A row of the result depends on that row of
    /// `x` alone, and on what it is added to. `scratch` takes the packed rows; it is resized, and
    /// what it holds does not matter.
    ///
    /// Blocks are packed and multiplied independently. A thread that has packed a block starts its
    /// tasks while the block is near; idle threads take some of them.
    pub(crate) fn product(&self, unit: HasUnit, x: Activations<'_>, out: Results<'_>, scratch: &mut Lines<u32>) {
        if x.count() <= MOST_IN_ORDER
            && self.sections.iter().all(Section::is_multiplied_in_order)
            && let Some(numbers) = self.numbers(x, scratch)
        {
            return self.product_of_few(numbers, x.count(), &out.shared(self.d_out));
        }
        let (rows, d_in, steps) = (x.count(), self.d_in, self.pairs / PAIRS);
        let n_strips = rows.div_ceil(ROWS);
        scratch.resize(n_strips * steps * (ROWS * PAIRS));
        let threads = rayon::current_num_threads();
        // A strip is packed by one thread. Where there are few, their rows are made by all before.
        let made = if n_strips < threads { x.made_beforehand(d_in) } else { None };
        let x = made.as_ref().map_or(x, |made| Activations::new(made, d_in));
        let has_whole_lines = out.width(self.d_out).is_multiple_of(LANES) && out.begin_a_line();
        let streams = out.replace() && out.len() >= MANY && has_whole_lines;
        let out = out.shared(self.d_out);
        let cut = Cut::new(n_strips, steps, self.count(), out.together(), threads);
        let (tiles, _) = scratch.as_chunks_mut::<{ ROWS * PAIRS }>();
        let blocks = tiles.par_chunks_mut(cut.strips * steps);
        // The thread that packs a block multiplies it while it is in its cache; idle threads help.
        blocks.enumerate().for_each(|(block, tiles)| {
            let first_strip = block * cut.strips;
            let strips = tiles.par_chunks_exact_mut(steps).enumerate();
            strips.with_min_len(x.worth_a_task(d_in).div_ceil(ROWS)).for_each(|(strip, tiles)| {
                let first = (first_strip + strip) * ROWS;
                x.with(first..rows.min(first + ROWS), d_in, |x| unit.hold().pack(x.chunks_exact(d_in), tiles));
            });
            let (tiles, first_row) = (&*tiles, first_strip * ROWS);
            let rows = first_row..rows.min(first_row + cut.strips * ROWS);
            (0..self.count().div_ceil(cut.panels)).into_par_iter().for_each_init(
                Default::default,
                |(sums, buffers), group| {
                    let places = group * cut.panels..self.count().min((group + 1) * cut.panels);
                    let rows = rows.clone();
                    let task = Task { weights: self, tiles, rows, places, piece: cut.piece, out: &out, streams };
                    task.run(&unit.hold(), sums, buffers);
                },
            );
        });
    }

    /// Few rows as numbers, `[rows, 2 * pairs]`, rounded as their pairs would be; `None` if they are too small to be multiplied
    /// without the unit. They are put into `scratch`.
    fn numbers<'s>(&self, x: Activations<'_>, scratch: &'s mut Lines<u32>) -> Option<&'s [u32]> {
        let len = x.count() * 2 * self.pairs;
        scratch.resize(len + self.pairs);
        let (numbers, words) = scratch.split_at_mut(len);
        for (row, numbers) in numbers.chunks_exact_mut(2 * self.pairs).enumerate() {
            x.with(row..row + 1, self.d_in, |x| Word::Pair.pack(x, words));
            widen_row(words, numbers);
        }
        are_large(numbers).then_some(numbers)
    }

    /// The product of few rows with codes, without the unit: each task has some panels, whose codes it reads once.
    fn product_of_few(&self, numbers: &[u32], rows: usize, out: &SharedResults<'_>) {
        let a = Words { data: numbers, stride: 2 * self.pairs };
        let together = out.together();
        let n_tasks = TASKS_PER_THREAD * rayon::current_num_threads();
        let at_once = (self.count() / n_tasks).clamp(1, PANELS).next_multiple_of(together);
        (0..self.count().div_ceil(at_once)).into_par_iter().for_each(|task| {
            let mut sums = [[[0.0; LANES]; MOST_IN_ORDER]; 2];
            for place in (task * at_once..self.count().min((task + 1) * at_once)).step_by(together) {
                let mut sums = sums.each_mut().map(|sums| &mut sums[..rows]);
                for (at, sums) in sums[..together].iter_mut().enumerate() {
                    sums.fill([0.0; LANES]);
                    let panel = out.panel(place + at);
                    self.sections.of(panel).multiply_in_order(panel, a, sums);
                }
                // SAFETY: of each row the results of these panels are this task's alone.
                unsafe { out.put(0, place, &mut sums[..together]) };
            }
        });
    }
}

/// How a product is cut into tasks.
struct Cut {
    /// Strips of a block: even, so that pairs of strips are whole in all blocks but the last.
    strips: usize,
    /// Panels of a task: a multiple of [`BESIDE`], or one where there are few.
    panels: usize,
    /// Steps that are summed before the sums are put away.
    piece: usize,
}

impl Cut {
    /// The largest tasks that are still [`TASKS_PER_THREAD`] for each of `threads`. If they would
    /// be too few, tasks get fewer panels first, and then blocks fewer rows. Pieces of a row have
    /// about the same length.
    fn new(n_strips: usize, n_steps: usize, n_panels: usize, together: usize, threads: usize) -> Self {
        let n_tasks = TASKS_PER_THREAD * threads;
        let piece = n_steps.div_ceil(n_steps.div_ceil(STEPS));
        let blocks = n_strips.div_ceil(STRIPS.min(TILES / piece));
        let panels = (n_panels * blocks / n_tasks).clamp(1, PANELS);
        let panels = panels.next_multiple_of(if panels == 1 { together } else { BESIDE });
        let blocks = blocks.max(n_tasks.div_ceil(n_panels.div_ceil(panels)));
        // Blocks of the same size, in whole pairs of strips.
        Self { strips: n_strips.div_ceil(blocks).next_multiple_of(2), panels, piece }
    }
}

/// A block of rows and some panels: what one thread computes in one go.
struct Task<'a> {
    /// The matrix.
    weights: &'a Panels<'a>,
    /// The block's packed rows, `[strips][steps]` tiles.
    tiles: &'a [Tile],
    /// The block's rows in the output. The last strip may have fewer than 16 of them.
    rows: Range<usize>,
    /// The panels of this task, by their places in the order of the results.
    places: Range<usize>,
    /// Steps of a piece, as in [`Cut::piece`].
    piece: usize,
    /// All results; this task writes its own rows and panels of them.
    out: &'a SharedResults<'a>,
    /// Whether results are written past the caches. If so, every row of the output begins with a
    /// line of the caches, has whole panels, and nothing of it is read.
    streams: bool,
}

impl Task<'_> {
    /// Runs the loops that the head of this file shows. `sums` and `buffers` are memory of the thread;
    /// what they hold does not matter.
    fn run(&self, unit: &Unit, sums: &mut Vec<[Sums; BESIDE]>, buffers: &mut [Lines<u32>; BESIDE]) {
        let steps = self.weights.pairs / PAIRS;
        let n_strips = self.tiles.len() / steps;
        let n_pairs = n_strips.div_ceil(2);
        let waits = steps > self.piece;
        let places = || self.places.clone().step_by(BESIDE);
        sums.resize(if waits { places().len() * n_pairs } else { 1 }, [Sums::ZERO; BESIDE]);
        for from in (0..steps).step_by(self.piece) {
            let piece = from..steps.min(from + self.piece);
            for (at, place) in places().enumerate() {
                let count = BESIDE.min(self.places.end - place);
                let [first, second] = &mut *buffers;
                let b = [(place, first), (place + 1, second)].map(|(place, buffer)| {
                    let is_there = place < self.places.end;
                    let words = is_there.then(|| self.weights.piece(self.out.panel(place), &piece, buffer));
                    Words { data: words.unwrap_or_default(), stride: LANES }
                });
                let coming = [place, place + 1].map(|place| self.after(place, &piece));
                for (index, strip) in (0..n_strips).step_by(2).enumerate() {
                    let tiles = |strip: usize| &self.tiles[strip * steps..][piece.clone()];
                    let sums = &mut sums[if waits { at * n_pairs + index } else { 0 }];
                    let coming = coming.map(|coming| share(coming, index, n_pairs));
                    if strip + 1 == n_strips && count == BESIDE {
                        unit.multiply_beside(tiles(strip), b, from > 0, sums, coming);
                    } else {
                        let second = (strip + 1 < n_strips).then(|| tiles(strip + 1));
                        for ((b, sums), coming) in b.into_iter().zip(&mut *sums).zip(coming).take(count) {
                            unit.multiply((tiles(strip), second), b, from > 0, sums, coming);
                        }
                    }
                    if piece.end == steps {
                        self.write(&mut sums[..count], strip, place);
                    }
                }
            }
        }
        if self.streams {
            fence();
        }
    }

    /// The words that are needed after a piece of the panel at a place, to be fetched meanwhile: the same piece
    /// of that which comes after it in the task, else the next piece of the task's first ones, else the first piece of what is
    /// behind the task, which the next task is likely to begin with.
    fn after(&self, place: usize, piece: &Range<usize>) -> &[u32] {
        let steps = self.weights.pairs / PAIRS;
        let (next, first) = (place + BESIDE, self.places.start + (place - self.places.start) % BESIDE);
        let kept = |place: usize, piece: Range<usize>| {
            if place < self.weights.count() { self.weights.kept(self.out.panel(place), &piece) } else { &[] }
        };
        if next < self.places.end {
            kept(next, piece.clone())
        } else if piece.end < steps {
            kept(first, piece.end..steps.min(piece.end + self.piece))
        } else {
            kept(next, 0..steps.min(self.piece))
        }
    }

    /// Makes results of the finished sums of strip `strip`, and of the strip after it if the block has one, with the panels at `place` and
    /// beside it, and writes them.
    fn write(&self, sums: &mut [Sums], strip: usize, place: usize) {
        let first = self.rows.start + strip * ROWS;
        let count = (self.rows.end - first).min(2 * ROWS);
        let write = |sums: &[f32], out: &mut [f32]| match (sums.as_array(), out.as_mut_array()) {
            (Some(sums), Some(out)) if self.streams => stream(sums, out),
            _ => out.copy_from_slice(sums),
        };
        let together = self.out.together();
        for (place, sums) in (place..).step_by(together).zip(sums.chunks_mut(together)) {
            // SAFETY: the results of this task's panels are its own in the rows of its block.
            unsafe {
                match sums {
                    [one] => self.out.put_with(first, place, &mut [&mut one.0[..count]], write),
                    [gate, up] => {
                        self.out.put_with(first, place, &mut [&mut gate.0[..count], &mut up.0[..count]], write);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Writes [`LANES`] numbers past the caches. Both must be aligned to 64 bytes.
fn stream(sums: &[f32; LANES], out: &mut [f32; LANES]) {
    use std::arch::x86_64::{_mm512_load_ps, _mm512_stream_ps};
    debug_assert!(out.as_ptr().addr().is_multiple_of(64));
    /// Copies two lines of 64 bytes, the second right after the first.
    ///
    /// # Safety
    /// AVX-512; `from` and `to` must be two whole lines each, aligned to 64 bytes.
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

/// Makes what was written past the caches visible to other threads before anything that this thread
/// writes from now on. A task that streams must call it before it ends.
fn fence() {
    // SAFETY: every processor of 64 bits has the instruction.
    unsafe { std::arch::x86_64::_mm_sfence() }
}
