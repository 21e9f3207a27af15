//! Which keys queries must not see, besides those that come after them.
//!
//! Attention itself hides later positions ([`ops::attention`](super::ops::attention)). Everything
//! else is here: positions before a sliding window, and, while text is written, the gap between a
//! short prompt and the new tokens (`slots.rs` makes those masks). A pass makes one mask for each
//! [`MaskKind`], and blocks of the same kind share it. `true` means hidden.
//!
//! ```text
//! shape                                   used for
//! [1, 1, seq, seq]                        prompts: the same for all sequences and heads
//! [batch * n_kv_heads, 1, 1, columns]     one new token of each sequence
//! ```

use burn::tensor::{Bool, Device, Tensor, TensorData};

use crate::arch::BlockSpec;

/// What the mask of a block depends on: blocks that agree in it share a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaskKind {
    /// Number of keys that a query sees, its own included; `None`: all up to its own.
    pub(crate) window: Option<usize>,
    /// Key heads of the block. Masks of single sequences have a row for each of them.
    pub(crate) n_kv_heads: usize,
}

impl MaskKind {
    /// The kind of a block. Blocks without attention have one too, which nothing asks for.
    pub(crate) fn of(block: &BlockSpec) -> Self {
        Self { window: block.window, n_kv_heads: block.heads.n_kv_heads }
    }
}

/// The masks of one pass on one device, by kind. A kind without a mask hides nothing but later
/// positions.
pub(crate) struct Masks(Vec<(MaskKind, Tensor<4, Bool>)>);

impl Masks {
    /// The masks that `mask` makes. It is called once for each different kind; `None`: the kind
    /// hides nothing.
    pub(crate) fn new(kinds: &[MaskKind], mut mask: impl FnMut(MaskKind) -> Option<Tensor<4, Bool>>) -> Self {
        let mut masks: Vec<(MaskKind, Tensor<4, Bool>)> = Vec::new();
        for &kind in kinds {
            if masks.iter().all(|(known, _)| *known != kind)
                && let Some(mask) = mask(kind)
            {
                masks.push((kind, mask));
            }
        }
        Self(masks)
    }

    /// Masks `[1, 1, seq, seq]` of whole sequences: for each window shorter than `seq`, the keys
    /// before it, `key + window <= query`. They are made on the host, `seq²` numbers each.
    pub(crate) fn of_windows(kinds: &[MaskKind], seq: usize, device: &Device) -> Self {
        Self::new(kinds, |kind| {
            let window = kind.window.filter(|&window| window < seq)?;
            let hidden: Vec<bool> = (0..seq).flat_map(|query| (0..seq).map(move |key| key + window <= query)).collect();
            Some(Tensor::from_data(TensorData::new(hidden, [1, 1, seq, seq]), device))
        })
    }

    /// The mask of a kind; `None` if it hides nothing.
    pub(crate) fn get(&self, kind: MaskKind) -> Option<&Tensor<4, Bool>> {
        self.0.iter().find(|(known, _)| *known == kind).map(|(_, mask)| mask)
    }
}
