//! How keys and values lie in memory, and which block uses which part of it.
//!
//! [`KeyShape`] owns the sizes of tiles, which `kv_cache.rs` writes and `attention.rs` reads.
//! [`KvLayout`] assigns each block a place for its keys. `load.rs` makes two assignments for a
//! model, once: one for keys that last, one for keys of a single pass.
//!
//! # Tiles
//!
//! A tile holds [`TILE`] positions of one key head. Tiles begin at multiples of [`TILE`] positions
//! of the sequence, whichever sequence computed them. Attention therefore sums in the same order however a
//! sequence was cut.
//!
//! ```text
//! keys    [words][TILE]       word w of column t: coordinates 2w, 2w+1 of key t     (single: coordinate w)
//! values  [TILE/2][lanes]     word c of row t/2: coordinate c of values t, t+1      (single: [TILE][lanes])
//! ```
//!
//! Both are tiles of `tile.rs`: a query meets a key tile along coordinates, and weights meet a
//! value tile along positions.

use judge_kernels::softmax::TILE;
use judge_kernels::tile::{LANES, Word};

use judge_arch::{BlockSpec, KeysSpec};

/// Pairs that one instruction of the matrix unit sums; `unit::PAIRS`, which exists on x86-64 alone.
const STEP: usize = 16;

/// The heads of a block's keys and values, and how their numbers are stored.
///
/// ```text
/// 8 key heads of 128 coordinates, in pairs: a key or value tile is 2,048 words (8 KiB),
/// one position takes 2 * 8 * 64 words (4 KiB) in each block
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyShape {
    /// Key heads; several query heads may share one.
    pub(crate) n_kv_heads: usize,
    /// Coordinates of one head.
    pub(crate) head_dim: usize,
    /// What one word holds: pairs of bf16, or single f32 numbers.
    pub(crate) word: Word,
}

impl KeyShape {
    /// Words of one head's coordinates, without padding.
    pub(crate) fn words(self) -> usize {
        self.word.count(self.head_dim)
    }

    /// Coordinates of a head in a row of values, padded to whole [`LANES`].
    pub(crate) fn lanes(self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// Words of a tile of keys, `[words][TILE]`. For pairs, `words` is padded with zeros to whole
    /// steps of the matrix unit, whatever the kernel.
    pub(crate) fn key_tile(self) -> usize {
        TILE * match self.word {
            Word::Pair => self.words().next_multiple_of(STEP),
            Word::Single => self.words(),
        }
    }

    /// Words of a tile of values: `[TILE / 2][lanes]` for pairs, where a word has one coordinate of
    /// two successive values, or `[TILE][lanes]` for single numbers.
    pub(crate) fn value_tile(self) -> usize {
        self.word.count(TILE) * self.lanes()
    }
}

/// The places that [`KvCache`](super::kv_cache::KvCache) have room for, and which of them each block uses.
/// What a block without keys remembers lies by place as well.
///
/// ```text
/// Gemma 4, eight blocks (s sliding, F full attention); blocks 5 and 7 look at the keys of 2, block 6 at those of 4
/// block      0 1 2 3 4 5 6 7
///            s s F s s F s F
/// lasting    0 1 2 3 4 2 4 2     every block with keys has its own place
/// in turn    0 0 1 0 2 1 2 1     0, 1 and 3 overwrite one another; what others look at stays
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KvLayout {
    /// The place of each block. Blocks beyond the list use the last entry.
    of: Vec<usize>,
    /// The shape of the keys in each place.
    shapes: Vec<KeyShape>,
    /// The most keys, its own included, that a query of any block using the place sees; `None`: all.
    windows: Vec<Option<usize>>,
}

impl KvLayout {
    /// For `n_blocks` blocks, at least one, whose keys have one shape. Each gets its own place.
    /// With `n_blocks` 1 that place serves every block in turn.
    pub(crate) fn alike(shape: KeyShape, n_blocks: usize) -> Self {
        Self { of: (0..n_blocks).collect(), shapes: vec![shape; n_blocks], windows: vec![None; n_blocks] }
    }

    /// For keys that later passes look at: every block that projects keys has its own place, and a
    /// block that looks at another's keys has that one's.
    pub(crate) fn lasting(blocks: &[BlockSpec], word: Word) -> Self {
        Self::new(blocks, word, |_, _| None)
    }

    /// For keys that no later pass looks at: blocks with equal shapes use one place in turn, and
    /// each overwrites the keys of the one before. A block whose keys another looks at keeps a
    /// place of its own. A sequence that is only read then needs the memory of one block's keys,
    /// not of all.
    pub(crate) fn in_turn(blocks: &[BlockSpec], word: Word) -> Self {
        let is_alone = |block: usize| blocks.iter().all(|other| other.keys != KeysSpec::Of(block));
        Self::new(blocks, word, |places, block| {
            let shape = shape(&blocks[block], word);
            let before =
                (0..block).filter(|&before| is_alone(before) && !matches!(blocks[before].keys, KeysSpec::Of(_)));
            let same = before.map(|before| places.of[before]).find(|&place| places.shapes[place] == shape);
            same.filter(|_| is_alone(block))
        })
    }

    /// Assigns places block by block. `taken` is asked about each block that projects keys: it
    /// returns a place of an earlier block to share, or `None` for a new one.
    fn new(blocks: &[BlockSpec], word: Word, taken: impl Fn(&Self, usize) -> Option<usize>) -> Self {
        let mut places = Self { of: Vec::with_capacity(blocks.len()), shapes: Vec::new(), windows: Vec::new() };
        for (index, block) in blocks.iter().enumerate() {
            let place = match block.keys {
                KeysSpec::Of(other) => places.of[other],
                KeysSpec::Own | KeysSpec::AsValues => taken(&places, index).unwrap_or_else(|| {
                    places.shapes.push(shape(block, word));
                    places.windows.push(block.window);
                    places.shapes.len() - 1
                }),
            };
            // The widest window of all blocks that use the place; `None` is wider than any.
            let widest = places.windows[place].zip(block.window).map(|(one, other)| one.max(other));
            places.windows[place] = widest;
            places.of.push(place);
        }
        places
    }

    /// Number of places.
    pub(super) fn count(&self) -> usize {
        self.shapes.len()
    }

    /// The place of the keys that a block looks at.
    pub(super) fn of(&self, block: usize) -> usize {
        self.of.get(block).or(self.of.last()).copied().unwrap_or(0)
    }

    /// The positions of a place that no block looks at any more from `position` on: those before
    /// the returned one, which begins a tile.
    pub(super) fn left_behind(&self, place: usize, position: usize) -> usize {
        self.windows[place].map_or(0, |window| (position + 1).saturating_sub(window) / TILE * TILE)
    }

    /// The shape of the keys that a block looks at.
    pub(super) fn shape(&self, block: usize) -> KeyShape {
        self.shapes[self.of(block)]
    }
}

/// The shape that a block's keys have.
fn shape(block: &BlockSpec, word: Word) -> KeyShape {
    KeyShape { n_kv_heads: block.heads.n_kv_heads, head_dim: block.heads.head_dim, word }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use judge_arch::ModelSpec;

    #[test]
    fn blocks_share_places_where_their_keys_may_lie_in_turn() {
        // The last three have the keys of others: 5 and 7 of 2, 6 of 4.
        let is_full = [false, false, true, false, false, true, false, true];
        let kinds = is_full.map(|is_full| if is_full { "full_attention" } else { "sliding_attention" });
        let config = json!({
            "model_type": "gemma4_text", "num_hidden_layers": 8, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 8, "global_head_dim": 16, "num_kv_shared_layers": 3, "layer_types": kinds, "vocab_size": 50
        });
        let spec = ModelSpec::from_json(&config).unwrap();
        let lasting = KvLayout::lasting(&spec.blocks, Word::Pair);
        assert_eq!(lasting.of, [0, 1, 2, 3, 4, 2, 4, 2]);
        let in_turn = KvLayout::in_turn(&spec.blocks, Word::Pair);
        assert_eq!(in_turn.of, [0, 0, 1, 0, 2, 1, 2, 1]);
        assert_eq!(in_turn.shapes.iter().map(|shape| shape.head_dim).collect::<Vec<_>>(), [8, 16, 8]);
        let llama = json!({ "model_type": "llama", "num_hidden_layers": 3 });
        let llama = ModelSpec::from_json(&llama).unwrap();
        assert_eq!(KvLayout::in_turn(&llama.blocks, Word::Pair).of, [0, 0, 0]);
        assert_eq!(KvLayout::lasting(&llama.blocks, Word::Pair).of, [0, 1, 2]);
        assert_eq!(KvLayout::alike(in_turn.shape(0), 1).of(7), 0);
        // Windows are of 512 keys; places of blocks without a window are needed whole.
        let behind =
            |position| (0..lasting.count()).map(|place| lasting.left_behind(place, position)).collect::<Vec<_>>();
        assert_eq!(behind(511), [0; 5]);
        assert_eq!(behind(511 + 2 * TILE), [2 * TILE, 2 * TILE, 0, 2 * TILE, 2 * TILE]);
        assert_eq!(behind(510 + 2 * TILE), [TILE, TILE, 0, TILE, TILE]);
    }
}
