//! How many tokens share a batch on GPUs where nobody says it.
//!
//! The number follows from the model and from how much memory the GPUs have in all, not from how
//! much of it is free: the same model on the same GPUs is run in the same shapes, so its numbers do
//! not change with what else the machine does.

use judge_arch::ModelSpec;

use super::stages::heaviest;
use crate::Dtype;

/// A batch may take one part of so many of the memory that weights leave. The rest is for what the
/// estimate leaves out: workspaces of kernels, and
/// what the allocator keeps for later.
const SHARE: u64 = 2;

/// What a GPU's kernels take whatever the batch is: scores of attention in f32 and the weights that they become, and the workspace of
/// products (`judge_gpu::SCORES` and `judge_gpu::cublas::WORKSPACE`).
const FIXED: u64 = 576 << 20;

#[cfg(feature = "cuda")]
const _: () = assert!((2 * size_of::<f32>() * judge_gpu::SCORES + judge_gpu::cublas::WORKSPACE) as u64 <= FIXED);

/// Batches are multiples of it, and at least as large: a sequence that has more tokens runs alone
/// either way, and a GPU without room for so many cannot be expected to run the model.
const STEP: usize = 1024;

/// More tokens bring nothing: reading the weights once is then a small part of a pass.
const MOST: usize = 65_536;

/// Tokens of a batch, padding and new ones included, for a model spread over `n_devices` GPUs, the
/// smallest of which has `memory` bytes: a multiple of 1,024 from 1,024 to 65,536.
pub(crate) fn batch_tokens(spec: &ModelSpec, dtype: Dtype, n_devices: usize, memory: u64) -> usize {
    let width = match dtype {
        Dtype::F32 | Dtype::Tf32 => 4,
        Dtype::Bf16 => 2,
    };
    let weights = (heaviest(spec, n_devices) * width) as u64;
    let tokens = memory.saturating_sub(weights + FIXED) / SHARE / bytes_per_token(spec);
    let tokens = usize::try_from(tokens).unwrap_or(MOST).min(MOST);
    (tokens / STEP * STEP).max(STEP)
}

/// Bytes that a token takes at the widest point of a pass, all in f32:
///
/// - six rows of the residual stream's width: the stream, its norm, what attention and the MLP add,
///   and a copy each;
/// - three rows of the widest projection: what it gives, its activation, and a copy;
/// - the keys and values of all blocks, which are kept while text is written.
fn bytes_per_token(spec: &ModelSpec) -> u64 {
    let keys = spec.blocks.iter().filter(|block| block.has_own_keys()).map(|block| 2 * block.heads.d_key());
    let rows = 6 * spec.d_model + 3 * spec.widest_projection();
    (size_of::<f32>() * (rows + keys.sum::<usize>())) as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Of the size of an 8B model: 32 blocks of width 4096, 8 key heads of 128, 14336 in the MLP.
    fn spec() -> ModelSpec {
        let config = json!({
            "model_type": "llama", "vocab_size": 128_256, "hidden_size": 4096, "intermediate_size": 14_336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
            "max_position_embeddings": 8192, "rope_theta": 500_000.0, "tie_word_embeddings": false
        });
        ModelSpec::from_json(&config).unwrap()
    }

    #[test]
    fn a_token_takes_rows_of_the_widest_point_and_its_keys() {
        assert_eq!(spec().widest_projection(), 2 * 14_336);
        let rows = 6 * 4096 + 3 * 28_672 + 32 * 2 * 1024;
        assert_eq!(bytes_per_token(&spec()), 4 * rows);
    }

    #[test]
    fn batches_grow_with_what_weights_leave() {
        let gib = |gib: u64| gib << 30;
        let tokens = |dtype, n_devices, memory| batch_tokens(&spec(), dtype, n_devices, memory);
        // 8.03 billion weights: 15 GiB in bf16, so 8.5 of 24 GiB are left, of which half is 4.2 GiB, at 704,512 bytes a token.
        assert_eq!(tokens(Dtype::Bf16, 1, gib(24)), 6144);
        assert_eq!(tokens(Dtype::Bf16, 1, gib(140)), MOST);
        assert!(tokens(Dtype::Bf16, 2, gib(24)) > tokens(Dtype::Bf16, 1, gib(24)));
        // Weights that leave nothing: loading them will say so.
        assert_eq!(tokens(Dtype::F32, 1, gib(24)), STEP);
        assert_eq!(tokens(Dtype::Bf16, 1, u64::MAX), MOST);
    }
}
