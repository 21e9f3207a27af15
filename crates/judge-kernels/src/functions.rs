//! The names of functions of rows in which families of models differ; `vector.rs` computes them here, and `judge-gpu` on GPUs.

/// What a norm makes of a row `x`, with weight `w`, before a bias is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// `x / sqrt(mean(x²) + eps) * w`.
    RmsNorm,
    /// LayerNorm: with `y = x - mean(x)`, `y / sqrt(mean(y²) + eps) * w` (Cohere).
    LayerNorm,
}

/// The function `f` in a gated MLP, `f(gate) * up`, and in one without a gate, `f(up)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// `x * sigmoid(x)`, also called swish.
    Silu,
    /// Replaces the whole product `f(gate) * up` by `g * sigmoid(alpha * g) * (u + 1)`, where `g`
    /// is the gate clamped to at most `limit` and `u` is up clamped to `[-limit, limit]` (gpt-oss).
    ClampedSwish {
        /// What the gate is multiplied by in the sigmoid.
        alpha: f32,
        /// Where the gate and up are clamped.
        limit: f32,
    },
    /// `x * Φ(x)`, with the error function.
    Gelu,
    /// The tanh approximation of GELU.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
    /// `max(x, 0)²` (Nemotron).
    ReluSquared,
}

/// Which two of the first `rotary_dim` coordinates of a head one angle turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// `i` and `i + rotary_dim / 2`, as in most families.
    #[default]
    Halves,
    /// `2i` and `2i + 1`: interleaved, as in GLM, Cohere and ERNIE.
    Neighbours,
}
