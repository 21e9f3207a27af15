//! Text to tokens and back, as a model's folder says: tokenizers and chat templates; for `judge-models`, without a promise of stability.
//!
//! ```text
//! Prompt::Raw(text) ────────────────────────────────────────────┐
//! Prompt::Chat ─► ChatTemplate ─► + trusted_prefill ─► + prefill ┴► tokenizer ─► Vec<TokenId>
//! Vec<TokenId> that were written ─► TextCodec::decode ─► text, and where each token ends in it
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `tokenizer.rs` | [`TextCodec`], the only part that makes tokens |
//! | `chat_template.rs` | the variables of a template, which `judge-jinja` renders |
//! | `gguf.rs` | the tokenizer that the keys of a GGUF file stand for |
//! | `made.rs` | how a `tokenizer.json` says what SentencePiece's files, GGUF files and classes have |
//! | `files.rs`, `file.rs` | a folder's files but for its weights, and the names of those that are read here |
//!
//! Files are read when the codec is loaded, and never after that.
//!
//! Not here: which files make a folder a model, the length of the context and ids without an embedding, the end tokens of generation,
//! the choice of tokens, and stop texts. `judge-models` knows them.

mod chat_template;
pub mod error;
pub mod file;
mod files;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
pub mod gguf;
mod made;
mod tokenizer;

pub use chat_template::ChatTemplate;
pub use error::Error;
pub use files::Files;
pub use tokenizer::{ChatTokens, MARK, SPLIT, TextCodec, TextOptions, Typed, added_tokens, chat_template, with_texts};
