//! From a prompt to the token ids that a model is fed, and from written token ids back to text.
//!
//! ```text
//! Prompt::Raw(text) ────────────────────────────────────────────┐
//! Prompt::Chat ─► ChatTemplate ─► + trusted_prefill ─► + prefill ┴► tokenizer ─► Vec<TokenId>
//! Vec<TokenId> that were written ─► TextCodec::decode ─► text, and where each token ends in it
//! ```
//!
//! `tokenizer.rs` owns `TextCodec`, the only part that the rest of the crate calls;
//! `chat_template.rs` renders conversations by `judge-jinja`. Files are read when the codec is loaded, and never
//! after that.
//!
//! Not here: the length of the context and ids without an embedding (`reading/jobs.rs`), the end
//! tokens of generation (`model.rs`), the choice of tokens (`reading/driver.rs`), and stop texts
//! (`reading/written.rs`).

mod chat_template;
mod tokenizer;

pub(crate) use chat_template::ChatTemplate;
pub use tokenizer::{ChatTokens, SentencePieceProblem, TextOptions};
pub(crate) use tokenizer::{MARK, SPLIT, TextCodec, Typed, added_tokens, made, with_texts};
