//! The places of a tile of scores.

use std::ops::Range;

/// Positions in a tile of keys or values. It is also the number of lanes of a kernel's product.
pub const TILE: usize = 32;

/// The places as bits, the first place in the lowest bit. Places are at most [`TILE`].
pub(crate) fn mask(seen: Range<usize>) -> u32 {
    // All 32 if `end` is 32.
    let below = |end: usize| ((1_u64 << end) - 1) as u32;
    below(seen.end) & !below(seen.start.min(seen.end))
}
