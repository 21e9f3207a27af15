//! Decoder-only transformers from Hugging Face folders on Burn, read from the inside.

mod cache;
mod chat_template;
mod config;
mod decoder;
mod device;
mod error;
mod fingerprint;
mod folder;
mod generate;
mod hub;
mod model;
mod ops;
mod read;
mod rope;
mod schedule;
mod tokenizer;
#[cfg(feature = "train")]
pub mod train;
mod weights;

pub use chat_template::Date;
pub use config::ConfigProblem;
pub use device::{Device, Dtype};
pub use error::{Error, FileProblem, IndexProblem, TensorProblem};
pub use hub::{FoundModel, HubOptions, ModelSource};
pub use model::{LoadOptions, Model};
pub use tokenizer::{ChatTokens, TextOptions};

#[cfg(test)]
mod parity_tests;
