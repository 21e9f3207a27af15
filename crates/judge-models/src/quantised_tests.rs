//! Quantised folders against what the libraries that write them make of them:
//! `scripts/parity/make_quantised_fixtures.py` and `make_gguf_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

mod adapters;
mod damage;
mod gguf;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use half::bf16;
use judge_arch::Architecture;
use judge_core::{Backbone, Prompt, Request, Want, request::Pooling};
use judge_kernels::numbers::Numbers;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::checked::CheckedWeights;
use crate::fixtures::{self, relative_error};
use crate::folder::Folder;
use crate::test_models::{answers, reading};
use crate::weights::Store;
use crate::{Dtype, Error, LoadOptions, Model};

#[rustfmt::skip]
const FOLDERS: [&str; 15] = [
    "awq", "bnb-fp4", "bnb-int8", "bnb-nf4", "compressed-bytes", "compressed-float", "compressed-packed", "fbgemm",
    "fp8-block", "fp8-tensor", "fp8-ue8m0", "gptq-8", "gptq-v1", "gptq-v2", "mxfp4",
];

const GGUF: [&str; 4] = ["gemma3", "llama", "qwen2", "qwen3"];

fn folder(name: &str) -> PathBuf {
    fixtures::folder("../quantised").join(name)
}

/// Every folder, those with a GGUF file among them.
fn all() -> impl Iterator<Item = PathBuf> {
    let gguf = GGUF.into_iter().map(|name| fixtures::folder("../gguf").join(name));
    FOLDERS.into_iter().map(folder).chain(gguf)
}

/// Names and shapes of tensors.
type NamedShape = (String, Vec<usize>);

/// Tokens of a prompt, and states.
type PromptStates = (Vec<u32>, Vec<f32>);

/// A folder's weights, checked against its model, with the tensors that this takes.
fn open(path: &Path) -> Result<(Box<dyn Store>, Vec<NamedShape>), Error> {
    let folder = Folder::open(path)?;
    let mut spec = Architecture::from_json(folder.config()).unwrap();
    let weights = CheckedWeights::open(&folder, &mut spec, None, &[])?.base;
    let tensors = spec.tensors();
    Ok((weights, tensors))
}

/// Prompts' tokens and states, and the sums of weights by their names.
fn expected(path: &Path) -> (Vec<PromptStates>, HashMap<String, String>) {
    let bytes = std::fs::read(path.join("expected.safetensors")).unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let words = |view: TensorView<'_>| view.data().as_chunks().0.to_vec();
    let prompt = |i: usize| {
        let ids = words(tensors.tensor(&format!("{i}.ids")).ok()?).into_iter().map(u32::from_le_bytes).collect();
        let states = words(tensors.tensor(&format!("{i}.hidden")).unwrap()).into_iter().map(f32::from_le_bytes);
        Some((ids, states.collect()))
    };
    let sums = metadata.metadata().as_ref().map(|metadata| serde_json::from_str(&metadata["sha256"]).unwrap());
    ((0..).map_while(prompt).collect(), sums.unwrap_or_default())
}

fn digest(bytes: impl Iterator<Item = u8>) -> String {
    let bytes: Vec<u8> = bytes.collect();
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The last position's state of every layer, behind one another, the last one normed.
fn states(model: &Model, path: &Path, ids: &[u32]) -> Vec<f32> {
    let tokenizer: Value = serde_json::from_slice(&std::fs::read(path.join("tokenizer.json")).unwrap()).unwrap();
    let words = tokenizer["model"]["vocab"].as_object().unwrap();
    let word = |id: &u32| words.iter().find(|(_, of)| **of == *id).unwrap().0.as_str();
    let text = ids.iter().map(word).collect::<Vec<_>>().join(" ");
    let pooled: Vec<_> = model.info().layers().into_iter().map(|layer| (layer, Pooling::Last)).collect();
    let request = Request { prompt: Prompt::Raw(text), want: Want { pooled: pooled.clone(), ..Want::default() } };
    let answers = answers(model, &[request]);
    pooled.iter().flat_map(|&(layer, pooling)| reading(&answers[0]).pooled(layer, pooling).unwrap().to_vec()).collect()
}

fn load(path: &Path, dtype: Option<Dtype>) -> Result<Model, Error> {
    Model::load(path, &LoadOptions { dtype, ..LoadOptions::default() })
}

#[test]
fn expanded_weights_equal_those_of_the_libraries_to_the_bit() {
    for path in all() {
        let name = path.display();
        let (_, digests) = expected(&path);
        let (mut weights, tensors) = open(&path).unwrap();
        let mut seen = 0;
        for (tensor, shape) in &tensors {
            let Some(digests) = digests.get(tensor) else {
                weights.take(tensor, shape, Dtype::F32).unwrap();
                continue;
            };
            let (wide, half) = digests.split_once(' ').unwrap();
            let values = weights.take(tensor, shape, Dtype::F32).unwrap();
            assert_eq!(digest(values.iter().flat_map(|x| x.to_le_bytes())), wide, "{name}: {tensor} in f32");
            let mut rounded: Vec<bf16> = Vec::new();
            let &[rows, columns] = shape.as_slice() else {
                rounded.extend(weights.take(tensor, shape, Dtype::Bf16).unwrap().into_iter().map(bf16::from_f32));
                assert_eq!(digest(rounded.iter().flat_map(|x| x.to_le_bytes())), half, "{name}: {tensor} in bf16");
                continue;
            };
            let take = &mut |first, numbers: Numbers<'_>| {
                assert_eq!(rounded.len(), first * columns);
                let Numbers::Bf16(values) = numbers else { panic!("not bf16") };
                rounded.extend_from_slice(values);
            };
            weights.take_rows(tensor, [rows, columns], Dtype::Bf16, take).unwrap();
            assert_eq!(digest(rounded.iter().flat_map(|x| x.to_le_bytes())), half, "{name}: {tensor} in bf16");
            seen += 1;
        }
        weights.finish().unwrap();
        assert_eq!(weights.stored_dtype(), Dtype::Bf16, "{name}");
        assert!(seen >= 7 && digests.keys().all(|name| tensors.iter().any(|(known, _)| known == name)), "{name}");
    }
}

#[test]
fn states_of_quantised_folders_equal_transformers_on_expanded_weights() {
    for path in all() {
        let name = path.display();
        let (model, half) = (load(&path, Some(Dtype::F32)).unwrap(), load(&path, None).unwrap());
        assert_eq!(half.info().dtype, "bf16");
        for (ids, wanted) in expected(&path).0 {
            let (wide, narrow) = (states(&model, &path, &ids), states(&half, &path, &ids));
            let errors = [relative_error(&wide, &wanted), relative_error(&narrow, &wanted)];
            println!("{name}: {:.1e} in f32, {:.1e} in bf16", errors[0], errors[1]);
            assert!(errors[0] < 1e-4 && errors[1] < 5e-2, "{name}: {errors:?}");
        }
    }
}

/// What stays quantised nowhere: a folder that other programs load.
#[test]
fn expanded_folders_are_the_quantised_ones() {
    for path in all() {
        let name = path.display();
        let to = tempfile::TempDir::new().unwrap();
        let merged = crate::merge_adapters(&path, &[], None, to.path(), &mut |_, _| {}).unwrap();
        assert_eq!(merged.dtype, Dtype::Bf16, "{name}");
        let folder = Folder::open(to.path()).unwrap();
        assert!(folder.gguf().is_none() && folder.config().get("quantization_config").is_none(), "{name}");
        let (model, dequantised) = (load(&path, None).unwrap(), load(to.path(), None).unwrap());
        for (ids, _) in expected(&path).0 {
            assert_eq!(states(&model, &path, &ids), states(&dequantised, &path, &ids), "{name}");
        }
    }
}
