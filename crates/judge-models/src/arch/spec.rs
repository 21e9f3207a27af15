//! What a decoder is: the description that engines are built from, with the names of its tensors.

mod mlp;
mod parts;

use half::bf16;
use judge_core::TokenId;

pub(crate) use self::mlp::{BothSpec, ExpertsSpec, GatedSpec, MlpSpec, Routing, SharedSpec, StackPart, StackSpec};
pub(crate) use self::parts::{LinearSpec, NamedRows, NamedShape, NormSpec};
use super::rope::RopeConfig;
use crate::Dtype;

/// What a decoder is built from. Families differ in this data alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelSpec {
    /// `model_type`.
    pub(crate) family: &'static str,
    /// Whether it is the text model inside a vision-language folder.
    pub(crate) is_tower: bool,
    pub(crate) d_model: usize,
    /// Query heads of each block.
    pub(crate) n_heads: usize,
    pub(crate) d_vocab: usize,
    pub(crate) norm_eps: f64,
    /// What norms of states do. Those of heads are root-mean-square norms.
    pub(crate) norm_kind: NormKind,
    /// Multiplies embeddings (Gemma).
    pub(crate) embedding_scale: Option<EmbeddingScale>,
    /// Multiplies query-key products.
    pub(crate) attention_scale: f64,
    /// `c * tanh(score / c)` of the scaled products.
    pub(crate) attention_soft_cap: Option<f64>,
    pub(crate) activation: Activation,
    /// The same of the logits that text is generated from. Readings exclude it.
    pub(crate) final_soft_cap: Option<f64>,
    /// Queries, keys and values are cut to this absolute value, behind their norms and before the rotation (OLMoE).
    pub(crate) clip_qkv: Option<f64>,
    /// Multiplies what attention and what the MLP adds to the residual stream (Granite).
    pub(crate) residual_scale: Option<f64>,
    /// Multiplies logits over the vocabulary, wherever the head is applied (Granite).
    pub(crate) logit_scale: Option<f64>,
    /// The rotations that blocks name by their place here.
    pub(crate) ropes: Vec<RopeConfig>,
    pub(crate) blocks: Vec<BlockSpec>,
    /// The table of the tokens' states, `[d_vocab, d_model]`.
    pub(crate) embedding: String,
    /// What blocks get of each token besides the residual stream.
    pub(crate) token_inputs: Option<TokenInputsSpec>,
    /// The norm behind the last block.
    pub(crate) norm: NormSpec,
    pub(crate) head: HeadSpec,
    /// Longest prompt plus new tokens.
    pub(crate) max_len: usize,
    /// `eos_token_id`.
    pub(crate) eos: Vec<TokenId>,
}

/// What embeddings are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EmbeddingScale {
    /// As it is, in any dtype.
    Exact(f64),
    /// Rounded to the dtype of the weights first, which is how Gemma models are trained and how transformers runs them: `sqrt(3584)` is 59.87 in f32
    /// and 59.75 in bf16.
    Rounded(f64),
}

impl EmbeddingScale {
    /// The factor where the weights are in `dtype`.
    pub(crate) fn factor(self, dtype: Dtype) -> f32 {
        match (self, dtype) {
            (Self::Rounded(factor), Dtype::Bf16) => bf16::from_f64(factor).to_f32(),
            (Self::Exact(factor) | Self::Rounded(factor), _) => factor as f32,
        }
    }
}

/// What a model makes of its last states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadSpec {
    /// Logits over the vocabulary, by a table of its own, `[d_vocab, d_model]`.
    Own(String),
    /// The same by the embedding.
    Embedding,
    /// No logits over the vocabulary, but a number for each of some labels.
    Labels(LabelsSpec),
}

/// The head of a sequence classifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LabelsSpec {
    /// The tensor's full name; `[labels, d_model]`.
    pub(crate) name: String,
    pub(crate) labels: Vec<String>,
    /// `pad_token_id`: the head reads the last token that is another one.
    pub(crate) padding: Option<TokenId>,
}

/// Rows of numbers that each block gets of a position's token and of its embedding `x`, `width` of them each (Gemma 4's per-layer embeddings). Those of all blocks
/// lie behind one another:
///
/// `(norm(projection(x) * projection_factor) + table[token] * table_factor) * sum_factor`, where the norm is of each block's own numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenInputsSpec {
    /// The table's full name, and its rows, at least as many as there are tokens; `[rows, n_layers * width]`. It is most of a small model's numbers, of which a
    /// prompt needs a few rows: it is looked up where it is stored.
    pub(crate) table: (String, usize),
    pub(crate) table_factor: EmbeddingScale,
    /// Of one block.
    pub(crate) width: usize,
    pub(crate) projection: LinearSpec,
    pub(crate) projection_factor: f64,
    pub(crate) norm: NormSpec,
    pub(crate) sum_factor: f64,
}

/// What a block makes of its token inputs `t`: `x + norm(out(f(gate(x)) * t))`, behind its MLP.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenGateSpec {
    pub(crate) gate: LinearSpec,
    pub(crate) out: LinearSpec,
    pub(crate) norm: NormSpec,
}

/// Heads of a block's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadShape {
    /// Query heads.
    pub(crate) n_heads: usize,
    /// Key heads, a divisor of that.
    pub(crate) n_kv_heads: usize,
    /// Coordinates of each.
    pub(crate) head_dim: usize,
}

impl HeadShape {
    /// Width of all query heads together.
    pub(crate) fn d_query(self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Width of all key heads together, which is that of the values.
    pub(crate) fn d_key(self) -> usize {
        self.n_kv_heads * self.head_dim
    }
}

/// Where a block's attention has its keys and values from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeysSpec {
    /// Projections of its own.
    Own,
    /// One projection: values are keys before their norm and their rotation.
    AsValues,
    /// They are those of an earlier block, which sees as far and has such heads, and keys of its own.
    Of(usize),
}

/// What one block is, and what its weights are called: the only place where it says so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BlockSpec {
    pub(crate) heads: HeadShape,
    pub(crate) keys: KeysSpec,
    /// Keys that a query sees, itself included; `None`: all before it.
    pub(crate) window: Option<usize>,
    /// Which of the model's rotations; `None`: positions do not enter.
    pub(crate) rope: Option<usize>,
    pub(crate) before_attention: Option<NormSpec>,
    /// All queries, all keys, all values, those that are projected. Where the block is gated each query head is followed by its gate; where there is a delta rule it
    /// takes all rows.
    pub(crate) qkv: LinearSpec,
    /// What attention gives is multiplied by the logistic function of gates, one for each coordinate of the queries (Qwen3.5).
    pub(crate) is_gated: bool,
    /// In the place of attention.
    pub(crate) delta: Option<DeltaSpec>,
    /// The same.
    pub(crate) conv: Option<ConvSpec>,
    /// Of each query head alone, or of all of them together, before the rotation.
    pub(crate) q_norm: Option<NormSpec>,
    pub(crate) k_norm: Option<NormSpec>,
    /// The values of each head are divided by their root mean square.
    pub(crate) norms_values: bool,
    /// A score of each query head that takes part in its softmax, and whose weight goes to no key: the tensor's full name and its length.
    pub(crate) sinks: Option<(String, usize)>,
    pub(crate) out: LinearSpec,
    pub(crate) after_attention: Option<NormSpec>,
    pub(crate) before_mlp: Option<NormSpec>,
    /// The MLP reads what attention reads, beside it: what the norm before attention gives, and there is none before the MLP.
    pub(crate) is_parallel: bool,
    pub(crate) mlp: MlpSpec,
    pub(crate) after_mlp: Option<NormSpec>,
    pub(crate) token_gate: Option<TokenGateSpec>,
    /// All that leaves the block is multiplied by one number: the tensor's full name.
    pub(crate) scalar: Option<String>,
}

/// A gated short convolution (LFM2). It takes rows `[B, C, x]` of channels and gives `C * conv(B * x)`, each channel by itself over the last `kernel` positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvSpec {
    /// The tensor's full name: `[channels, 1, kernel]`.
    pub(crate) name: String,
    pub(crate) channels: usize,
    /// At least 2.
    pub(crate) kernel: usize,
}

/// A gated delta rule with a short convolution before it (Yang, Kautz and Hatamizadeh, *Gated Delta Networks*, 2025), as Qwen3.5 has it. It takes rows of
/// channels `[q, k, v]`, then gates `z` `[n_value_heads * value_dim]`, then `b` and `a`, `[n_value_heads]` each:
///
/// 1. `q, k, v = silu(conv(channels))`, each channel by itself over the last `kernel` positions; the heads of `q` and `k` get length 1, and `q` is divided by
///    `sqrt(key_dim)`. Value head `h` has key head `h / (n_value_heads / n_key_heads)`.
/// 2. `S *= exp(-exp(a_log) * softplus(a + dt_bias))`, `S += k ⊗ sigmoid(b) (v - kᵀS)`, `o = qᵀS` for each value head; `S` is `[key_dim, value_dim]`, 0 at first.
/// 3. `o / sqrt(mean(o²) + eps) * norm * silu(z)`, head by head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeltaSpec {
    pub(crate) shape: DeltaShape,
    /// Full names of its tensors: `[channels, 1, kernel]`,
    pub(crate) conv: String,
    /// `[n_value_heads]`,
    pub(crate) dt_bias: String,
    /// `[n_value_heads]`,
    pub(crate) a_log: String,
    /// `[value_dim]`.
    pub(crate) norm: String,
}

/// The numbers of a [`DeltaSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeltaShape {
    pub(crate) n_key_heads: usize,
    /// A multiple of `n_key_heads`.
    pub(crate) n_value_heads: usize,
    pub(crate) key_dim: usize,
    pub(crate) value_dim: usize,
    /// Positions that the convolution sees, at least 2.
    pub(crate) kernel: usize,
}

impl DeltaShape {
    /// Width of all keys.
    pub(crate) fn d_key(self) -> usize {
        self.n_key_heads * self.key_dim
    }

    /// Width of all values, and of what it gives.
    pub(crate) fn d_value(self) -> usize {
        self.n_value_heads * self.value_dim
    }

    /// Queries, keys and values.
    pub(crate) fn channels(self) -> usize {
        2 * self.d_key() + self.d_value()
    }

    /// Width of the rows that it takes.
    pub(crate) fn width(self) -> usize {
        self.channels() + self.d_value() + 2 * self.n_value_heads
    }
}

impl DeltaSpec {
    /// Its tensors: convolution, `dt_bias`, `a_log`, norm.
    pub(crate) fn tensors(&self) -> [NamedShape; 4] {
        let DeltaShape { n_value_heads, value_dim, kernel, .. } = self.shape;
        [
            (self.conv.clone(), vec![self.shape.channels(), 1, kernel]),
            (self.dt_bias.clone(), vec![n_value_heads]),
            (self.a_log.clone(), vec![n_value_heads]),
            (self.norm.clone(), vec![value_dim]),
        ]
    }
}

/// What a norm without bias does to a row `x`, whose weight is `w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormKind {
    /// `x / sqrt(mean(x²) + eps) * w`.
    RootMeanSquare,
    /// The same of `x - mean(x)`: LayerNorm (Cohere).
    Centred,
}

/// The function inside an MLP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// `g * sigmoid(alpha * g) * (u + 1)` in the place of `f(g) * u`, with the gate cut to at most `limit`, and what it gates to at most `limit` in
    /// absolute value (gpt-oss).
    ClampedSwish { alpha: f32, limit: f32 },
    /// With the error function.
    Gelu,
    /// The tanh approximation of GELU.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
}

impl ModelSpec {
    pub(crate) fn n_layers(&self) -> usize {
        self.blocks.len()
    }

    /// Every tensor that the model is made of, in the order of the forward pass.
    pub(crate) fn tensors(&self) -> Vec<NamedShape> {
        let table = |name: &String| (name.clone(), vec![self.d_vocab, self.d_model]);
        let mut all = vec![table(&self.embedding)];
        all.extend(self.token_inputs.iter().flat_map(|inputs| inputs.tensors(self.n_layers())));
        all.extend(self.blocks.iter().flat_map(BlockSpec::tensors));
        all.push((self.norm.name.clone(), vec![self.norm.len]));
        match &self.head {
            HeadSpec::Own(name) => all.push(table(name)),
            HeadSpec::Embedding => {}
            HeadSpec::Labels(head) => all.push((head.name.clone(), vec![head.labels.len(), self.d_model])),
        }
        all
    }

    /// Tensors that a checkpoint may have in the place of some of [`tensors`](Self::tensors).
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &StackSpec> {
        let experts = self.blocks.iter().filter_map(|block| match &block.mlp {
            MlpSpec::Dense(_) => None,
            MlpSpec::Experts(experts) => Some(experts),
            MlpSpec::Both(both) => Some(&both.experts),
        });
        experts.flat_map(|experts| &experts.stacks)
    }

    /// Beginnings of names of tensors that published files have and nothing uses: projections and norms of keys and values in blocks that look at those of another.
    pub(crate) fn idle_tensors(&self) -> impl Iterator<Item = String> {
        let sharing = self.blocks.iter().enumerate().filter(|(_, block)| matches!(block.keys, KeysSpec::Of(_)));
        let parts = ["k_proj", "v_proj", "k_norm"];
        sharing.flat_map(move |(index, _)| parts.map(|part| format!("model.layers.{index}.self_attn.{part}.")))
    }

    /// The head of labels, if it has one in the place of logits over the vocabulary.
    pub(crate) fn labels(&self) -> Option<&LabelsSpec> {
        match &self.head {
            HeadSpec::Labels(head) => Some(head),
            HeadSpec::Own(_) | HeadSpec::Embedding => None,
        }
    }
}

impl TokenInputsSpec {
    fn tensors(&self, n_layers: usize) -> Vec<NamedShape> {
        let (table, rows) = self.table.clone();
        let mut all = vec![(table, vec![rows, n_layers * self.width])];
        all.extend(self.projection.tensors());
        all.push((self.norm.name.clone(), vec![self.norm.len]));
        all
    }
}

impl BlockSpec {
    /// Whether it has queries and keys.
    pub(crate) fn has_attention(&self) -> bool {
        self.delta.is_none() && self.conv.is_none()
    }

    /// Whether its keys and values are its own.
    pub(crate) fn has_own_keys(&self) -> bool {
        self.has_attention() && !matches!(self.keys, KeysSpec::Of(_))
    }

    /// Every tensor that the block is made of: matrices and biases, then norms.
    pub(crate) fn tensors(&self) -> Vec<NamedShape> {
        let of_tokens = self.token_gate.iter().flat_map(|gate| [&gate.gate, &gate.out]);
        let linears = [&self.qkv, &self.out].into_iter().chain(self.mlp.linears()).chain(of_tokens);
        let mut all: Vec<NamedShape> = linears.flat_map(LinearSpec::tensors).collect();
        all.extend(self.scalar.iter().map(|name| (name.clone(), vec![1])));
        all.extend(self.mlp.scales());
        all.extend(self.sinks.iter().map(|(name, n_heads)| (name.clone(), vec![*n_heads])));
        all.extend(self.delta.iter().flat_map(DeltaSpec::tensors));
        all.extend(self.conv.iter().map(|conv| (conv.name.clone(), vec![conv.channels, 1, conv.kernel])));
        let of_heads = [&self.q_norm, &self.k_norm];
        let of_states = [&self.before_attention, &self.after_attention, &self.before_mlp, &self.after_mlp];
        let norms = of_heads.into_iter().chain(of_states).flatten();
        let norms = norms.chain(self.mlp.norms()).chain(self.token_gate.iter().map(|gate| &gate.norm));
        all.extend(norms.map(|norm| (norm.name.clone(), vec![norm.len])));
        all
    }
}
