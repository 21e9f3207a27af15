//! Cosines and sines of positions, where a pass is.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::arch::{RopeConfig, angles};

/// Cosines and sines of consecutive positions, the same in each sequence of a batch, or of one position in each.
#[derive(Clone, Debug)]
pub(crate) struct Rotation {
    /// Shape `[1, seq, 1, rotary_dim / 2]` or `[batch, 1, 1, rotary_dim / 2]`, so that it meets queries `[batch, seq, n_heads, head_dim]`.
    pub(crate) cos: Tensor<4>,
    /// The same shape.
    pub(crate) sin: Tensor<4>,
}

impl Rotation {
    /// The table of positions 0 to `len - 1` of a sequence whose final length is `len`.
    pub(crate) fn new(rope: &RopeConfig, len: usize, device: &Device) -> Self {
        Self::padded(rope, len, len, device)
    }

    /// The table of positions 0 to `positions - 1`, with the frequencies of a sequence whose final length is `len`: positions
    /// after its end are padding.
    pub(crate) fn padded(rope: &RopeConfig, len: usize, positions: usize, device: &Device) -> Self {
        let [cos, sin] = angles(rope, len, positions)
            .map(|values| Tensor::from_data(TensorData::new(values, [1, positions, 1, rope.rotary_dim / 2]), device));
        Self { cos, sin }
    }

    /// The part for `count` positions from `start` on.
    pub(crate) fn positions(&self, start: usize, count: usize) -> Self {
        // [1, len, 1, rotary_dim / 2] -> [1, count, 1, rotary_dim / 2]
        Self { cos: self.cos.clone().narrow(1, start, count), sin: self.sin.clone().narrow(1, start, count) }
    }
    /// The parts for one position of each sequence of a batch: `[batch, 1, 1, rotary_dim / 2]`.
    pub(crate) fn at_each(&self, positions: &[usize]) -> Self {
        let positions: Vec<i32> = positions.iter().map(|&position| position as i32).collect();
        let index = Tensor::<1, Int>::from_data(TensorData::from(positions.as_slice()), &self.cos.device());
        let rows = |table: &Tensor<4>| table.clone().select(1, index.clone()).swap_dims(0, 1);
        // [1, len, 1, rotary_dim / 2] -> [1, batch, 1, rotary_dim / 2] -> [batch, 1, 1, rotary_dim / 2]
        Self { cos: rows(&self.cos), sin: rows(&self.sin) }
    }
}
