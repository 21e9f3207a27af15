//! A reading at `Layer(k)` is made of `k` blocks and no more: whatever stands in the weights above, no engine looks at it.

use judge_core::{
    Backbone, Layer, Lens, Outcome, Prompt, Reading, Reason, Request, Want,
    request::{LabelRead, Pooling, ReadAt},
};
use safetensors::{Dtype, SafeTensors};
use tempfile::TempDir;

use crate::fixtures::{copy, folder};
use crate::test_models::{answers, engines, reading};

/// Finite, as weights must be, in f32 as in bf16; but nothing that meets a matrix of it stays so.
const HUGE: f32 = 3e38;

/// A copy of a model whose blocks from number `first` on, counted from 0, hold [`HUGE`] alone.
fn spoilt(family: &str, first: usize) -> TempDir {
    let copy = copy(family);
    let path = copy.path().join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let base = bytes.as_ptr() as usize;
    let mut places = Vec::new();
    for (name, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
        let block = name.strip_prefix("model.layers.").and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        if block.is_some_and(|block| block >= first) {
            let start = view.data().as_ptr() as usize - base;
            places.push((start..start + view.data().len(), view.dtype()));
        }
    }
    assert!(!places.is_empty());
    for (place, dtype) in places {
        match dtype {
            Dtype::F32 => bytes[place].chunks_exact_mut(4).for_each(|x| x.copy_from_slice(&HUGE.to_le_bytes())),
            Dtype::BF16 => {
                let huge = half::bf16::from_f32(HUGE).to_le_bytes();
                bytes[place].chunks_exact_mut(2).for_each(|x| x.copy_from_slice(&huge));
            }
            other => panic!("{other:?}"),
        }
    }
    std::fs::write(path, bytes).unwrap();
    copy
}

/// Everything that is read at one layer, and each kind of it alone.
fn wants(layer: usize) -> Vec<Want> {
    let layer = Layer(layer);
    let pooled = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max]
        .map(|pooling| (layer, pooling))
        .to_vec();
    let labels = [Lens::Raw, Lens::Normed].map(|lens| {
        let read =
            LabelRead { tokens: vec![3, 4, 5], layers: vec![layer], lens, at: ReadAt::PromptEnd, label_mass: false };
        Want { labels: vec![read], ..Want::default() }
    });
    let mut wants = vec![Want { pooled: pooled.clone(), ..labels[0].clone() }];
    wants.extend(labels);
    wants.extend(pooled.into_iter().map(|pair| Want { pooled: vec![pair], ..Want::default() }));
    if layer.0 > 0 {
        wants[0].attention_entropy = vec![layer];
        wants.push(Want { attention_entropy: vec![layer], ..Want::default() });
    }
    wants
}

fn requests(layer: usize) -> Vec<Request> {
    let prompts =
        ["ba de fi go ku la me ni po ru sa te vi zo", "3 xa y0 ba ba 4"].map(|text| Prompt::Raw(text.to_owned()));
    let request = |prompt: &Prompt, want| Request { prompt: prompt.clone(), want };
    wants(layer).into_iter().flat_map(|want| prompts.each_ref().map(|prompt| request(prompt, want.clone()))).collect()
}

fn bits(reading: &Reading) -> Vec<u32> {
    let labels = reading.labels.iter().flat_map(|labels| &labels.steps).flat_map(|step| &step.logits);
    let pooled = reading.pooled.iter().flat_map(|state| &state.values);
    let entropies = reading.attention_entropy.iter().flat_map(|heads| &heads.values);
    labels.chain(pooled).chain(entropies).map(|x| x.to_bits()).collect()
}

#[test]
fn a_probe_at_layer_k_reads_k_blocks_and_no_more() {
    // One without and one with a norm behind attention, soft-caps and windows; with experts; with sinks;
    // with keys of other blocks and inputs by token.
    for family in ["llama-off", "gemma2-on", "qwen2_moe-on", "gpt_oss-off", "gemma4_text-on", "gemma4_text-experts"] {
        let whole = engines(&folder(family));
        for first in 0..whole[0].1.info().n_layers {
            let spoilt = spoilt(family, first);
            for ((engine, whole), (_, model)) in whole.iter().zip(engines(spoilt.path())) {
                let (below, above) = (requests(first), requests(first + 1));
                // In one run, so that they could share passes.
                let found = answers(&model, &[below.clone(), above.clone()].concat());
                let expected = answers(whole, &below);
                for ((request, found), expected) in below.iter().zip(&found).zip(&expected) {
                    let (found, expected) = (reading(found), reading(expected));
                    assert!(found == expected && bits(found) == bits(expected), "{family}, {engine}: {request:?}");
                    assert!(!bits(found).is_empty());
                }
                for (request, found) in above.iter().zip(&found[below.len()..]) {
                    let refused = matches!(found, Outcome::Unscored(fault) if fault.reason == Reason::NonFinite);
                    assert!(refused, "{family}, {engine}: {request:?}: {found:?}");
                }
            }
        }
    }
}
