//! Decoder-only transformers from Hugging Face folders on Burn, read from the inside.

mod cache;
mod chat_template;
mod config;
mod decoder;
mod device;
mod error;
mod folder;
mod ops;
mod rope;
mod tokenizer;
mod weights;

pub use config::ConfigProblem;
pub use chat_template::Date;
pub use device::{Device, Dtype};
pub use error::{Error, FileProblem, IndexProblem, TensorProblem};
pub use tokenizer::{ChatTokens, TextOptions};

#[cfg(test)]
mod parity_tests;
