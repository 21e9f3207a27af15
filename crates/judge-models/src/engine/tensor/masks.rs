//! What queries must not see.

use burn::tensor::{Bool, Device, Tensor, TensorData};

use crate::arch::BlockSpec;

/// What the mask of a block depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Keys that a query sees, itself included; `None`: all before it.
    pub(crate) window: Option<usize>,
    pub(crate) n_kv_heads: usize,
}

impl Sight {
    pub(crate) fn of(block: &BlockSpec) -> Self {
        Self { window: block.window, n_kv_heads: block.heads.n_kv_heads }
    }
}

/// What queries must not see besides what comes after them, for each sight that hides something.
pub(crate) struct Masks(Vec<(Sight, Tensor<4, Bool>)>);

impl Masks {
    /// One mask for each of `sights` that `mask` makes one for.
    pub(crate) fn new(sights: &[Sight], mut mask: impl FnMut(Sight) -> Option<Tensor<4, Bool>>) -> Self {
        let mut masks: Vec<(Sight, Tensor<4, Bool>)> = Vec::new();
        for &sight in sights {
            if masks.iter().all(|(known, _)| *known != sight)
                && let Some(mask) = mask(sight)
            {
                masks.push((sight, mask));
            }
        }
        Self(masks)
    }

    /// For each window shorter than the sequence, what lies before it.
    pub(crate) fn of_windows(sights: &[Sight], seq: usize, device: &Device) -> Self {
        Self::new(sights, |sight| {
            let window = sight.window.filter(|&window| window < seq)?;
            let hidden: Vec<bool> = (0..seq).flat_map(|query| (0..seq).map(move |key| key + window <= query)).collect();
            Some(Tensor::from_data(TensorData::new(hidden, [1, 1, seq, seq]), device))
        })
    }

    pub(crate) fn get(&self, sight: Sight) -> Option<&Tensor<4, Bool>> {
        self.0.iter().find(|(known, _)| *known == sight).map(|(_, mask)| mask)
    }
}
