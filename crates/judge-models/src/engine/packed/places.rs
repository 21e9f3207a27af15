//! What keys and values look like, and where those of a model's blocks lie: blocks may differ in their heads, and some look at the keys of another.

use super::tile::{LANES, Word};
use crate::arch::{BlockSpec, KeysSpec};

/// Keys per tile. A sequence's tiles begin at multiples of it, whoever computed them, so that attention sums in the same order
/// however a sequence was cut.
pub(crate) const TILE: usize = 32;

/// Pairs that the matrix unit sums at once.
const STEP: usize = 16;

/// What keys and values look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyShape {
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
    /// What a word holds.
    pub(crate) word: Word,
}

impl KeyShape {
    /// Words of a head's coordinates.
    pub(crate) fn words(self) -> usize {
        self.word.count(self.head_dim)
    }

    /// Coordinates of a head, up to whole lanes.
    pub(crate) fn lanes(self) -> usize {
        self.head_dim.next_multiple_of(LANES)
    }

    /// Words of a tile of keys: `[words][TILE]`, one coordinate of a key or two successive ones to a word. Pairs have zeros behind the
    /// last, up to whole steps of the matrix unit.
    pub(crate) fn key_tile(self) -> usize {
        TILE * match self.word {
            Word::Pair => self.words().next_multiple_of(STEP),
            Word::Single => self.words(),
        }
    }

    /// Words of a tile of values: `[TILE][lanes]`, or `[TILE / 2][lanes]` with one coordinate of two successive values to a word.
    pub(crate) fn value_tile(self) -> usize {
        self.word.count(TILE) * self.lanes()
    }
}

/// The places that [`Keys`](super::keys::Keys) have, and which of them each block looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlaces {
    /// By block; blocks behind the last have its place.
    of: Vec<usize>,
    /// By place.
    shapes: Vec<KeyShape>,
}

impl KeyPlaces {
    /// For `n_blocks` blocks, at least one, with keys of one shape, each its own place; one alone serves all blocks in turn.
    pub(crate) fn alike(shape: KeyShape, n_blocks: usize) -> Self {
        Self { of: (0..n_blocks).collect(), shapes: vec![shape; n_blocks] }
    }

    /// For keys that later passes look at: each block has its own place, or that of the block whose keys it looks at.
    pub(crate) fn lasting(blocks: &[BlockSpec], word: Word) -> Self {
        Self::new(blocks, word, |_, _| None)
    }

    /// For keys of one pass: blocks with such heads use a place in turn, but for those whose keys others look at.
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

    /// `taken` says which place a block with keys of its own may use that an earlier block has.
    fn new(blocks: &[BlockSpec], word: Word, taken: impl Fn(&Self, usize) -> Option<usize>) -> Self {
        let mut places = Self { of: Vec::with_capacity(blocks.len()), shapes: Vec::new() };
        for (index, block) in blocks.iter().enumerate() {
            let place = match block.keys {
                KeysSpec::Of(other) => places.of[other],
                KeysSpec::Own | KeysSpec::AsValues => taken(&places, index).unwrap_or_else(|| {
                    places.shapes.push(shape(block, word));
                    places.shapes.len() - 1
                }),
            };
            places.of.push(place);
        }
        places
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.shapes.len()
    }

    /// The place of the keys that a block looks at.
    pub(super) fn of(&self, block: usize) -> usize {
        self.of.get(block).or(self.of.last()).copied().unwrap_or(0)
    }

    /// What the keys look like that a block looks at.
    pub(super) fn shape(&self, block: usize) -> KeyShape {
        self.shapes[self.of(block)]
    }
}

fn shape(block: &BlockSpec, word: Word) -> KeyShape {
    KeyShape { n_kv_heads: block.heads.n_kv_heads, head_dim: block.heads.head_dim, word }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arch::ModelSpec;

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
        let lasting = KeyPlaces::lasting(&spec.blocks, Word::Pair);
        assert_eq!(lasting.of, [0, 1, 2, 3, 4, 2, 4, 2]);
        let in_turn = KeyPlaces::in_turn(&spec.blocks, Word::Pair);
        assert_eq!(in_turn.of, [0, 0, 1, 0, 2, 1, 2, 1]);
        assert_eq!(in_turn.shapes.iter().map(|shape| shape.head_dim).collect::<Vec<_>>(), [8, 16, 8]);
        let llama = json!({ "model_type": "llama", "num_hidden_layers": 3 });
        let llama = ModelSpec::from_json(&llama).unwrap();
        assert_eq!(KeyPlaces::in_turn(&llama.blocks, Word::Pair).of, [0, 0, 0]);
        assert_eq!(KeyPlaces::lasting(&llama.blocks, Word::Pair).of, [0, 1, 2]);
        assert_eq!(KeyPlaces::alike(in_turn.shape(0), 1).of(7), 0);
    }
}
