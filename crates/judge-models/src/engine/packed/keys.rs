//! Keys and values of some positions of a sequence, packed for attention, and what blocks without keys remember of its past.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::conv::Memory;
use super::lines::Lines;
use super::places::KeyPlaces;
pub(crate) use super::places::{KeyShape, TILE};
use super::tile::Word;
use super::vector::bf16_bits;

/// Keys and values of positions `start..end` of one sequence, in every block or in the one at work. Where those before end within a tile, the
/// part that is there is copied, so that whoever looks at a tile finds it whole.
pub(crate) struct Keys {
    places: Arc<KeyPlaces>,
    /// The beginning of a tile.
    start: usize,
    end: usize,
    /// Tiles that there is room for.
    tiles: usize,
    /// By place.
    blocks: Vec<BlockKeys>,
    /// As many.
    memories: Vec<Option<Remembered>>,
    before: Option<Arc<Keys>>,
}

/// What one block remembers of the positions before `end`.
struct Remembered {
    block: usize,
    end: usize,
    memory: Memory,
}

/// Those of one block: by head, then by tile. There is no room before something is written.
#[derive(Default)]
struct BlockKeys {
    keys: Lines<u32>,
    values: Lines<u32>,
}

impl Keys {
    /// Room for `capacity` positions behind those of `before`, in these places.
    pub(crate) fn new(places: Arc<KeyPlaces>, before: Option<Arc<Self>>, capacity: usize) -> Self {
        let end = before.as_ref().map_or(0, |before| before.end);
        let start = end / TILE * TILE;
        let tiles = (end - start + capacity).div_ceil(TILE);
        let memories = (0..places.count()).map(|_| None).collect();
        let blocks = (0..places.count()).map(|_| BlockKeys::default()).collect();
        Self { places, start, end, tiles, blocks, memories, before }
    }

    /// The same for blocks with keys of one shape: a place for each, or one for all that no later pass looks at.
    pub(crate) fn alike(shape: KeyShape, before: Option<Arc<Self>>, capacity: usize, n_blocks: usize) -> Self {
        Self::new(Arc::new(KeyPlaces::alike(shape, n_blocks.max(1))), before, capacity)
    }

    /// How many positions there are, from the sequence's beginning.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Says that `count` more positions have been written in all blocks.
    pub(crate) fn advance(&mut self, count: usize) {
        self.end += count;
    }

    /// Forgets the positions that were written, so that those of another block can take their place.
    pub(crate) fn clear(&mut self) {
        self.end = self.before.as_ref().map_or(0, |before| before.end);
    }

    /// Those before these.
    #[cfg(test)]
    pub(crate) fn before(&self) -> Option<&Self> {
        self.before.as_deref()
    }

    /// Positions that there is room for, those before apart.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.tiles * TILE
    }

    /// What block `block` remembers of the positions that are there, `new` before the first. The block is to move it behind `count` more positions.
    pub(crate) fn memory(&mut self, block: usize, count: usize, new: impl FnOnce() -> Memory) -> &mut Memory {
        let (place, end) = (self.places.of(block), self.end);
        let own = self.memories[place].take().filter(|own| own.block == block && own.end == end);
        let memory = match own {
            Some(own) => own.memory,
            None => self.inherited(block).unwrap_or_else(new),
        };
        &mut self.memories[place].insert(Remembered { block, end: end + count, memory }).memory
    }

    /// What the block remembered where those before end. Others may begin there too, so it is copied.
    fn inherited(&self, block: usize) -> Option<Memory> {
        let before = self.before.as_ref()?;
        let there = before.memories[before.places.of(block)].as_ref();
        let there = there.filter(|there| there.block == block && there.end == self.end);
        debug_assert!(there.is_some(), "block {block} forgot what came before position {}", self.end);
        Some(there?.memory.clone())
    }

    /// Copies the tile that those before leave unfinished, if nothing has been written behind it.
    fn take_over(&mut self, block: usize) {
        let Some(before) = self.before.clone().filter(|before| before.end == self.end && self.end > self.start) else {
            return;
        };
        let Self { start, tiles, .. } = *self;
        let (place, shape) = (self.places.of(block), self.places.shape(block));
        let BlockKeys { keys, values } = &mut self.blocks[place];
        for head in 0..shape.n_kv_heads {
            let (begun_keys, begun_values) = before.tile(block, head, start / TILE);
            keys[head * tiles * shape.key_tile()..][..shape.key_tile()].copy_from_slice(begun_keys);
            values[head * tiles * shape.value_tile()..][..shape.value_tile()].copy_from_slice(begun_values);
        }
    }

    /// Puts keys and values of new positions behind those that are there. `rows` are `count` rows of a matrix whose rows are `stride`
    /// apart and begin with the keys `[n_kv_heads, head_dim]`, followed by the values.
    pub(crate) fn write(&mut self, block: usize, rows: &[f32], stride: usize, count: usize) {
        let tiles = self.tiles;
        let (place, shape) = (self.places.of(block), self.places.shape(block));
        if self.blocks[place].keys.is_empty() {
            let [keys, values] =
                [shape.key_tile(), shape.value_tile()].map(|tile| Lines::zeros(shape.n_kv_heads * tiles * tile));
            self.blocks[place] = BlockKeys { keys, values };
        }
        self.take_over(block);
        let first = self.end - self.start;
        let BlockKeys { keys, values } = &mut self.blocks[place];
        let row = |i: usize, head: usize, at: usize| {
            let start = i * stride + (at * shape.n_kv_heads + head) * shape.head_dim;
            &rows[start..start + shape.head_dim]
        };
        keys.par_chunks_exact_mut((tiles * shape.key_tile()).max(1)).enumerate().for_each(|(head, keys)| {
            let mut words = vec![0; shape.words()];
            for i in 0..count {
                shape.word.pack(row(i, head, 0), &mut words);
                let (tile, lane) = ((first + i) / TILE, (first + i) % TILE);
                let tile = &mut keys[tile * shape.key_tile()..][..shape.key_tile()];
                tile.iter_mut().skip(lane).step_by(TILE).zip(&words).for_each(|(to, &word)| *to = word);
            }
            // What lies behind the last position may be another sequence's, and must not be NaN.
            for after in first + count..(first + count).next_multiple_of(TILE) {
                let tile = &mut keys[after / TILE * shape.key_tile()..][..shape.key_tile()];
                tile.iter_mut().skip(after % TILE).step_by(TILE).for_each(|word| *word = 0);
            }
        });
        values.par_chunks_exact_mut((tiles * shape.value_tile()).max(1)).enumerate().for_each(|(head, values)| {
            for i in 0..count {
                // The word of the last of so many positions.
                let at = shape.word.count(first + i + 1) - 1;
                let lanes = values[at * shape.lanes()..][..shape.head_dim].iter_mut().zip(row(i, head, 1));
                match (shape.word, (first + i) % 2) {
                    (Word::Single, _) => lanes.for_each(|(word, x)| *word = x.to_bits()),
                    (Word::Pair, 0) => lanes.for_each(|(word, &x)| *word = bf16_bits(x)),
                    (Word::Pair, _) => lanes.for_each(|(word, &x)| *word = *word & 0xffff | bf16_bits(x) << 16),
                }
            }
            // The other half of the last pair is zero already: its first half is written with a zero beside it.
            let (from, to) =
                (shape.word.count(first + count), shape.word.count((first + count).next_multiple_of(TILE)));
            values[from * shape.lanes()..to * shape.lanes()].fill(0);
        });
    }

    /// Tile `tile` of a head in a block, keys and values, counted from the sequence's beginning.
    pub(crate) fn tile(&self, block: usize, head: usize, tile: usize) -> (&[u32], &[u32]) {
        let (_, keys, values) = self.run(block, head, tile..tile + 1);
        (keys, values)
    }

    /// As many of the tiles, which are some, as lie behind one another, from the first on: how many, their keys and their values.
    pub(crate) fn run(&self, block: usize, head: usize, tiles: Range<usize>) -> (usize, &[u32], &[u32]) {
        let Range { start, mut end } = tiles;
        let mut holder = self;
        while start * TILE < holder.start {
            // Those before go on at least to where these begin.
            let Some(before) = holder.before.as_deref() else { break };
            end = end.min(holder.start / TILE);
            holder = before;
        }
        let (shape, count) = (holder.places.shape(block), end - start);
        let index = head * holder.tiles + start - holder.start / TILE;
        let BlockKeys { keys, values } = &holder.blocks[holder.places.of(block)];
        (
            count,
            &keys[index * shape.key_tile()..][..count * shape.key_tile()],
            &values[index * shape.value_tile()..][..count * shape.value_tile()],
        )
    }
}
