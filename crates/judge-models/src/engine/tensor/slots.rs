//! Keys and values of a batch whose texts are being written, and what blocks without keys remember:
//! the [`Past`] of `run.rs`.
//!
//! Room is made once, for whole prompts with their padding and for the new tokens behind them, so
//! that no pass changes a shape. Columns of a batch with prompts of 3 and 5 tokens, `seq` 6 and
//! `new` 4, when the third new token is fed (`step` 2):
//!
//! ```text
//! column      0  1  2  3  4  5 | 6  7  8  9
//! prompt of 3 a  b  c  ·  ·  · | x  y  z  ·      · hidden: padding, or not written yet
//! prompt of 5 a  b  c  d  e  · | x  y  z  ·
//! position    of row 0: a 0, b 1, c 2, x 3, y 4, z 5
//! ```
//!
//! All sequences write a new token into the same column. A short prompt so has a gap before its new
//! tokens, which a mask hides. Keys are rotated by their true positions, so columns mean nothing to
//! attention.
//!
//! A pass is: [`Decoder::forward`](super::decoder::Decoder::forward) with these slots, then
//! [`Slots::advance`]. The first one feeds the prompts, each later one a token.

use burn::tensor::{Bool, Device, Tensor, TensorData};

use super::masks::{MaskKind, Masks};
use super::past::{KeysValues, Memory, Past};

/// Room for keys and values of a batch, and how far its texts are.
pub(crate) struct Slots {
    /// For each block, keys and values of all columns, `[batch, n_kv_heads, seq + new, head_dim]`
    /// each, on the block's device. `None` before the prompts, and for blocks without keys of their
    /// own.
    blocks: Vec<Option<KeysValues>>,
    /// For each block without keys, what it remembers behind the last pass.
    memories: Vec<Option<Memory>>,
    /// Lengths of the prompts, without padding, by row.
    lens: Vec<usize>,
    /// Columns of the prompts.
    seq: usize,
    /// Columns of new tokens.
    new: usize,
    /// The new token that the coming pass feeds, counted from 0; `None`: it feeds the prompts.
    step: Option<usize>,
}

impl Slots {
    /// Room for prompts of the given lengths, each padded to `seq`, and at most `new` tokens behind
    /// each. Memory on devices is taken when the prompts are fed.
    pub(crate) fn new(n_layers: usize, lens: Vec<usize>, seq: usize, new: usize) -> Self {
        Self { blocks: vec![None; n_layers], memories: vec![None; n_layers], lens, seq, new, step: None }
    }

    /// Says that a pass is over: the next one feeds the next new token.
    pub(crate) fn advance(&mut self) {
        self.step = Some(self.step.map_or(0, |step| step + 1));
    }

    /// For each sequence, the position of the token that the coming pass feeds to it.
    pub(crate) fn positions(&self) -> Vec<usize> {
        self.lens.iter().map(|len| len + self.step.unwrap_or(0)).collect()
    }

    /// Whether a column is hidden from the query of new token `step` of a sequence with `len`
    /// prompt tokens: padding, columns not written yet, and positions before the window.
    fn is_hidden(&self, column: usize, len: usize, step: usize, window: Option<usize>) -> bool {
        let position = match column.checked_sub(self.seq) {
            None if column < len => column,
            Some(new) if new <= step => len + new,
            _ => return true, // padding, or not written yet
        };
        window.is_some_and(|window| position + window <= len + step)
    }
}

impl Past for Slots {
    /// Of prompts, keeps keys and values with their padding and returns them as they are, so that
    /// they are attended to without room for new tokens. Of new tokens, puts them into their column
    /// and returns all columns.
    fn extend(&mut self, block: usize, (keys, values): KeysValues) -> KeysValues {
        let [batch, heads, _, head_dim] = keys.dims();
        let (column, kept) = match (self.step, self.blocks[block].take()) {
            (Some(step), Some(kept)) => (self.seq + step, kept),
            _ => {
                let room = Tensor::zeros([batch, heads, self.new, head_dim], (&keys.device(), keys.dtype()));
                // [batch, heads, seq, head_dim], [.., new, ..] -> [.., seq + new, ..]
                let all = |x: &Tensor<4>| Tensor::cat(vec![x.clone(), room.clone()], 2);
                self.blocks[block] = Some((all(&keys), all(&values)));
                return (keys, values);
            }
        };
        let place = [0..batch, 0..heads, column..column + 1, 0..head_dim];
        let kept = (kept.0.slice_assign(place.clone(), keys), kept.1.slice_assign(place, values));
        self.blocks[block] = Some(kept.clone());
        kept
    }

    /// A copy of what the block remembers, which costs nothing: tensors share their numbers.
    fn memory(&self, block: usize) -> Option<Memory> {
        self.memories[block].clone()
    }

    /// Keeps the last `kernel - 1` rows of each sequence before its padding.
    fn remember(&mut self, block: usize, rows: Tensor<3>, heads: Option<Tensor<4>>) {
        let [_, columns, channels] = rows.dims();
        // Columns before the first of this pass, of which there are as many as it takes to go on.
        let before = columns - if self.step.is_none() { self.seq } else { 1 };
        let new = |len: &usize| if self.step.is_none() { *len } else { 1 };
        let last = self.lens.iter().enumerate().map(|(row, len)| {
            rows.clone().slice([row..row + 1, new(len)..new(len) + before, 0..channels]) // -> [1, kernel - 1, channels]
        });
        self.memories[block] = Some((Tensor::cat(last.collect(), 0), heads));
    }

    /// There is padding in the pass over prompts alone.
    fn is_there(&self, seq: usize, device: &Device) -> Option<Tensor<3>> {
        if self.step.is_some() {
            return None;
        }
        let there = self.lens.iter().flat_map(|&len| (0..seq).map(move |at| if at < len { 1.0_f32 } else { 0.0 }));
        let data = TensorData::new(there.collect::<Vec<_>>(), [self.lens.len(), seq, 1]);
        Some(Tensor::from_data(data, device))
    }

    /// For new tokens a mask of every kind, `[batch * n_kv_heads, 1, 1, seq + new]`. Prompts need
    /// none but for windows.
    fn masks(&self, kinds: &[MaskKind], device: &Device) -> Option<Masks> {
        let step = self.step?;
        let (batch, columns) = (self.lens.len(), self.seq + self.new);
        Some(Masks::new(kinds, |MaskKind { window, n_kv_heads }| {
            let hidden: Vec<bool> = self
                .lens
                .iter()
                .flat_map(|&len| (0..columns).map(move |column| self.is_hidden(column, len, step, window)))
                .collect();
            let mask = Tensor::<3, Bool>::from_data(TensorData::new(hidden, [batch, 1, columns]), device);
            // The same for all key heads of a sequence: [batch, 1, columns] -> [batch, n_kv_heads, columns]
            let mask = mask.expand([batch, n_kv_heads, columns]);
            Some(mask.reshape([batch * n_kv_heads, 1, 1, columns]))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_sees_its_prompt_and_what_was_written() {
        let slots = Slots::new(1, vec![3, 5], 6, 4);
        let seen = |len, step, window| {
            (0..10).filter(|&column| !slots.is_hidden(column, len, step, window)).collect::<Vec<_>>()
        };
        assert_eq!(seen(3, 0, None), [0, 1, 2, 6]);
        assert_eq!(seen(5, 2, None), [0, 1, 2, 3, 4, 6, 7, 8]);
        // Positions 0 to 4 are the prompt's, 5 to 7 new: the last three of them.
        assert_eq!(seen(5, 2, Some(3)), [6, 7, 8]);
        assert_eq!(seen(5, 1, Some(4)), [3, 4, 6, 7]);
    }
}
