//! Where the numbers of a model come from: the files of its folder, by the names of its description, and adapters over them.
//!
//! Files of tensors are read in the crate `judge-weights`; what they hold leaves it by name, through the traits [`Tensors`] and [`Store`].
//! This module owns what that crate cannot know, since it depends on the model: which reader a folder needs, what the model calls a stored
//! tensor, and what llama.cpp's converter did to the tensors of its architecture.
//! It does not own the description of a model (`judge-arch`), which says which names and shapes there
//! must be, nor what engines make of the numbers (`engine/`). `checked.rs` joins description and
//! files.
//!
//! | file | owns |
//! |---|---|
//! | `open.rs` | the choice of a reader for a folder |
//! | `own_names.rs` | what the model calls a stored tensor, in folders and in adapters |
//! | `gguf.rs` | GGUF files as a model's tensors, with what their converter changed undone |
//! | `adapter_folder.rs` | an adapter's folder, written |

#[cfg(feature = "train")]
mod adapter_folder;
mod gguf;
mod open;
mod own_names;

#[cfg(feature = "train")]
pub(crate) use adapter_folder::{AdapterFolder, Factors, Whole};
pub(crate) use gguf::{HeadCounts, check_settings};
pub(crate) use judge_weights::int8::InInt8;
#[cfg(feature = "train")]
pub(crate) use judge_weights::lora::lora_scale;
pub(crate) use judge_weights::lora::{Adapted, Adapter};
pub(crate) use judge_weights::replaced::Replaced;
pub(crate) use judge_weights::safetensors::Checkpoint;
pub(crate) use judge_weights::table::Table;
pub(crate) use judge_weights::{Store, Tensors};
pub(crate) use open::{checkpoint, open, open_encoder};
pub(crate) use own_names::OwnNames;
