//! From a prompt to the tokens that a model is fed, and from its tokens to text.

mod chat_template;
mod tokenizer;

#[cfg(fuzzing)]
pub(crate) use chat_template::ChatTemplate;
pub use chat_template::Date;
pub(crate) use tokenizer::TextCodec;
pub use tokenizer::{ChatTokens, TextOptions};
