//! What people see of a run, and how they stop it.

pub mod console;
pub(crate) mod drawing;
pub mod interrupt;
pub mod memory;
pub mod missed;
pub mod options;
pub(crate) mod pace;
pub(crate) mod progress;
