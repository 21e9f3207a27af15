//! The decoder of composed Burn operations over batches of padded sequences: what a GPU runs.
//!
//! Sequences are sorted by length, padded on the right, and run in few shapes. Under causal
//! attention padding changes nothing before it, so it needs no mask; what is read of a sequence are
//! its own positions alone. A batch is read once, when its pass is over: states are gathered or
//! pooled on their device, and label logits are multiplied there.
//!
//! ```text
//! load    Tensors ─► batched.rs ─► parameters.rs ─► Decoder, over one device or several (stages.rs)
//!
//! serve   Group ─► plan.rs: batches of few shapes
//!               ─► run.rs: prompts of a batch [batch, seq], then one token of each text [batch, 1]
//!                    └─► decoder.rs: blocks in order ─► block_ops.rs: the operations of a block
//!                           │                               └─► ops.rs, delta.rs, mamba.rs: Burn, or judge-gpu's kernels
//!                           ├── rotation.rs: cosines and sines        slots.rs: keys, values and
//!                           ├── masks.rs: sliding windows             memories while text is written
//!                           └─► reads.rs (score.rs): reduced on the device, fetched at once ─► driver
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `precision.rs` | what is narrower than f32 |
//! | `operands.rs` | what operations take besides tensors |
//! | `gpu.rs` | the operations of `ops.rs` and `recurrence.rs` on GPUs, by the kernels of `judge-gpu` |
//! | `recurrence.rs` | convolutions, and states that change from position to position, composed and on GPUs |
//! | `choices.rs` | which rows each expert takes |
//! | `projection.rs` | a product with what belongs to it: low-rank terms and factors |
//! | `encoder.rs`, `encoder_head.rs` | an encoder and its head, for training alone: encoders are served by `engine/packed` |
//! | `token_inputs.rs` | what blocks get of a token besides the residual stream |
//! | `batch_size.rs` | how many tokens share a batch where nobody says it |
//! | `host.rs` | the wait for a device, and its failures as errors |
//! | `room.rs` | what is known of the devices' memory |
//! | `retry.rs` | smaller batches where a device's memory is full |
//! | `rate.rs` | how fast Burn's products are |
//! | `cuda.rs` | what an NVIDIA GPU needs on this machine |
//! | `runtime.rs` | how cubecl is set up in this process |
//!
//! Which token comes next is decided in `reading/driver.rs`, which sequences share a group in
//! `reading/groups.rs`.
//!
//! Invariants:
//!
//! - Only single operations (`ops.rs`, `recurrence.rs`) ask whether a GPU runs them, and only what
//!   sets devices up asks which. Tests run this path on the CPU in f32. One sequence at a time, without padding, is their reference: batches agree with it to
//!   1e-5, and the packed path is compared with it too.
//! - A decoder spread over several devices gives the bits of the whole one where devices compute
//!   alike: the residual stream goes from one to the next, what belongs to a block stays with it.
//! - Rows of a batch do not see one another. A sequence's numbers depend on its batch by rounding
//!   alone, since another shape may get another kernel.
//! - Whatever waits for a device, or may panic in Burn, runs inside [`on_device`] or
//!   [`from_device`].

mod batch_size;
mod batched;
mod block_ops;
mod choices;
#[cfg(any(test, feature = "cuda"))]
pub(crate) mod cuda;
pub(crate) mod decoder;
mod delta;
#[cfg(feature = "train")]
pub(crate) mod encoder;
#[cfg(feature = "train")]
mod encoder_head;
#[cfg(test)]
mod faults;
mod fetched;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod gpu;
pub(crate) mod host;
mod mamba;
mod masks;
mod operands;
pub(crate) mod ops;
pub(crate) mod parameters;
mod plan;
pub(crate) mod precision;
mod projection;
mod rate;
mod reads;
mod recurrence;
mod retry;
mod room;
pub(crate) mod rotation;
mod run;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) mod runtime;
mod schedule;
mod score;
mod slots;
mod stages;
mod token_inputs;

use judge_core::request::TokenId;

use super::Engine;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::labels::HeadRows;
use crate::reading::passes::Passes;
pub(crate) use batch_size::batch_tokens;
pub(crate) use batched::Batched;
use host::{host, on_device};
pub(crate) use plan::Shapes;
pub(crate) use precision::Precision;
pub(crate) use rate::product_rate;

impl Engine for Batched {
    fn head_rows(&self, tokens: &[TokenId]) -> Result<HeadRows, Error> {
        on_device(|| {
            let biases = self.decoder.head_biases(tokens).map(host).transpose()?;
            Ok(HeadRows { rows: host(self.decoder.head_rows(tokens))?, biases: biases.unwrap_or_default() })
        })
    }

    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a> {
        Box::new(run::BatchedPasses::new(self, group, room))
    }
}

#[cfg(test)]
mod tests;
