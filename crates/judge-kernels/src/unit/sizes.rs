//! The sizes of the unit's registers.

/// Rows of a register.
pub const ROWS: usize = 16;

/// Words of a row of a register: the pairs of bf16 numbers that one instruction sums over.
pub const PAIRS: usize = 16;
