//! The model that ships with the workspace: its files, and the rows that it was made for.
//!
//! [`FILES`] is the folder `models/tiny-judge`, so that a program can carry the model; [`planted`] generates its rows.
//! `train/` is the program that made it:
//! `cargo run --release -p tiny-judge -- --out models/tiny-judge`.

pub mod planted;

use std::path::Path;
use std::{fs, io};

/// The name of the model's folder.
pub const NAME: &str = "tiny-judge";

/// The files of the model's folder, each with its name.
pub const FILES: [(&str, &[u8]); 7] = [
    ("config.json", include_bytes!("../tiny-judge/config.json")),
    ("generation_config.json", include_bytes!("../tiny-judge/generation_config.json")),
    ("model.safetensors", include_bytes!("../tiny-judge/model.safetensors")),
    ("tokenizer.json", include_bytes!("../tiny-judge/tokenizer.json")),
    ("tokenizer_config.json", include_bytes!("../tiny-judge/tokenizer_config.json")),
    ("chat_template.jinja", include_bytes!("../tiny-judge/chat_template.jinja")),
    ("judge_template.json", include_bytes!("../tiny-judge/judge_template.json")),
];

/// Writes the model into a folder that is there, as [`FILES`].
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    FILES.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}
