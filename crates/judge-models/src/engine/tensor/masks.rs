//! Which keys queries must not see, besides those that come after them.
//!
//! Attention itself hides later positions ([`ops::attention`](super::ops::attention)). Everything
//! else is here: positions before a sliding window, and, while text is written, the gap between a
//! short prompt and the new tokens (`slots.rs` makes those masks). A pass makes one mask for each
//! [`MaskKind`] on the device, and blocks of the same kind share it. `true` means hidden.
//!
//! ```text
//! shape                                   used for
//! [1, 1, seq, prefix + seq]               prompts: the same for all sequences and heads
//! [n_kv_heads * batch, 1, 1, columns]     one new token of each sequence
//! ```

#[cfg(feature = "train")]
use burn::tensor::TensorData;
use burn::tensor::{Bool, Device, Int, Tensor};

use judge_arch::BlockSpec;

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

    /// Masks `[1, 1, seq, prefix + seq]` of sequences whose first `prefix` positions were computed
    /// before: for each window shorter than the whole, the keys before it, `key + window <= query`.
    pub(crate) fn of_windows(kinds: &[MaskKind], prefix: usize, seq: usize, device: &Device) -> Self {
        let all = prefix + seq;
        Self::new(kinds, |kind| {
            let window = kind.window.filter(|&window| window < all)? as i64;
            let (first, end) = (prefix as i64, all as i64);
            // The first query that no longer sees a key: [all] -> [seq, all]
            let ends = Tensor::<1, Int>::arange(window..window + end, device).reshape([1, all]).expand([seq, all]);
            let queries = Tensor::<1, Int>::arange(first..end, device).reshape([seq, 1]).expand([seq, all]);
            Some(ends.lower_equal(queries).reshape([1, 1, seq, all]))
        })
    }

    /// The mask of a kind; `None` if it hides nothing.
    pub(crate) fn get(&self, kind: MaskKind) -> Option<&Tensor<4, Bool>> {
        self.0.iter().find(|(known, _)| *known == kind).map(|(_, mask)| mask)
    }
}

/// The keys that queries do not see where attention goes to both sides, of sequences with these lengths that are
/// padded on the right: `[batch, 1, seq, seq]`. A key is hidden behind the end of its sequence, and farther away
/// than the `window`. What is at padding sees itself, so that its state, which nobody sees, is a number.
#[cfg(feature = "train")]
pub(crate) fn to_both_sides(window: Option<usize>, lengths: &[usize], seq: usize, device: &Device) -> Tensor<4, Bool> {
    let is_hidden = |len: usize, query: usize, key: usize| {
        query != key && (key >= len || window.is_some_and(|window| query.abs_diff(key) > window))
    };
    let rows = lengths.iter().flat_map(|&len| (0..seq).map(move |query| (len, query)));
    let hidden: Vec<bool> = rows.flat_map(|(len, query)| (0..seq).map(move |key| is_hidden(len, query, key))).collect();
    Tensor::from_data(TensorData::new(hidden, [lengths.len(), 1, seq, seq]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "train")]
    #[test]
    fn to_both_sides_padding_is_hidden_and_what_is_beyond_the_window() {
        let seen = |window| -> Vec<Vec<usize>> {
            let hidden = to_both_sides(window, &[4, 2], 4, &Device::flex());
            assert_eq!(hidden.dims(), [2, 1, 4, 4]);
            let hidden: Vec<bool> = hidden.into_data().iter::<bool>().collect();
            hidden.chunks(4).map(|row| (0..4).filter(|&key| !row[key]).collect()).collect()
        };
        let all = vec![0, 1, 2, 3];
        let of_short = [vec![0, 1], vec![0, 1], vec![0, 1, 2], vec![0, 1, 3]];
        assert_eq!(seen(None), [vec![all; 4], of_short.to_vec()].concat());
        let of_long = [vec![0, 1], vec![0, 1, 2], vec![1, 2, 3], vec![2, 3]];
        let of_short = [vec![0, 1], vec![0, 1], vec![1, 2], vec![3]];
        assert_eq!(seen(Some(1)), [of_long, of_short].concat());
    }

    #[test]
    fn a_window_hides_the_keys_before_it() {
        let device = Device::flex();
        let kind = |window| MaskKind { window, n_kv_heads: 2 };
        let kinds = [kind(Some(3)), kind(None), kind(Some(6))];
        // Positions 4 and 5 behind a prefix of 4; each sees itself and the two before it.
        let masks = Masks::of_windows(&kinds, 4, 2, &device);
        let hidden = masks.get(kinds[0]).unwrap();
        assert_eq!(hidden.dims(), [1, 1, 2, 6]);
        let hidden: Vec<bool> = hidden.clone().into_data().iter::<bool>().collect();
        assert_eq!(hidden, [true, true, false, false, false, false, true, true, true, false, false, false]);
        // A window as long as the sequence hides nothing.
        assert!(masks.get(kinds[1]).is_none() && masks.get(kinds[2]).is_none());
    }
}
