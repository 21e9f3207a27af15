//! Cosines and sines of positions, on the device of a pass.
//!
//! The numbers are those of `judge_arch::angles`, which the packed path uses too. `run.rs` makes the
//! tables of a batch once for each device and takes parts of them for every pass: `positions` for
//! prompts, `at_each` for new tokens, whose positions differ from row to row. A model may have
//! several rotations, which blocks name by index.

use burn::tensor::{Device, Int, Tensor, TensorData};
use judge_kernels::functions::Pairs;

#[cfg(feature = "train")]
use judge_arch::inverse_frequencies;
use judge_arch::{RopeConfig, angles, query_factors};

/// The tables of all of a model's rotations, for consecutive positions that are the same in each
/// sequence of a batch, or for one position in each.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    /// One for each rotation of the model.
    tables: Vec<Table>,
    /// The positions themselves, `[1, seq]` or `[batch, 1]`.
    places: Tensor<2, Int>,
}

/// The table of one rotation.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// `[1, seq, 1, rotary_dim / 2]` or `[batch, 1, 1, rotary_dim / 2]` in f32, so that it meets
    /// heads `[batch, seq, heads, head_dim]`. The factor of yarn and longrope is in it.
    pub(crate) cos: Tensor<4>,
    /// Sines, of the shape of the cosines and with the same factor.
    pub(crate) sin: Tensor<4>,
    /// Which coordinates are rotated together.
    pub(crate) pairs: Pairs,
    /// Factors on rotated queries, `[1, seq, 1, 1]` or `[batch, 1, 1, 1]`; `None` where queries do
    /// not grow with their position.
    pub(crate) query_factors: Option<Tensor<4>>,
}

impl Rotation {
    /// The tables of positions 0 to `len - 1` of a sequence whose final length is `len`.
    #[cfg(test)]
    pub(crate) fn new(ropes: &[RopeConfig], len: usize, device: &Device) -> Self {
        Self::padded(ropes, len, len, device)
    }

    /// The tables of positions 0 to `positions - 1`, with the frequencies of a sequence whose final
    /// length is `len`: positions after its end are padding.
    pub(crate) fn padded(ropes: &[RopeConfig], len: usize, positions: usize, device: &Device) -> Self {
        let table = |rope: &RopeConfig| {
            let [cos, sin] = angles(rope, len, positions).map(|values| {
                Tensor::from_data(TensorData::new(values, [1, positions, 1, rope.rotary_dim / 2]), device)
            });
            let query_factors = query_factors(rope, positions)
                .map(|values| Tensor::from_data(TensorData::new(values, [1, positions, 1, 1]), device));
            Table { cos, sin, pairs: rope.pairs, query_factors }
        };
        let places = Tensor::<1, Int>::arange(0..positions as i64, device).reshape([1, positions]);
        Self { tables: ropes.iter().map(table).collect(), places }
    }

    /// The tables of positions 0 to `positions - 1` for a batch of sequences with these final lengths, at
    /// least one; positions after a sequence's end are padding. Where frequencies depend on the length,
    /// each row of the batch gets its own: `[batch, positions, 1, rotary_dim / 2]`.
    #[cfg(feature = "train")]
    pub(crate) fn of_lengths(ropes: &[RopeConfig], lengths: &[usize], positions: usize, device: &Device) -> Self {
        let first = Self::padded(ropes, lengths[0], positions, device);
        let is_same = |rope: &RopeConfig| {
            let of_first = inverse_frequencies(rope, lengths[0]);
            lengths.iter().all(|&len| inverse_frequencies(rope, len) == of_first)
        };
        if ropes.iter().all(is_same) {
            return first;
        }
        let rows: Vec<Self> = lengths.iter().map(|&len| Self::padded(ropes, len, positions, device)).collect();
        let table = |rope: usize| Table {
            cos: Tensor::cat(rows.iter().map(|row| row.tables[rope].cos.clone()).collect(), 0),
            sin: Tensor::cat(rows.iter().map(|row| row.tables[rope].sin.clone()).collect(), 0),
            ..first.tables[rope].clone()
        };
        Self { tables: (0..ropes.len()).map(table).collect(), places: first.places }
    }

    /// The positions, `[1, seq]` or `[batch, 1]`.
    pub(crate) fn places(&self) -> &Tensor<2, Int> {
        &self.places
    }

    /// The table of the rotation with this index in `ModelSpec::ropes`.
    ///
    /// # Panics
    /// If there is no such rotation.
    pub(crate) fn table(&self, rope: usize) -> &Table {
        &self.tables[rope]
    }

    /// The part for `count` consecutive positions from `start` on. The tables must have them, and
    /// be those of consecutive positions.
    pub(crate) fn positions(&self, start: usize, count: usize) -> Self {
        // [1, len, 1, rotary_dim / 2] -> [1, count, 1, rotary_dim / 2]
        let places = self.places.clone().narrow(1, start, count);
        self.map(places, |table| table.clone().narrow(1, start, count))
    }

    /// The part for one position of each sequence of a batch, `positions` `[batch]` on the device of
    /// the tables: `[batch, 1, 1, rotary_dim / 2]`, from tables of consecutive positions.
    pub(crate) fn at_each(&self, positions: &Tensor<1, Int>) -> Self {
        let places = positions.clone().reshape([positions.dims()[0], 1]);
        self.map(places, |table| {
            // [1, len, 1, rotary_dim / 2] -> [1, batch, 1, rotary_dim / 2] -> [batch, 1, 1, rotary_dim / 2]
            table.clone().select(1, positions.clone()).swap_dims(0, 1)
        })
    }

    /// The tables of these positions, with `f` applied to cosines, sines and query factors alike.
    fn map(&self, places: Tensor<2, Int>, f: impl Fn(&Tensor<4>) -> Tensor<4>) -> Self {
        let table = |Table { cos, sin, pairs, query_factors }: &Table| Table {
            cos: f(cos),
            sin: f(sin),
            pairs: *pairs,
            query_factors: query_factors.as_ref().map(&f),
        };
        Self { tables: self.tables.iter().map(table).collect(), places }
    }
}
