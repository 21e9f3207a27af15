use burn::tensor::{Device, Tensor};

use super::masks::{Masks, Sight};

/// Keys and values, each `[batch, n_kv_heads, seq, head_dim]`.
pub(crate) type KeysValues = (Tensor<4>, Tensor<4>);

/// What a block without keys remembers of the positions before: the last rows of its channels, `[batch, kernel - 1, channels]`, and the states of its heads,
/// `[batch, n_value_heads, key_dim, value_dim]`, where there are any.
pub(crate) type Memory = (Tensor<3>, Option<Tensor<4>>);

/// What a pass knows of the positions before its own.
pub(crate) trait Past {
    /// Takes the new keys and values of a block, and returns all that its queries may look at, `[batch, n_kv_heads, seq_keys,
    /// head_dim]`. `window` is the number of keys that a query of the block sees.
    fn extend(&mut self, block: usize, new: KeysValues, window: Option<usize>) -> KeysValues;

    /// What a block without keys remembers; `None`: there is nothing before.
    fn memory(&self, block: usize) -> Option<Memory>;

    /// Takes what such a block remembers behind the coming pass: the rows of channels that it has seen, those that were remembered first, `[batch, kernel - 1 + seq,
    /// channels]`, and the states of its heads.
    fn remember(&mut self, block: usize, rows: Tensor<3>, heads: Option<Tensor<4>>);

    /// 1 at the coming pass's positions, 0 at padding behind a sequence, `[batch, seq, 1]`; `None`: there is no padding.
    fn is_there(&self, seq: usize, device: &Device) -> Option<Tensor<3>>;

    /// What the queries of the coming pass must not see of [`extend`](Self::extend)'s keys, for each of `sights`; `None`: what
    /// follows from positions that have no gap.
    fn masks(&self, sights: &[Sight], device: &Device) -> Option<Masks>;
}
