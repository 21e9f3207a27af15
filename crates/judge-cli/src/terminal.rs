//! What people see of a run, and how they stop it.

pub mod console;
pub mod failures;
pub mod interrupt;
pub mod memory;
pub mod options;
pub mod pace;
pub mod progress;
pub mod signals;
pub mod svg;
pub mod tables;
