//! What people see of a run, and how they stop it.

pub mod console;
pub mod failures;
pub mod interrupt;
pub mod memory;
pub mod options;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod signals;
pub(crate) mod svg;
pub(crate) mod tables;
