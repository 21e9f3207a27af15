//! Checks of the contracts in this crate, and a stand-in for a model, for those who implement its traits.

mod check;
mod judge;
mod scripted;
mod text_model;

pub use crate::contract::ContractBreach;
pub use check::check_backbone;
pub use judge::check_judge;
pub use scripted::ScriptedBackbone;
pub use text_model::check_text_model;
