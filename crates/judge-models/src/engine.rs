//! What holds the weights of a model and runs its blocks.
//!
//! `model.rs` loads one [`Engine`] for each model and lends it to `reading/driver.rs` through the
//! trait `Passes`. An engine gets jobs and gives back what their passes brought. It never sees a
//! request, a text or a `Model`, and it chooses no token.
//!
//! | engine | where | runs |
//! |---|---|---|
//! | [`packed`] decoder and encoder | a single CPU | kernels of this crate over packed weights; sequences of any length share a pass |
//! | [`tensor`] decoder | GPUs, one or several (in tests also the CPU) | Burn's operations over batches of padded sequences |
//!
//! Both decoders share the order of operations inside a block ([`block`]), the weights of the
//! inputs by token ([`token_inputs`]), and the search for what sequences begin with (`segments.rs`).
//! The composed operations of [`tensor`] are also what
//! gradients flow through in training, and the reference that the kernels of [`packed`] are tested
//! against.
//!
//! On the packed path a job's numbers have the same bits whatever else shares its passes. On the
//! tensor path they agree within rounding.

pub(crate) mod block;
pub(crate) mod devices;
mod encoder_block;
pub(crate) mod packed;
mod rate;
mod segments;
#[cfg(any(test, feature = "tensor"))]
pub(crate) mod tensor;
pub(crate) mod token_inputs;

use judge_core::request::TokenId;
use judge_kernels::kernel::Kernel;

use crate::Error;
use crate::reading::groups::Group;
use crate::reading::labels::HeadRows;
use crate::reading::passes::Passes;
pub use rate::product_rate;

/// The weights of a model, on the devices that compute with them.
///
/// An engine is not changed after loading, so several threads may run passes of different groups on
/// it.
pub(crate) trait Engine: Send + Sync {
    /// The instructions of the packed path's products, which `ModelInfo::device` names; `None`
    /// where Burn chooses kernels.
    fn kernel(&self) -> Option<Kernel> {
        None
    }

    /// A kernel that this processor has and that would multiply matrices of this model as integers
    /// by activations of eight bits, with other roundings; `None` where there is none, or it is the kernel already.
    fn kernel_of_integers(&self) -> Option<Kernel> {
        None
    }

    /// Rows of the output head in f32 for these tokens, with their biases and the model's `logit_scale`
    /// in both. `model.rs` asks once for each set of labels; label logits are
    /// products with these rows, on the host unless the engine brings them itself.
    ///
    /// The caller has checked that the model has a head over the vocabulary and that every token is
    /// in it.
    ///
    /// # Errors
    /// Those of the device. [`Error::NothingRead`] from an encoder, which has no head: requests that read one are
    /// refused in `reading/check.rs`.
    fn head_rows(&self, _: &[TokenId]) -> Result<HeadRows, Error> {
        Err(Error::NothingRead)
    }

    /// The passes of a group's jobs, none of which has been run yet. At most `room` positions are
    /// in flight at a time, unless one sequence alone has more: then it runs by itself.
    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a>;
}
