//! The small models that tests run, and what transformers makes of them.
//!
//! Both come from `scripts/parity/make_family_fixtures.py`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use crate::arch::family_names;

/// The models of every family: plain (`-off`), and with all that it can have (`-on`), but for what is never there together.
pub(crate) fn families() -> Vec<String> {
    let both = family_names().flat_map(|family| ["off", "on"].map(|variant| format!("{family}-{variant}")));
    both.chain(["gemma4_text-experts".to_owned()]).collect()
}

/// The folder of a family's model; `rope` is that of the models that differ in their rotation.
pub(crate) fn folder(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families").join(family)
}

/// Named tensors of a fixture, widened to f32, with its metadata.
pub(crate) struct Expected {
    tensors: HashMap<String, Vec<f32>>,
    pub(crate) metadata: HashMap<String, String>,
}

impl Expected {
    /// What a file of a family's folder says.
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

    /// What a family's own model makes of the prompts.
    pub(crate) fn of(family: &str) -> Self {
        Self::read(family, "expected.safetensors")
    }

    /// How far transformers is from exact arithmetic in bf16.
    pub(crate) fn bf16_error_of_transformers(&self) -> f32 {
        self.metadata["bf16_error_of_transformers"].parse().unwrap()
    }

    pub(crate) fn prompts(&self) -> usize {
        (0..).take_while(|i| self.tensors.contains_key(&format!("{i}.ids"))).count()
    }

    pub(crate) fn get(&self, prompt: usize, what: &str) -> &[f32] {
        &self.tensors[&format!("{prompt}.{what}")]
    }

    pub(crate) fn ids(&self, prompt: usize) -> Vec<i32> {
        self.get(prompt, "ids").iter().map(|&id| id as i32).collect()
    }
}

/// The largest difference over the largest expected value.
pub(crate) fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
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
