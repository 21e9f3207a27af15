//! Adapters over a quantised base: what it is expanded to, with the adapter added, rounded once.

use std::path::Path;

use safetensors::tensor::TensorView;
use serde_json::json;
use tempfile::TempDir;

use super::{folder, open};
use crate::weights::{Adapted, Adapter, Tensors};
use crate::{Dtype, LoadOptions, Model};

/// An adapter of rank 1 for the first query projection: `2 * b a` for these.
fn write_adapter(to: &Path, a: &[f32], b: &[f32]) {
    let tensors = [("lora_A", [1, a.len()], a), ("lora_B", [b.len(), 1], b)].map(|(part, shape, values)| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        (format!("base_model.model.model.layers.0.self_attn.q_proj.{part}.weight"), shape, bytes)
    });
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytes).unwrap()));
    std::fs::write(to.join("adapter_model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
    let config = json!({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "target_modules": ["q_proj"]});
    std::fs::write(to.join("adapter_config.json"), config.to_string()).unwrap();
}

#[test]
fn adapters_are_added_to_what_the_base_is_expanded_to() {
    let to = TempDir::new().unwrap();
    let a: Vec<f32> = (0..64).map(|i| (i as f32 * 0.37).sin()).collect();
    let b: Vec<f32> = (0..32).map(|i| (i as f32 * 0.61).cos()).collect();
    write_adapter(to.path(), &a, &b);
    const NAME: &str = "model.layers.0.self_attn.q_proj.weight";
    for name in ["awq", "compressed-packed", "fp8-block", "gptq-v1"] {
        let (mut base, tensors) = open(&folder(name)).unwrap();
        let plain = base.take(NAME, &[32, 64], Dtype::F32).unwrap();
        let mut adapters = [Adapter::open(to.path()).unwrap()];
        adapters[0].check(&tensors).unwrap();
        let found = Adapted { base: &mut *base, adapters: &mut adapters, untied_from: None, brought: &[] }
            .take(NAME, &[32, 64], Dtype::F32)
            .unwrap();
        for (index, (&found, &plain)) in found.iter().zip(&plain).enumerate() {
            let change = 2.0 * f64::from(b[index / 64]) * f64::from(a[index % 64]);
            assert_eq!(found, (f64::from(plain) + change) as f32, "{name}: {index}");
        }
        let options = LoadOptions { adapters: vec![to.path().to_owned()], ..LoadOptions::default() };
        let (with, without) = (Model::load(folder(name), &options), Model::load(folder(name), &LoadOptions::default()));
        assert_ne!(with.unwrap().info.fingerprint, without.unwrap().info.fingerprint);
    }
}
