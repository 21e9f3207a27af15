//! The tokenizer that the keys of a GGUF file of llama.cpp stand for, as the files of a model folder.
//!
//! | file | owns |
//! |---|---|
//! | `tokenizer.rs` | vocabulary, merges, special tokens and chat template |
//! | `pre_tokenizers.rs` | how text is cut before merges |
//! | `encoder_tokenizers.rs` | the tokenizers of encoders |
//! | `ends.rs` | the tokens that end a text |
//!
//! The file itself and its keys are read in `judge-weights`, and what other keys say of a model in `gguf/` of `judge-models`.

mod encoder_tokenizers;
mod ends;
mod pre_tokenizers;
mod tokenizer;

pub use ends::ends;
pub use tokenizer::TextFiles;
