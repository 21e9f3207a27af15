//! The decoder by what families differ in, and the names of its tensors.
//!
//! `Shape::lower` makes a [`DecoderFields`] that is a plain Llama of the file's sizes. A family then
//! replaces fields (`DecoderFields { qkv_bias: true, ..fields }`), and [`DecoderFields::spec`] lowers it to a
//! `ModelSpec`: blocks one by one, every tensor with its full name. A [`DecoderFields`]
//! may have experts in some or all blocks.
//!
//! What is the same in all blocks is a field; what differs by block is a list of `n_layers` entries
//! or an entry of `otherwise`. Nothing is checked here but the ropes of [`DecoderFields::with_ropes`]:
//! families pass checked numbers, and lists that have one entry per layer.
//!
//! Names below `model.layers.N.`, where a family does not override them:
//!
//! | part | tensors |
//! |---|---|
//! | attention | `self_attn.{q,k,v,o}_proj`, or see [`Qkv`]; `self_attn.sinks` |
//! | delta rule | `linear_attn.in_proj_{qkv,z,b,a}`, `conv1d`, `dt_bias`, `A_log`, `norm`, `out_proj` |
//! | convolution | `conv.in_proj`, `conv.conv`, `conv.out_proj` |
//! | state space | `mamba.{in_proj, conv1d, dt_bias, A_log, D, norm, out_proj}` |
//! | norms of heads | `self_attn.{q,k}_norm` |
//! | norms of states | see [`BlockNorms`] |
//! | MLP | `mlp.{gate,up,down}_proj`, or see [`GateUp`] |
//! | experts | see `experts.rs` |
//! | token gate | `per_layer_input_gate`, `per_layer_projection`, `post_per_layer_input_norm` |
//! | scalar | `layer_scalar` |

use std::collections::BTreeMap;

use judge_core::request::TokenId;
use judge_kernels::functions::{Activation, NormKind};

use super::ConfigProblem;
use super::experts::Sparse;
use super::mamba::MambaFields;
use super::rope::{RopeConfig, RopeContext, RopesByKind};
use super::spec::{
    BesideSpec, BlockSpec, ConvSpec, DeltaShape, DeltaSpec, EmbeddingScale, GatedSpec, HEAD, HEAD_BIAS, HeadShape,
    HeadSpec, KeysSpec, LinearSpec, MlpSpec, ModelSpec, NormSpec, TokenGateSpec, TokenInputsSpec,
};
use super::stacks;

/// A decoder by what families differ in. Fields without a comment of their own mean what they mean
/// in `ModelSpec` or `BlockSpec`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DecoderFields {
    /// `model_type`, which `families::fields` fills in.
    pub(super) family: &'static str,
    /// Number of blocks.
    pub(super) n_layers: usize,
    /// Width of the residual stream.
    pub(super) d_model: usize,
    /// Query heads of every block.
    pub(super) n_heads: usize,
    /// Key heads of a block that `otherwise` does not list.
    pub(super) n_kv_heads: usize,
    /// Coordinates of a head in a block that `otherwise` does not list.
    pub(super) head_dim: usize,
    /// Width inside the MLP in a block that `otherwise` does not list. Experts have their own.
    pub(super) d_ff: usize,
    /// Rows of the embedding and of the head.
    pub(super) d_vocab: usize,
    /// Epsilon of all norms.
    pub(super) norm_eps: f64,
    /// What norms of states compute.
    pub(super) norm_kind: NormKind,
    /// Whether a stored norm weight `w` stands for `1 + w` (Gemma 2 and 3, Qwen3.5).
    pub(super) norm_offset: bool,
    /// Whether norms of states have biases (GPT-2, GPT-NeoX).
    pub(super) norm_bias: bool,
    /// Which norms a block has, and what they are called.
    pub(super) norms: BlockNorms,
    /// Whether attention's output is gated, with gates behind each query head in `q_proj`
    /// (Qwen3.5).
    pub(super) is_gated: bool,
    /// Blocks with a delta rule in the place of attention, `[n_layers]`, and its sizes.
    pub(super) delta: Option<(Vec<bool>, DeltaShape)>,
    /// Blocks with a convolution in the place of attention, `[n_layers]`, and the positions that it
    /// sees.
    pub(super) conv: Option<(Vec<bool>, usize)>,
    /// Blocks with a state space, and what it is.
    pub(super) mamba: Option<MambaFields>,
    /// Factors around the parts of blocks.
    pub(super) multipliers: Multipliers,
    /// Which half each block is, `[n_layers]`; `None`: blocks have both (Nemotron-H).
    pub(super) halves: Option<Vec<Half>>,
    /// Names of parts of attention.
    pub(super) attention: AttentionNames,
    /// What names of tensors of blocks begin with, before the number.
    pub(super) layers: &'static str,
    /// Full name of the embedding.
    pub(super) embedding: &'static str,
    /// Full name and rows of a table of positions (GPT-2).
    pub(super) positions: Option<(&'static str, usize)>,
    /// Full name of the norm after the last block.
    pub(super) last_norm: &'static str,
    /// Whether attention and MLP are beside one another, after one norm (Cohere).
    pub(super) is_parallel: bool,
    /// How queries and keys are normed.
    pub(super) qk_norm: QkNorm,
    /// Whether the values of each head are normed, without a weight (Gemma 4).
    pub(super) norms_values: bool,
    /// Blocks whose heads, keys or MLP width differ from the fields above, by index. Gemma 4 lists
    /// all.
    pub(super) otherwise: BTreeMap<usize, Otherwise>,
    /// Whether a stored factor multiplies what leaves each block (Gemma 4).
    pub(super) block_scalar: bool,
    /// Width of what each block gets of a position's token, and rows of its table (Gemma 4).
    pub(super) token_inputs: Option<(usize, usize)>,
    /// The function inside the MLP.
    pub(super) activation: Activation,
    /// Whether projections of queries, keys and values have biases.
    pub(super) qkv_bias: bool,
    /// Whether the projection after attention has a bias.
    pub(super) o_bias: bool,
    /// Whether attention has sinks (gpt-oss).
    pub(super) sinks: bool,
    /// Whether the projections of the dense MLP have biases.
    pub(super) mlp_bias: bool,
    /// How the checkpoint stores the projections of queries, keys and values.
    pub(super) qkv: Qkv,
    /// Whether the checkpoint stores all projections transposed, `[d_in, d_out]`, those of queries, keys
    /// and values side by side (GPT-2).
    pub(super) is_transposed: bool,
    /// Names of the dense MLP.
    pub(super) mlp: MlpNames,
    /// Blocks with experts, which replace the dense MLP there or are beside it.
    pub(super) sparse: Option<Sparse>,
    /// `[n_layers]`: keys that a query sees, itself included; `None`: all up to itself.
    pub(super) windows: Vec<Option<usize>>,
    /// Factor on query-key products.
    pub(super) attention_scale: f64,
    /// Soft cap of scaled query-key products.
    pub(super) attention_soft_cap: Option<f64>,
    /// Limit of queries, keys and values.
    pub(super) clip_qkv: Option<f64>,
    /// Soft cap of logits over the vocabulary.
    pub(super) final_soft_cap: Option<f64>,
    /// Factor on embeddings.
    pub(super) embedding_scale: Option<EmbeddingScale>,
    /// Factor on what each half of a block adds.
    pub(super) residual_scale: Option<f64>,
    /// Factor on logits over the vocabulary.
    pub(super) logit_scale: Option<f64>,
    /// Whether the head is the embedding, unless another one is stored (`checked.rs`).
    pub(super) tied: bool,
    /// Whether the head over the vocabulary has a bias (Phi).
    pub(super) head_bias: bool,
    /// The rotations; one, or `[full, windowed]` after [`DecoderFields::with_ropes`].
    pub(super) ropes: Vec<RopeConfig>,
    /// `[n_layers]`: index into `ropes`; `None`: the block does not rotate.
    pub(super) rope_of: Vec<Option<usize>>,
    /// Longest sequence in tokens.
    pub(super) max_len: usize,
    /// Tokens that end a text.
    pub(super) eos: Vec<TokenId>,
}

/// Factors around the parts of all blocks (Falcon-H1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Multipliers {
    /// On what attention, and a state space beside it, reads.
    pub(super) attention_in: f32,
    /// On what attention adds to the residual stream.
    pub(super) attention_out: f32,
    /// On the gate of the dense MLP before its activation.
    pub(super) gate: f32,
    /// On what the dense MLP adds.
    pub(super) down: f32,
}

impl Multipliers {
    /// None, as in most families.
    pub(super) const ONE: Self = Self { attention_in: 1.0, attention_out: 1.0, gate: 1.0, down: 1.0 };
}

/// The only half that a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// Attention or what is in its place.
    Mixer,
    /// The MLP or experts.
    Mlp,
}

/// What may differ from block to block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otherwise {
    /// Heads of attention.
    pub(super) heads: HeadShape,
    /// Where keys and values come from.
    pub(super) keys: KeysSpec,
    /// Width inside the dense MLP.
    pub(super) d_ff: usize,
}

/// Which norms of states a block has, by their names below `model.layers.N.` without `.weight`.
/// `None`: there is none.
///
/// One name means different things: `post_attention_layernorm` is the norm before the MLP in Llama
/// and GLM-4, but the norm of what attention gave in Gemma, OLMo 2 and EXAONE 4.
///
/// ```text
///             before_attention   after_attention             before_mlp                  after_mlp
/// BEFORE      input_layernorm                                post_attention_layernorm
/// AROUND      input_layernorm    post_attention_layernorm    pre_feedforward_layernorm   post_feedforward_layernorm
/// ONE         input_layernorm
/// AFTER                          post_attention_layernorm                                post_feedforward_layernorm
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockNorms {
    /// The norm of what attention reads.
    pub(super) before_attention: Option<&'static str>,
    /// The norm of what attention adds to the residual stream.
    pub(super) after_attention: Option<&'static str>,
    /// The norm of what the MLP reads.
    pub(super) before_mlp: Option<&'static str>,
    /// The norm of what the MLP adds to the residual stream.
    pub(super) after_mlp: Option<&'static str>,
}

impl BlockNorms {
    /// Before attention and before the MLP (Llama and most families).
    pub(super) const BEFORE: Self = Self {
        before_attention: Some("input_layernorm"),
        after_attention: None,
        before_mlp: Some("post_attention_layernorm"),
        after_mlp: None,
    };

    /// Before and after both (Gemma).
    pub(super) const AROUND: Self = Self {
        before_attention: Some("input_layernorm"),
        after_attention: Some("post_attention_layernorm"),
        before_mlp: Some("pre_feedforward_layernorm"),
        after_mlp: Some("post_feedforward_layernorm"),
    };

    /// One for both, before attention and the MLP beside it (Cohere).
    pub(super) const ONE: Self = Self { before_mlp: None, ..Self::BEFORE };

    /// After both and none before (OLMo 2, EXAONE 4).
    pub(super) const AFTER: Self = Self {
        before_attention: None,
        after_attention: Some("post_attention_layernorm"),
        before_mlp: None,
        after_mlp: Some("post_feedforward_layernorm"),
    };
}

/// Names of parts of attention that differ by family, below `model.layers.N.` without `.weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttentionNames {
    /// The norm of queries.
    pub(super) q_norm: &'static str,
    /// The norm of keys.
    pub(super) k_norm: &'static str,
    /// The projection after attention.
    pub(super) out: &'static str,
}

impl AttentionNames {
    /// As in most families.
    pub(super) const LLAMA: Self =
        Self { q_norm: "self_attn.q_norm", k_norm: "self_attn.k_norm", out: "self_attn.o_proj" };
}

/// How a checkpoint stores the projections of queries, keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Qkv {
    /// As three tensors, by their names below `model.layers.N.`: queries, keys, values.
    Apart([&'static str; 3]),
    /// As one: all queries, all keys, all values (Phi-3).
    Fused(&'static str),
    /// As one with the three of each head behind one another: query, key, value of head 0, then of
    /// head 1 (GPT-NeoX). There are as many key heads as query heads.
    ByHead(&'static str),
}

impl Qkv {
    /// As in most families.
    pub(super) const LLAMA: Self = Self::Apart(["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]);
}

/// Names of the dense MLP's matrices, below `model.layers.N.` without `.weight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MlpNames {
    /// The gate and up.
    pub(super) gate_up: GateUp,
    /// The projection back to `d_model`.
    pub(super) down: &'static str,
}

/// Whether gate and up are two tensors of a checkpoint or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateUp {
    /// Two, `[d_ff, d_model]` each.
    Apart {
        /// The gate, which goes through the activation.
        gate: &'static str,
        /// What the gate multiplies.
        up: &'static str,
    },
    /// One, `[2 * d_ff, d_model]`, with the gate's rows first.
    Fused(&'static str),
    /// No gate: up alone, `[d_ff, d_model]`.
    Up(&'static str),
}

impl MlpNames {
    /// Two tensors (Llama and most families).
    pub(super) const APART: Self =
        Self { gate_up: GateUp::Apart { gate: "mlp.gate_proj", up: "mlp.up_proj" }, down: "mlp.down_proj" };

    /// One tensor (Phi-3, GLM).
    pub(super) const FUSED: Self = Self { gate_up: GateUp::Fused("mlp.gate_up_proj"), down: "mlp.down_proj" };
}

/// What one norm of queries, and one of keys, is taken over, before the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QkNorm {
    /// There are no such norms.
    None,
    /// Each head alone, all with the same weight `[head_dim]` (Qwen3, Gemma 3).
    PerHead,
    /// All heads together, with weights `[d_query]` and `[d_key]` (OLMo).
    Whole,
}

impl DecoderFields {
    /// Gives full blocks the first and windowed blocks the second of two rotations, and replaces
    /// `ropes` and `rope_of`. Call it after `windows` and `otherwise` are set, since the width of
    /// heads follows from them.
    ///
    /// `keeps_context` says whether `max_len` stays `max_position_embeddings`; otherwise it becomes
    /// what the rotation of full blocks is made for.
    ///
    /// # Errors
    /// [`ConfigProblem`] for rope fields that are not read; partial rotation is refused.
    pub(super) fn with_ropes(self, ropes: RopesByKind, keeps_context: bool) -> Result<Self, ConfigProblem> {
        let around = |has_window: bool| RopeContext {
            max_position_embeddings: self.max_len,
            head_dim: self.head_dim_of(has_window),
            ..RopeContext::default()
        };
        let (full, context) = ropes.full.lower(&around(false))?;
        let (sliding, _) = ropes.sliding.lower(&around(true))?;
        let rope_of = self.windows.iter().map(|window| Some(usize::from(window.is_some()))).collect();
        let max_len = if keeps_context { self.max_len } else { context };
        Ok(Self { ropes: vec![full, sliding], rope_of, max_len, ..self })
    }

    /// Width of heads in the blocks with (or without) a window. The first of them speaks for all:
    /// families make sure that they agree. Without such a block it is the model's `head_dim`.
    fn head_dim_of(&self, has_window: bool) -> usize {
        let first = self.windows.iter().position(|window| window.is_some() == has_window);
        first.map_or(self.head_dim, |index| self.of_block(index).heads.head_dim)
    }

    /// What block `index` has where blocks may differ.
    fn of_block(&self, index: usize) -> Otherwise {
        let Self { n_heads, n_kv_heads, head_dim, d_ff, .. } = *self;
        let usual = Otherwise { heads: HeadShape { n_heads, n_kv_heads, head_dim }, keys: KeysSpec::Own, d_ff };
        self.otherwise.get(&index).copied().unwrap_or(usual)
    }

    /// The description of token inputs, if the model has them. `norm` makes a norm of a full name
    /// and a width.
    ///
    /// Their embedding factor is rounded like Gemma's other one. `sum_factor` keeps the variance of
    /// a sum of two parts at that of one.
    fn token_inputs(&self, norm: &dyn Fn(String, usize) -> NormSpec) -> Option<TokenInputsSpec> {
        let (width, rows) = self.token_inputs?;
        Some(TokenInputsSpec {
            table: ("model.embed_tokens_per_layer.weight".to_owned(), rows),
            table_factor: EmbeddingScale::Rounded((width as f64).sqrt()),
            width,
            projection: LinearSpec::plain(
                vec![("model.per_layer_model_projection".to_owned(), self.n_layers * width)],
                self.d_model,
                false,
            ),
            projection_factor: (self.d_model as f64).sqrt().recip(),
            norm: norm("model.per_layer_projection_norm.weight".to_owned(), width),
            // So that the sum is as long as each of the two.
            sum_factor: 0.5_f64.sqrt(),
        })
    }

    /// Describes all blocks with the full names of the checkpoint's tensors.
    ///
    /// The head is `lm_head.weight` or the embedding; [`ModelSpec::from_json`] replaces it for
    /// classes with another one or none, and sets `is_tower`.
    pub(super) fn spec(self) -> ModelSpec {
        let offset = if self.norm_offset { 1.0 } else { 0.0 };
        let norm = |name: String, len: usize| NormSpec { name, len, offset, factor: 1.0, bias: None };
        let blocks = (0..self.n_layers).map(|index| self.block(index, &norm)).collect();
        ModelSpec {
            family: self.family,
            is_tower: false,
            d_model: self.d_model,
            n_heads: self.n_heads,
            d_vocab: self.d_vocab,
            norm_eps: self.norm_eps,
            norm_kind: self.norm_kind,
            embedding_scale: self.embedding_scale,
            attention_scale: self.attention_scale,
            attention_soft_cap: self.attention_soft_cap,
            clip_qkv: self.clip_qkv,
            activation: self.activation,
            final_soft_cap: self.final_soft_cap,
            residual_scale: self.residual_scale,
            logit_scale: self.logit_scale,
            blocks,
            embedding: self.embedding.to_owned(),
            positions: self.positions.map(|(name, rows)| (name.to_owned(), rows)),
            token_inputs: self.token_inputs(&norm),
            norm: self.of_states(norm(self.last_norm.to_owned(), self.d_model)),
            head: if self.tied { HeadSpec::Embedding } else { HeadSpec::Own(HEAD.to_owned()) },
            head_bias: self.head_bias.then(|| HEAD_BIAS.to_owned()),
            ropes: self.ropes,
            max_len: self.max_len,
            eos: self.eos,
        }
    }

    /// A norm of states, with the bias that norms of states have in this family.
    fn of_states(&self, norm: NormSpec) -> NormSpec {
        let bias = norm.name.strip_suffix("weight").filter(|_| self.norm_bias).map(|stem| format!("{stem}bias"));
        NormSpec { bias, ..norm }
    }

    /// Describes block `index`. `norm` makes a norm of a full name and a width.
    ///
    /// The block with a delta rule, a convolution or a state space gets its projections instead of those
    /// of attention, no norms of heads, no gate and no rotation.
    fn block(&self, index: usize, norm: &dyn Fn(String, usize) -> NormSpec) -> BlockSpec {
        let Otherwise { heads, keys, d_ff } = self.of_block(index);
        let (d_query, d_key) = (heads.d_query(), heads.d_key());
        let stem = |name: &str| format!("{}.{index}.{name}", self.layers);
        let linear = |parts: &[(&str, usize)], d_in: usize, bias: bool| {
            LinearSpec::plain(parts.iter().map(|&(name, rows)| (stem(name), rows)).collect(), d_in, bias)
        };
        let named = |name: &str, len: usize| norm(format!("{}.weight", stem(name)), len);
        let of_states = |name: Option<&str>| name.map(|name| self.of_states(named(name, self.d_model)));
        let of_heads = |name: &str, width: usize| match self.qk_norm {
            QkNorm::None => None,
            QkNorm::PerHead => Some(named(name, heads.head_dim)),
            QkNorm::Whole => Some(named(name, width)),
        };
        let d_gate = if self.is_gated { d_query } else { 0 };
        let qkv = match (self.qkv, keys) {
            (Qkv::Fused(name), _) => linear(&[(name, d_query + d_gate + 2 * d_key)], self.d_model, self.qkv_bias),
            (Qkv::Apart([q, k, v]), _) => {
                let apart = [(q, d_query + d_gate), (k, d_key), (v, d_key)];
                let count = match keys {
                    KeysSpec::Own => 3,
                    KeysSpec::AsValues => 2,
                    KeysSpec::Of(_) => 1,
                };
                linear(&apart[..count], self.d_model, self.qkv_bias)
            }
            (Qkv::ByHead(name), _) => {
                let heads_of = |part| (0..heads.n_heads).map(move |head| (part, head));
                let heads_of = ["query", "key", "value"].into_iter().flat_map(heads_of);
                let stems = heads_of.map(|(part, head)| (stem(&format!("{name}.{part}.{head}")), heads.head_dim));
                LinearSpec::plain(stems.collect(), self.d_model, self.qkv_bias)
            }
        };
        let gate_up: &[(&str, usize)] = match self.mlp.gate_up {
            GateUp::Fused(both) => &[(both, 2 * d_ff)],
            GateUp::Apart { gate, up } => &[(gate, d_ff), (up, d_ff)],
            GateUp::Up(up) => &[(up, d_ff)],
        };
        let dense = GatedSpec {
            gate_up: linear(gate_up, self.d_model, self.mlp_bias)
                .with_factors(&[(d_ff, self.multipliers.gate), (d_ff, 1.0)]),
            down: linear(&[(self.mlp.down, self.d_model)], d_ff, self.mlp_bias)
                .with_factors(&[(self.d_model, self.multipliers.down)]),
        };
        let delta = self.delta.as_ref().filter(|(is_in, _)| is_in[index]).map(|&(_, shape)| shape);
        let conv = self.conv.as_ref().filter(|(is_in, _)| is_in[index]).map(|&(_, kernel)| ConvSpec {
            name: stem("conv.conv.weight"),
            channels: self.d_model,
            kernel,
        });
        let state_space = self.mamba.as_ref().filter(|mamba| mamba.is_in[index]);
        let mamba = state_space.filter(|mamba| !mamba.is_beside);
        let beside = state_space.filter(|mamba| mamba.is_beside).map(|mamba| {
            let [input, out] = mamba.linears(&stem, self.d_model);
            BesideSpec { input, mamba: mamba.spec(&stem), out }
        });
        let half = self.halves.as_ref().map(|halves| halves[index]);
        let (is_mixer, is_mlp) = (half != Some(Half::Mlp), half != Some(Half::Mixer));
        let (qkv, q_norm, k_norm, out) = if let Some(shape) = delta {
            let parts = [
                ("linear_attn.in_proj_qkv", shape.channels()),
                ("linear_attn.in_proj_z", shape.d_value()),
                ("linear_attn.in_proj_b", shape.n_value_heads),
                ("linear_attn.in_proj_a", shape.n_value_heads),
            ];
            let out = linear(&[("linear_attn.out_proj", self.d_model)], shape.d_value(), false);
            (linear(&parts, self.d_model, false), None, None, out)
        } else if let Some(mamba) = mamba {
            let [before, after] = mamba.linears(&stem, self.d_model);
            (before, None, None, after)
        } else if conv.is_some() {
            let parts = linear(&[("conv.in_proj", 3 * self.d_model)], self.d_model, false);
            (parts, None, None, linear(&[("conv.out_proj", self.d_model)], self.d_model, false))
        } else {
            (
                qkv,
                of_heads(self.attention.q_norm, d_query),
                of_heads(self.attention.k_norm, d_key).filter(|_| !matches!(keys, KeysSpec::Of(_))),
                linear(&[(self.attention.out, self.d_model)], d_query, self.o_bias)
                    .with_factors(&[(self.d_model, self.multipliers.attention_out)]),
            )
        };
        let mut stacks = Vec::new();
        if let Qkv::ByHead(name) = self.qkv {
            stacks.extend(stacks::by_head(&stem(name), &qkv, heads));
        }
        if self.is_transposed {
            for linear in [&qkv, &out, &dense.gate_up, &dense.down] {
                stacks.extend(stacks::transposed(linear));
            }
        }
        BlockSpec {
            stacks,
            heads,
            keys,
            window: self.windows[index],
            rope: self.rope_of[index].filter(|_| delta.is_none() && conv.is_none() && mamba.is_none()),
            before_attention: of_states(self.norms.before_attention)
                .filter(|_| is_mixer)
                .map(|norm| NormSpec { factor: norm.factor * self.multipliers.attention_in, ..norm }),
            qkv: is_mixer.then_some(qkv),
            is_gated: self.is_gated && delta.is_none(),
            conv,
            mamba: mamba.map(|mamba| mamba.spec(&stem)),
            beside,
            delta: delta.map(|shape| DeltaSpec {
                shape,
                conv: stem("linear_attn.conv1d.weight"),
                dt_bias: stem("linear_attn.dt_bias"),
                a_log: stem("linear_attn.A_log"),
                norm: stem("linear_attn.norm.weight"),
            }),
            q_norm: q_norm.filter(|_| is_mixer),
            k_norm: k_norm.filter(|_| is_mixer),
            norms_values: self.norms_values,
            sinks: self.sinks.then(|| (stem("self_attn.sinks"), self.n_heads)),
            out: is_mixer.then_some(out),
            after_attention: of_states(self.norms.after_attention).filter(|_| is_mixer),
            before_mlp: of_states(self.norms.before_mlp).filter(|_| is_mlp),
            is_parallel: self.is_parallel,
            mlp: is_mlp.then(|| match &self.sparse {
                Some(sparse) => sparse.mlp(index, self.d_model, dense),
                None => MlpSpec::Dense(dense),
            }),
            after_mlp: of_states(self.norms.after_mlp).filter(|_| is_mlp),
            token_gate: self.token_inputs.map(|(width, _)| TokenGateSpec {
                gate: linear(&[("per_layer_input_gate", width)], self.d_model, false),
                out: linear(&[("per_layer_projection", self.d_model)], width, false),
                norm: named("post_per_layer_input_norm", self.d_model),
            }),
            scalar: self.block_scalar.then(|| stem("layer_scalar")),
        }
    }
}
