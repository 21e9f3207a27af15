//! Decision models: folders that say how they answer typed questions, and prompts in Jinja.
//!
//! `judge_core::decision` puts the questions and makes the answers; this module gives it what a folder has of its own:
//!
//! | folder | read from it |
//! |---|---|
//! | any chat model | nothing: labels by their logits, this project's own prompt |
//! | with `decision.json`, `decision_template.jinja` | labels, temperatures, order of options, adapter; the whole prompt |
//! | with `judge_config.json`, `calibration.json`, `head.safetensors` (JEV) | labels, offsets, soft cap, adapter; temperatures; a linear head |
//! | with `decision_config.json`, `readout.safetensors` (codes) | labels and temperature of all kinds; a linear head |
//! | with `model_type` `jev`, as transformers saves one | offsets and soft cap; the head in the model's own weights |
//!
//! The last three keep their prompts in the code of transformers, which is not part of this project. A folder that
//! transformers has saved (`save_pretrained`) has the prompt in `decision_template.jinja`; put that file beside the others.
//!
//! `model.rs` loads the model itself, as any other folder: [`DecisionFolder::adapter`] is one of its
//! [`adapters`](crate::LoadOptions::adapters).

mod files;
mod folder;
mod prompts;

pub(crate) use files::{adapters_in, copy, write};
pub use folder::DecisionFolder;
pub(crate) use prompts::compiled;
pub use prompts::{TemplatePrompt, TurnPrompt};
