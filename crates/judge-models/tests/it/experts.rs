//! Blocks with experts: in whichever order and form a folder keeps them, the model is the same.
//! What it computes is compared with transformers in `parity.rs`,
//! with itself in other company in `batch_invariance.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use judge_core::{Backbone, Lens, Want, request::Pooling};
use judge_models::{Dtype, Error, Kernel, LoadOptions, Model, TensorProblem, WeightsError};
use safetensors::Dtype as Stored;
use serde_json::json;
use tempfile::TempDir;

use crate::common::{copy, edit, fixtures, labels_at_end, of_names, of_tensor, raw, readings, tensors, write_tensors};
use crate::difference::relative_error;

/// Tensors by name: dtype, shape and bytes.
type Tensors = BTreeMap<String, (Stored, Vec<usize>, Vec<u8>)>;

fn family(name: &str) -> PathBuf {
    fixtures().join("families").join(name)
}

/// A copy of a family's folder with other tensors, in one file.
fn changed(name: &str, change: impl FnOnce(&mut Tensors)) -> TempDir {
    let to = copy(&format!("families/{name}"));
    let mut all = Tensors::new();
    let files: Vec<PathBuf> = fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in files {
        let file = path.file_name().unwrap().to_str().unwrap();
        if file.ends_with(".safetensors") {
            all.extend(tensors(&path).into_iter().map(|(name, dtype, shape, bytes)| (name, (dtype, shape, bytes))));
        }
        if file.starts_with("model") {
            fs::remove_file(&path).unwrap();
        }
    }
    change(&mut all);
    let all: Vec<_> = all.into_iter().map(|(name, (dtype, shape, bytes))| (name, dtype, shape, bytes)).collect();
    write_tensors(&to.path().join("model.safetensors"), &all);
    to
}

/// Everything that is read of some prompts.
fn numbers(model: &Model) -> Vec<f32> {
    let (layers, info) = (model.info().layers(), model.info());
    let labels = labels_at_end((0..info.d_vocab as u32).collect(), layers.clone(), Lens::Raw);
    let pooled = layers.iter().flat_map(|&layer| [(layer, Pooling::Mean), (layer, Pooling::Max)]).collect();
    let want = Want { labels: vec![labels], pooled, prompt_log_probs: true, ..Want::default() };
    let prompts = ["ba de fi go ku la me ni po ru sa te vi zo", "3 xa y0 ba ba 4", "zo"];
    let mut all = Vec::new();
    for reading in readings(model, prompts.map(raw), &want) {
        all.extend_from_slice(&reading.labels[0].steps[0].logits);
        all.extend(reading.pooled.iter().flat_map(|state| &state.values));
        all.extend(reading.prompt_log_probs.iter().flat_map(|found| &found.log_probs));
    }
    all
}

fn bits(model: &Model) -> Vec<u32> {
    numbers(model).iter().map(|x| x.to_bits()).collect()
}

fn every_way() -> impl Iterator<Item = LoadOptions> {
    let ways = Kernel::available().into_iter().flat_map(|kernel| [(kernel, Dtype::F32), (kernel, Dtype::Bf16)]);
    ways.map(|(kernel, dtype)| LoadOptions { kernel: Some(kernel), dtype: Some(dtype), ..LoadOptions::default() })
}

/// The number of an expert in a tensor's name, with what stands before and behind it.
fn expert_of(name: &str) -> Option<(&str, usize, &str)> {
    let (before, rest) = name.split_once(".experts.")?;
    let (number, after) = rest.split_once('.')?;
    Some((before, number.parse().ok()?, after))
}

/// The rows of a tensor in another order: row `i` becomes row `to(i)`.
fn permute_rows(shape: &[usize], bytes: &mut [u8], to: impl Fn(usize) -> usize) {
    let (from, row) = (bytes.to_vec(), bytes.len() / shape[0]);
    for (index, from) in from.chunks_exact(row).enumerate() {
        bytes[to(index) * row..][..row].copy_from_slice(from);
    }
}

#[test]
fn permuted_experts_give_the_same_numbers() {
    for name in ["mixtral-on", "qwen3_moe-on", "qwen2_moe-on", "olmoe-off"] {
        let permuted = changed(name, |tensors| {
            let count = 1 + tensors.keys().filter_map(|name| Some(expert_of(name)?.1)).max().unwrap();
            let to = |expert: usize| (expert * 3 + 1) % count;
            assert!(count % 3 != 0 || count == 6);
            // Three has a common divisor with six.
            let to = move |expert: usize| if count == 6 { 5 - expert } else { to(expert) };
            *tensors = std::mem::take(tensors)
                .into_iter()
                .map(|(name, (dtype, shape, mut bytes))| {
                    if name.ends_with("mlp.gate.weight") || name.ends_with("block_sparse_moe.gate.weight") {
                        permute_rows(&shape, &mut bytes, to);
                    }
                    let renamed = expert_of(&name)
                        .map(|(before, number, after)| format!("{before}.experts.{}.{after}", to(number)));
                    (renamed.unwrap_or(name), (dtype, shape, bytes))
                })
                .collect();
        });
        for options in every_way() {
            let (plain, permuted) =
                (Model::load(family(name), &options).unwrap(), Model::load(permuted.path(), &options).unwrap());
            assert_ne!(plain.info().fingerprint, permuted.info().fingerprint);
            if name == "olmoe-off" {
                // Weights are shares of a sum over all experts, in their order.
                let (found, expected) = (numbers(&permuted), numbers(&plain));
                let error = relative_error(&found, &expected);
                let tolerance = if options.dtype == Some(Dtype::F32) { 1e-5 } else { 1e-2 };
                assert!(error < tolerance, "{options:?}: {error:e}");
            } else {
                assert_eq!(bits(&permuted), bits(&plain), "{name}, {options:?}");
            }
        }
    }
}

#[test]
fn permuted_experts_beside_an_mlp_give_the_same_numbers() {
    let name = "gemma4_text-experts";
    let permuted = changed(name, |tensors| {
        for (name, (_, shape, bytes)) in tensors {
            if name.contains(".experts.")
                || name.ends_with(".router.proj.weight")
                || name.ends_with(".per_expert_scale")
            {
                assert_eq!(shape[0], 4);
                permute_rows(shape, bytes, |expert| (expert * 3 + 1) % 4);
            }
        }
    });
    for options in every_way() {
        let (plain, permuted) =
            (Model::load(family(name), &options).unwrap(), Model::load(permuted.path(), &options).unwrap());
        assert_ne!(plain.info().fingerprint, permuted.info().fingerprint);
        assert_eq!(bits(&permuted), bits(&plain), "{options:?}");
    }
}

/// The stacks that a folder has, each as the tensors that it has in other folders.
fn one_by_one(tensors: &mut Tensors, is_mixtral: bool) {
    let stacks: Vec<String> = tensors.keys().filter(|name| name.contains(".experts.")).cloned().collect();
    assert!(!stacks.is_empty());
    for name in stacks {
        let (dtype, shape, bytes) = tensors.remove(&name).unwrap();
        let (module, kind) = name.split_once(".mlp.experts.").unwrap();
        let names = match (is_mixtral, kind) {
            (false, "gate_up_proj") => vec!["gate_proj", "up_proj"],
            (false, _) => vec!["down_proj"],
            (true, "gate_up_proj") => vec!["w1", "w3"],
            (true, _) => vec!["w2"],
        };
        let part = if is_mixtral { "block_sparse_moe" } else { "mlp" };
        let matrices = bytes.chunks_exact(bytes.len() / shape[0] / names.len());
        for (index, matrix) in matrices.enumerate() {
            let (expert, place) = (index / names.len(), index % names.len());
            let name = format!("{module}.{part}.experts.{expert}.{}.weight", names[place]);
            tensors.insert(name, (dtype, vec![shape[1] / names.len(), shape[2]], matrix.to_vec()));
        }
    }
    if is_mixtral {
        let routers: Vec<String> = tensors.keys().filter(|name| name.ends_with(".mlp.gate.weight")).cloned().collect();
        for name in routers {
            let router = tensors.remove(&name).unwrap();
            tensors.insert(name.replace(".mlp.", ".block_sparse_moe."), router);
        }
    }
}

#[test]
fn experts_may_be_stored_as_one_tensor_or_one_by_one() {
    for name in ["mixtral-off", "qwen3_moe-off", "qwen2_moe-off"] {
        let other = changed(name, |tensors| one_by_one(tensors, name.starts_with("mixtral")));
        for options in every_way() {
            let (stacked, other) =
                (Model::load(family(name), &options).unwrap(), Model::load(other.path(), &options).unwrap());
            assert_eq!(bits(&stacked), bits(&other), "{name}, {options:?}");
            assert_eq!(stacked.info().fingerprint, other.info().fingerprint, "{name}");
        }
    }
}

#[test]
fn experts_that_do_not_fit_are_refused_by_name() {
    let refuse = |name: &str, change: &dyn Fn(&mut Tensors)| {
        let folder = changed(name, change);
        Model::load(folder.path(), &LoadOptions::default()).unwrap_err()
    };
    let stack = "model.layers.1.mlp.experts.down_proj";
    let reshaped = refuse("qwen2_moe-off", &|tensors| {
        let shape = &mut tensors.get_mut(stack).unwrap().1;
        shape.swap(1, 2);
    });
    let (tensor, problem) = of_tensor(reshaped);
    assert!(tensor == stack && matches!(problem, TensorProblem::Shape { .. }), "{tensor}: {problem}");
    let absent = refuse("olmoe-on", &|tensors| {
        tensors.remove("model.layers.2.mlp.experts.4.up_proj.weight").unwrap();
    });
    let missing = vec!["model.layers.2.mlp.experts.4.up_proj.weight".to_owned()];
    assert_eq!(of_names(absent), (missing, Vec::new()));
    // A stack beside one of its parts.
    let both = refuse("qwen2_moe-off", &|tensors| {
        let matrix = (Stored::BF16, vec![32, 24], vec![0; 2 * 32 * 24]);
        tensors.insert("model.layers.1.mlp.experts.0.down_proj.weight".to_owned(), matrix);
    });
    assert_eq!(of_names(both).1, [stack]);
    // There is but one form of these.
    let name = "model.layers.2.mlp.experts.down_proj_bias";
    let absent = refuse("gpt_oss-on", &|tensors| {
        tensors.remove(name).unwrap();
    });
    assert_eq!(of_names(absent).0, [name]);
    let name = "model.layers.2.mlp.experts.gate_up_proj";
    let damaged = refuse("gpt_oss-on", &|tensors| {
        let bytes = &mut tensors.get_mut(name).unwrap().2;
        bytes[2..4].copy_from_slice(&half::bf16::NAN.to_le_bytes());
    });
    let (tensor, problem) = of_tensor(damaged);
    assert_eq!(tensor, "model.layers.2.mlp.experts.0.up_proj.weight");
    assert!(matches!(problem, TensorProblem::NonFinite { index: 0, .. }), "{problem}");
    let damaged = refuse("qwen2_moe-off", &|tensors| {
        let bytes = &mut tensors.get_mut(stack).unwrap().2;
        let at = bytes.len() - 2;
        bytes[at..].copy_from_slice(&half::bf16::INFINITY.to_le_bytes());
    });
    let (tensor, problem) = of_tensor(damaged);
    assert_eq!(tensor, "model.layers.1.mlp.experts.3.down_proj.weight");
    assert!(matches!(problem, TensorProblem::NonFinite { .. }), "{problem}");
}

#[test]
fn experts_of_gpt_oss_in_few_bits_are_refused_by_the_field() {
    let folder = changed("gpt_oss-on", |_| {});
    let fp8 = json!({ "quant_method": "fp8" });
    edit(folder.path().join("config.json"), |config| config["quantization_config"] = fp8);
    let error = Model::load(folder.path(), &LoadOptions::default()).unwrap_err();
    assert!(
        matches!(&error, Error::Weights(WeightsError::Unsupported { field, .. }) if field == "quantization_config.quant_method"),
        "{error}"
    );
}

/// An adapter's change of one expert, named as where experts are stored one by one.
#[test]
fn an_adapter_changes_an_expert_by_its_name_in_a_stack_too() {
    const D_MODEL: usize = 32;
    const WIDTH: usize = 16;
    const RANK: usize = 2;
    let number = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 100.0;
    let a: Vec<f32> = (0..RANK * D_MODEL).map(number).collect();
    let b: Vec<f32> = (0..WIDTH * RANK).map(|i| number(i + 7)).collect();
    let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let adapter = TempDir::new().unwrap();
    let config = r#"{"peft_type": "LORA", "r": 2, "lora_alpha": 6}"#;
    fs::write(adapter.path().join("adapter_config.json"), config).unwrap();
    let stem = "base_model.model.model.layers.1.mlp.experts.2.up_proj";
    let factors = [
        (format!("{stem}.lora_A.weight"), Stored::F32, vec![RANK, D_MODEL], bytes(&a)),
        (format!("{stem}.lora_B.weight"), Stored::F32, vec![WIDTH, RANK], bytes(&b)),
    ];
    write_tensors(&adapter.path().join("adapter_model.safetensors"), &factors);

    let merge = |matrix: &mut [u8]| {
        for (at, number) in matrix.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let (row, column) = (at / D_MODEL, at % D_MODEL);
            let sum: f64 = (0..RANK).map(|k| f64::from(b[row * RANK + k]) * f64::from(a[k * D_MODEL + column])).sum();
            *number = ((f64::from(f32::from_le_bytes(*number)) + 3.0 * sum) as f32).to_le_bytes();
        }
    };
    let stacked = family("qwen3_moe-off");
    let merged = changed("qwen3_moe-off", |tensors| {
        let stack = &mut tensors.get_mut("model.layers.1.mlp.experts.gate_up_proj").unwrap().2;
        // The rows of expert 2, gate before up.
        let matrix = WIDTH * D_MODEL * 4;
        merge(&mut stack[5 * matrix..6 * matrix]);
    });
    let other = changed("qwen3_moe-off", |tensors| one_by_one(tensors, false));
    for options in every_way().filter(|options| options.dtype == Some(Dtype::F32)) {
        let expected = bits(&Model::load(merged.path(), &options).unwrap());
        assert_ne!(expected, bits(&Model::load(&stacked, &options).unwrap()));
        let options = LoadOptions { adapters: vec![adapter.path().to_owned()], ..options };
        for folder in [stacked.as_path(), other.path()] {
            assert_eq!(bits(&Model::load(folder, &options).unwrap()), expected);
        }
    }
}
