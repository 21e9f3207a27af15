//! How much text one rendering may make. minijinja counts instructions, but a few of them can
//! double a text each, so this file counts bytes as well.
//!
//! The counter belongs to the thread: [`begin`] resets it, and every helper that can multiply its
//! input calls [`charge`] before it allocates. A rendering runs on one thread from begin to end,
//! and no rendering starts inside another, so one counter is enough. Helpers that build a text
//! piece by piece write to a [`Text`], which charges for itself. Those that call into minijinja
//! charge an upper bound first (`python.rs`).
//!
//! The bytes that reach the output are bounded apart from this, by `Capped` of `chat_template.rs`.

use std::cell::Cell;

use minijinja::{Error as JinjaError, ErrorKind, Value};

use super::OUTPUT;

/// Bytes of intermediate texts that one rendering may make in all: 256 MiB, four times the output.
/// Texts that are dropped on the way still count.
pub(super) const MADE: usize = 4 * OUTPUT;

thread_local! {
    /// Bytes that the rendering on this thread may still make. It is a thread-local because
    /// minijinja hands its filters no state of ours.
    static LEFT: Cell<usize> = const { Cell::new(MADE) };
}

/// Gives the rendering that starts on this thread the whole of [`MADE`].
pub(super) fn begin() {
    LEFT.set(MADE);
}

/// Takes `bytes` from what this rendering has left. Call it before the bytes are made.
///
/// Fails if fewer are left, and then takes nothing.
pub(super) fn charge(bytes: usize) -> Result<(), JinjaError> {
    let Some(left) = LEFT.get().checked_sub(bytes) else {
        return Err(JinjaError::new(
            ErrorKind::InvalidOperation,
            format!("the template makes more than {MADE} bytes of text"),
        ));
    };
    LEFT.set(left);
    Ok(())
}

/// A text that charges for every byte as it grows. It never gives bytes back.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// Appends a text, or fails without a change if the budget is spent.
    pub(super) fn push_str(&mut self, more: &str) -> Result<(), JinjaError> {
        charge(more.len())?;
        self.0.push_str(more);
        Ok(())
    }

    /// Appends a character, which costs one to four bytes; fails as [`push_str`](Self::push_str)
    /// does.
    pub(super) fn push(&mut self, c: char) -> Result<(), JinjaError> {
        self.push_str(c.encode_utf8(&mut [0; 4]))
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Call this before a value at nesting `depth` (0 is the outermost) is written out or measured.
///
/// It charges for each value even if its text is short: a list that holds one list twice is short
/// to make and, nested, long to write. It fails at depths that no real value has, because writing
/// recurses.
pub(super) fn enter(depth: usize) -> Result<(), JinjaError> {
    /// Depth of the innermost value that is still written.
    const DEEPEST: usize = 64;
    charge(size_of::<Value>())?;
    if depth <= DEEPEST {
        return Ok(());
    }
    Err(JinjaError::new(ErrorKind::InvalidOperation, format!("a value is nested more than {DEEPEST} deep")))
}
