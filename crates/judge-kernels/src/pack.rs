//! [`PackedLinear`]: a weight matrix in bf16 or f32, or kept as codes of few bits, packed once, and
//! its product with rows of activations.
//!
//! # Layout
//!
//! 32 ([`LANES`]) rows of the matrix make a panel. A panel is a tile `[words][LANES]`: word `w` of
//! lane `r` holds coordinates `2w` and `2w + 1` of row `32p + r` in bf16, or coordinate `w` in f32.
//!
//! ```text
//! panel p     lane 0        lane 1        …   lane 31            word = low half | high half << 16
//! word 0      W[32p][0,1]   W[32p+1][0,1] …   W[32p+31][0,1]
//! word 1      W[32p][2,3]   W[32p+1][2,3] …
//! …
//! ```
//!
//! One load of 16 lanes thus has 16 rows' share of the same coordinates, which a kernel multiplies
//! with one broadcast word of an activation row. The last panel is filled up with rows of zeros.
//! For the matrix unit a row has zeros behind its last word, up to a multiple of what one
//! instruction sums.
//!
//! Where panels are kept as codes (`section.rs`, `coded.rs`), these are the words that products see.
//!
//! # The product
//!
//! [`PackedLinear::product`] is called for every projection of every block, for the head and for
//! routers. What rows are made of, and what is made of results, rides along (`product.rs`):
//!
//! 1. With kernels of integers, products of codes of eight and of four bits go to `integers.rs`; with the
//!    matrix unit, all others of pairs go to `blocked.rs`, which owns its own blocking.
//! 2. Otherwise activations are made and packed into words (rounded to bf16 where weights are), by
//!    all threads.
//! 3. Kernels that multiply f32 gain if many rows meet panels that were widened to f32 once. From
//!    24 rows on, and always where codes are made to f32, activations are widened too, and each task widens its panels' tiles.
//! 4. A task dequantises codes once for all of its rows. Up to 12 rows are multiplied by what is dequantised
//!    while it is in registers or in the nearest cache.
//! 5. Tasks of up to 384 rows by up to 4 panels run on all threads. Each sums in a buffer of its
//!    own and puts the result into its columns of `out`.
//!
//! A sum runs over a row's words in order, in pieces of `PAIRS_AT_ONCE` pairs that begin at fixed
//! coordinates. So an element of the result depends on its row, its column and the kernel alone.
//! How many rows there are, how the product is cut, and whether it is widened or dequantised do not
//! show.

use std::convert::Infallible;
use std::ops::Range;

use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use super::blocked::Panels;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::integers::{self, HasIntegers};
#[cfg(target_arch = "x86_64")]
use super::kernel::Kernel;
use super::lines::Lines;
use super::piece::{Sums, Written};
use super::product::{Activations, Onto, Results, SharedResults};
use super::section::{self, Section, Sections};
use super::supported::Supported;
use super::tile::{Before, LANES, Shape, Word, Words, multiply_add, prefetch, widen_row};
#[cfg(target_arch = "x86_64")]
use super::unit::{self, HasUnit};
use super::vector::{activate_row, scale_runs, worth_a_task};
use crate::codes::{CodedRows, Coding};
use crate::functions::Activation;
use crate::numbers::Numbers;

/// Rows of activations that one call of a kernel gets: the largest block that any kernel holds in
/// registers.
const ROWS: usize = 12;

/// Rows of activations of one task, at most: a multiple of [`ROWS`].
const ROWS_AT_ONCE: usize = 32 * ROWS;

/// Pairs of coordinates in one piece of a sum. A piece's sum is computed apart and then added to
/// the element. A tile of that many pairs, widened to f32, is 128 KiB and stays in a core's cache
/// while all rows of a task pass by.
const PAIRS_AT_ONCE: usize = 512;

/// Words of products that are dequantised from a panel of codes before few rows are multiplied by them: 16 KiB,
/// which stay in the nearest cache.
const CODES_AT_ONCE: usize = 128;

/// Panels of one task, at most: their tiles of one piece fit into a core's cache, with the tiles
/// that are prefetched beside them.
const PANELS_AT_ONCE: usize = 4;

/// Tasks for each thread that a product should have at least, so that no thread waits long for the
/// last ones.
const TASKS_PER_THREAD: usize = 16;

/// 32-bit words in a cache line.
const WORDS_OF_A_LINE: usize = 16;

/// Cache lines of the coming tiles that are prefetched after each call of a kernel. A task of
/// [`ROWS_AT_ONCE`] rows has then fetched a whole tile of pairs for each of its panels.
const LINES_AT_ONCE: usize = PAIRS_AT_ONCE * LANES / WORDS_OF_A_LINE * ROWS / ROWS_AT_ONCE;

/// From this number of rows on, a product takes longer to compute than to read its weights from
/// memory. Below it nothing is prefetched by hand, and tasks are cut for reading.
const MANY_ROWS: usize = 8 * ROWS;

/// From this number of rows on, widening a panel once costs less than widening its words anew for
/// every block of rows.
const WORTH_WIDENING: usize = 2 * ROWS;

/// A matrix `[d_out, d_in]` in bf16, in f32 or as codes, packed for products with rows of activations. The
/// layout is described at the top of this file. Its size is that of the tensor in a checkpoint of
/// the same dtype, but for the padding of the last panel and of rows. It is filled once, while a
/// model loads, and then only read, by all threads.
pub struct PackedLinear {
    /// The kernel that multiplies; it decides how far rows are padded.
    kernel: Supported,
    /// Whether weights are bf16 pairs or single f32 numbers.
    word: Word,
    /// Rows of the matrix: the width of the result.
    d_out: usize,
    /// Columns of the matrix: the width of the activations.
    d_in: usize,
    /// The panels, in order.
    sections: Sections,
}

/// A projection `y = x · weightᵀ + bias`.
pub struct Linear {
    /// The matrix, `[d_out, d_in]`.
    pub weight: PackedLinear,
    /// `[d_out]`, in f32; `None` where the family has none. Added to the whole sum.
    pub bias: Option<Vec<f32>>,
    /// See `LinearSpec::factors`.
    pub factors: Vec<(usize, f32)>,
}

impl Linear {
    /// What an MLP makes of rows on their way to its second product: `out`, `[rows, d_ff]`, becomes `f(y)` of the product's results
    /// `y`, or `f(gate) * up` where they are twice as wide, `[gate | up]`. `scratch` is as for [`PackedLinear::product`].
    ///
    /// # Panics
    /// As for that.
    pub fn activated(
        &self,
        x: Activations<'_>,
        function: Activation,
        d_ff: usize,
        out: &mut [f32],
        scratch: &mut Lines<u32>,
    ) {
        let (bias, d_out) = (self.bias.as_deref(), self.weight.out_features());
        let onto = if d_out == d_ff { Onto::Activated(function) } else { Onto::Gated(function) };
        if self.factors.is_empty() && (d_out == d_ff || self.weight.gates()) {
            return self.weight.product(x, Results::new(out, bias, onto), scratch);
        }
        let mut all = vec![0.0; x.count() * d_out];
        self.weight.product(x, Results::new(&mut all, bias, Onto::Nothing), scratch);
        let rows = all.par_chunks_exact_mut(d_out).zip(out.par_chunks_exact_mut(d_ff));
        rows.with_min_len(worth_a_task(d_out)).for_each(|(row, out)| {
            scale_runs(row, &self.factors);
            activate_row(row, function, out);
        });
    }
}

impl PackedLinear {
    /// A matrix of zeros, to be filled row by row with [`fill`](Self::fill).
    pub fn zeros(kernel: Supported, word: Word, d_out: usize, d_in: usize) -> Self {
        Self::of(kernel, word, d_in, vec![(d_out, None)], |shape| Ok::<_, Infallible>(Section::zeros(shape)))
            .unwrap_or_else(|never| match never {})
    }

    /// A matrix of sections, each made by `make`. `parts` are their rows and codings, in order; each
    /// but the last has whole panels.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn of<E>(
        kernel: Supported,
        word: Word,
        d_in: usize,
        parts: Vec<(usize, Option<Coding>)>,
        mut make: impl FnMut(section::Shape) -> Result<Section, E>,
    ) -> Result<Self, E> {
        let (width, mut d_out, mut sections) = (Self::width_of(kernel, word, d_in), 0_usize, Vec::new());
        for (rows, coding) in parts {
            debug_assert!(d_out.is_multiple_of(LANES));
            let panels = d_out / LANES..(d_out + rows).div_ceil(LANES);
            sections.push(make(section::Shape { kernel, word, width, panels, coding })?);
            d_out += rows;
        }
        Ok(Self { kernel, word, d_out, d_in, sections: Sections::new(sections) })
    }

    /// What products read.
    #[cfg(test)]
    pub(crate) fn sections(&self) -> &Sections {
        &self.sections
    }

    /// All arrays that are kept of the matrix, section by section.
    pub fn arrays(&self) -> impl Iterator<Item = &[u32]> {
        self.sections.iter().flat_map(Section::arrays)
    }

    /// Whether products may be made in integers; see `Sections::are_integers`.
    pub fn is_of_integers(&self) -> bool {
        self.sections.are_integers()
    }

    /// Whether a product can gate one half of its results by the other: each half has whole panels, and both are of one section where
    /// each section is multiplied by itself.
    fn gates(&self) -> bool {
        let is_apart = self.kernel.kernel().multiplies_integers() && self.sections.iter().count() > 1;
        self.d_out.is_multiple_of(2 * LANES) && !(is_apart && self.is_of_integers())
    }

    /// `d_in`: the width of the activations.
    pub fn in_features(&self) -> usize {
        self.d_in
    }

    /// `d_out`: the width of the result.
    pub fn out_features(&self) -> usize {
        self.d_out
    }

    /// Words of a row, with the padding of the kernel.
    fn width(&self) -> usize {
        Self::width_of(self.kernel, self.word, self.d_in)
    }

    /// Words of a row of `d_in` numbers: up to whole steps of the matrix unit where it multiplies
    /// pairs.
    fn width_of(kernel: Supported, word: Word, d_in: usize) -> usize {
        let words = word.count(d_in);
        match (kernel.of_floats(), word) {
            #[cfg(target_arch = "x86_64")]
            (Kernel::Amx, Word::Pair) => words.next_multiple_of(unit::PAIRS),
            _ => words,
        }
    }

    /// Number of panels.
    fn panels(&self) -> usize {
        self.d_out.div_ceil(LANES)
    }

    /// Words from one row of packed activations to the next: an odd number of cache lines. Widths
    /// are mostly multiples of a high power of two. Rows that far apart would fall into the same
    /// few sets of a cache and evict one another.
    fn row_words(&self) -> usize {
        (self.width().div_ceil(WORDS_OF_A_LINE) | 1) * WORDS_OF_A_LINE
    }

    /// Fills rows `first..` from `rows`, `[count, d_in]` row-major. Parts may come in any order and
    /// may begin and end inside a panel. The caller gives bf16 numbers to a matrix of pairs and f32
    /// numbers to one of single words, and no more rows than there are; neither is checked. An odd
    /// last coordinate gets a zero beside it. Rows that are coded, or come from a file, stay as they
    /// are.
    pub fn fill(&mut self, first: usize, rows: Numbers<'_>) {
        let d_in = self.d_in;
        self.sections.iter_mut().for_each(|section| section.fill(first, d_in, rows));
    }

    /// Fills coded rows `first..`. All of them are of one section; it has the rows' coding.
    pub fn fill_codes(&mut self, first: usize, rows: &CodedRows<'_>) {
        let sections = self.sections.iter_mut();
        for section in sections.filter(|section| section.panels.contains(&(first / LANES))) {
            section.fill_codes(first, rows);
        }
    }

    /// Writes row `index` to `out`, `[d_in]`, widened to f32: a token's embedding, or a row of the
    /// head.
    ///
    /// # Panics
    /// If the panel of that row does not exist.
    pub fn row(&self, index: usize, out: &mut [f32]) {
        let panel = index / LANES;
        let mut words = vec![0; self.word.count(out.len())];
        self.sections.of(panel).row(panel, index % LANES, &mut words);
        match self.word {
            Word::Pair => {
                for (out, word) in out.chunks_mut(2).zip(words) {
                    out[0] = f32::from_bits(word << 16);
                    if let Some(second) = out.get_mut(1) {
                        *second = f32::from_bits(word & 0xffff_0000);
                    }
                }
            }
            Word::Single => out.iter_mut().zip(words).for_each(|(out, word)| *out = f32::from_bits(word)),
        }
    }

    /// `out = x · weightᵀ`, with `x` `[rows, d_in]` and `out` `[rows, d_out]`: [`product`](Self::product)
    /// of rows as they are.
    ///
    /// # Panics
    /// If `x` or `out` has another length.
    pub fn apply(&self, x: &[f32], rows: usize, out: &mut [f32], scratch: &mut Lines<u32>) {
        assert_eq!(x.len(), rows * self.d_in);
        self.product(Activations::new(x, self.d_in), Results::new(out, None, Onto::Nothing), scratch);
    }

    /// The product of the rows that `x` makes, `[rows, d_in]`, with the matrix; `out`, `[rows, d_out]` or half as wide where one half
    /// of the results is gated by the other, says what becomes of it. Activations are rounded as the weights are, or to integers
    /// (`integers.rs`); sums are f32. A row of the result depends on its row of `x` alone, and on what it is added to, to the bit.
    /// `scratch` is memory that products reuse; what it holds before and after does not matter.
    ///
    /// # Panics
    /// If `x` or `out` has another length, or what is gated are no whole panels.
    pub fn product(&self, x: Activations<'_>, out: Results<'_>, scratch: &mut Lines<u32>) {
        let (rows, d_in) = (x.count(), self.d_in);
        assert!(x.have(d_in) && out.len() == rows * out.width(self.d_out));
        let (width, row_words) = (self.width(), self.row_words());
        if out.len() == 0 {
            return;
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if let Some(has) = HasIntegers::of(self.kernel).filter(|_| self.is_of_integers()) {
            let out = out.shared(self.d_out);
            let matrices = self.sections.iter().filter_map(|section| integers::Matrix::new(section, d_in));
            return matrices.for_each(|matrix| matrix.product(has, x, &out, scratch));
        }
        #[cfg(target_arch = "x86_64")]
        if self.word == Word::Pair
            && let Some(unit) = HasUnit::of(self.kernel)
        {
            let panels = Panels { sections: &self.sections, pairs: width, d_in, d_out: self.d_out };
            return panels.product(unit, x, out, scratch);
        }
        let has_codes = self.sections.iter().any(|section| section.coded().is_some());
        let widens =
            self.word == Word::Pair && self.kernel.kernel().multiplies_f32() && (has_codes || rows >= WORTH_WIDENING);
        let n_words = rows * row_words;
        scratch.resize(n_words * if widens { 3 } else { 1 });
        let (words, wide) = scratch.split_at_mut(n_words);
        let packed = words.par_chunks_exact_mut(row_words).enumerate().with_min_len(x.worth_a_task(d_in));
        packed.for_each(|(row, words)| {
            x.with(row..row + 1, d_in, |x| self.word.pack(x, &mut words[..width]));
        });
        let widened = wide.par_chunks_exact_mut(2 * row_words).zip(words.par_chunks_exact(row_words)).take(rows);
        widened.with_min_len(worth_a_task(2 * row_words)).for_each(|(wide, words)| widen_row(words, wide));
        let (words, wide) = (&*words, &*wide);
        let n_panels = self.panels();
        let out = &out.shared(self.d_out);
        let together = out.together();
        let at_once = self.panels_at_once(rows).next_multiple_of(together);
        let n_groups = n_panels.div_ceil(at_once);
        (0..rows.div_ceil(ROWS_AT_ONCE) * n_groups).into_par_iter().for_each_init(
            Default::default,
            |Buffers { sums, tiles }, task| {
                let (first, group) = (task / n_groups * ROWS_AT_ONCE, task % n_groups);
                let share = Share {
                    rows: first..rows.min(first + ROWS_AT_ONCE),
                    places: group * at_once..n_panels.min((group + 1) * at_once),
                    out,
                };
                sums.resize(share.places.len() * share.rows.len() * LANES);
                sums.fill(0.0);
                let (sums, _) = sums.as_chunks_mut::<LANES>();
                if share.rows.len() <= ROWS && has_codes {
                    self.multiply_codes(&share, words, widens.then_some(wide), sums, tiles);
                } else if widens {
                    self.multiply_widened(&share, wide, sums, tiles);
                } else {
                    self.multiply(&share, words, sums, tiles);
                }
                let mut of_panels = sums.chunks_exact_mut(share.rows.len());
                for place in share.places.step_by(together) {
                    let mut sums: [&mut [Sums]; 2] =
                        std::array::from_fn(
                            |at| {
                                if at < together { of_panels.next().unwrap_or_default() } else { &mut [] }
                            },
                        );
                    // SAFETY: of each row the results of these panels are this task's alone.
                    unsafe { out.put(first, place, &mut sums[..together]) };
                }
            },
        );
    }

    /// Words in one piece of a sum. It covers as many coordinates, 2 * [`PAIRS_AT_ONCE`], for
    /// either word.
    fn words_at_once(&self) -> usize {
        self.word.count(2 * PAIRS_AT_ONCE)
    }

    /// Panels that one task takes: as many as stay in a core's cache, fewer where there would be
    /// too few tasks for all threads.
    ///
    /// ```text
    /// groups of panels wanted = ceil(TASKS_PER_THREAD * threads / tasks that the rows make)
    /// panels of a task        = panels / groups wanted, from 1 to PANELS_AT_ONCE
    /// ```
    ///
    /// Few rows read weights from memory, which is fastest in one long run. A panel of several
    /// pieces is then taken alone, but for a gate and what it gates, which are always taken together. The number of threads cuts the
    /// work here, but no sum.
    fn panels_at_once(&self, rows: usize) -> usize {
        if rows < MANY_ROWS && self.width() > self.words_at_once() {
            return 1;
        }
        let n_groups = (TASKS_PER_THREAD * rayon::current_num_threads()).div_ceil(rows.div_ceil(ROWS_AT_ONCE));
        (self.panels() / n_groups).clamp(1, PANELS_AT_ONCE)
    }

    /// `sums[panel][row][lane] += words[row] · panel[lane]` for the rows and panels of a task. `words` are
    /// all packed activations, [`row_words`](Self::row_words) apart. `sums` comes as zeros,
    /// `[panels][rows]`.
    ///
    /// ```text
    /// for each piece of the words              its tiles of all panels stay in the cache
    ///     for each block of ROWS rows          its words stay in the nearest cache
    ///         for each panel                   one call of the kernel, then some lines of the coming tiles
    /// ```
    fn multiply(&self, share: &Share<'_>, words: &[u32], sums: &mut [Sums], tiles: &mut Tiles) {
        let (width, rows) = (self.width(), share.rows.len());
        let (row_words, at_once) = (self.row_words(), self.words_at_once());
        // Tiles that stay in a core's cache while all rows of the share pass by; meanwhile those to come are fetched.
        let lines = if share.rows.len() < MANY_ROWS { 0 } else { LINES_AT_ONCE };
        for part in (0..width).step_by(at_once) {
            let len = at_once.min(width - part);
            let mut coming = self.coming(share, part);
            let mut of_panels: [&[u32]; PANELS_AT_ONCE] = Default::default();
            for ((tile, panel), buffer) in of_panels.iter_mut().zip(share.panels()).zip(&mut *tiles) {
                *tile = self.sections.tile(panel, part..part + len, buffer);
            }
            for first in (0..rows).step_by(ROWS) {
                let count = ROWS.min(rows - first);
                let start = (share.rows.start + first) * row_words + part;
                let a = Words { data: &words[start..], stride: row_words };
                for (tile, sums) in of_panels[..share.places.len()].iter().zip(sums.chunks_exact_mut(rows)) {
                    let b = Words { data: tile, stride: LANES };
                    let shape = Shape::added(count, len, LANES);
                    let sums = sums[first..first + count].as_flattened_mut();
                    multiply_add(self.kernel, self.word, shape, a, b, sums, LANES);
                    coming.by_ref().take(lines).for_each(|word| prefetch(word));
                }
            }
        }
    }

    /// As [`multiply`](Self::multiply), for few rows and panels of codes: what is dequantised at a time
    /// stays in the nearest cache. Pieces are those of `multiply`, and so are the bits. Where there are activations `wide` that were
    /// widened to f32, codes are dequantised to f32 too.
    fn multiply_codes(
        &self,
        share: &Share<'_>,
        words: &[u32],
        wide: Option<&[u32]>,
        sums: &mut [Sums],
        [tile, ..]: &mut Tiles,
    ) {
        let (width, row_words) = (self.width(), self.row_words());
        let (rows, at_once) = (share.rows.len(), self.words_at_once());
        let mut piece = [[0.0; LANES]; ROWS];
        let piece = &mut piece[..rows];
        for (panel, sums) in share.panels().zip(sums.chunks_exact_mut(rows)) {
            let section = self.sections.of(panel);
            let wide = wide.filter(|_| section.coded().is_some());
            // Words of activations for each word of the matrix.
            let (each, word, written) = match wide {
                Some(_) => (2, Word::Single, Written::Rounded),
                None => (1, self.word, Written::of(self.word)),
            };
            let (a, stride, step) = (wide.unwrap_or(words), each * row_words, CODES_AT_ONCE / each);
            let of = |from: usize| Words { data: &a[share.rows.start * stride + each * from..], stride };
            for part in (0..width).step_by(at_once) {
                piece.fill([0.0; LANES]);
                let end = width.min(part + at_once);
                if !section.multiply(panel, part..end, written, of(part), piece) {
                    for from in (part..end).step_by(step) {
                        let words = from..end.min(from + step);
                        let shape = Shape { rows, words: each * words.len(), lanes: LANES, before: Before::Continued };
                        let data = match wide {
                            Some(_) => self.sections.wide_tile(panel, words, tile),
                            None => self.sections.tile(panel, words, tile),
                        };
                        let b = Words { data, stride: LANES };
                        multiply_add(self.kernel, word, shape, of(from), b, piece.as_flattened_mut(), LANES);
                    }
                }
                sums.as_flattened_mut().iter_mut().zip(piece.as_flattened()).for_each(|(sum, x)| *sum += x);
            }
        }
    }

    /// The cache lines that are wanted after `part`, in the order of memory: the next piece of the
    /// same panels or, after the last piece, the first piece of the panels behind them. One word
    /// stands for its line.
    fn coming<'a>(&'a self, share: &Share<'a>, part: usize) -> impl Iterator<Item = &'a u32> + use<'a> {
        let (width, at_once) = (self.width(), self.words_at_once());
        let next = part + at_once;
        let (part, places) = if next < width {
            (next, share.places.clone())
        } else {
            let end = share.places.end;
            (0, end..(end + share.places.len()).min(self.panels()))
        };
        let (words, out) = (part..width.min(part + at_once), share.out);
        places
            .flat_map(move |place| self.sections.kept(out.panel(place), words.clone()).iter().step_by(WORDS_OF_A_LINE))
    }

    /// As [`multiply`](Self::multiply), with activations `wide` that were widened to f32,
    /// `2 * row_words` apart, and with tiles that are widened here. It cuts sums at the same
    /// coordinates and so gives the same bits.
    fn multiply_widened(&self, share: &Share<'_>, wide: &[u32], sums: &mut [Sums], [tile, ..]: &mut Tiles) {
        let (stored, width, rows) = (self.width(), 2 * self.row_words(), share.rows.len());
        for (index, sums) in share.panels().zip(sums.chunks_exact_mut(rows)) {
            for part in (0..stored).step_by(PAIRS_AT_ONCE) {
                let len = PAIRS_AT_ONCE.min(stored - part);
                let b = Words { data: self.sections.wide_tile(index, part..part + len, tile), stride: LANES };
                for (block, sums) in sums.chunks_mut(ROWS).enumerate() {
                    let start = (share.rows.start + block * ROWS) * width + 2 * part;
                    let a = Words { data: &wide[start..], stride: width };
                    let shape = Shape::added(sums.len(), 2 * len, LANES);
                    multiply_add(self.kernel, Word::Single, shape, a, b, sums.as_flattened_mut(), LANES);
                }
            }
        }
    }
}

/// Memory for tiles.
type Tiles = [Lines<u32>; PANELS_AT_ONCE];

/// Memory of a thread, for one task after another. What it holds does not matter.
#[derive(Default)]
struct Buffers {
    /// A task's sums.
    sums: Lines<f32>,
    /// Tiles that were dequantised, one for each panel of a task, or widened.
    tiles: Tiles,
}

/// What one task computes of a product.
struct Share<'a> {
    /// Rows of activations.
    rows: Range<usize>,
    /// Panels of the matrix, by their places in the order of the results.
    places: Range<usize>,
    /// The results.
    out: &'a SharedResults<'a>,
}

impl Share<'_> {
    /// The panels.
    fn panels(&self) -> impl Iterator<Item = usize> {
        self.places.clone().map(|place| self.out.panel(place))
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_rows_with_many_results_have_the_bits_of_each_alone() {
        const ROWS: usize = 1030;
        const D_IN: usize = 40;
        const D_OUT: usize = 1024;
        let number = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 500.0 - 1.0;
        let weight: Vec<bf16> = (0..D_OUT * D_IN).map(|i| bf16::from_f32(number(i))).collect();
        let x: Vec<f32> = (0..ROWS * D_IN).map(|i| number(i + 7)).collect();
        for kernel in Supported::all() {
            let mut matrix = PackedLinear::zeros(kernel, Word::Pair, D_OUT, D_IN);
            matrix.fill(0, Numbers::Bf16(&weight));
            let (mut out, mut scratch) = (Lines::zeros(ROWS * D_OUT), Lines::default());
            matrix.apply(&x, ROWS, &mut out, &mut scratch);
            for row in [0, 1, 15, 16, 500, 527, 1028, 1029] {
                let mut alone = vec![f32::NAN; D_OUT];
                matrix.apply(&x[row * D_IN..][..D_IN], 1, &mut alone, &mut scratch);
                let together = &out[row * D_OUT..][..D_OUT];
                assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}, row {row}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        #[test]
        fn products_are_right_and_the_same_bits_in_any_company(
            rows in prop::sample::select(vec![1_usize, 2, 12, 17, 100, 250]),
            d_in in prop::sample::select(vec![1_usize, 64, 80, 127, 128, 700, 1500, 2100]),
            d_out in prop::sample::select(vec![1_usize, 7, 32, 33, 100]),
            seed in any::<u64>(),
        ) {
            let number = |i: usize| crate::cases::number(seed, i);
            let weight: Vec<bf16> = (0..d_out * d_in).map(|i| bf16::from_f32(number(i))).collect();
            let exact: Vec<f32> = (0..d_out * d_in).map(number).collect();
            let x: Vec<f32> = (0..rows * d_in).map(|i| number(i + 1_000_003)).collect();
            let mut first_f32: Option<Vec<f32>> = None;
            for (kernel, word) in Supported::all().flat_map(|kernel| [(kernel, Word::Pair), (kernel, Word::Single)]) {
                // Filled in two pieces that end inside a panel.
                let mut matrix = PackedLinear::zeros(kernel, word, d_out, d_in);
                let cut = d_out / 3;
                for (first, end) in [(cut, d_out), (0, cut)] {
                    let rows = first * d_in..end * d_in;
                    matrix.fill(first, if word == Word::Pair { Numbers::Bf16(&weight[rows]) } else { Numbers::F32(&exact[rows]) });
                }
                let stored = |index: usize| if word == Word::Pair { weight[index].to_f32() } else { exact[index] };
                let rounded = |x: f32| if word == Word::Pair { bf16::from_f32(x).to_f32() } else { x };
                let mut row = vec![0.0; d_in];
                matrix.row(d_out - 1, &mut row);
                prop_assert!(row.iter().enumerate().all(|(i, &a)| a == stored((d_out - 1) * d_in + i)));

                let (mut out, mut scratch) = (vec![f32::NAN; rows * d_out], Lines::default());
                matrix.apply(&x, rows, &mut out, &mut scratch);
                if kernel.kernel().multiplies_f32() && word == Word::Pair {
                    let first = first_f32.get_or_insert_with(|| out.clone());
                    prop_assert!(first.iter().zip(&out).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                }
                for (row, x) in x.chunks_exact(d_in).enumerate() {
                    let mut alone = vec![f32::NAN; d_out];
                    matrix.apply(x, 1, &mut alone, &mut scratch);
                    for (column, found) in alone.iter().enumerate() {
                        prop_assert_eq!(found.to_bits(), out[row * d_out + column].to_bits());
                        let product = |(i, x): (usize, &f32)| f64::from(rounded(*x)) * f64::from(stored(column * d_in + i));
                        let expected: f64 = x.iter().enumerate().map(product).sum();
                        prop_assert!((f64::from(*found) - expected).abs() < 2e-6 * d_in as f64, "{found} {expected}");
                    }
                }
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    let mut again = vec![f32::NAN; rows * d_out];
                    pool.install(|| matrix.apply(&x, rows, &mut again, &mut scratch));
                    prop_assert!(again.iter().zip(&out).all(|(a, b)| a.to_bits() == b.to_bits()));
                }
            }
        }
    }
}
