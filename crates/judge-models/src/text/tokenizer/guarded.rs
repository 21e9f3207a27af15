//! Calls of the crate `tokenizers`, which panics over some damaged files: here that is an error like any other.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the crate's code said when it gave up.
#[derive(Debug, thiserror::Error)]
#[error("the tokenizer is damaged in a way that its own code does not expect: {0}")]
struct Panicked(String);

/// Runs code of the crate `tokenizers`; a panic in it is an error with the panic's message. The process's panic hook still sees it.
///
/// Whatever the code was changing must not be used after an error. A tokenizer that was only read may be: what it changes behind its back is a cache, whose lock
/// it does not wait for.
pub(super) fn guarded<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> tokenizers::Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(Panicked(message(&*panic)).into()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
