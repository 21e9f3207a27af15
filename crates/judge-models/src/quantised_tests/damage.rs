//! What is wrong with a quantised folder is said by the tensor's or the field's name.

use std::collections::BTreeMap;

use judge_core::Backbone;
use safetensors::tensor::{Dtype as Kind, SafeTensors, TensorView};
use serde_json::{Value, json};

use super::{FOLDERS, expected, folder, load, states};
use crate::fixtures::copy;
use crate::{Dtype, Error, Model, TensorProblem, WeightsError};

/// A tensor as a safetensors file has it: dtype, shape and bytes.
type Stored = (Kind, Vec<usize>, Vec<u8>);

/// What a copy of a folder says after its tensors and its configuration were edited.
fn edited(name: &str, edit: impl FnOnce(&mut BTreeMap<String, Stored>, &mut Value)) -> Result<Model, Error> {
    let to = copy(&format!("../quantised/{name}"));
    let [weights, described] = ["model.safetensors", "config.json"].map(|file| to.path().join(file));
    let bytes = std::fs::read(&weights).unwrap();
    let mut config: Value = serde_json::from_slice(&std::fs::read(&described).unwrap()).unwrap();
    let of = |view: TensorView<'_>| (view.dtype(), view.shape().to_vec(), view.data().to_vec());
    let stored = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: BTreeMap<String, Stored> = stored.iter().map(|(name, view)| (name.to_owned(), of(view))).collect();
    edit(&mut tensors, &mut config);
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, bytes))| (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    std::fs::write(weights, safetensors::serialize(views, None).unwrap()).unwrap();
    std::fs::write(described, config.to_string()).unwrap();
    load(to.path(), Some(Dtype::F32))
}

/// The tensor that an error names, from behind `stem`, and what is wrong with it.
fn fault(found: Result<Model, Error>, stem: &str) -> (String, TensorProblem) {
    match found {
        Err(Error::Weights(WeightsError::Tensor { tensor, problem, .. })) => {
            (tensor.split_once(stem).unwrap().1.to_owned(), problem)
        }
        other => panic!("{stem}: {other:?}"),
    }
}

/// The tensors that an error says are missing, and how many there are that nothing uses.
fn names(found: Result<Model, Error>) -> (Vec<String>, usize) {
    match found {
        Err(Error::Weights(WeightsError::TensorNames { missing, unused })) => (missing, unused.len()),
        other => panic!("{other:?}"),
    }
}

/// What is wrong with a copy of which a tensor of the first query projection was damaged, by the end of its name.
fn damaged(name: &str, suffix: &str, damage: impl FnOnce(&mut Stored)) -> (String, TensorProblem) {
    let tensor = format!("model.layers.0.self_attn.q_proj{suffix}");
    let found = edited(name, |tensors, _| damage(tensors.get_mut(&tensor).unwrap_or_else(|| panic!("no {tensor}"))));
    fault(found, "q_proj")
}

#[test]
fn untouched_copies_load() {
    for name in FOLDERS {
        edited(name, |_, _| {}).unwrap();
    }
}

#[test]
fn scales_of_fp8_have_either_name() {
    let renamed = edited("fp8-tensor", |tensors, _| {
        let of = |name: String| name.replace(".weight_scale_inv", ".weight_scale");
        *tensors = std::mem::take(tensors).into_iter().map(|(name, stored)| (of(name), stored)).collect();
        assert!(tensors.keys().any(|name| name.ends_with(".weight_scale")));
    });
    let path = folder("fp8-tensor");
    let (prompts, _) = expected(&path);
    let [renamed, as_it_is] = [renamed.unwrap(), load(&path, Some(Dtype::F32)).unwrap()];
    let [renamed, as_it_is] = [renamed, as_it_is].map(|model| states(&model, &path, &prompts[0].0));
    assert_eq!(renamed, as_it_is);
}

#[test]
fn scales_that_are_not_finite_are_named() {
    let nan = |stored: &mut Stored| {
        let bytes: &[u8] = match stored.0 {
            Kind::F32 => &[0, 0, 0xc0, 0x7f],
            Kind::F16 => &[0, 0x7e],
            Kind::BF16 => &[0xc0, 0x7f],
            Kind::F8_E8M0 => &[255],
            other => panic!("{other}"),
        };
        stored.2[..bytes.len()].copy_from_slice(bytes);
    };
    for (name, suffix) in [
        ("fp8-block", ".weight_scale_inv"),
        ("fp8-tensor", ".weight_scale_inv"),
        ("fp8-ue8m0", ".weight_scale_inv"),
        ("fbgemm", ".weight_scale"),
        ("compressed-float", ".weight_scale"),
        ("compressed-packed", ".weight_scale"),
        ("gptq-v1", ".scales"),
        ("awq", ".scales"),
        ("bnb-fp4", ".weight.absmax"),
        ("bnb-int8", ".SCB"),
    ] {
        let (tensor, problem) = damaged(name, suffix, nan);
        assert_eq!(tensor, suffix, "{name}");
        assert!(matches!(problem, TensorProblem::NonFinite { index: 0, value } if value.is_nan()), "{name}: {problem}");
    }
    // A code that is not a number has no scale to blame.
    let (tensor, problem) = damaged("fp8-block", ".weight", |stored| stored.2[5] = 0x7f);
    assert!(tensor == ".weight" && matches!(problem, TensorProblem::NonFinite { index: 5, .. }), "{problem}");
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    // Each tensor of a module with its last dimension grown by one, and in a dtype that none of them has.
    for (name, suffix) in [
        ("fp8-block", ".weight"),
        ("fp8-block", ".weight_scale_inv"),
        ("fbgemm", ".weight_scale"),
        ("compressed-float", ".weight_scale"),
        ("compressed-bytes", ".weight_zero_point"),
        ("compressed-packed", ".weight_g_idx"),
        ("gptq-v1", ".qweight"),
        ("gptq-v1", ".qzeros"),
        ("gptq-v1", ".scales"),
        ("gptq-v1", ".g_idx"),
        ("awq", ".qweight"),
        ("awq", ".qzeros"),
        ("awq", ".scales"),
        ("bnb-fp4", ".weight"),
        ("bnb-fp4", ".weight.absmax"),
        ("bnb-fp4", ".weight.quant_map"),
        ("bnb-int8", ".weight"),
        ("bnb-int8", ".SCB"),
    ] {
        let (tensor, problem) = damaged(name, suffix, |(_, shape, bytes)| {
            let before: usize = shape.iter().product();
            *shape.last_mut().unwrap() += 1;
            bytes.resize(bytes.len() / before * shape.iter().product::<usize>(), 0);
        });
        assert_eq!(tensor, suffix, "{name}");
        assert!(matches!(&problem, TensorProblem::Shape { expected, found } if expected != found), "{name}: {problem}");
        if !suffix.ends_with("weight") {
            let (tensor, problem) = damaged(name, suffix, |(dtype, shape, bytes)| {
                *dtype = Kind::C64;
                bytes.resize(8 * shape.iter().product::<usize>(), 0);
            });
            assert_eq!(tensor, suffix, "{name}");
            assert!(matches!(&problem, TensorProblem::OtherDtype { found, .. } if found == "C64"), "{name}: {problem}");
        }
    }
    let (_, problem) = damaged("compressed-packed", ".weight_shape", |stored| stored.2[0] ^= 1);
    assert!(
        matches!(&problem, TensorProblem::Shape { expected, found } if expected == &[32, 64] && found == &[33, 64])
    );
}

#[test]
fn groups_that_are_not_there_are_refused() {
    for (name, suffix) in [("gptq-v1", ".g_idx"), ("compressed-packed", ".weight_g_idx")] {
        for index in [4_i32, -2, i32::MAX] {
            let (tensor, problem) =
                damaged(name, suffix, |stored| stored.2[12..16].copy_from_slice(&index.to_le_bytes()));
            assert_eq!(tensor, suffix);
            let expected = TensorProblem::Index { index: 3, found: index.into(), limit: 4 };
            assert_eq!(problem, expected);
        }
    }
}

#[test]
fn partners_that_are_missing_are_named() {
    for (name, partner) in [
        ("fp8-block", ".weight_scale_inv"),
        ("fbgemm", ".weight_scale"),
        ("compressed-float", ".weight_scale"),
        ("compressed-bytes", ".weight_zero_point"),
        ("compressed-packed", ".weight_shape"),
        ("gptq-v1", ".qzeros"),
        ("gptq-v1", ".scales"),
        ("awq", ".qzeros"),
        ("bnb-fp4", ".weight.absmax"),
        ("bnb-fp4", ".weight.quant_state.bitsandbytes__fp4"),
        ("bnb-int8", ".SCB"),
    ] {
        let partner = format!("model.layers.0.self_attn.q_proj{partner}");
        let (_, problem) = fault(edited(name, |tensors, _| drop(tensors.remove(&partner))), "");
        let TensorProblem::NoPartner { partner: found } = problem else { panic!("{name}: {problem}") };
        // The state's own name says its kind, which is unknown without it.
        assert!(found == partner || partner.contains("quant_state") && found.contains("quant_state"), "{found}");
    }
    // Scales without codes are of no use, as is a dense weight beside codes.
    let error = edited("gptq-v1", |tensors, _| drop(tensors.remove("model.layers.0.self_attn.q_proj.qweight")));
    assert_eq!(names(error), (vec!["model.layers.0.self_attn.q_proj.weight".to_owned()], 3));
    let error = edited("gptq-v1", |tensors, _| {
        let dense = (Kind::F32, vec![32, 64], vec![0; 4 * 32 * 64]);
        tensors.insert("model.layers.0.self_attn.q_proj.weight".to_owned(), dense);
    });
    assert_eq!(names(error).1, 4);
}

#[test]
fn states_of_bitsandbytes_are_read_with_care() {
    const STATE: &str = ".weight.quant_state.bitsandbytes__nf4";
    let state = |edit: &dyn Fn(&mut Value)| {
        damaged("bnb-nf4", STATE, |(_, shape, bytes)| {
            let mut json: Value = serde_json::from_slice(bytes).unwrap();
            edit(&mut json);
            *bytes = json.to_string().into_bytes();
            *shape = vec![bytes.len()];
        })
    };
    let setting = |problem| match problem {
        TensorProblem::Setting { field, .. } => field,
        other => panic!("{other}"),
    };
    assert_eq!(setting(state(&|json| json["blocksize"] = json!(0)).1), "blocksize");
    assert_eq!(setting(state(&|json| json["quant_type"] = json!("fp4")).1), "quant_type");
    assert_eq!(setting(state(&|json| json["shape"] = json!("wide")).1), "quant_state");
    assert!(matches!(state(&|json| json["shape"] = json!([64, 63])).1, TensorProblem::Shape { .. }));
    assert!(matches!(state(&|json| json["blocksize"] = json!(128)).1, TensorProblem::Shape { .. }));
    let (_, problem) = damaged("bnb-int8", ".weight_format", |stored| stored.2[0] = 1);
    assert_eq!(setting(problem), "weight_format");
}

#[test]
fn methods_and_variants_that_are_not_read_are_refused_by_field() {
    let refused = |name: &str, field: &str, value: Value| {
        let error = edited(name, |_, config| config["quantization_config"][field] = value).unwrap_err();
        let text = error.to_string();
        let Error::Weights(WeightsError::Unsupported { field: found, .. }) = error else {
            panic!("{name} {field}: {error:?}")
        };
        assert_eq!(found, format!("quantization_config.{field}"), "{text}");
        text
    };
    let text = refused("awq", "quant_method", json!("aqlm"));
    assert!(text.contains("aqlm") && text.contains("gptq") && text.contains("bitsandbytes"), "{text}");
    refused("awq", "quant_method", json!(null));
    refused("awq", "version", json!("gemv"));
    refused("awq", "bits", json!(8));
    refused("awq", "zero_point", json!(false));
    refused("awq", "group_size", json!(0));
    refused("gptq-v1", "bits", json!(3));
    refused("gptq-v1", "group_size", json!(-7));
    refused("gptq-v1", "checkpoint_format", json!("marlin"));
    refused("gptq-v1", "dynamic", json!({"-:q_proj": {}}));
    refused("fp8-block", "weight_block_size", json!([128, 0]));
    refused("fp8-block", "fmt", json!("e5m2"));
    refused("bnb-nf4", "bnb_4bit_quant_storage", json!("bfloat16"));
    refused("compressed-float", "format", json!("nvfp4-pack-quantized"));
    refused("compressed-float", "transform_config", json!({"config_groups": {"R1": {}}}));
    refused("compressed-float", "sparsity_config", json!({"format": "sparse-24-bitmask"}));
    refused("compressed-float", "config_groups", json!({"g": {"weights": {"num_bits": 3}}}));
    let other = edited("awq", |_, config| {
        config["compression_config"] = json!({"quant_method": "compressed-tensors"});
    });
    assert!(
        matches!(&other, Err(Error::Weights(WeightsError::Unsupported { field, .. })) if field == "compression_config"),
        "{other:?}"
    );
}

#[test]
fn settings_inside_text_config_count() {
    let error = edited("awq", |_, config| {
        let settings = config.as_object_mut().unwrap().remove("quantization_config").unwrap();
        config["text_config"] = json!({"quantization_config": settings});
        config["text_config"]["quantization_config"]["version"] = json!("gemv");
    });
    let Err(Error::Weights(WeightsError::Unsupported { field, .. })) = error else { panic!("{error:?}") };
    assert_eq!(field, "text_config.quantization_config.version");
}

#[test]
fn fingerprints_cover_codes_and_scales() {
    let fingerprint = |edit: &dyn Fn(&mut BTreeMap<String, Stored>)| {
        edited("gptq-v1", |tensors, _| edit(tensors)).unwrap().info().fingerprint.clone()
    };
    let same = fingerprint(&|_| {});
    assert_eq!(fingerprint(&|_| {}), same);
    for suffix in ["qweight", "qzeros", "scales"] {
        let tensor = format!("model.layers.1.mlp.up_proj.{suffix}");
        assert_ne!(fingerprint(&|tensors| tensors.get_mut(&tensor).unwrap().2[0] ^= 1), same, "{suffix}");
    }
}

#[test]
fn stacks_of_codes_that_do_not_fit_are_named() {
    const STACK: &str = "model.layers.1.mlp.experts.gate_up_proj";
    let damaged = |suffix: &str, damage: &dyn Fn(&mut Stored)| {
        fault(edited("mxfp4", |tensors, _| damage(tensors.get_mut(&format!("{STACK}{suffix}")).unwrap())), STACK)
    };
    // Three experts of 64 rows in two blocks: the last scale is that of the last expert's last row.
    let (tensor, problem) = damaged("_scales", &|(_, _, bytes)| *bytes.last_mut().unwrap() = 255);
    assert!(tensor == "_scales" && matches!(problem, TensorProblem::NonFinite { index: 383, .. }), "{problem}");
    // A power that is a number, by a code that makes it none.
    let (tensor, problem) = damaged("_scales", &|(_, _, bytes)| bytes[7] = 254);
    assert!(
        tensor == "_blocks" && matches!(problem, TensorProblem::NonFinite { index, .. } if index / 32 == 7),
        "{problem}"
    );
    for suffix in ["_blocks", "_scales"] {
        let (tensor, problem) = damaged(suffix, &|(_, shape, bytes)| {
            let experts = shape[0];
            shape[0] += 1;
            bytes.resize(bytes.len() / experts * shape[0], 0);
        });
        assert!(tensor == suffix && matches!(problem, TensorProblem::Shape { .. }), "{tensor}: {problem}");
    }
    let (tensor, problem) = damaged("_scales", &|(dtype, _, _)| *dtype = Kind::I8);
    assert!(tensor == "_scales" && matches!(problem, TensorProblem::OtherDtype { .. }), "{problem}");
    let partner = format!("{STACK}_scales");
    let (_, problem) = fault(edited("mxfp4", |tensors, _| drop(tensors.remove(&partner))), "");
    assert_eq!(problem, TensorProblem::NoPartner { partner });
    let error = edited("mxfp4", |tensors, _| drop(tensors.remove(&format!("{STACK}_blocks"))));
    assert_eq!(names(error).0, [STACK]);
    // Codes beside the numbers that they stand for.
    let error = edited("mxfp4", |tensors, _| {
        tensors.insert(STACK.to_owned(), (Kind::BF16, vec![3, 64, 64], vec![0; 2 * 3 * 64 * 64]));
    });
    assert_eq!(names(error).1, 2);
}
