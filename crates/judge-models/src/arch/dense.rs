//! The decoder that most families are: a plain Llama, and what may differ from it. It gives tensors their names.

use std::collections::BTreeMap;

use judge_core::TokenId;

use super::ConfigProblem;
use super::experts::Sparse;
use super::rope::{RopeConfig, RopeContext, RopeRules, RopesByKind};
use super::spec::{
    Activation, BlockSpec, ConvSpec, DeltaShape, DeltaSpec, EmbeddingScale, GatedSpec, HeadShape, HeadSpec, KeysSpec,
    LinearSpec, MlpSpec, ModelSpec, NormKind, NormSpec, TokenGateSpec, TokenInputsSpec,
};

/// A decoder by what families differ in; dense, unless some blocks have experts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dense {
    pub(super) family: &'static str,
    pub(super) n_layers: usize,
    pub(super) d_model: usize,
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) d_ff: usize,
    pub(super) d_vocab: usize,
    pub(super) norm_eps: f64,
    pub(super) norm_kind: NormKind,
    /// The stored norm weight `w` stands for `1 + w` (Gemma).
    pub(super) norm_offset: bool,
    pub(super) norms: BlockNorms,
    /// What attention gives is gated.
    pub(super) is_gated: bool,
    /// Blocks with a delta rule in the place of attention, `[n_layers]`, and its numbers.
    pub(super) delta: Option<(Vec<bool>, DeltaShape)>,
    /// Blocks with a convolution in the place of attention, `[n_layers]`, and how many positions it sees.
    pub(super) conv: Option<(Vec<bool>, usize)>,
    pub(super) attention: AttentionNames,
    /// The name of the norm behind the last block.
    pub(super) last_norm: &'static str,
    /// Attention and MLP beside one another, behind one norm (Cohere).
    pub(super) is_parallel: bool,
    pub(super) qk_norm: QkNorm,
    /// The values of each head are normed, without a weight.
    pub(super) norms_values: bool,
    /// What some blocks have otherwise than the others, by their number.
    pub(super) otherwise: BTreeMap<usize, Otherwise>,
    /// A factor on what leaves a block (Gemma 4).
    pub(super) block_scalar: bool,
    /// Width of what each block gets of a position's token, and tokens in its table (Gemma 4).
    pub(super) token_inputs: Option<(usize, usize)>,
    pub(super) activation: Activation,
    pub(super) qkv_bias: bool,
    pub(super) o_bias: bool,
    /// Attention has sinks (gpt-oss).
    pub(super) sinks: bool,
    pub(super) mlp_bias: bool,
    /// The checkpoint stores `qkv_proj`, not its parts.
    pub(super) fused_qkv: bool,
    pub(super) mlp: MlpNames,
    /// Blocks with experts, whose MLPs are not those of `d_ff`.
    pub(super) sparse: Option<Sparse>,
    /// Keys that a query of each block sees, itself included; `None`: all before it. `[n_layers]`.
    pub(super) windows: Vec<Option<usize>>,
    pub(super) attention_scale: f64,
    pub(super) attention_soft_cap: Option<f64>,
    pub(super) clip_qkv: Option<f64>,
    pub(super) final_soft_cap: Option<f64>,
    pub(super) embedding_scale: Option<EmbeddingScale>,
    pub(super) residual_scale: Option<f64>,
    pub(super) logit_scale: Option<f64>,
    /// The head is the embedding table.
    pub(super) tied: bool,
    pub(super) ropes: Vec<RopeConfig>,
    /// The rotation of each block; `None`: none. `[n_layers]`.
    pub(super) rope_of: Vec<Option<usize>>,
    pub(super) max_len: usize,
    pub(super) eos: Vec<TokenId>,
}

/// What a block has otherwise than its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Otherwise {
    pub(super) heads: HeadShape,
    pub(super) keys: KeysSpec,
    pub(super) d_ff: usize,
}

/// What the norms of a block are called, where there are any. Gemma's `post_attention_layernorm` norms what attention gave; in most families that
/// name is the norm before the MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockNorms {
    pub(super) before_attention: Option<&'static str>,
    pub(super) after_attention: Option<&'static str>,
    pub(super) before_mlp: Option<&'static str>,
    pub(super) after_mlp: Option<&'static str>,
}

impl BlockNorms {
    /// Before attention and before the MLP.
    pub(super) const BEFORE: Self = Self {
        before_attention: Some("input_layernorm"),
        after_attention: None,
        before_mlp: Some("post_attention_layernorm"),
        after_mlp: None,
    };

    /// Before both and after both (Gemma).
    pub(super) const AROUND: Self = Self {
        before_attention: Some("input_layernorm"),
        after_attention: Some("post_attention_layernorm"),
        before_mlp: Some("pre_feedforward_layernorm"),
        after_mlp: Some("post_feedforward_layernorm"),
    };

    /// One, before attention and the MLP beside it (Cohere).
    pub(super) const ONE: Self = Self { before_mlp: None, ..Self::BEFORE };

    /// After both (OLMo 2, EXAONE 4).
    pub(super) const AFTER: Self = Self {
        before_attention: None,
        after_attention: Some("post_attention_layernorm"),
        before_mlp: None,
        after_mlp: Some("post_feedforward_layernorm"),
    };
}

/// What the parts of attention are called that not all families call alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttentionNames {
    pub(super) q_norm: &'static str,
    pub(super) k_norm: &'static str,
    pub(super) out: &'static str,
}

impl AttentionNames {
    /// As in most families.
    pub(super) const LLAMA: Self =
        Self { q_norm: "self_attn.q_norm", k_norm: "self_attn.k_norm", out: "self_attn.o_proj" };
}

/// What the matrices of a block's MLP are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MlpNames {
    pub(super) gate_up: GateUp,
    pub(super) down: &'static str,
}

/// Whether the gate and what it multiplies are two tensors of a checkpoint or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateUp {
    Apart {
        gate: &'static str,
        up: &'static str,
    },
    /// The gate's rows are first.
    Fused(&'static str),
}

impl MlpNames {
    /// Two tensors (Llama).
    pub(super) const APART: Self =
        Self { gate_up: GateUp::Apart { gate: "mlp.gate_proj", up: "mlp.up_proj" }, down: "mlp.down_proj" };

    /// One tensor (Phi-3, GLM).
    pub(super) const FUSED: Self = Self { gate_up: GateUp::Fused("mlp.gate_up_proj"), down: "mlp.down_proj" };
}

/// What queries and keys are normed over before they are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QkNorm {
    None,
    /// Each head alone, all with the same weights (Qwen3).
    PerHead,
    /// All heads together (OLMo 2).
    Whole,
}

impl Dense {
    /// Full layers rotate by the first of two sets of parameters, those with a window by the second. The context is what the first gives, but for
    /// `keeps_context`, which stays `max_position_embeddings`.
    pub(super) fn with_ropes(self, ropes: RopesByKind, keeps_context: bool) -> Result<Self, ConfigProblem> {
        let around = |has_window: bool| RopeContext {
            rope_theta: None,
            partial_rotary_factor: None,
            original_max_position_embeddings: None,
            max_position_embeddings: self.max_len,
            head_dim: self.head_dim_of(has_window),
            rules: RopeRules::default(),
        };
        let (full, context) = ropes.full.lower(&around(false))?;
        let (sliding, _) = ropes.sliding.lower(&around(true))?;
        let rope_of = self.windows.iter().map(|window| Some(usize::from(window.is_some()))).collect();
        let max_len = if keeps_context { self.max_len } else { context };
        Ok(Self { ropes: vec![full, sliding], rope_of, max_len, ..self })
    }

    /// The width of heads in blocks with a window, or of those without one, which is the same in all of a kind.
    fn head_dim_of(&self, has_window: bool) -> usize {
        let first = self.windows.iter().position(|window| window.is_some() == has_window);
        first.map_or(self.head_dim, |index| self.of_block(index).heads.head_dim)
    }

    /// What a block has that may be otherwise than in the others.
    fn of_block(&self, index: usize) -> Otherwise {
        let Self { n_heads, n_kv_heads, head_dim, d_ff, .. } = *self;
        let usual = Otherwise { heads: HeadShape { n_heads, n_kv_heads, head_dim }, keys: KeysSpec::Own, d_ff };
        self.otherwise.get(&index).copied().unwrap_or(usual)
    }

    /// What each block gets of a position's token, and the names of what that is made of.
    fn token_inputs(&self, norm: &dyn Fn(String, usize) -> NormSpec) -> Option<TokenInputsSpec> {
        let (width, rows) = self.token_inputs?;
        Some(TokenInputsSpec {
            table: ("model.embed_tokens_per_layer.weight".to_owned(), rows),
            table_factor: EmbeddingScale::Rounded((width as f64).sqrt()),
            width,
            projection: LinearSpec {
                stems: vec![("model.per_layer_model_projection".to_owned(), self.n_layers * width)],
                d_in: self.d_model,
                bias: false,
            },
            projection_factor: (self.d_model as f64).sqrt().recip(),
            norm: norm("model.per_layer_projection_norm.weight".to_owned(), width),
            // So that the sum is as long as each of the two.
            sum_factor: 0.5_f64.sqrt(),
        })
    }

    /// With the names of the checkpoint's tensors.
    pub(super) fn spec(self) -> ModelSpec {
        let offset = if self.norm_offset { 1.0 } else { 0.0 };
        let norm = |name: String, len: usize| NormSpec { name, len, offset, factor: 1.0 };
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
            embedding: "model.embed_tokens.weight".to_owned(),
            token_inputs: self.token_inputs(&norm),
            norm: norm(self.last_norm.to_owned(), self.d_model),
            head: if self.tied { HeadSpec::Embedding } else { HeadSpec::Own("lm_head.weight".to_owned()) },
            ropes: self.ropes,
            max_len: self.max_len,
            eos: self.eos,
        }
    }

    fn block(&self, index: usize, norm: &dyn Fn(String, usize) -> NormSpec) -> BlockSpec {
        let Otherwise { heads, keys, d_ff } = self.of_block(index);
        let (d_query, d_key) = (heads.d_query(), heads.d_key());
        let stem = |name: &str| format!("model.layers.{index}.{name}");
        let linear = |parts: &[(&str, usize)], d_in: usize, bias: bool| LinearSpec {
            stems: parts.iter().map(|&(name, rows)| (stem(name), rows)).collect(),
            d_in,
            bias,
        };
        let named = |name: &str, len: usize| norm(format!("{}.weight", stem(name)), len);
        let of_states = |name: Option<&str>| name.map(|name| named(name, self.d_model));
        let of_heads = |name: &str, width: usize| match self.qk_norm {
            QkNorm::None => None,
            QkNorm::PerHead => Some(named(name, heads.head_dim)),
            QkNorm::Whole => Some(named(name, width)),
        };
        let d_gate = if self.is_gated { d_query } else { 0 };
        let apart = [("self_attn.q_proj", d_query + d_gate), ("self_attn.k_proj", d_key), ("self_attn.v_proj", d_key)];
        let qkv: &[(&str, usize)] = match (self.fused_qkv, keys) {
            (true, _) => &[("self_attn.qkv_proj", d_query + d_gate + 2 * d_key)],
            (false, KeysSpec::Own) => &apart,
            (false, KeysSpec::AsValues) => &apart[..2],
            (false, KeysSpec::Of(_)) => &apart[..1],
        };
        let gate_up: &[(&str, usize)] = match self.mlp.gate_up {
            GateUp::Fused(both) => &[(both, 2 * d_ff)],
            GateUp::Apart { gate, up } => &[(gate, d_ff), (up, d_ff)],
        };
        let dense = GatedSpec {
            gate_up: linear(gate_up, self.d_model, self.mlp_bias),
            down: linear(&[(self.mlp.down, self.d_model)], d_ff, self.mlp_bias),
        };
        let delta = self.delta.as_ref().filter(|(is_in, _)| is_in[index]).map(|&(_, shape)| shape);
        let conv = self.conv.as_ref().filter(|(is_in, _)| is_in[index]).map(|&(_, kernel)| ConvSpec {
            name: stem("conv.conv.weight"),
            channels: self.d_model,
            kernel,
        });
        let (qkv, q_norm, k_norm, out) = match delta {
            None if conv.is_some() => {
                let parts = linear(&[("conv.in_proj", 3 * self.d_model)], self.d_model, false);
                (parts, None, None, linear(&[("conv.out_proj", self.d_model)], self.d_model, false))
            }
            None => (
                linear(qkv, self.d_model, self.qkv_bias),
                of_heads(self.attention.q_norm, d_query),
                of_heads(self.attention.k_norm, d_key).filter(|_| !matches!(keys, KeysSpec::Of(_))),
                linear(&[(self.attention.out, self.d_model)], d_query, self.o_bias),
            ),
            Some(shape) => {
                let parts = [
                    ("linear_attn.in_proj_qkv", shape.channels()),
                    ("linear_attn.in_proj_z", shape.d_value()),
                    ("linear_attn.in_proj_b", shape.n_value_heads),
                    ("linear_attn.in_proj_a", shape.n_value_heads),
                ];
                let out = linear(&[("linear_attn.out_proj", self.d_model)], shape.d_value(), false);
                (linear(&parts, self.d_model, false), None, None, out)
            }
        };
        BlockSpec {
            heads,
            keys,
            window: self.windows[index],
            rope: self.rope_of[index].filter(|_| delta.is_none() && conv.is_none()),
            before_attention: of_states(self.norms.before_attention),
            qkv,
            is_gated: self.is_gated && delta.is_none(),
            conv,
            delta: delta.map(|shape| DeltaSpec {
                shape,
                conv: stem("linear_attn.conv1d.weight"),
                dt_bias: stem("linear_attn.dt_bias"),
                a_log: stem("linear_attn.A_log"),
                norm: stem("linear_attn.norm.weight"),
            }),
            q_norm,
            k_norm,
            norms_values: self.norms_values,
            sinks: self.sinks.then(|| (stem("self_attn.sinks"), self.n_heads)),
            out,
            after_attention: of_states(self.norms.after_attention),
            before_mlp: of_states(self.norms.before_mlp),
            is_parallel: self.is_parallel,
            mlp: match &self.sparse {
                Some(sparse) => sparse.mlp(index, self.d_model, dense),
                None => MlpSpec::Dense(dense),
            },
            after_mlp: of_states(self.norms.after_mlp),
            token_gate: self.token_inputs.map(|(width, _)| TokenGateSpec {
                gate: linear(&[("per_layer_input_gate", width)], self.d_model, false),
                out: linear(&[("per_layer_projection", self.d_model)], width, false),
                norm: named("post_per_layer_input_norm", self.d_model),
            }),
            scalar: self.block_scalar.then(|| stem("layer_scalar")),
        }
    }
}
