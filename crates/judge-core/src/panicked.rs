//! What a caught panic said.

use std::any::Any;

/// The message of a panic, which is a text in all but exotic cases.
pub fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}
