//! What tensors are called in GGUF files, and what the converter does to the tensors of an
//! architecture.
//!
//! An entry of [`ARCHITECTURES`] is all that another architecture needs, as long as its blocks have
//! the names listed here. Each entry is compared with a file that llama.cpp's own package `gguf`
//! wrote (`quantised_tests/gguf.rs`); other architectures are refused rather than guessed.
//!
//! ```text
//!  token_embd.weight           model.embed_tokens.weight
//!  blk.3.attn_q.weight         model.layers.3.self_attn.q_proj.weight
//!  blk.3.ffn_norm.weight       model.layers.3.post_attention_layernorm.weight   (two norms)
//!                              model.layers.3.pre_feedforward_layernorm.weight  (four norms)
//!  output_norm.weight          model.norm.weight
//!  output.weight               lm_head.weight; absent where the head is the embedding, or there is none
//! ```

use crate::arch::{EMBEDDING, HEAD};
use crate::gguf::GgufProblem;

/// The divisors of frequencies that stand for `llama3`'s scaling of the rotation.
pub(super) const DIVISORS: &str = "rope_freqs.weight";

/// Tensors that repeat what `config.json` says of the rotation's frequencies. No model takes them.
pub(super) const FREQUENCIES: [&str; 3] = [DIVISORS, "rope_factors_long.weight", "rope_factors_short.weight"];

/// An architecture of llama.cpp and what its converter does to tensors.
#[derive(Debug)]
pub(super) struct Architecture {
    /// The value of `general.architecture`, which the keys of settings begin with.
    pub(super) name: &'static str,
    /// The `model_type`s that are stored under this name.
    families: &'static [&'static str],
    /// Whether the rows of queries and keys were put into the order that rotates neighbours.
    pub(super) swaps_rows: bool,
    /// Whether 1 was added to the weights of norms.
    pub(super) adds_one: bool,
    /// Whether blocks have norms behind attention and behind the MLP too, which changes what
    /// `ffn_norm` stands for.
    has_four_norms: bool,
}

/// The architectures that are read.
static ARCHITECTURES: [Architecture; 4] = [
    Architecture {
        name: "llama",
        families: &["llama", "mistral"],
        swaps_rows: true,
        adds_one: false,
        has_four_norms: false,
    },
    Architecture { name: "qwen2", families: &["qwen2"], swaps_rows: false, adds_one: false, has_four_norms: false },
    Architecture { name: "qwen3", families: &["qwen3"], swaps_rows: false, adds_one: false, has_four_norms: false },
    Architecture {
        name: "gemma3",
        families: &["gemma3_text"],
        swaps_rows: false,
        adds_one: true,
        has_four_norms: true,
    },
];

/// Stems of names in a block: in a GGUF file, and in a Hugging Face folder.
const IN_BLOCK: [(&str, &str); 10] = [
    ("attn_norm", "input_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The second norm of a block that has two, like [`IN_BLOCK`].
const TWO_NORMS: [(&str, &str); 1] = [("ffn_norm", "post_attention_layernorm")];

/// The last three norms of a block that has four, like [`IN_BLOCK`].
const FOUR_NORMS: [(&str, &str); 3] = [
    ("post_attention_norm", "post_attention_layernorm"),
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];

impl Architecture {
    /// The architecture that a model of this family is stored as, if it is the one that the file
    /// names.
    ///
    /// # Errors
    /// [`GgufProblem::Value`] for a family that is not read from GGUF files and for a file of
    /// another architecture.
    pub(super) fn of(name: &str, family: &str) -> Result<&'static Self, GgufProblem> {
        let wrong = |expected| GgufProblem::Value { key: "general.architecture", found: format!("{name:?}"), expected };
        let Some(own) = ARCHITECTURES.iter().find(|known| known.families.contains(&family)) else {
            let known: Vec<&str> = ARCHITECTURES.iter().flat_map(|known| known.families).copied().collect();
            return Err(wrong(format!("a model of {}, not {family}", known.join(", "))));
        };
        if own.name == name { Ok(own) } else { Err(wrong(format!("{:?} for the model_type {family}", own.name))) }
    }

    /// What a tensor of this name is called in a Hugging Face folder: `blk.3.attn_q.bias` becomes
    /// `model.layers.3.self_attn.q_proj.bias`. `None` for a name that is not known.
    pub(super) fn hugging_face(&self, name: &str) -> Option<String> {
        match name {
            "token_embd.weight" => return Some(EMBEDDING.to_owned()),
            "output_norm.weight" => return Some("model.norm.weight".to_owned()),
            "output.weight" => return Some(HEAD.to_owned()),
            _ => {}
        }
        let (block, rest) = name.strip_prefix("blk.")?.split_once('.')?;
        let block: u32 = block.parse().ok()?;
        let (stem, end) = rest.rsplit_once('.')?;
        let norms = if self.has_four_norms { &FOUR_NORMS[..] } else { &TWO_NORMS[..] };
        let (_, stem) = IN_BLOCK.iter().chain(norms).find(|(known, _)| *known == stem)?;
        Some(format!("model.layers.{block}.{stem}.{end}"))
    }
}
