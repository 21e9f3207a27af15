//! What a pass knows of the positions before its own: their keys and values, and what blocks without keys
//! remember. A pass without slots is over whole sequences and keeps nothing.
//!
//! | slots | made by | the first pass feeds | keep |
//! |---|---|---|---|
//! | of a prefix | [`Slots::of_prefix`] | what sequences begin with, one row, no padding | everything, for passes behind it |
//! | behind a prefix | [`Slots::reading`] | the rest of prompts that are only read | nothing |
//! | of texts | [`Slots::writing`] | prompts, or their rest | everything, for one new token of each row at a time |
//!
//! Columns of texts whose prompts have 3 and 5 tokens, padded to 6, of which the first 2 are a
//! prefix (`seq` is 6), when the third new token is fed (`step` 2):
//!
//! ```text
//! column      0  1  2  3  4  5 | 6  7  8  9
//! prompt of 3 a  b  c  ·  ·  · | x  y  z  ·      · hidden: padding, or not written yet
//! prompt of 5 a  b  d  e  f  · | x  y  z  ·
//! position    of row 0: a 0, b 1, c 2, x 3, y 4, z 5
//! ```
//!
//! All sequences write a new token into the same column. A short prompt so has a gap before its new
//! tokens, which a mask hides. Keys are rotated by their true positions, so columns mean nothing to
//! attention. Positions of columns lie on the devices, where masks are made of them; nothing of a
//! new token comes from the host but the token, where no device has chosen it.
//!
//! Keys and values keep the dtype in which attention takes them.
//!
//! A pass is: [`Decoder::forward`](super::decoder::Decoder::forward) with these slots, then
//! [`Slots::advance`]. Rows whose texts are over leave with [`Slots::retain`]. A pass calls in this order:
//!
//! ```text
//! for each device:   masks(kinds)
//!   for each block:  extend(keys, values)                       attention
//!                    memory, is_there, then remember            delta rule, state space (a convolution asks for no is_there)
//! ```

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::masks::{MaskKind, Masks};

/// Keys and values, each `[n_kv_heads, batch, seq, head_dim]`, or with 1 in the place of `batch` where all rows have the same. Keys are
/// rotated already.
pub(crate) type KeysValues = (Tensor<4>, Tensor<4>);

/// What a block without keys remembers of the positions before: the last rows that its convolution
/// has seen, `[batch, kernel - 1, channels]`, and for a delta rule or a state space the states of its
/// heads, `[batch, n_value_heads, key_dim, value_dim]` or `[batch, n_heads, d_state, head_dim]`.
pub(crate) type Memory = (Tensor<3>, Option<Tensor<4>>);

/// Keys and values of a batch, and how far its passes are. Blocks are numbered from 0.
pub(crate) struct Slots {
    /// For each block, keys and values of the prefix before, in one row, on the block's device. `None` where there is nothing, and for
    /// blocks without keys of their own.
    before: Vec<Option<KeysValues>>,
    /// Likewise of the columns behind it that are there, a row for each sequence. Slots of a prefix have all its columns here, so that what
    /// comes behind it has one prefix before.
    blocks: Vec<Option<KeysValues>>,
    /// For each block without keys, what it remembers behind the last pass; before the first one
    /// what the prefix left, in one row.
    memories: Vec<Option<Memory>>,
    /// Columns of the prefix; 0 if there is none.
    prefix: usize,
    /// Lengths of the prompts, by row: with the prefix, without padding.
    lens: Vec<usize>,
    /// Columns of the prefix and of the first pass.
    seq: usize,
    /// The new token that the coming pass feeds, counted from 0; `None`: the first pass.
    step: Option<usize>,
    /// What is kept for later passes.
    keeps: Keeps,
}

/// What slots keep behind their first pass.
enum Keeps {
    /// Nothing.
    Nothing,
    /// Keys, values and memories.
    Prefix,
    /// The same for texts: at most `new` columns behind the prompts, of which `room` are made at a
    /// time, so that attention does not walk over columns that may never be written.
    Texts {
        /// Most columns of new tokens.
        new: usize,
        /// Columns that are made together; at least 1.
        room: usize,
        /// Where columns are, for each device.
        places: Vec<Places>,
    },
}

/// Positions of texts, on one device.
struct Places {
    /// Lengths of the prompts, `[batch, 1]`.
    lens: Tensor<2, Int>,
    /// The position of each column, `[batch, seq + new]`; at padding one that no query reaches.
    columns: Tensor<2, Int>,
}

impl Places {
    /// Of prompts of these lengths, in `seq` columns.
    fn new(lens: &[usize], seq: usize, new: usize, device: &Device) -> Self {
        let position = |len: usize, column: usize| match column.checked_sub(seq) {
            None if column < len => column as i32,
            None => i32::MAX,
            Some(new) => (len + new) as i32,
        };
        let columns = lens.iter().flat_map(|&len| (0..seq + new).map(move |column| position(len, column)));
        let columns = TensorData::new(columns.collect::<Vec<_>>(), [lens.len(), seq + new]);
        let lens = TensorData::new(lens.iter().map(|&len| len as i32).collect::<Vec<_>>(), [lens.len(), 1]);
        Self { lens: Tensor::from_data(lens, device), columns: Tensor::from_data(columns, device) }
    }
}

impl Slots {
    /// For the pass over `len` positions that sequences begin with, behind a shorter prefix if
    /// there is one. Of `n_layers` blocks.
    pub(crate) fn of_prefix(n_layers: usize, before: Option<&Self>, len: usize) -> Self {
        let seq = before.map_or(0, |before| before.seq) + len;
        Self::new(n_layers, before, vec![seq], len, Keeps::Prefix)
    }

    /// For prompts of the given lengths that are only read, the rest of each behind the prefix
    /// padded to `seq`.
    pub(crate) fn reading(before: &Self, lens: Vec<usize>, seq: usize) -> Self {
        Self::new(before.blocks.len(), Some(before), lens, seq, Keeps::Nothing)
    }

    /// For prompts of the given lengths, what is behind the prefix of each padded to `seq`, and at
    /// most `new` tokens behind each. Columns of new tokens are made when they are needed, `room`
    /// at a time. `devices` are those of a pass.
    pub(crate) fn writing(
        n_layers: usize,
        before: Option<&Self>,
        lens: Vec<usize>,
        seq: usize,
        (new, room): (usize, usize),
        devices: &[Device],
    ) -> Self {
        let columns = before.map_or(0, |before| before.seq) + seq;
        let places = devices.iter().map(|device| Places::new(&lens, columns, new, device)).collect();
        Self::new(n_layers, before, lens, seq, Keeps::Texts { new, room: room.max(1), places })
    }

    /// Slots that begin with what `before` has kept.
    fn new(n_layers: usize, before: Option<&Self>, lens: Vec<usize>, seq: usize, keeps: Keeps) -> Self {
        let prefix = before.map_or(0, |before| before.seq);
        let blocks = vec![None; n_layers];
        let (before, memories) = match before {
            Some(before) => (before.blocks.clone(), before.memories.clone()),
            None => (blocks.clone(), vec![None; n_layers]),
        };
        Self { before, blocks, memories, prefix, lens, seq: prefix + seq, step: None, keeps }
    }

    /// Says that a pass is over: the next one feeds the next new token.
    pub(crate) fn advance(&mut self) {
        self.step = Some(self.step.map_or(0, |step| step + 1));
    }

    /// For each sequence, the position of the token that the coming pass feeds to it: `[batch]` on
    /// each device.
    pub(crate) fn positions(&self) -> Vec<Tensor<1, Int>> {
        let Keeps::Texts { places, .. } = &self.keeps else { return Vec::new() };
        let now = |places: &Places| places.lens.clone().add_scalar(self.step.unwrap_or(0) as i32);
        places.iter().map(|places| now(places).reshape([self.lens.len()])).collect()
    }

    /// Keeps these rows of the batch, in this order, and frees the others.
    pub(crate) fn retain(&mut self, rows: &[usize]) {
        let index: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let index = |device: &Device| Tensor::<1, Int>::from_data(TensorData::from(index.as_slice()), device);
        for (keys, values) in self.blocks.iter_mut().flatten() {
            let rows = index(&keys.device());
            (*keys, *values) = (keys.clone().select(1, rows.clone()), values.clone().select(1, rows));
        }
        for (recent, heads) in self.memories.iter_mut().flatten() {
            let rows = index(&recent.device());
            *recent = recent.clone().select(0, rows.clone());
            *heads = heads.take().map(|heads| heads.select(0, rows));
        }
        if let Keeps::Texts { places, .. } = &mut self.keeps {
            for Places { lens, columns } in places {
                let rows = index(&lens.device());
                (*lens, *columns) = (lens.clone().select(0, rows.clone()), columns.clone().select(0, rows));
            }
        }
        self.lens = rows.iter().map(|&row| self.lens[row]).collect();
    }

    /// Columns of texts that are there when the coming pass has put its token into its own.
    fn columns(&self, step: usize) -> usize {
        match &self.keeps {
            Keeps::Texts { new, room, .. } => self.seq + (step + 1).next_multiple_of(*room).min(*new),
            Keeps::Nothing | Keeps::Prefix => self.seq,
        }
    }

    /// Takes the keys and values that a block has made of this pass's positions, and returns all
    /// that its queries may look at, in the order of their columns: those of the prefix, if there is one, in one row for all, then
    /// those of each row. Columns that hold nothing of a sequence may be among them; [`masks`](Self::masks) hides these.
    ///
    /// In the first pass, keys and values have their padding but no room for new tokens. Of new tokens, puts them into their
    /// column and returns all columns that are there. A prefix behind a prefix becomes one with it.
    pub(crate) fn extend(&mut self, block: usize, (keys, values): KeysValues) -> Vec<KeysValues> {
        let [heads, batch, _, head_dim] = keys.dims();
        let before = self.before[block].clone();
        let kept = self.blocks[block].take();
        let Some((step, kept)) = self.step.zip(kept) else {
            let (before, own) = match (&self.keeps, before) {
                (Keeps::Prefix, Some((k, v))) => {
                    (None, (Tensor::cat(vec![k, keys], 2), Tensor::cat(vec![v, values], 2)))
                }
                (_, before) => (before, (keys, values)),
            };
            self.blocks[block] = match self.keeps {
                Keeps::Nothing => None,
                Keeps::Prefix | Keeps::Texts { .. } => Some(own.clone()),
            };
            return before.into_iter().chain([own]).collect();
        };
        // Kept tensors have one owner here, and are changed in place.
        let (column, columns) = (self.seq + step - self.prefix, self.columns(step) - self.prefix);
        let put = |kept: Tensor<4>, new: Tensor<4>| {
            let [_, _, there, _] = kept.dims();
            let kept = match columns.checked_sub(there).filter(|&more| more > 0) {
                Some(more) => {
                    let room = Tensor::zeros([heads, batch, more, head_dim], (&kept.device(), kept.dtype()));
                    Tensor::cat(vec![kept, room], 2)
                }
                None => kept,
            };
            kept.slice_assign([0..heads, 0..batch, column..column + 1, 0..head_dim], new)
        };
        let kept = (put(kept.0, keys), put(kept.1, values));
        self.blocks[block] = Some(kept.clone());
        before.into_iter().chain([kept]).collect()
    }

    /// What a block without keys remembers; `None` if there is nothing before. The copy costs nothing: tensors share
    /// their numbers.
    pub(crate) fn memory(&self, block: usize) -> Option<Memory> {
        let batch = self.lens.len();
        let (recent, heads) = self.memories[block].clone()?;
        Some((spread(recent, batch), heads.map(|heads| spread(heads, batch))))
    }

    /// Takes what a block without keys has to remember behind this pass: the rows of channels that
    /// its convolution has seen, those that were remembered first,
    /// `[batch, kernel - 1 + seq, channels]`, and the states of its heads behind the last position
    /// that is there. Of the rows it keeps the last `kernel - 1` of each sequence before its padding.
    pub(crate) fn remember(&mut self, block: usize, rows: Tensor<3>, heads: Option<Tensor<4>>) {
        if matches!(self.keeps, Keeps::Nothing) {
            return;
        }
        let [_, columns, channels] = rows.dims();
        // Columns before the first of this pass, of which there are as many as it takes to go on.
        let before = columns - if self.step.is_none() { self.seq - self.prefix } else { 1 };
        let new = |len: &usize| if self.step.is_none() { *len - self.prefix } else { 1 };
        let last = self.lens.iter().enumerate().map(|(row, len)| {
            rows.clone().slice([row..row + 1, new(len)..new(len) + before, 0..channels]) // -> [1, kernel - 1, channels]
        });
        self.memories[block] = Some((Tensor::cat(last.collect(), 0), heads));
    }

    /// 1 at this pass's positions, 0 at padding behind a sequence, `[batch, seq, 1]` in f32; `None`
    /// if there is no padding, which is in the first pass alone.
    pub(crate) fn is_there(&self, seq: usize, device: &Device) -> Option<Tensor<3>> {
        if self.step.is_some() || self.lens.iter().all(|&len| len == self.seq) {
            return None;
        }
        let new = |&len: &usize| len - self.prefix;
        let there = self.lens.iter().map(new).flat_map(|len| (0..seq).map(move |at| f32::from(at < len)));
        let data = TensorData::new(there.collect::<Vec<_>>(), [self.lens.len(), seq, 1]);
        Some(Tensor::from_data(data, device))
    }

    /// What the queries of this pass must not see of the keys that [`extend`](Self::extend)
    /// returns, for each of `kinds`: in the first pass, masks of windows. For new tokens a mask of every kind,
    /// `[n_kv_heads * batch, 1, 1, columns]`: it hides padding, columns that are not written yet,
    /// and positions before the window.
    pub(crate) fn masks(&self, kinds: &[MaskKind], device: &Device) -> Masks {
        let Some(step) = self.step else {
            return Masks::of_windows(kinds, self.prefix, self.seq - self.prefix, device);
        };
        let places = match &self.keeps {
            Keeps::Texts { places, .. } => places.iter().find(|places| places.lens.device() == *device),
            Keeps::Nothing | Keeps::Prefix => None, // no new token is fed behind them
        };
        let Some(places) = places else { return Masks::new(&[], |_| None) };
        let (batch, columns) = (self.lens.len(), self.columns(step));
        let positions = places.columns.clone().narrow(1, 0, columns); // [batch, seq + new] -> [batch, columns]
        let now = places.lens.clone().add_scalar(step as i32).expand([batch, columns]);
        Masks::new(kinds, |MaskKind { window, n_kv_heads }| {
            let later = positions.clone().greater(now.clone());
            let hidden = match window {
                Some(window) => {
                    let outside = now.clone().sub_scalar(i32::try_from(window).unwrap_or(i32::MAX));
                    later.bool_or(positions.clone().lower_equal(outside))
                }
                None => later,
            };
            // The same for all key heads of a sequence: [batch, columns] -> [n_kv_heads, batch, columns]
            let hidden = hidden.reshape([1, batch, columns]).expand([n_kv_heads, batch, columns]);
            Some(hidden.reshape([n_kv_heads * batch, 1, 1, columns]))
        })
    }
}

/// One row of a prefix for each of `batch` sequences; rows that are as many stay as they are.
fn spread<const D: usize>(x: Tensor<D>, batch: usize) -> Tensor<D> {
    let mut dims = x.dims();
    dims[0] = batch;
    x.expand(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_sees_its_prompt_and_what_was_written() {
        let device = Device::flex();
        let seen = |step, window| -> [Vec<usize>; 2] {
            let mut slots = Slots::writing(1, None, vec![3, 5], 6, (4, 4), std::slice::from_ref(&device));
            (0..=step).for_each(|_| slots.advance());
            let kind = MaskKind { window, n_kv_heads: 1 };
            let mask = slots.masks(&[kind], &device).get(kind).unwrap().clone();
            assert_eq!(mask.dims(), [2, 1, 1, 10]);
            let hidden: Vec<bool> = mask.into_data().iter::<bool>().collect();
            [0, 1].map(|row| (0..10).filter(|&column| !hidden[row * 10 + column]).collect())
        };
        assert_eq!(seen(0, None), [vec![0, 1, 2, 6], vec![0, 1, 2, 3, 4, 6]]);
        assert_eq!(seen(2, None)[1], [0, 1, 2, 3, 4, 6, 7, 8]);
        // Positions 0 to 4 are the prompt's, 5 to 7 new: the last three of them.
        assert_eq!(seen(2, Some(3))[1], [6, 7, 8]);
        assert_eq!(seen(1, Some(4))[1], [3, 4, 6, 7]);
    }

    #[test]
    fn room_is_made_when_it_is_needed_and_finished_rows_leave() {
        let device = Device::flex();
        let mut slots = Slots::writing(1, None, vec![3, 5], 6, (5, 2), std::slice::from_ref(&device));
        let numbers = |rows: usize, columns: usize, from: f32| {
            let numbers: Vec<f32> = (0..rows * columns).map(|i| from + i as f32).collect();
            Tensor::<4>::from_data(TensorData::new(numbers, [1, rows, columns, 1]), &device)
        };
        let host = |x: &Tensor<4>| x.clone().into_data().try_to_vec::<f32>().unwrap();
        let given = slots.extend(0, (numbers(2, 6, 0.0), numbers(2, 6, 0.0)));
        assert_eq!(given[0].0.dims(), [1, 2, 6, 1]);
        slots.advance();
        for (step, columns) in [8, 8, 10].into_iter().enumerate() {
            let new = numbers(2, 1, 100.0 + 10.0 * step as f32);
            let given = slots.extend(0, (new.clone(), new));
            assert_eq!(given[0].0.dims(), [1, 2, columns, 1], "step {step}");
            slots.advance();
        }
        slots.retain(&[1]);
        let new = numbers(1, 1, 200.0);
        let given = slots.extend(0, (new.clone(), new));
        assert_eq!(host(&given[0].0), [6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 101.0, 111.0, 121.0, 200.0]);
        let [positions] = slots.positions().try_into().unwrap();
        assert_eq!(positions.into_data().iter::<i64>().collect::<Vec<_>>(), [5 + 3]);
        slots.advance();
        // The last token needs one more column, and no room is made behind it.
        let new = numbers(1, 1, 300.0);
        assert_eq!(slots.extend(0, (new.clone(), new))[0].0.dims(), [1, 1, 11, 1]);
    }

    #[test]
    fn the_rest_of_prompts_comes_behind_a_prefix() {
        let device = Device::flex();
        let numbers = |rows: usize, columns: usize, from: f32| {
            let numbers: Vec<f32> = (0..rows * columns).map(|i| from + i as f32).collect();
            Tensor::<4>::from_data(TensorData::new(numbers, [1, rows, columns, 1]), &device)
        };
        let mut prefix = Slots::of_prefix(1, None, 2);
        prefix.extend(0, (numbers(1, 2, 0.0), numbers(1, 2, 50.0)));
        let mut longer = Slots::of_prefix(1, Some(&prefix), 1);
        longer.extend(0, (numbers(1, 1, 2.0), numbers(1, 1, 52.0)));
        assert_eq!((prefix.seq, longer.seq), (2, 3));
        // One row of the prefix for all, as it was kept, and the rows' own.
        let host = |x: &Tensor<4>| x.clone().into_data().try_to_vec::<f32>().unwrap();
        let seen = |parts: &[KeysValues]| parts.iter().map(|(k, v)| [host(k), host(v)]).collect::<Vec<_>>();
        let of_prefix = [vec![0.0, 1.0, 2.0], vec![50.0, 51.0, 52.0]];
        let new = || (numbers(2, 2, 10.0), numbers(2, 2, 60.0));
        let own = [vec![10.0, 11.0, 12.0, 13.0], vec![60.0, 61.0, 62.0, 63.0]];
        let mut rest = Slots::reading(&longer, vec![4, 5], 2);
        assert_eq!(seen(&rest.extend(0, new())), [of_prefix.clone(), own.clone()]);
        let there = rest.is_there(2, &device).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(there, [1.0, 0.0, 1.0, 1.0]);
        // Texts keep their own columns alone.
        let mut texts = Slots::writing(1, Some(&longer), vec![4, 5], 2, (1, 1), std::slice::from_ref(&device));
        assert_eq!(seen(&texts.extend(0, new())), [of_prefix.clone(), own]);
        texts.advance();
        texts.retain(&[1]);
        let own = [vec![12.0, 13.0, 7.0], vec![62.0, 63.0, 8.0]];
        assert_eq!(seen(&texts.extend(0, (numbers(1, 1, 7.0), numbers(1, 1, 8.0)))), [of_prefix, own]);
    }
}
