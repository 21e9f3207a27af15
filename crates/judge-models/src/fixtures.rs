//! The small random-weight models that tests run, and what transformers makes of them. For tests
//! only.
//!
//! Models and expected values come from `scripts/parity/make_family_fixtures.py`, into one folder
//! each under `tests/fixtures/families`. A test compares what an engine makes of a prompt with the
//! tensors of `expected.safetensors`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use tempfile::TempDir;

use judge_arch::described_decoders;

/// Vision-language models, of which a test reads the text model inside.
const TOWERS: [&str; 8] =
    ["gemma4_unified", "glm4v", "idefics3", "internvl", "qwen2_5_vl", "qwen2_vl", "qwen3_vl_moe", "smolvlm"];

/// Models of families with parts that are not in the two others of the family together.
const FURTHER: [&str; 7] = [
    "falcon_h1-biases",
    "gemma4_text-experts",
    "granitemoehybrid-experts",
    "granitemoehybrid-mamba",
    "granitemoehybrid-mamba-experts",
    "nemotron_h-experts",
    "nemotron_h-shares",
];

/// Names of all models: for each family one with every switch off (`-off`) and one with them on
/// (`-on`), [`FURTHER`], and [`TOWERS`].
pub(crate) fn families() -> Vec<String> {
    let both = described_decoders().flat_map(|[family, ..]| ["off", "on"].map(|variant| format!("{family}-{variant}")));
    both.chain(FURTHER.into_iter().chain(TOWERS).map(str::to_owned)).collect()
}

/// The folder of a model by the name that [`families`] has for it. `rope` is the folder of the
/// models that differ in their rotation; an empty name is the folder of all.
pub(crate) fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families").join(family)
}

/// Puts the files of a folder into another, those in folders too, but not what is expected of its model.
pub(crate) fn copy_into(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            copy_into(&path, &to.join(name));
        } else if !name.starts_with("expected") {
            std::fs::write(to.join(name), std::fs::read(&path).unwrap()).unwrap();
        }
    }
}

/// A copy of a [`folder`], to be changed.
pub(crate) fn copy(family: &str) -> TempDir {
    let to = TempDir::new().unwrap();
    copy_into(&folder(family), to.path());
    to
}

/// Named tensors of a fixture, widened to f32, with its metadata. Tensors are flat; for prompt `i`
/// of a family they are:
///
/// | name | shape |
/// |---|---|
/// | `i.ids` | `[seq]`, token ids |
/// | `i.hidden` | `[n_layers + 1, seq, d_model]`, as transformers returns them: the last is normed |
/// | `i.logits` | `[seq, d_vocab]`, without the final soft-cap |
/// | `i.raw`, `i.normed` | `[n_layers + 1, d_vocab]`, logits of the last position at each layer, by lens |
/// | `i.greedy` | `[n_new]`, the greedy continuation, end tokens not heeded |
/// | `i.bf16` | `[n_layers + 1, d_model]`, the last position, f32 arithmetic on weights rounded to bf16 |
pub(crate) struct Expected {
    /// Values by the name in the file.
    tensors: HashMap<String, Vec<f32>>,
    /// The file's metadata, all text.
    pub(crate) metadata: HashMap<String, String>,
}

impl Expected {
    /// Reads a file of a model's folder. Tensors are f32 or i32 there; whole numbers become floats.
    ///
    /// # Panics
    /// If the file is not there or not of this form; so do all functions here.
    pub(crate) fn read(family: &str, file: &str) -> Self {
        let bytes = std::fs::read(folder(family).join(file)).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let widen = |view: TensorView<'_>| -> Vec<f32> {
            let (words, _) = view.data().as_chunks::<4>();
            match view.dtype() {
                safetensors::Dtype::I32 => words.iter().map(|&w| i32::from_le_bytes(w) as f32).collect(),
                _ => words.iter().map(|&w| f32::from_le_bytes(w)).collect(),
            }
        };
        Self {
            tensors: tensors.iter().map(|(name, view)| (name.to_owned(), widen(view))).collect(),
            metadata: metadata.metadata().clone().unwrap_or_default(),
        }
    }

    /// What transformers makes of the prompts with the model `family`.
    pub(crate) fn of(family: &str) -> Self {
        Self::read(family, "expected.safetensors")
    }

    /// How far transformers' own bf16 arithmetic is from `i.bf16`: the largest difference over the
    /// largest value, at the worst layer. What this crate computes in bf16 must not be further off.
    pub(crate) fn bf16_error_of_transformers(&self) -> f32 {
        self.metadata["bf16_error_of_transformers"].parse().unwrap()
    }

    /// How many prompts the file has; they are numbered from 0.
    pub(crate) fn prompts(&self) -> usize {
        (0..).take_while(|i| self.tensors.contains_key(&format!("{i}.ids"))).count()
    }

    /// A tensor of a prompt, such as `hidden`, row by row.
    pub(crate) fn get(&self, prompt: usize, what: &str) -> &[f32] {
        &self.tensors[&format!("{prompt}.{what}")]
    }

    /// The token ids of a prompt.
    pub(crate) fn ids(&self, prompt: usize) -> Vec<i32> {
        self.get(prompt, "ids").iter().map(|&id| id as i32).collect()
    }
}

/// The largest difference over the largest expected value: max|a − b| / max|b|. All numbers must be finite: `max` drops NaN.
pub(crate) fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().chain(expected).all(|x| x.is_finite()), "numbers to compare are not finite");
    let difference = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    difference / expected.iter().map(|x| x.abs()).fold(f32::MIN_POSITIVE, f32::max)
}

#[test]
fn there_is_no_model_that_no_family_tests() {
    let names = std::fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = names.filter(|name| name != "rope").collect();
    let mut expected = families();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
