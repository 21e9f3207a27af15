//! How much one rendering may do and make.
//!
//! The counters belong to the thread: [`begin`] resets them. A rendering runs on one thread from begin to end, and no rendering
//! starts inside another, so one set is enough. Everything that runs an expression calls [`step`]; everything that makes text or
//! lists calls [`charge`] before it allocates; everything that reads a text from end to end without making another calls [`read`]. A
//! text that is built piece by piece is a [`Text`], which charges for itself.
//!
//! The bytes that reach the output are among those that are charged, and are bounded apart from this as well (`eval.rs`).

use std::cell::Cell;

use super::fault::{Result, fault};

/// Steps that one rendering may take. A long conversation takes some ten thousands. Fuzzing uses less, so that a case ends soon.
const FUEL: u64 = if cfg!(fuzzing) { 10_000 } else { 20_000_000 };

/// Bytes of text that one step reads.
const READ: usize = 1024;

/// Bytes that one rendering may write: 64 MiB. The longest context of any supported model is far
/// shorter. [`MADE`] is a multiple of it.
pub(crate) const OUTPUT: usize = if cfg!(fuzzing) { 1 << 20 } else { 64 << 20 };

/// Bytes of intermediate texts and lists that one rendering may make in all: 256 MiB, four times the output. What is dropped on
/// the way still counts.
pub(crate) const MADE: usize = 4 * OUTPUT;

thread_local! {
    /// Bytes that the rendering on this thread may still make.
    static LEFT: Cell<usize> = const { Cell::new(MADE) };
    /// Steps that it may still take.
    static STEPS: Cell<u64> = const { Cell::new(FUEL) };
}

/// Gives the rendering that starts on this thread the whole of [`MADE`] and [`FUEL`].
pub(crate) fn begin() {
    LEFT.set(MADE);
    STEPS.set(FUEL);
}

/// Takes one step: an expression, a statement, or a value that is visited.
pub(crate) fn step() -> Result<()> {
    steps(1)
}

/// Takes the steps of reading a text of so many bytes.
pub(crate) fn read(bytes: usize) -> Result<()> {
    steps((bytes / READ) as u64)
}

fn steps(count: u64) -> Result<()> {
    let Some(left) = STEPS.get().checked_sub(count) else {
        return fault(format!("the template takes more than {FUEL} steps"));
    };
    STEPS.set(left);
    Ok(())
}

/// Takes `bytes` from what this rendering has left. Call it before the bytes are made.
///
/// Fails if fewer are left, and then takes nothing.
pub(crate) fn charge(bytes: usize) -> Result<()> {
    let Some(left) = LEFT.get().checked_sub(bytes) else {
        return fault(format!("the template makes more than {MADE} bytes of text"));
    };
    LEFT.set(left);
    Ok(())
}

/// A text that charges for every byte as it grows. It never gives bytes back.
#[derive(Default)]
pub(crate) struct Text(String);

impl Text {
    /// Appends a text, or fails without a change if the budget is spent.
    pub(crate) fn push_str(&mut self, more: &str) -> Result<()> {
        charge(more.len())?;
        self.0.push_str(more);
        Ok(())
    }

    /// Appends a character, which costs one to four bytes; fails as [`push_str`](Self::push_str) does.
    pub(crate) fn push(&mut self, c: char) -> Result<()> {
        self.push_str(c.encode_utf8(&mut [0; 4]))
    }

    /// Appends a character `count` times.
    pub(crate) fn fill(&mut self, c: char, count: usize) -> Result<()> {
        charge(count.saturating_mul(c.len_utf8()))?;
        self.0.extend(std::iter::repeat_n(c, count));
        Ok(())
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

thread_local! {
    /// How often this rendering looked at something that can change: a namespace, a cycler, a joiner or an iterator.
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Says that something that can change was looked at.
pub(crate) fn look() {
    LOOKS.set(LOOKS.get().wrapping_add(1));
}

/// How often [`look`] was called on this thread.
pub(crate) fn looks() -> u64 {
    LOOKS.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{item, slice};
    use crate::checks;
    use crate::value::Value;

    #[test]
    fn reading_a_long_text_takes_steps() {
        begin();
        let text = Value::from("x".repeat(1 << 20));
        let far = Value::Int((1 << 20) - 1);
        let reads: [(&str, &dyn Fn() -> Result<()>); 7] = [
            ("length", &|| text.len().map(drop)),
            ("in", &|| text.contains(&"y".into()).map(drop)),
            ("==", &|| text.equals(&text).map(drop)),
            ("<", &|| text.order(&text).map(drop)),
            ("is lower", &|| checks::apply("lower", &text, Default::default(), |_| false).map(drop)),
            ("[far]", &|| item(&text, &far).map(drop)),
            ("[far:]", &|| slice(&text, &[far.clone(), Value::None, Value::None]).map(drop)),
        ];
        for (name, reading) in reads {
            let before = STEPS.get();
            reading().unwrap();
            assert!(before - STEPS.get() >= 1000, "{name} took {} steps", before - STEPS.get());
        }
        let before = STEPS.get();
        assert!(text.truth() && text.is_iterable());
        item(&text, &Value::Int(-1)).unwrap();
        assert_eq!(before, STEPS.get());
    }
}
