//! Decoder-only transformers from Hugging Face folders on Burn, read from the inside.

mod device;
mod error;
mod folder;
mod weights;

pub use device::{Device, Dtype};
pub use error::{Error, FileProblem, IndexProblem, TensorProblem};
