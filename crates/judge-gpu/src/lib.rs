//! Kernels of decoders for GPUs: for `judge-models`, without a promise of stability.
//!
//! Burn keeps the memory and runs everything else. What a dense block does between its products is
//! here one kernel each, which reads its operands once and writes its result once. Functions have the
//! names of `judge-kernels`. A product is `product.rs`'s choice. Kernels are written in cubecl's language, so they run wherever Burn's run.
//!
//! | file | owns |
//! |---|---|
//! | `rows.rs` | sums and maxima over a row by the units of a plane or of a cube |
//! | `norm.rs` | RMSNorm and LayerNorm of rows |
//! | `heads.rs` | heads out of a projection's rows: norm, clamp, rotation, layout |
//! | `gate.rs` | the activation of an MLP, with or without a gate |
//! | `softmax.rs` | scores to weights: scale, soft-cap, causal and other masks, sinks; entropies |
//! | `attention.rs` | products and the softmax between them |
//! | `dots.rs` | scalar products of rows with rows |
//! | `conv.rs` | short convolutions of channels over positions |
//! | `recurrence.rs` | states of delta rules and state spaces, position by position |
//! | `residual.rs` | what is added to the residual stream |
//! | `product.rs`, `on_cuda.rs`, `cublas.rs` | products; those of NVIDIA GPUs; cuBLASLt on cubecl's memory |
//! | `cuda.rs` | what of CUDA a machine has |
//! | `tensors.rs` | Burn's tensors to cubecl's and back |

#![cfg(feature = "kernels")]

mod attention;
mod conv;
#[cfg(feature = "cuda")]
pub mod cublas;
#[cfg(feature = "cuda")]
pub mod cuda;
mod dots;
mod gate;
mod heads;
mod norm;
#[cfg(feature = "cuda")]
mod on_cuda;
mod product;
mod recurrence;
mod residual;
mod rows;
mod softmax;
mod tensors;

pub use attention::{SCORES, attention, attention_entropy};
pub use conv::conv;
pub use dots::dots;
pub use gate::gate;
pub use heads::{HeadNorm, Heads, Rotation, heads};
pub use norm::norm;
pub use product::{Products, failure, memory_failures, product, side_by_side, summed};
pub use recurrence::{Change, Recurrence, recurrence};
pub use residual::add;
pub use softmax::{Softmax, entropy, softmax};
pub use tensors::runs_on;
