//! [`Dtype`]: in which arithmetic weights are computed with, by name.

use std::fmt;
use std::str::FromStr;

/// Arithmetic of the weights.
///
/// | | `F32` | `Tf32`, on GPUs alone | `Bf16` |
/// |---|---|---|---|
/// | weights | f32 | f32 | bf16 (rounded to nearest, ties to even) |
/// | what products take in | f32 | f32, which a GPU may round to ten bits after the point | bf16 |
/// | what products give | f32 | f32 | f32; on a GPU bf16 |
/// | what attention takes in | f32 | as products | bf16; on a GPU f16 |
/// | sums, norms, rotations, activations, residual stream | f32 | f32 | f32 |
///
/// `F32` therefore means that nothing is rounded but results of f32 arithmetic; on a GPU each product
/// is six for that, since a GPU rounds what one product takes. `Bf16` is nearer to exact arithmetic
/// than a program that rounds every intermediate state to bf16. What is f32 beside bf16 products on
/// a GPU, such as logits over the vocabulary, may be multiplied with ten bits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 32-bit floats, written `f32`.
    F32,
    /// 32-bit floats whose products a GPU may take with ten bits after the point, written `tf32`.
    Tf32,
    /// bfloat16 weights, written `bf16`.
    Bf16,
}

impl Dtype {
    /// What weights are kept in: f32 or bf16.
    #[must_use]
    pub fn of_weights(self) -> Self {
        match self {
            Self::F32 | Self::Tf32 => Self::F32,
            Self::Bf16 => Self::Bf16,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Dtype {
    type Err = UnknownDtype;

    /// Reads `f32`, `tf32` or `bf16`.
    ///
    /// # Errors
    /// [`UnknownDtype`] for any other text.
    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        match text {
            "f32" => Ok(Self::F32),
            "tf32" => Ok(Self::Tf32),
            "bf16" => Ok(Self::Bf16),
            _ => Err(UnknownDtype { found: text.to_owned() }),
        }
    }
}

/// A text is not the name of a dtype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no dtype, expected f32, tf32 or bf16")]
pub struct UnknownDtype {
    /// The text.
    pub found: String,
}
