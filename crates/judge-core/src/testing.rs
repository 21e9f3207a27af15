//! Checks of the contracts in this crate, and a stand-in for a model, for those who implement its traits.

mod check;
mod scripted;

pub use check::check_backbone;
pub use scripted::ScriptedBackbone;
