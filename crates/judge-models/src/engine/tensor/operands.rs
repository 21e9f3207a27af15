//! What operations take besides tensors, on any device.

use burn::tensor::{Bool, Tensor};

use super::precision::Precision;
use super::rotation::Table;

/// Where heads lie in the rows of a projection, and what becomes of them before attention.
#[derive(Clone, Copy)]
pub(crate) struct Heads<'a> {
    /// The column of the first number.
    pub(crate) first: usize,
    /// Columns from one head to the next.
    pub(crate) step: usize,
    /// How many heads there are.
    pub(crate) heads: usize,
    /// How many of them, one behind the other, are side by side in the result: query heads of one key head.
    pub(crate) group: usize,
    /// Numbers of a head, at most `step`.
    pub(crate) head_dim: usize,
    /// Their root-mean-square norm.
    pub(crate) norm: HeadNorm<'a>,
    /// What the norm adds below the root.
    pub(crate) eps: f64,
    /// Numbers are clamped to `[-limit, limit]` behind the norm.
    pub(crate) limit: Option<f64>,
    /// Heads are rotated behind that; see [`ops::norm_rotate`](super::ops::norm_rotate).
    pub(crate) rotation: Option<&'a Table>,
    /// Whether the factors of the rotation's positions multiply them behind that.
    pub(crate) are_queries: bool,
}

/// The norm of heads.
#[derive(Clone, Copy)]
pub(crate) enum HeadNorm<'a> {
    /// None.
    Absent,
    /// Without a weight, of each head.
    Plain,
    /// Times a weight: of each head alone if it is `[head_dim]`, of all heads of a position together if it is longer.
    Weighted(&'a Tensor<1>),
}

/// What attention needs besides queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'a> {
    /// Factor on query-key products.
    pub(crate) scale: f64,
    /// `c` in `c * tanh(score / c)`, applied to scaled products before anything is hidden; above 0.
    pub(crate) soft_cap: Option<f64>,
    /// `true` where a query must not look, besides the positions after it: `[1, 1, seq, seq_keys]`,
    /// or with `n_kv_heads * batch` in the place of the first 1. See `masks.rs`.
    pub(crate) hidden: Option<&'a Tensor<4, Bool>>,
    /// A score of each query head whose weight goes to no key, `[n_heads]` in f32. It is neither
    /// scaled nor soft-capped.
    pub(crate) sinks: Option<&'a Tensor<1>>,
    /// How products are taken.
    #[cfg_attr(not(any(feature = "cuda", feature = "wgpu")), allow(dead_code, reason = "a processor has one way"))]
    pub(crate) precision: Precision,
}

/// Where heads lie in convolved rows, and what becomes of their states. A state `S` is
/// `[key_dim, value_dim]`; at each position `S *= decay`, `S += k ⊗ c`, and `scale * qᵀS` is what it
/// gives.
#[derive(Clone, Copy)]
pub(super) struct Recurrence {
    /// Heads of queries and of keys. Head `h` has those of `h / (heads / key_heads)`.
    pub(super) key_heads: usize,
    /// Heads of values and of states.
    pub(super) heads: usize,
    /// Coordinates of a query and of a key.
    pub(super) key_dim: usize,
    /// Coordinates of a value.
    pub(super) value_dim: usize,
    /// The columns of the first numbers of queries, keys and values.
    pub(super) first: [usize; 3],
    /// What `c` is.
    pub(super) change: Change,
    /// Factor on what a state gives.
    pub(super) scale: f64,
}

/// What a position adds to a state, as the outer product of its key and this, by its `strength`.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// `strength * v`.
    Value,
    /// `strength * (v - kᵀS)`. Queries and keys are divided by `sqrt(Σ x² + eps)` first.
    Unknown { eps: f64 },
}
