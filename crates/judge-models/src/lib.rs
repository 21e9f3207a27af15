//! Decoder-only transformers from Hugging Face folders on Burn, read from the inside.

mod error;

pub use error::Error;
