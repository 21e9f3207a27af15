//! Pieces the examples share. Not a library to depend on: it promises nothing.

pub mod console;
pub mod layers;
pub mod model_args;
pub mod origin;
pub mod passes;
pub mod planted;
pub mod report;
pub mod surface;
