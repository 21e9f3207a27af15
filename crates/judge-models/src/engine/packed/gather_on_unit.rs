//! Attention on the matrix unit (AMX), for keys and values in bf16: the algorithm of
//! [`gather`](super::gather) with products of whole registers.
//!
//! Owns the order in which registers are used for it. The walk is `attention.rs`'s, the softmax
//! `softmax.rs`'s, the instructions `unit.rs`'s. `gather::attend` calls [`gather`] for each walk if
//! the kernel is `amx`.
//!
//! Four tiles of keys, a group, are weighed at once. Groups are at fixed positions of a sequence,
//! like tiles. Rows are packed into strips of 16, as many as a register has, and strips are
//! multiplied in pairs:
//!
//! ```text
//! group g: tiles 4g .. 4g + 3, 128 keys
//!     for each tile, each pair of strips      scores[pair][tile]  = queries[pair] · keys[tile]      32 x 32
//!     for each row                            weights[strip][tile] from its scores, `weigh`         bf16
//!     for each 32 coordinates, each pair      gathered[pair][part] += weights[pair] · values        32 x 32
//! ```
//!
//! While one product runs, what the next one needs is fetched from memory.
//!
//! A row that sees nothing of a tile gives it the weight zero, which changes none of its sums: a
//! sum on the unit is never a negative zero that adding a zero would turn positive, nor a subnormal
//! number that a later step would clear. The one exception is a sum that underflowed to a negative
//! zero, and that is made positive at the end. So a row's result does not depend on which tiles the
//! rows beside it need.

use std::ops::Range;

use judge_kernels::lines::Lines;
use judge_kernels::softmax::{Softmax, TILES};
use judge_kernels::tile::{LANES, Words};
use judge_kernels::unit::{PAIRS, ROWS, Sums, Tile, Unit, share};

use super::attention::{Made, Settings, Walk, places};

/// Words of a [`Tile`].
const WORDS: usize = ROWS * PAIRS;

/// Buffers of a walk, reused by the next walk of the same thread. A strip is as many rows as a
/// register has; strips come in pairs, of which the last may have one.
#[derive(Default)]
pub(super) struct Scratch {
    /// [`Tile`]s of queries: by strip, then along the coordinates.
    queries: Lines<u32>,
    /// Products with the keys of a group: by pair of strips, then by tile of the group.
    scores: Vec<Sums>,
    /// [`Tile`]s of weights: by strip, then by tile of the group. Rows of the last strip that the
    /// walk does not have hold anything; no result is read from them.
    weights: Lines<u32>,
    /// Values weighted so far: by pair of strips, then by [`LANES`] coordinates.
    gathered: Vec<Sums>,
    /// Highest score and total of the weights, `[rows]`.
    softmax: Vec<Softmax>,
}

/// The body of a walk on the unit; see the head of this file.
#[expect(unsafe_code, reason = "a body of loops compiled for AVX-512, which only a call that is unsafe enters")]
pub(super) fn gather(unit: &Unit, walk: &Walk<'_>, scratch: &mut Scratch, made: &mut Made<'_>) {
    // SAFETY: where there is a unit there is AVX-512 with BF16.
    unsafe { gather_with_avx512(unit, walk, scratch, made) }
}

/// The first group's product sets the sums, later ones add to them. Loops along rows are compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512bf16")]
fn gather_with_avx512(unit: &Unit, walk: &Walk<'_>, scratch: &mut Scratch, made: &mut Made<'_>) {
    let Settings { shape, .. } = walk.settings;
    let (n, steps, n_parts) = (walk.len(), shape.words().div_ceil(PAIRS), shape.lanes() / LANES);
    let (n_strips, n_pairs) = (n.div_ceil(ROWS), n.div_ceil(2 * ROWS));

    scratch.queries.resize(n_strips * steps * WORDS);
    let mut queries = walk.queries();
    for tiles in scratch.queries.as_chunks_mut().0.chunks_exact_mut(steps) {
        unit.pack(queries.by_ref().take(ROWS), tiles);
    }
    scratch.scores.resize(n_pairs * TILES, Sums::ZERO);
    scratch.weights.resize(n_strips * TILES * WORDS);
    scratch.gathered.resize(n_pairs * n_parts, Sums::ZERO);
    scratch.softmax.clear();
    scratch.softmax.extend((0..n).map(|row| Softmax::new(walk.sink(row))));

    let all = walk.tiles();
    let mut is_first = true;
    for group in all.start() / TILES..=all.end() / TILES {
        let tiles = (group * TILES).max(*all.start())..((group + 1) * TILES).min(all.end() + 1);
        let mut start = tiles.start;
        while start < tiles.end {
            // A group may lie in several pieces: what a shared prefix has of it, and the rest.
            let (count, keys, values) = walk.run(start..tiles.end);
            let queries: &[Tile] = scratch.queries.as_chunks().0;
            let of_a_tile = keys.chunks_exact(shape.key_tile()).zip(values.chunks_exact(shape.value_tile()));
            for (at, (keys, values)) in of_a_tile.enumerate() {
                let keys = Words { data: keys, stride: LANES };
                for pair in 0..n_pairs {
                    let sums = &mut scratch.scores[pair * TILES + start - group * TILES + at];
                    unit.multiply(
                        two_strips(queries, pair, n_strips, 0..steps, steps),
                        keys,
                        false,
                        sums,
                        share(values, pair, n_pairs),
                    );
                }
            }
            start += count;
        }
        weigh(walk, tiles.clone(), is_first, scratch);
        let mut start = tiles.start;
        while start < tiles.end {
            let (count, _, values) = walk.run(start..tiles.end);
            let next = tiles.end..(tiles.end + TILES).min(all.end() + 1);
            let coming = if next.is_empty() { &[] } else { walk.run(next).1 };
            let weights: &[Tile] = scratch.weights.as_chunks().0;
            let place = start - group * TILES..start - group * TILES + count;
            for part in 0..n_parts {
                let values = Words { data: &values[part * LANES..], stride: shape.lanes() };
                for pair in 0..n_pairs {
                    let sums = &mut scratch.gathered[pair * n_parts + part];
                    let rows = two_strips(weights, pair, n_strips, place.clone(), TILES);
                    let coming = share(coming, part * n_pairs + pair, n_parts * n_pairs);
                    unit.multiply(rows, values, !(is_first && start == tiles.start), sums, coming);
                }
            }
            start += count;
        }
        is_first = false;
    }
    for (row, softmax) in scratch.softmax.iter().enumerate() {
        let share = 1.0 / softmax.total();
        let gathered = &scratch.gathered[row / (2 * ROWS) * n_parts..][..n_parts];
        for (out, sums) in made.row(row).chunks_mut(LANES).zip(gathered) {
            out.iter_mut().zip(&sums.0[row % (2 * ROWS)]).for_each(|(out, x)| *out = x * share + 0.0);
        }
    }
}

/// The tiles `part` of each strip of a pair, for a product; a strip has `width` tiles. The second
/// is `None` where the last pair has one strip.
fn two_strips(
    tiles: &[Tile],
    pair: usize,
    n_strips: usize,
    part: Range<usize>,
    width: usize,
) -> (&[Tile], Option<&[Tile]>) {
    let strip = |strip: usize| &tiles[strip * width..][part.clone()];
    (strip(2 * pair), (2 * pair + 1 < n_strips).then(|| strip(2 * pair + 1)))
}

/// Turns the scores of the tiles `tiles`, all of one group, into weights, and scales what was
/// gathered before to the new highest scores. In the first group nothing was, and the sums may hold
/// anything.
#[target_feature(enable = "avx512f,avx512bf16")]
fn weigh(walk: &Walk<'_>, tiles: Range<usize>, is_first: bool, scratch: &mut Scratch) {
    let Settings { shape, scale, soft_cap, .. } = walk.settings;
    let n_parts = shape.lanes() / LANES;
    let Scratch { scores, weights, gathered, softmax, .. } = scratch;
    let (weights, _) = weights.as_chunks_mut::<WORDS>();
    for (row, softmax) in softmax.iter_mut().enumerate() {
        let (strip, pair, seen) = (row / ROWS, row / (2 * ROWS), walk.keys_seen(row));
        let of_tiles = tiles.clone().zip(&mut weights[strip * TILES..][tiles.start % TILES..]);
        let of_tiles = of_tiles.map(|(tile, weights)| {
            let weights: &mut [u32] = &mut weights[row % ROWS * PAIRS..][..PAIRS];
            let weights = weights.as_mut_array().unwrap_or_else(|| unreachable!("a row of a tile"));
            (&scores[pair * TILES + tile % TILES].0[row % (2 * ROWS)], places(&seen, tile), weights)
        });
        let shrink = softmax.take_tiles(scale, soft_cap, of_tiles);
        if shrink != 1.0 && !is_first {
            for sums in &mut gathered[pair * n_parts..][..n_parts] {
                sums.0[row % (2 * ROWS)].iter_mut().for_each(|x| *x *= shrink);
            }
        }
    }
}
