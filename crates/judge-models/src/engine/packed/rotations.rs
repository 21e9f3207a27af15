//! Rotary position embeddings (RoPE): cosines and sines, computed once for all passes of a group.
//!
//! `run.rs` and `encoder_passes.rs` make [`Angles`] for the longest sequence of their group; all of
//! its jobs have the same frequencies (`reading/groups.rs`). `vector::norm_rotate` applies them to
//! heads. What the angles of a kind of RoPE are is in `angles.rs` of `judge-arch`.
//!
//! A model may have several rotations, such as one for sliding windows and one for full attention.
//! A block names its own by index.

use judge_kernels::functions::Pairs;
use judge_kernels::vector::Turn;

use judge_arch::{RopeConfig, angles, query_factors};

/// One table for each of a model's rotations, in the order of the description.
pub(crate) struct Angles(Vec<Table>);

/// The angles of one rotation.
struct Table {
    /// Angles of a position: `rotary_dim / 2`.
    half: usize,
    /// Cosines, `[positions, half]`, with the attention factor of yarn and longrope.
    cos: Vec<f32>,
    /// Sines, `[positions, half]`, with the same factor.
    sin: Vec<f32>,
    /// Which two coordinates an angle turns.
    pairs: Pairs,
    /// `[positions]`, where the family scales queries by position (Ministral 3); `None` elsewhere.
    query_factors: Option<Vec<f32>>,
}

impl Angles {
    /// Angles of the positions `0..len`, with the frequencies of a sequence whose final length is
    /// `final_len`: prompt and all new tokens.
    pub(crate) fn new(ropes: &[RopeConfig], final_len: usize, len: usize) -> Self {
        let table = |rope: &RopeConfig| {
            let [cos, sin] = angles(rope, final_len, len);
            let query_factors = query_factors(rope, len);
            Table { half: rope.rotary_dim / 2, cos, sin, pairs: rope.pairs, query_factors }
        };
        Self(ropes.iter().map(table).collect())
    }

    /// The angles of one position in a rotation. `None` gives an empty [`Turn`], which rotates
    /// nothing.
    ///
    /// # Panics
    /// If the position is not below the `len` of [`new`](Self::new).
    pub(super) fn at(&self, rope: Option<usize>, position: usize) -> Turn<'_> {
        let Some(Table { half, cos, sin, pairs, .. }) = rope.map(|rope| &self.0[rope]) else { return Turn::default() };
        let range = position * half..(position + 1) * half;
        Turn { cos: &cos[range.clone()], sin: &sin[range], pairs: *pairs }
    }

    /// What rotated queries at a position are multiplied by; `None` if by nothing.
    pub(super) fn query_factor(&self, rope: Option<usize>, position: usize) -> Option<f32> {
        Some(self.0[rope?].query_factors.as_ref()?[position])
    }
}
