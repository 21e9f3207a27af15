//! Calls of the crate `tokenizers`, which panics over some damaged files: here that is an error
//! like any other.
//!
//! Everything that builds a tokenizer, or reads text or tokens with it, does so inside [`guarded()`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use judge_core::{panicked, request::TokenId};
use tokenizers::Tokenizer;

/// What the crate's code said when it panicked, or that it said nothing.
#[derive(Debug, thiserror::Error)]
#[error("the tokenizer is damaged in a way that its own code does not expect: {0}")]
struct Panicked(String);

/// Runs code of the crate `tokenizers`. A panic in it becomes an error with the panic's message;
/// the process's panic hook still sees it.
///
/// Whatever the code was changing must not be used after an error. A tokenizer that was only read
/// may be: what it changes inside is a cache, and it does not wait for the cache's lock.
pub(super) fn guarded<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Panicked(panicked::message(&*panic)).into()))
}

/// The tokens of a text, without any that the post-processor adds. Added tokens are matched, unless
/// the tokenizer is one of [`PlainText`](super::literal::PlainText).
pub(super) fn ids(tokenizer: &Tokenizer, text: &str) -> tokenizers::Result<Vec<TokenId>> {
    guarded(|| Ok(tokenizer.encode_fast(text, false)?.get_ids().to_vec()))
}
