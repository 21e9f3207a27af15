//! Cosines and sines of positions, where a pass is.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::arch::{Pairs, RopeConfig, angles, query_factors};

/// Cosines and sines of consecutive positions, the same in each sequence of a batch, or of one position in each; a table for each of a
/// model's rotations.
#[derive(Clone, Debug)]
pub(crate) struct Rotation(Vec<Table>);

/// The table of one rotation.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Shape `[1, seq, 1, rotary_dim / 2]` or `[batch, 1, 1, rotary_dim / 2]`, so that it meets queries `[batch, seq, n_heads, head_dim]`.
    pub(crate) cos: Tensor<4>,
    /// The same shape.
    pub(crate) sin: Tensor<4>,
    pub(crate) pairs: Pairs,
    /// What rotated queries are multiplied by, with 1 in the place of `rotary_dim / 2`.
    pub(crate) query_factors: Option<Tensor<4>>,
}

impl Rotation {
    /// The tables of positions 0 to `len - 1` of a sequence whose final length is `len`.
    #[cfg(any(test, feature = "train", feature = "bench"))]
    pub(crate) fn new(ropes: &[RopeConfig], len: usize, device: &Device) -> Self {
        Self::padded(ropes, len, len, device)
    }

    /// The tables of positions 0 to `positions - 1`, with the frequencies of a sequence whose final length is `len`: positions
    /// after its end are padding.
    pub(crate) fn padded(ropes: &[RopeConfig], len: usize, positions: usize, device: &Device) -> Self {
        let table = |rope: &RopeConfig| {
            let [cos, sin] = angles(rope, len, positions).map(|values| {
                Tensor::from_data(TensorData::new(values, [1, positions, 1, rope.rotary_dim / 2]), device)
            });
            let query_factors = query_factors(rope, positions)
                .map(|values| Tensor::from_data(TensorData::new(values, [1, positions, 1, 1]), device));
            Table { cos, sin, pairs: rope.pairs, query_factors }
        };
        Self(ropes.iter().map(table).collect())
    }

    /// The table of one of the model's rotations.
    pub(crate) fn table(&self, rope: usize) -> &Table {
        &self.0[rope]
    }

    /// The part for `count` positions from `start` on.
    pub(crate) fn positions(&self, start: usize, count: usize) -> Self {
        // [1, len, 1, rotary_dim / 2] -> [1, count, 1, rotary_dim / 2]
        self.map(|table| table.clone().narrow(1, start, count))
    }

    /// The parts for one position of each sequence of a batch: `[batch, 1, 1, rotary_dim / 2]`.
    pub(crate) fn at_each(&self, positions: &[usize]) -> Self {
        let positions: Vec<i32> = positions.iter().map(|&position| position as i32).collect();
        self.map(|table| {
            let index = Tensor::<1, Int>::from_data(TensorData::from(positions.as_slice()), &table.device());
            // [1, len, 1, rotary_dim / 2] -> [1, batch, 1, rotary_dim / 2] -> [batch, 1, 1, rotary_dim / 2]
            table.clone().select(1, index).swap_dims(0, 1)
        })
    }

    fn map(&self, f: impl Fn(&Tensor<4>) -> Tensor<4>) -> Self {
        let table = |Table { cos, sin, pairs, query_factors }: &Table| Table {
            cos: f(cos),
            sin: f(sin),
            pairs: *pairs,
            query_factors: query_factors.as_ref().map(&f),
        };
        Self(self.0.iter().map(table).collect())
    }
}
