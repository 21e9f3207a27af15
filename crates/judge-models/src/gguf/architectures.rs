//! The architectures of llama.cpp that are read: what tensors are called, and what the converter does
//! to them.
//!
//! An entry of [`ARCHITECTURES`] and a few fields in `config.rs` are all that another architecture
//! needs, as long as its tensors are renamed, have rows put into another order or 1 added. Each entry is
//! compared with a file that llama.cpp's own package `gguf` wrote (`quantised_tests/gguf.rs`); other
//! architectures are refused rather than guessed.
//!
//! ```text
//!  token_embd.weight           model.embed_tokens.weight
//!  blk.3.attn_q.weight         model.layers.3.self_attn.q_proj.weight
//!  blk.3.ffn_norm.weight       model.layers.3.post_attention_layernorm.weight   (two norms)
//!                              model.layers.3.pre_feedforward_layernorm.weight  (four norms)
//!  blk.3.ffn_up_exps.weight    model.layers.3.mlp.experts.{0, 1, …}.up_proj.weight, cut into its experts
//!  output_norm.weight          model.norm.weight
//!  output.weight               lm_head.weight; absent where the head is the embedding, or there is none
//! ```

use judge_weights::gguf::problem::GgufProblem;

/// The divisors of frequencies that stand for `llama3`'s scaling of the rotation.
pub(crate) const DIVISORS: &str = "rope_freqs.weight";

/// The divisors of frequencies of `longrope`: for long sequences and for short ones.
pub(crate) const FACTORS: [&str; 2] = ["rope_factors_long.weight", "rope_factors_short.weight"];

/// An architecture of llama.cpp and what its converter does to tensors.
#[derive(Debug)]
pub(crate) struct Architecture {
    /// The value of `general.architecture`, which the keys of settings begin with.
    pub(crate) name: &'static str,
    /// The `model_type`s that are stored under this name. `config.rs` says which one a file without
    /// `config.json` is.
    pub(crate) families: &'static [&'static str],
    /// Whether the rows of queries and keys were put into the order that rotates neighbours.
    pub(crate) swaps_rows: bool,
    /// Whether 1 was added to the weights of norms.
    pub(crate) adds_one: bool,
    /// What the names of blocks begin with in a Hugging Face folder.
    blocks: &'static str,
    /// Stems of names in a block that differ from [`IN_BLOCK`], or are not in it.
    names: &'static [&'static [(&'static str, &'static str)]],
    /// Stems of experts that lie in one tensor, in the same form; `{}` stands for the expert's number, and `+` is between two
    /// matrices of which each expert has one above the other.
    experts: &'static [(&'static str, &'static str)],
    /// What else the converter changes, for people.
    also: &'static str,
}

impl Architecture {
    /// One with Llama's names that the converter only renames.
    const fn of_llama(name: &'static str, families: &'static [&'static str]) -> Self {
        let (blocks, names, experts): (_, &[_], _) = ("model.layers", &[TWO_NORMS], &[]);
        Self { name, families, swaps_rows: false, adds_one: false, blocks, names, experts, also: "" }
    }

    /// One that also changes something else.
    const fn and(self, also: &'static str) -> Self {
        Self { also, ..self }
    }
}

/// What people are told of each architecture: its name, the `model_type`s that it is read as, and what the converter changed.
pub(crate) fn described() -> impl Iterator<Item = (&'static str, &'static [&'static str], String)> {
    ARCHITECTURES.iter().map(|known| {
        let changes = [
            (known.swaps_rows, "order of rows of queries and keys"),
            (!known.experts.is_empty(), "experts stacked"),
            (known.adds_one, "1 added to norms"),
            (!known.also.is_empty(), known.also),
        ];
        let changed: Vec<&str> = changes.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect();
        let changed = if changed.is_empty() { "names alone".to_owned() } else { changed.join("; ") };
        (known.name, known.families, changed)
    })
}

/// The architectures that are read.
static ARCHITECTURES: [Architecture; 23] = [
    Architecture {
        swaps_rows: true,
        names: &[TWO_NORMS, &[("ffn_gate_inp", "block_sparse_moe.gate")]],
        experts: &[
            ("ffn_gate_exps", "block_sparse_moe.experts.{}.w1"),
            ("ffn_up_exps", "block_sparse_moe.experts.{}.w3"),
            ("ffn_down_exps", "block_sparse_moe.experts.{}.w2"),
        ],
        ..Architecture::of_llama("llama", &["llama", "mistral", "mixtral"]).and("`llama3`'s scaling of the rotation as a tensor of divisors")
    },
    Architecture::of_llama("qwen2", &["qwen2"]),
    Architecture::of_llama("qwen3", &["qwen3"]),
    Architecture {
        names: &[TWO_NORMS, ROUTER],
        experts: EXPERTS,
        ..Architecture::of_llama("qwen2moe", &["qwen2_moe"]).and("the shared expert's gate squeezed")
    },
    Architecture {
        names: &[TWO_NORMS, ROUTER],
        experts: EXPERTS,
        ..Architecture::of_llama("qwen3moe", &["qwen3_moe"])
    },
    Architecture { names: &[TWO_NORMS, ROUTER], experts: EXPERTS, ..Architecture::of_llama("olmoe", &["olmoe"]) },
    Architecture { adds_one: true, names: &[FOUR_NORMS], ..Architecture::of_llama("gemma2", &["gemma2"]).and("rows of the vocabulary that no token has left out") },
    Architecture { adds_one: true, names: &[FOUR_NORMS], ..Architecture::of_llama("gemma3", &["gemma3_text"]).and("rows of the vocabulary that no token has left out") },
    Architecture {
        names: &[TWO_NORMS, &[("attn_qkv", "self_attn.qkv_proj"), ("ffn_up", "mlp.gate_up_proj")]],
        ..Architecture::of_llama("phi3", &["phi3"]).and("`longrope` as two tensors")
    },
    Architecture { swaps_rows: true, ..Architecture::of_llama("mistral3", &["ministral3"]) },
    Architecture { swaps_rows: true, ..Architecture::of_llama("granite", &["granite"]) },
    Architecture { swaps_rows: true, ..Architecture::of_llama("smollm3", &["smollm3"]) },
    // Gate and up, whose columns take turns in a folder, are matrices of their own in a file, as they are here.
    Architecture {
        names: &[&[
            ("post_attention_norm", "post_attention_layernorm"),
            ("ffn_gate_inp", "mlp.router"),
            ("attn_sinks", SINKS),
        ]],
        experts: EXPERTS,
        ..Architecture::of_llama("gpt-oss", &["gpt_oss"]).and("gate and up of experts taken apart, the sinks renamed")
    },
    Architecture { names: &[FOUR_NORMS], ..Architecture::of_llama("olmo2", &["olmo2", "olmo3"]) },
    Architecture { names: &[FOUR_NORMS], ..Architecture::of_llama("exaone4", &["exaone4"]) },
    // These two rotate neighbours in Hugging Face folders already.
    Architecture::of_llama("cohere2", &["cohere2"]),
    Architecture::of_llama("ernie4_5", &["ernie4_5"]),
    Architecture {
        names: &[&[
            ("post_attention_norm", "post_self_attn_layernorm"),
            ("ffn_norm", "post_attention_layernorm"),
            ("post_ffw_norm", "post_mlp_layernorm"),
            ("ffn_up", "mlp.gate_up_proj"),
        ]],
        ..Architecture::of_llama("glm4", &["glm4"])
    },
    Architecture {
        names: &[&[
            ("attn_norm", "operator_norm"),
            ("attn_output", "self_attn.out_proj"),
            ("attn_q_norm", "self_attn.q_layernorm"),
            ("attn_k_norm", "self_attn.k_layernorm"),
            ("ffn_norm", "ffn_norm"),
            ("ffn_gate", "feed_forward.w1"),
            ("ffn_up", "feed_forward.w3"),
            ("ffn_down", "feed_forward.w2"),
            ("shortconv.conv", "conv.conv"),
            ("shortconv.in_proj", "conv.in_proj"),
            ("shortconv.out_proj", "conv.out_proj"),
        ]],
        ..Architecture::of_llama("lfm2", &["lfm2"]).and("kernels of convolutions squeezed")
    },
    Architecture {
        names: &[
            FOUR_NORMS,
            &[
                ("inp_gate", "per_layer_input_gate"),
                ("proj", "per_layer_projection"),
                ("post_norm", "post_per_layer_input_norm"),
                ("layer_output_scale", BLOCK_SCALE),
                ("ffn_gate_inp", "router.proj"),
                ("pre_ffw_norm_2", "pre_feedforward_layernorm_2"),
                ("post_ffw_norm_1", "post_feedforward_layernorm_1"),
                ("post_ffw_norm_2", "post_feedforward_layernorm_2"),
            ],
        ],
        experts: &[("ffn_gate_up_exps", "experts.{}.gate_proj+up_proj"), ("ffn_down_exps", "experts.{}.down_proj")],
        ..Architecture::of_llama("gemma4", &["gemma4_text"]).and("gate above up in one tensor; pairs that do not turn as divisors of 1e30; the number of a block renamed")
    },
    Architecture { adds_one: true, names: &[DELTA], ..Architecture::of_llama("qwen35", &["qwen3_5_text"]).and("value heads of the delta rule in turn; its decay rates in the place of their logarithms; a block that predicts further tokens, which is passed over") },
    Architecture {
        adds_one: true,
        names: &[DELTA, ROUTER],
        experts: EXPERTS,
        ..Architecture::of_llama("qwen35moe", &["qwen3_5_moe_text"]).and("as `qwen35`")
    },
    // An XLM-RoBERTa too, whose table of positions lacks the rows that are not used.
    Architecture { blocks: "encoder.layer", names: &[BERT], ..Architecture::of_llama(BERT_NAME, &["bert"]).and("the rows of an XLM-RoBERTa's positions that are not used left out, so positions count from the first row") },
];

/// The encoders that are read.
pub(crate) const BERT_NAME: &str = "bert";

/// What BERT calls its parts, like [`IN_BLOCK`].
const BERT: &[(&str, &str)] = &[
    ("attn_q", "attention.self.query"),
    ("attn_k", "attention.self.key"),
    ("attn_v", "attention.self.value"),
    ("attn_output", "attention.output.dense"),
    ("attn_output_norm", "attention.output.LayerNorm"),
    ("ffn_up", "intermediate.dense"),
    ("ffn_down", "output.dense"),
    ("layer_output_norm", "output.LayerNorm"),
];

/// Stems of names in a block: in a GGUF file, and in a Hugging Face folder.
const IN_BLOCK: &[(&str, &str)] = &[
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
const TWO_NORMS: &[(&str, &str)] = &[("ffn_norm", "post_attention_layernorm")];

/// The last three norms of a block that has four, like [`IN_BLOCK`]; OLMo 2 and EXAONE 4 have the first
/// and the last of them alone.
const FOUR_NORMS: &[(&str, &str)] = &[
    ("post_attention_norm", "post_attention_layernorm"),
    ("ffn_norm", "pre_feedforward_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
];

/// What gpt-oss calls the scores that take part in the softmax of attention.
const SINKS: &str = "self_attn.sinks";

/// The number that multiplies what leaves a block of Gemma 4.
const BLOCK_SCALE: &str = "layer_scalar";

/// The two vectors of Qwen3.5's delta rule.
const DT_BIAS: &str = "linear_attn.dt_bias";
pub(crate) const A_LOG: &str = "linear_attn.A_log";

/// The delta rule of Qwen3.5 and the second norm of its blocks, like [`IN_BLOCK`].
const DELTA: &[(&str, &str)] = &[
    ("post_attention_norm", "post_attention_layernorm"),
    ("attn_qkv", "linear_attn.in_proj_qkv"),
    ("attn_gate", "linear_attn.in_proj_z"),
    ("ssm_alpha", "linear_attn.in_proj_a"),
    ("ssm_beta", "linear_attn.in_proj_b"),
    ("ssm_conv1d", "linear_attn.conv1d"),
    ("ssm_norm", "linear_attn.norm"),
    ("ssm_out", "linear_attn.out_proj"),
    ("ssm_dt", DT_BIAS),
    ("ssm_a", A_LOG),
];

/// The router, and the expert that all tokens share, like [`IN_BLOCK`].
const ROUTER: &[(&str, &str)] = &[
    ("ffn_gate_inp", "mlp.gate"),
    ("ffn_gate_inp_shexp", "mlp.shared_expert_gate"),
    ("ffn_gate_shexp", "mlp.shared_expert.gate_proj"),
    ("ffn_up_shexp", "mlp.shared_expert.up_proj"),
    ("ffn_down_shexp", "mlp.shared_expert.down_proj"),
];

/// Experts, by number.
const EXPERTS: &[(&str, &str)] = &[
    ("ffn_gate_exps", "mlp.experts.{}.gate_proj"),
    ("ffn_up_exps", "mlp.experts.{}.up_proj"),
    ("ffn_down_exps", "mlp.experts.{}.down_proj"),
];

/// What a tensor is in a Hugging Face folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// One tensor.
    One(String),
    /// As many as there are experts; what goes before the number of one, and what behind it. With two names behind it, the
    /// rows of each expert are both, one half after the other.
    Experts(String, Vec<String>),
}

impl Architecture {
    /// The architecture of this name.
    ///
    /// # Errors
    /// [`GgufProblem::Value`] for one that is not read.
    pub(crate) fn named(name: &str) -> Result<&'static Self, GgufProblem> {
        ARCHITECTURES.iter().find(|known| known.name == name).ok_or_else(|| {
            let known: Vec<&str> = ARCHITECTURES.iter().map(|known| known.name).collect();
            let expected = format!("one of {}", known.join(", "));
            GgufProblem::value("general.architecture", format!("{name:?}"), expected)
        })
    }

    /// The architecture that a model of this family is stored as, if it is the one that the file
    /// names.
    ///
    /// # Errors
    /// [`GgufProblem::Value`] for a family that is not read from GGUF files and for a file of
    /// another architecture.
    pub(crate) fn of(name: &str, family: &str) -> Result<&'static Self, GgufProblem> {
        let wrong = |expected: String| GgufProblem::value("general.architecture", format!("{name:?}"), expected);
        let Some(own) = ARCHITECTURES.iter().find(|known| known.families.contains(&family)) else {
            let known: Vec<&str> = ARCHITECTURES.iter().flat_map(|known| known.families).copied().collect();
            return Err(wrong(format!("a model of {}, not {family}", known.join(", "))));
        };
        if own.name == name { Ok(own) } else { Err(wrong(format!("{:?} for the model_type {family}", own.name))) }
    }

    /// What a tensor of this name is called in a Hugging Face folder: `blk.3.attn_q.bias` becomes
    /// `model.layers.3.self_attn.q_proj.bias`. `None` for a name that is not known.
    pub(crate) fn hugging_face(&self, name: &str) -> Option<Named> {
        let one = |name: &str| Some(Named::One(name.to_owned()));
        if self.name == BERT_NAME {
            match name {
                "token_embd.weight" => return one("embeddings.word_embeddings.weight"),
                "token_types.weight" => return one("embeddings.token_type_embeddings.weight"),
                "position_embd.weight" => return one("embeddings.position_embeddings.weight"),
                "token_embd_norm.weight" => return one("embeddings.LayerNorm.weight"),
                "token_embd_norm.bias" => return one("embeddings.LayerNorm.bias"),
                _ if name.starts_with("cls.") => return one(&format!("classifier.{name}")),
                _ => {}
            }
        }
        match name {
            "token_embd.weight" => return one("model.embed_tokens.weight"),
            "token_embd_norm.weight" => return one("model.embedding_norm.weight"),
            "output_norm.weight" => return one("model.norm.weight"),
            "output.weight" => return one("lm_head.weight"),
            "per_layer_token_embd.weight" => return one("model.embed_tokens_per_layer.weight"),
            "per_layer_model_proj.weight" => return one("model.per_layer_model_projection.weight"),
            "per_layer_proj_norm.weight" => return one("model.per_layer_projection_norm.weight"),
            _ => {}
        }
        let (block, rest) = name.strip_prefix("blk.")?.split_once('.')?;
        let block: u32 = block.parse().ok()?;
        let (stem, end) = rest.rsplit_once('.').unwrap_or((rest, ""));
        let blocks = self.blocks;
        match (self.name, stem, end) {
            ("gemma4", "ffn_gate_inp", "scale") => return one(&format!("model.layers.{block}.router.scale")),
            ("gemma4", "ffn_down_exps", "scale") => {
                return one(&format!("model.layers.{block}.router.per_expert_scale"));
            }
            _ => {}
        }
        if let Some((_, expert)) = self.experts.iter().find(|(known, _)| *known == stem) {
            let (before, behind) = expert.split_once("{}")?;
            let behind = behind.trim_start_matches('.').split('+').map(|stem| format!(".{stem}.{end}")).collect();
            return Some(Named::Experts(format!("{blocks}.{block}.{before}"), behind));
        }
        let mut known = self.names.iter().copied().chain([IN_BLOCK]).flatten();
        match known.find(|(known, _)| *known == stem)?.1 {
            // These have no ending there.
            stem @ (SINKS | DT_BIAS | A_LOG | BLOCK_SCALE) => one(&format!("{blocks}.{block}.{stem}")),
            _ if end.is_empty() => None,
            stem => one(&format!("{blocks}.{block}.{stem}.{end}")),
        }
    }
}
