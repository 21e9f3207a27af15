//! A selective state space in the place of attention, or beside it (Mamba-2).

use super::parts::NamedShape;

/// A selective state space after a short convolution (Dao and Gu, *Transformers are SSMs*, 2024). It takes
/// rows `[z, x, B, C, dt]`: gates `z` `[n_heads * head_dim]`, channels `x, B, C`, then `dt` `[n_heads]`:
///
/// 1. `x, B, C = silu(conv(x, B, C) + bias)`, where each channel is convolved alone over the last
///    `kernel` positions. Head `h` uses group `h / (n_heads / n_groups)` of `B` and `C`.
/// 2. For each head, with `t = max(softplus(dt + dt_bias), least_time)` and a state `S` `[d_state, head_dim]` that
///    starts at 0: `S *= exp(-exp(a_log) * t)`, `S += B ⊗ t x`, `o = CᵀS + d * x`.
/// 3. The output is gated by `silu(z)` and normed, as [`GatedNorm`] says.
#[derive(Clone, Debug, PartialEq)]
pub struct MambaSpec {
    /// Its sizes.
    pub shape: MambaShape,
    /// The least time that passes at a position; 0 in most families.
    pub least_time: f32,
    /// Full name of the taps, `[channels, 1, kernel]`, the last one for the position itself.
    pub conv: String,
    /// Full name of what is added behind the convolution, `[channels]`.
    pub conv_bias: Option<String>,
    /// Full name of `[n_heads]`.
    pub dt_bias: String,
    /// Full name of `[n_heads]`: logarithms of the decay rates.
    pub a_log: String,
    /// Full name of `[n_heads]`: what of `x` goes past the state.
    pub d: String,
    /// Full name of the output norm's weight, `[n_heads * head_dim]`, and its place; `None`: the
    /// output is gated alone.
    pub norm: Option<(String, GatedNorm)>,
}

/// Where the norm of a state space's output is. It is a root-mean-square norm of each group of heads
/// apart, with the model's `norm_eps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatedNorm {
    /// `norm(o * silu(z))`.
    AfterGate,
    /// `norm(o) * silu(z)`.
    BeforeGate,
}

/// Sizes of a [`MambaSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MambaShape {
    /// Heads of `x`, of gates and of states.
    pub n_heads: usize,
    /// Coordinates of a head of `x`.
    pub head_dim: usize,
    /// Groups of heads that share `B` and `C`; divides `n_heads`.
    pub n_groups: usize,
    /// Coordinates of `B` and of `C` in a group.
    pub d_state: usize,
    /// Positions that the convolution sees, its own included; at least 2.
    pub kernel: usize,
}

impl MambaShape {
    /// Width of all heads of `x`, of the gates `z`, and of what the state space gives.
    pub fn d_inner(self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Width of all groups of `B`, and of all groups of `C`.
    pub fn d_groups(self) -> usize {
        self.n_groups * self.d_state
    }

    /// Width of `x`, `B` and `C` together, which is what the convolution runs over.
    pub fn channels(self) -> usize {
        self.d_inner() + 2 * self.d_groups()
    }

    /// Width of the rows `[z, x, B, C, dt]` that the state space takes.
    pub fn width(self) -> usize {
        self.d_inner() + self.channels() + self.n_heads
    }
}

impl MambaSpec {
    /// Its tensors, in the order of the fields.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let MambaShape { n_heads, kernel, .. } = self.shape;
        let mut all = vec![(self.conv.clone(), vec![self.shape.channels(), 1, kernel])];
        all.extend(self.conv_bias.iter().map(|name| (name.clone(), vec![self.shape.channels()])));
        all.extend([&self.dt_bias, &self.a_log, &self.d].map(|name| (name.clone(), vec![n_heads])));
        all.extend(self.norm.iter().map(|(name, _)| (name.clone(), vec![self.shape.d_inner()])));
        all
    }
}
