//! The folder that training starts from: the decoder with random numbers.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use safetensors::tensor::{Dtype, TensorView};
use tiny_judge::planted::Draw;
use tokenizers::Tokenizer;

use crate::folder;

/// Standard deviation of matrices; those that write into the residual stream get it divided by
/// `sqrt(2 * blocks)`, as GPT-2 has it.
const SPREAD: f64 = 0.02;

/// Writes the folder: noise around 0 for matrices, ones for norms. The same seed gives the same bytes on every
/// machine.
pub(crate) fn write(to: &Path, tokenizer: &Tokenizer, seed: u64) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    folder::write(to, tokenizer)?;
    let mut draw = Draw::new(seed, 0);
    let (tensors, blocks) = tensors();
    let numbers: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .into_iter()
        .map(|(name, shape)| {
            let len: usize = shape.iter().product();
            let into_residual = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
            let spread = if into_residual { SPREAD / (2.0 * blocks as f64).sqrt() } else { SPREAD };
            let mut number = || if shape.len() == 1 { 1.0 } else { (draw.noise() * spread) as f32 };
            let bytes = (0..len).flat_map(|_| number().to_le_bytes()).collect();
            (name, shape, bytes)
        })
        .collect();
    let views = numbers
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)));
    let bytes = safetensors::serialize(views.collect::<Result<Vec<_>>>()?, None)?;
    fs::write(to.join("model.safetensors"), bytes).context("cannot write the first weights")
}

/// Names and shapes of the decoder's tensors in the order in which they are drawn, and the number of blocks.
fn tensors() -> (Vec<(String, Vec<usize>)>, usize) {
    let config = folder::config();
    let number = |field: &str| config[field].as_u64().unwrap_or_default() as usize;
    let [vocab, width, mlp, head] = ["vocab_size", "hidden_size", "intermediate_size", "head_dim"].map(number);
    let [queries, keys] = ["num_attention_heads", "num_key_value_heads"].map(|heads| number(heads) * head);
    let blocks = number("num_hidden_layers");
    let mut all = vec![("model.embed_tokens".to_owned(), vec![vocab, width])];
    for block in 0..blocks {
        let of_block = [
            ("self_attn.q_proj", vec![queries, width]),
            ("self_attn.k_proj", vec![keys, width]),
            ("self_attn.v_proj", vec![keys, width]),
            ("self_attn.o_proj", vec![width, queries]),
            ("mlp.gate_proj", vec![mlp, width]),
            ("mlp.up_proj", vec![mlp, width]),
            ("mlp.down_proj", vec![width, mlp]),
            ("self_attn.q_norm", vec![head]),
            ("self_attn.k_norm", vec![head]),
            ("input_layernorm", vec![width]),
            ("post_attention_layernorm", vec![width]),
        ];
        all.extend(of_block.map(|(name, shape)| (format!("model.layers.{block}.{name}"), shape)));
    }
    all.push(("model.norm".to_owned(), vec![width]));
    (all.into_iter().map(|(name, shape)| (format!("{name}.weight"), shape)).collect(), blocks)
}
