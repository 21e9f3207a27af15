use burn::tensor::{Device, Tensor};

use super::masks::Masks;

/// Keys and values, each `[batch, n_kv_heads, seq, head_dim]`.
pub(crate) type KeysValues = (Tensor<4>, Tensor<4>);

/// What a pass knows of the positions before its own.
pub(crate) trait Past {
    /// Takes the new keys and values of a block, and returns all that its queries may look at, `[batch, n_kv_heads, seq_keys,
    /// head_dim]`. `window` is the number of keys that a query of the block sees.
    fn extend(&mut self, block: usize, new: KeysValues, window: Option<usize>) -> KeysValues;

    /// What the queries of the coming pass must not see of [`extend`](Self::extend)'s keys, for each of `windows`; `None`: what
    /// follows from positions that have no gap.
    fn masks(&self, windows: &[Option<usize>], n_kv_heads: usize, device: &Device) -> Option<Masks>;
}
