//! What runs the blocks of a model: [`packed`] weights on the CPU, or Burn's [`tensor`] operations on any device.

pub(crate) mod block;
pub(crate) mod packed;
mod rate;
pub(crate) mod tensor;
pub(crate) mod token_inputs;

use judge_core::TokenId;

use crate::Error;
use crate::reading::groups::Group;
use crate::reading::passes::Passes;
pub use packed::Kernel;
pub use rate::product_rate;

/// The weights of a model where they are computed with.
pub(crate) trait Engine: Send + Sync {
    /// What its products are made with, where that can be chosen.
    fn kernel(&self) -> Option<Kernel>;

    /// Rows of the output head in f32, `[tokens.len(), d_model]`. Every token must be of the vocabulary.
    ///
    /// # Errors
    /// Those of the device.
    fn head_rows(&self, tokens: &[TokenId]) -> Result<Vec<f32>, Error>;

    /// The passes of a group's jobs. At most `room` positions are in flight at a time, and as many more as one sequence has.
    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a>;
}
