//! How much text one rendering may make: minijinja counts instructions, and a few of them can double a text each.

use std::cell::Cell;

use minijinja::{Error as JinjaError, ErrorKind, Value};

use super::OUTPUT;

/// Bytes of all texts that one rendering makes on its way to the output.
pub(super) const MADE: usize = 4 * OUTPUT;

thread_local! {
    // A rendering stays on its thread, and minijinja hands its filters no state of ours.
    static LEFT: Cell<usize> = const { Cell::new(MADE) };
}

/// Begins a rendering on this thread.
pub(super) fn begin() {
    LEFT.set(MADE);
}

/// Takes `bytes` from what this rendering has left. Called before they are made.
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

/// A text that is charged as it grows.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn push_str(&mut self, more: &str) -> Result<(), JinjaError> {
        charge(more.len())?;
        self.0.push_str(more);
        Ok(())
    }

    pub(super) fn push(&mut self, c: char) -> Result<(), JinjaError> {
        self.push_str(c.encode_utf8(&mut [0; 4]))
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// Begins to write out a value, which costs something even if it is short: lists that hold one list twice are short to make
/// and long to write. Fails where it is nested deeper than any real one, because writing recurses.
pub(super) fn enter(depth: usize) -> Result<(), JinjaError> {
    const DEEPEST: usize = 64;
    charge(size_of::<Value>())?;
    if depth <= DEEPEST {
        return Ok(());
    }
    Err(JinjaError::new(ErrorKind::InvalidOperation, format!("a value is nested more than {DEEPEST} deep")))
}
