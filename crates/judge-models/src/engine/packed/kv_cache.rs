//! Keys and values of some positions of a sequence, packed for attention, and what blocks without
//! keys remember of its past.
//!
//! Owns the memory of keys, its layout, and how sequences share the keys of a common prefix. It
//! does not own which block has which place (`kv_layout.rs`), what a memory holds (`conv.rs`), or when
//! a sequence is over (`run.rs` for decoders; `encoder.rs` keeps keys for one pass).
//!
//! A decoder's passes use a [`KvCache`] like this:
//!
//! ```text
//! run.rs       KvCache::new(places, prefix, room)                       before a segment's first pass
//! block_ops.rs write(block, rows) for each block, memory(block)      during the pass, `end` stays
//! run.rs       advance(count)                                        after the pass
//!              free_left()                                           then too: what windows have left
//!              go_on(room)                                           of a text that has filled these
//! attention.rs tile or run                                           from `write` on
//! ```
//!
//! Sequences that share a prefix refer to its holder through `before` instead of copying it. Tiles
//! are at multiples of [`TILE`] of the sequence, so a prefix that ends within a tile leaves one
//! that is not full. A sequence that continues from it copies that tile and appends to the copy:
//!
//! ```text
//! position      0        32        64   70        96
//! prefix A      | tile 0 | tile 1  | 2 .|                            start 0,  end 70
//!   B, from A                      | 2 .....| tile 3 | …             start 64, copies positions 64 .. 69 of A
//!   C, from A                      | 2 .....| …                      start 64, likewise
//! ```
//!
//! So every tile is whole in one holder: a tile from `start` on is in this one, an earlier one in
//! the nearest predecessor that reaches as far back.
//!
//! Within a holder and a place, tiles lie by head and then by position:
//!
//! ```text
//! keys       [n_kv_heads][tiles][words][TILE]         word w of 32 keys side by side
//! values     [n_kv_heads][tiles][32 or 16][lanes]     one coordinate of a value, or of two successive ones, to a word
//! ```
//!
//! What lies behind the last position of a tile is zero: products read it, and the mask gives it
//! the weight 0, which only leaves sums alone if the numbers are finite.

use std::ops::Range;
use std::sync::Arc;

use judge_kernels::lines::Lines;
use judge_kernels::softmax::TILE;
use judge_kernels::tile::Word;
use judge_kernels::vector::bf16_bits;
use rayon::prelude::*;

use super::conv::Memory;
pub(crate) use super::kv_layout::KeyShape;
use super::kv_layout::KvLayout;

/// Keys and values of positions `start..end` of one sequence, in every place; with in-turn places,
/// of the blocks that wrote last. Those before lie in `before`. Where those end within a tile, the
/// part that is there is copied, so that a reader of a tile finds it whole.
pub(crate) struct KvCache {
    /// Which place each block has, and the shape of its keys.
    places: Arc<KvLayout>,
    /// The first position that is held here, at the beginning of a tile.
    start: usize,
    /// The position behind the last one that all blocks have written.
    end: usize,
    /// Tiles that there is room for, from `start` on.
    tiles: usize,
    /// Keys and values, `[places]`.
    blocks: Vec<BlockKeys>,
    /// Memories of blocks without keys, `[places]`; `None` where the place's block has keys, or has
    /// not run yet.
    memories: Vec<Option<Remembered>>,
    /// The holder of the positions before these, and of those before it in turn.
    before: Option<Arc<KvCache>>,
}

/// What one block remembers of a sequence, and which block and positions it is of. In places that
/// blocks use in turn this tells whether it is still the right one.
struct Remembered {
    /// The block.
    block: usize,
    /// The position behind the last that the memory has taken.
    end: usize,
    /// The memory itself.
    memory: Memory,
}

/// Keys and values of one place, by head and then by tile. Empty before something is written, so
/// blocks without keys take no room, and again when all windows have left it.
#[derive(Default)]
struct BlockKeys {
    /// `[n_kv_heads, tiles]` tiles of `KeyShape::key_tile` words.
    keys: Lines<u32>,
    /// `[n_kv_heads, tiles]` tiles of `KeyShape::value_tile` words.
    values: Lines<u32>,
}

impl KvCache {
    /// Room for `capacity` positions behind those of `before`, or from the beginning. Memory is
    /// taken at the first write. `before` must keep its positions in places that last, since all
    /// blocks are read there.
    pub(crate) fn new(places: Arc<KvLayout>, before: Option<Arc<Self>>, capacity: usize) -> Self {
        let end = before.as_ref().map_or(0, |before| before.end);
        let start = end / TILE * TILE;
        let tiles = (end - start + capacity).div_ceil(TILE);
        let memories = (0..places.count()).map(|_| None).collect();
        let blocks = (0..places.count()).map(|_| BlockKeys::default()).collect();
        Self { places, start, end, tiles, blocks, memories, before }
    }

    /// [`new`](Self::new) for `n_blocks` blocks whose keys have one shape, each in its own place.
    /// With 1 (or 0) all blocks use one place in turn, whose keys no later pass can look at.
    pub(crate) fn alike(shape: KeyShape, before: Option<Arc<Self>>, capacity: usize, n_blocks: usize) -> Self {
        Self::new(Arc::new(KvLayout::alike(shape, n_blocks.max(1))), before, capacity)
    }

    /// Positions that are there in all blocks, counted from the sequence's beginning: the position
    /// of the next row.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Says that `count` more positions have been written in all blocks. Called once after each
    /// pass.
    pub(crate) fn advance(&mut self, count: usize) {
        self.end += count;
    }

    /// Sets `end` back to where these keys begin, so that another block can write to the same
    /// place.
    pub(crate) fn clear(&mut self) {
        self.end = self.before.as_ref().map_or(0, |before| before.end);
    }

    /// Keys with room for `capacity` positions behind these, which are full. What blocks without keys
    /// remember moves along: no other sequence continues from here.
    pub(crate) fn go_on(mut self, capacity: usize) -> Self {
        let none = self.memories.iter().map(|_| None).collect();
        let memories = std::mem::replace(&mut self.memories, none);
        let places = Arc::clone(&self.places);
        let mut next = Self::new(places, Some(Arc::new(self)), capacity);
        next.memories = memories;
        next
    }

    /// Frees keys and values of the positions before these, holder by holder, in the places where
    /// every window has left all of a holder: no position from `end` on looks at them. It ends at the
    /// first holder that others refer to as well.
    pub(crate) fn free_left(&mut self) {
        let position = self.end;
        let mut holder = self.before.as_mut();
        while let Some(own) = holder.and_then(Arc::get_mut) {
            for (place, block) in own.blocks.iter_mut().enumerate() {
                if own.end <= own.places.left_behind(place, position) {
                    *block = BlockKeys::default();
                }
            }
            holder = own.before.as_mut();
        }
    }

    /// Whether there is no room for another position. The next one then begins a tile, so that keys
    /// which go on from these copy nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.end == self.start + self.tiles * TILE
    }

    /// Numbers of keys and values that are held in the place of a block, those of `before` left out.
    #[cfg(test)]
    pub(crate) fn numbers(&self, block: usize) -> usize {
        let BlockKeys { keys, values } = &self.blocks[self.places.of(block)];
        keys.len() + values.len()
    }

    /// The holder of the positions before these.
    #[cfg(test)]
    pub(crate) fn before(&self) -> Option<&Self> {
        self.before.as_deref()
    }

    /// Positions that there is room for from `start` on, in whole tiles; those of `before` are not
    /// counted.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.tiles * TILE
    }

    /// What block `block` remembers of the positions before `end`: what it left here in the pass
    /// before, else a copy of what it left in `before`, else `new()`. The caller must move it
    /// behind the `count` positions that the block is about to take; it is noted as being there.
    pub(crate) fn memory(&mut self, block: usize, count: usize, new: impl FnOnce() -> Memory) -> &mut Memory {
        let (place, end) = (self.places.of(block), self.end);
        let own = self.memories[place].take().filter(|own| own.block == block && own.end == end);
        let memory = match own {
            Some(own) => own.memory,
            None => self.inherited(block).unwrap_or_else(new),
        };
        &mut self.memories[place].insert(Remembered { block, end: end + count, memory }).memory
    }

    /// A copy of what the block remembers at the end of `before`, which others may go on from as
    /// well. `None` without a `before`. In debug builds it panics if the block left nothing there.
    fn inherited(&self, block: usize) -> Option<Memory> {
        let before = self.before.as_ref()?;
        let there = before.memories[before.places.of(block)].as_ref();
        let there = there.filter(|there| there.block == block && there.end == self.end);
        debug_assert!(there.is_some(), "block {block} forgot what came before position {}", self.end);
        Some(there?.memory.clone())
    }

    /// Copies the tile that `before` leaves unfinished, in one block, unless positions were written
    /// behind it already.
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

    /// Writes keys and values of new positions behind `end`, in one block; `end` stays.
    ///
    /// `rows` has `count` rows that are `stride` numbers apart. Each begins with the keys
    /// `[n_kv_heads, head_dim]`, normed and rotated, followed by the values of the same shape; what
    /// is in front of them is cut off by the caller. Numbers are rounded to nearest, ties to even,
    /// where keys are bf16.
    ///
    /// # Panics
    /// If there is no room for the positions, or `rows` is too short.
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

    /// The keys and values of one tile of a head, counted from the sequence's beginning, in the
    /// layouts of `KeyShape::key_tile` and `KeyShape::value_tile`. The tile must have been written
    /// in this block and not be left by its window, and no other block may have used the place since.
    pub(crate) fn tile(&self, block: usize, head: usize, tile: usize) -> (&[u32], &[u32]) {
        let (_, keys, values) = self.run(block, head, tile..tile + 1);
        (keys, values)
    }

    /// The first few of `tiles`, as many as lie in one holder and so one after another in memory:
    /// their number, at least 1, their keys and their values. `tiles` must not be empty. They must
    /// have been written, as for [`tile`](Self::tile).
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

impl Drop for KvCache {
    /// Drops holders that nobody else refers to one after another. By themselves they would be dropped
    /// by calls nested as deep as the chain is long.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut own) = before.and_then(Arc::into_inner) {
            before = own.before.take();
        }
    }
}
