//! What a pass knows of the positions before its own, as the trait [`Past`].
//!
//! `decoder.rs` and `block_ops.rs` ask it during a pass; `slots.rs` implements it for prefixes, what
//! comes behind them, and texts that are being written. A pass without a past is over whole
//! sequences and keeps nothing. Calls of a pass come in this order:
//!
//! ```text
//! for each device:   masks(kinds)
//!   for each block:  extend(keys, values)                       attention
//!                    memory, is_there, then remember            delta rule, state space (a convolution asks for no is_there)
//! ```

use burn::tensor::{Device, Tensor};

use super::masks::{MaskKind, Masks};

/// Keys and values, each `[batch, n_kv_heads, seq, head_dim]`. Keys are rotated already.
pub(crate) type KeysValues = (Tensor<4>, Tensor<4>);

/// What a block without keys remembers of the positions before: the last rows that its convolution
/// has seen, `[batch, kernel - 1, channels]`, and for a delta rule or a state space the states of its
/// heads, `[batch, n_value_heads, key_dim, value_dim]` or `[batch, n_heads, d_state, head_dim]`.
pub(crate) type Memory = (Tensor<3>, Option<Tensor<4>>);

/// What a pass knows of the positions before its own, and keeps for the next. Blocks are numbered
/// from 0; only those with keys of their own call `extend`.
pub(crate) trait Past {
    /// Takes the keys and values that a block has made of this pass's positions, and returns all
    /// that its queries may look at, `[batch, n_kv_heads, seq_keys, head_dim]`. Columns that hold
    /// nothing of a sequence may be among them; [`masks`](Self::masks) hides these.
    fn extend(&mut self, block: usize, new: KeysValues) -> KeysValues;

    /// What a block without keys remembers; `None` if there is nothing before.
    fn memory(&self, block: usize) -> Option<Memory>;

    /// Takes what a block without keys has to remember behind this pass: the rows of channels that
    /// its convolution has seen, those that were remembered first,
    /// `[batch, kernel - 1 + seq, channels]`, and the states of its heads behind the last position
    /// that is there. Padding is still in the rows; cutting it is the implementation's part.
    fn remember(&mut self, block: usize, rows: Tensor<3>, heads: Option<Tensor<4>>);

    /// 1 at this pass's positions, 0 at padding behind a sequence, `[batch, seq, 1]` in f32; `None`
    /// if there is no padding.
    fn is_there(&self, seq: usize, device: &Device) -> Option<Tensor<3>>;

    /// What the queries of this pass must not see of the keys that [`extend`](Self::extend)
    /// returns, for each of `kinds`.
    fn masks(&self, kinds: &[MaskKind], device: &Device) -> Masks;
}
