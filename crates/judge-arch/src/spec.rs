//! The description of a decoder: numbers, order of parts, names and shapes of tensors.
//!
//! A family of `families/` makes it by way of `DecoderFields::spec`. It is plain data without behaviour:
//! the one forward pass of `engine/block.rs` is built from it, `checked.rs` compares it with a
//! checkpoint, `engine/tensor/stages.rs` spreads it over devices, and `train` names gradients by
//! it. A family that needs something new adds a field here; nothing downstream asks for the
//! family's name to decide how to compute.
//!
//! A block, with the fields of [`BlockSpec`], all of which may be absent, though not both halves:
//!
//! ```text
//! x ─┬─ before_attention ─ qkv ─ attention | delta | conv | mamba ─ out ─ after_attention ─ (+) ─► x
//!    └───────────────────────────────────────────────────────────────────────────────────────┘
//! x ─┬─ before_mlp ─ mlp ─ after_mlp ─ (+) ─► x ─┬─ token_gate ─ (+) ─► x · scalar
//!    └──────────────────────────────────┘        └────────────────┘
//! ```
//!
//! In Falcon-H1 a state space is `beside` attention: its result is added to the stream as well. Blocks
//! of Nemotron-H are one of the two halves alone.
//!
//! `residual_scale` multiplies what attention and the MLP add, not what `token_gate` adds.
//!
//! Invariants, which families and `DecoderFields` establish: `heads.n_kv_heads` divides `heads.n_heads`; a
//! block has at most one of `delta`, `conv` and `mamba`; `rope` indexes `ModelSpec::ropes`; `KeysSpec::Of`
//! names an earlier block that has keys of its own, the same heads and the same window.
//! Names are those of a folder that holds the text model alone; `weights` strips what
//! vision-language folders put before them.

mod mamba;
mod mlp;
mod parts;

use half::bf16;
use judge_core::request::TokenId;
use judge_kernels::functions::{Activation, NormKind};
use judge_weights::dtype::Dtype;

pub use self::mamba::{GatedNorm, MambaShape, MambaSpec};
pub use self::mlp::{BothSpec, ExpertsSpec, GatedSpec, MlpSpec, Routing, Scores, SharedSpec};
pub use self::parts::{LinearSpec, NamedRows, NamedShape, NormSpec};
pub(crate) use judge_weights::names::EMBEDDING;
pub use judge_weights::names::HEAD;
pub use judge_weights::stack::{StackPart, StackSpec};

use super::rope::RopeConfig;

/// Full name of the bias of every decoder's head over the vocabulary, where it has one.
pub(crate) const HEAD_BIAS: &str = "lm_head.bias";

/// All that a decoder is built from. Families differ in this data alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// `model_type`; for a vision-language folder that of the text model inside. For messages, and
    /// for GGUF files, which are written per architecture.
    pub family: &'static str,
    /// Whether the model is the text model inside a vision-language folder, whose tensor names have
    /// a prefix and which holds other tensors besides.
    pub is_tower: bool,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Query heads of each block, the same in all.
    pub n_heads: usize,
    /// Rows of the embedding and of a head over the vocabulary. `checked.rs` lowers it where a GGUF
    /// file leaves out rows that no token has.
    pub d_vocab: usize,
    /// Added to the mean square (or the variance) in every norm of states and heads. At least 0.
    pub norm_eps: f64,
    /// What norms of states compute. Norms of query, key and value heads are always
    /// root-mean-square norms.
    pub norm_kind: NormKind,
    /// Factor on embeddings before the first block (Gemma, Granite). Layer 0 is read after it.
    pub embedding_scale: Option<EmbeddingScale>,
    /// Factor on query-key products; `1 / sqrt(head_dim)` unless the family says otherwise.
    pub attention_scale: f64,
    /// `c` in `c * tanh(score / c)`, applied to scaled query-key products before the softmax (Gemma
    /// 2).
    pub attention_soft_cap: Option<f64>,
    /// The function inside every MLP, expert and token gate.
    pub activation: Activation,
    /// `c` in `c * tanh(logit / c)`, applied to logits that text is generated from and
    /// log-probabilities taken of. Label logits leave it out.
    pub final_soft_cap: Option<f64>,
    /// Queries, keys and values are clamped to `[-clip_qkv, clip_qkv]`, after their norms and
    /// before the rotation (OLMoE).
    pub clip_qkv: Option<f64>,
    /// Factor on what attention and what the MLP adds to the residual stream (Granite).
    pub residual_scale: Option<f64>,
    /// Factor on logits over the vocabulary wherever the head is applied, readings of inner layers
    /// included: it changes every softmax (Granite, Cohere).
    pub logit_scale: Option<f64>,
    /// The rotations that blocks refer to by index: one, or one for full and one for windowed
    /// blocks.
    pub ropes: Vec<RopeConfig>,
    /// `[n_layers]`, in the order of the forward pass.
    pub blocks: Vec<BlockSpec>,
    /// Full name of the embedding, `[d_vocab, d_model]`.
    pub embedding: String,
    /// Full name and rows of a table of positions, `[rows, d_model]`, of which each token's is added to
    /// its embedding (GPT-2). `max_len` is at most `rows`.
    pub positions: Option<(String, usize)>,
    /// What each block gets of a position's token besides the residual stream (Gemma 4 E models).
    pub token_inputs: Option<TokenInputsSpec>,
    /// The norm after the last block, before the head.
    pub norm: NormSpec,
    /// What is made of the last states. By `config.json` alone until `checked.rs` has looked at what
    /// is stored.
    pub head: HeadSpec,
    /// Full name of what is added to logits over the vocabulary, `[d_vocab]`, readings of inner layers
    /// included (Phi). Ask [`head_bias`](Self::head_bias) for it: a model with another head has none.
    pub head_bias: Option<String>,
    /// Longest sequence in tokens, prompt plus new ones; at most `MAX_CONTEXT`. Longer ones are
    /// refused.
    pub max_len: usize,
    /// `eos_token_id` of `config.json`; empty if absent. `generation_config.json` overrides it.
    pub eos: Vec<TokenId>,
}

/// A factor on embeddings, and how it is rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EmbeddingScale {
    /// Used as it is, in any dtype (Granite).
    Exact(f64),
    /// Rounded to the dtype of the weights first (Gemma). Those models are trained so, and
    /// transformers runs them so: `sqrt(3584)` is 59.87 in f32 and 59.75 in bf16.
    Rounded(f64),
}

impl EmbeddingScale {
    /// The factor for a model whose weights are held in `dtype`.
    pub fn factor(self, dtype: Dtype) -> f32 {
        match (self, dtype) {
            (Self::Rounded(factor), Dtype::Bf16) => bf16::from_f64(factor).to_f32(),
            (Self::Exact(factor) | Self::Rounded(factor), _) => factor as f32,
        }
    }
}

/// Full name of the matrix of a head of labels.
pub const SCORE: &str = "score.weight";

/// What a model makes of its last states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadSpec {
    /// Logits over the vocabulary by a matrix of its own: the full name of `[d_vocab, d_model]`.
    Own(String),
    /// Logits over the vocabulary by the embedding (tied weights).
    Embedding,
    /// A number for each of some labels, and no logits over the vocabulary.
    Labels(LabelsSpec),
    /// None: states are all that is read.
    Absent(NoHead),
}

/// Why a model has no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHead {
    /// The class that `config.json` names has none over the vocabulary, and none is stored.
    Class,
    /// The class has one, which is not the embedding, and none is stored.
    NotStored,
}

/// The head of a sequence classifier, such as a reward model: one linear map without bias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelsSpec {
    /// Full name of the matrix, `[labels, d_model]`.
    pub name: String,
    /// Names of the labels, in the order of the matrix's rows. At least one.
    pub labels: Vec<String>,
    /// `pad_token_id`. As in transformers the head reads the last token that is another one, so
    /// `reading/jobs.rs` drops trailing tokens that equal it. `None`: the head reads the last
    /// token.
    pub padding: Option<TokenId>,
    /// In a class whose layers have heads of their own (rerankers of MiniCPM), those of inner layers, from the lowest: the layer, whose
    /// state is read behind the final norm, and the full name of the matrix, `[labels, d_model]`.
    pub inner: Option<Vec<(usize, String)>>,
}

impl LabelsSpec {
    /// Names and shapes of the matrices, that of the last layer first.
    fn tensors(&self, d_model: usize) -> impl Iterator<Item = NamedShape> {
        let inner = self.inner.iter().flatten().map(|(_, name)| name);
        [&self.name].into_iter().chain(inner).map(move |name| (name.clone(), vec![self.labels.len(), d_model]))
    }
}

/// Rows of `width` numbers that each block gets of a position's token and of its embedding `x`
/// (Gemma 4's per-layer embeddings). With `norm` taken over each block's `width` numbers apart, all
/// blocks' rows behind one another are
///
/// ```text
/// (norm(projection(x) * projection_factor) + table[token] * table_factor) * sum_factor
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TokenInputsSpec {
    /// Full name and number of rows of the table `[rows, n_layers * width]`, with at least
    /// `d_vocab` rows. It is most of a small model's numbers, of which a prompt needs a few rows:
    /// it stays in its file and rows are looked up there (`Table` of `judge-weights`).
    pub table: (String, usize),
    /// Factor on looked-up rows: `sqrt(width)`.
    pub table_factor: EmbeddingScale,
    /// Numbers per block.
    pub width: usize,
    /// From an embedding, scaled as for the first block: `[n_layers * width, d_model]`.
    pub projection: LinearSpec,
    /// Factor on what the projection gives: `1 / sqrt(d_model)`.
    pub projection_factor: f64,
    /// The norm of the projected rows, `[width]`, the same weight for all blocks.
    pub norm: NormSpec,
    /// Factor on the sum of both parts: `1 / sqrt(2)`.
    pub sum_factor: f64,
}

/// What a block makes of its token inputs `t`, after its MLP: `x + norm(out(f(gate(x)) * t))`, with
/// `f` the model's activation.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenGateSpec {
    /// `[width, d_model]`.
    pub gate: LinearSpec,
    /// `[d_model, width]`.
    pub out: LinearSpec,
    /// `[d_model]`.
    pub norm: NormSpec,
}

/// Heads of a block's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    /// Query heads.
    pub n_heads: usize,
    /// Key heads, and as many value heads; divides `n_heads`. Query head `h` uses key head
    /// `h / (n_heads / n_kv_heads)`.
    pub n_kv_heads: usize,
    /// Coordinates of each head.
    pub head_dim: usize,
}

impl HeadShape {
    /// Width of all query heads together.
    pub fn d_query(self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Width of all key heads together, and of all value heads.
    pub fn d_key(self) -> usize {
        self.n_kv_heads * self.head_dim
    }
}

/// Where a block's attention takes its keys and values from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysSpec {
    /// From projections of its own.
    Own,
    /// From one projection of its own: values are its output before the norm and the rotation of
    /// keys (Gemma 4's `attention_k_eq_v`).
    AsValues,
    /// From the earlier block of this index, which projects keys itself, has the same heads and the
    /// same window (Gemma 4's `num_kv_shared_layers`). This block projects queries alone.
    Of(usize),
}

/// What one block is and what its weights are called. No other type says so.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockSpec {
    /// Heads of attention. A block with `delta`, `conv` or `mamba` has them too, and nothing uses them there.
    pub heads: HeadShape,
    /// Where keys and values come from.
    pub keys: KeysSpec,
    /// Number of keys that a query sees, itself included: key `j` is visible to query `i` if
    /// `i - window < j <= i`. `None`: all up to `i`.
    pub window: Option<usize>,
    /// Index into `ModelSpec::ropes`; `None`: positions do not enter (NoPE).
    pub rope: Option<usize>,
    /// The norm of what attention reads; `None`: it reads the residual stream itself.
    pub before_attention: Option<NormSpec>,
    /// The first projection. Its rows are all queries, all keys, all values, as far as `keys`
    /// projects them. Where the block is gated each query head is followed by its gate:
    /// `[query, gate]` per head. A delta rule, a convolution or a state space takes all rows instead; see
    /// [`DeltaSpec`], [`ConvSpec`] and [`MambaSpec`].
    ///
    /// `None`, like [`out`](Self::out): the block is its MLP alone (Nemotron-H).
    pub qkv: Option<LinearSpec>,
    /// Whether attention's output is multiplied by `sigmoid(gate)`, one gate per query coordinate
    /// (Qwen3.5).
    pub is_gated: bool,
    /// A gated delta rule instead of attention.
    pub delta: Option<DeltaSpec>,
    /// A gated short convolution instead of attention.
    pub conv: Option<ConvSpec>,
    /// A selective state space instead of attention.
    pub mamba: Option<MambaSpec>,
    /// A selective state space beside attention (Falcon-H1).
    pub beside: Option<BesideSpec>,
    /// The norm of queries before the rotation: of each head alone, `[head_dim]`, or of all heads
    /// together, `[d_query]`. Engines tell the two apart by the length.
    pub q_norm: Option<NormSpec>,
    /// The norm of keys before the rotation: `[head_dim]` or `[d_key]`. `None` as well in a block
    /// that uses keys of another.
    pub k_norm: Option<NormSpec>,
    /// Whether each value head is divided by its root mean square, without a weight (Gemma 4).
    pub norms_values: bool,
    /// Attention sinks: full name and length (`n_heads`) of one extra score per query head. It
    /// takes part in the softmax and its weight goes to no value (gpt-oss).
    pub sinks: Option<(String, usize)>,
    /// From what attention (or its substitute) gives to `[d_model]`.
    pub out: Option<LinearSpec>,
    /// The norm of what attention adds to the residual stream.
    pub after_attention: Option<NormSpec>,
    /// The norm of what the MLP reads; `None`: the residual stream itself, or see `is_parallel`.
    pub before_mlp: Option<NormSpec>,
    /// Whether the MLP is beside attention, `x + attn(n(x)) + mlp(m(x))`, with `before_attention` as
    /// `n` and `before_mlp` as `m`; without the latter it reads what attention reads (Cohere).
    pub is_parallel: bool,
    /// A dense MLP, experts, or both; `None`: the block is what is before it alone (Nemotron-H).
    pub mlp: Option<MlpSpec>,
    /// The norm of what the MLP adds to the residual stream.
    pub after_mlp: Option<NormSpec>,
    /// Tensors that folders keep in the place of projections of this block, besides those of experts:
    /// fused head by head (GPT-NeoX), or transposed (GPT-2).
    pub stacks: Vec<StackSpec>,
    /// How token inputs enter; `Some` in all blocks or in none, with `ModelSpec::token_inputs`.
    pub token_gate: Option<TokenGateSpec>,
    /// Full name of a number, `[1]`, that multiplies all that leaves the block (Gemma 4's
    /// `layer_scalar`).
    pub scalar: Option<String>,
}

/// A selective state space beside a block's attention, which reads what attention reads. What it gives is
/// projected and added to the residual stream as attention's is (Falcon-H1).
#[derive(Clone, Debug, PartialEq)]
pub struct BesideSpec {
    /// From what attention reads to rows of the state space.
    pub input: LinearSpec,
    /// The state space.
    pub mamba: MambaSpec,
    /// `[d_model, d_inner]`.
    pub out: LinearSpec,
}

/// A gated short convolution (LFM2). Of rows `[B, C, x]`, `channels` wide each, it gives
/// `C * conv(B * x)`, where each channel is convolved alone over the last `kernel` positions, its
/// own included. Positions before the first count as 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvSpec {
    /// Full name of the taps, `[channels, 1, kernel]`, the last one for the position itself.
    pub name: String,
    /// `d_model`.
    pub channels: usize,
    /// Positions that it sees; at least 2.
    pub kernel: usize,
}

/// A gated delta rule after a short convolution, as in Qwen3.5 (Yang, Kautz and Hatamizadeh, *Gated
/// Delta Networks*, 2025). It takes rows `[q, k, v, z, b, a]`: channels `q, k, v`, gates `z`
/// `[n_value_heads * value_dim]`, then `b` and `a`, `[n_value_heads]` each:
///
/// 1. `q, k, v = silu(conv(q, k, v))`, where each channel is convolved alone over the last `kernel`
///    positions. Heads of `q` and `k` are scaled to length 1, then `q` is divided by
///    `sqrt(key_dim)`. Value head `h` uses key head `h / (n_value_heads / n_key_heads)`.
/// 2. For each value head, with a state `S` `[key_dim, value_dim]` that starts at 0:
///    `S *= exp(-exp(a_log) * softplus(a + dt_bias))`, `S += k ⊗ sigmoid(b) (v - kᵀS)`, `o = qᵀS`.
/// 3. `o / sqrt(mean(o²) + eps) * norm * silu(z)`, head by head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaSpec {
    /// Its sizes.
    pub shape: DeltaShape,
    /// Full name of the taps, `[channels, 1, kernel]`, the last one for the position itself.
    pub conv: String,
    /// Full name of `[n_value_heads]`.
    pub dt_bias: String,
    /// Full name of `[n_value_heads]`: logarithms of the decay rates.
    pub a_log: String,
    /// Full name of the output norm's weight, `[value_dim]`. It has no offset, even where other
    /// norms have.
    pub norm: String,
}

/// Sizes of a [`DeltaSpec`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaShape {
    /// Heads of `q`, and of `k`.
    pub n_key_heads: usize,
    /// Heads of `v`, of gates and of states; a multiple of `n_key_heads`.
    pub n_value_heads: usize,
    /// Coordinates of a head of `q` or `k`.
    pub key_dim: usize,
    /// Coordinates of a head of `v`.
    pub value_dim: usize,
    /// Positions that the convolution sees, its own included; at least 2.
    pub kernel: usize,
}

impl DeltaShape {
    /// Width of all heads of `k`, and of all heads of `q`.
    pub fn d_key(self) -> usize {
        self.n_key_heads * self.key_dim
    }

    /// Width of all heads of `v`, of the gates `z`, and of what the rule gives.
    pub fn d_value(self) -> usize {
        self.n_value_heads * self.value_dim
    }

    /// Width of `q`, `k` and `v` together, which is what the convolution runs over.
    pub fn channels(self) -> usize {
        2 * self.d_key() + self.d_value()
    }

    /// Width of the rows `[q, k, v, z, b, a]` that the rule takes.
    pub fn width(self) -> usize {
        self.channels() + self.d_value() + 2 * self.n_value_heads
    }
}

impl DeltaSpec {
    /// Its tensors in the order of the fields: `conv`, `dt_bias`, `a_log`, `norm`. `Delta::build`
    /// of `engine/block.rs` relies on that order.
    pub fn tensors(&self) -> [NamedShape; 4] {
        let DeltaShape { n_value_heads, value_dim, kernel, .. } = self.shape;
        [
            (self.conv.clone(), vec![self.shape.channels(), 1, kernel]),
            (self.dt_bias.clone(), vec![n_value_heads]),
            (self.a_log.clone(), vec![n_value_heads]),
            (self.norm.clone(), vec![value_dim]),
        ]
    }
}

impl ModelSpec {
    /// Number of blocks.
    pub fn n_layers(&self) -> usize {
        self.blocks.len()
    }

    /// Name and shape of every tensor that the model is made of: embedding, token inputs, blocks,
    /// final norm, head. `checked.rs` accepts a checkpoint that has exactly these, or the stacks of
    /// [`stacks`](Self::stacks) in the place of their parts.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let table = |name: &String| (name.clone(), vec![self.d_vocab, self.d_model]);
        let mut all = vec![table(&self.embedding)];
        all.extend(self.positions.iter().map(|(name, rows)| (name.clone(), vec![*rows, self.d_model])));
        all.extend(self.token_inputs.iter().flat_map(|inputs| inputs.tensors(self.n_layers())));
        all.extend(self.blocks.iter().flat_map(BlockSpec::tensors));
        all.extend(self.norm.tensors());
        match &self.head {
            HeadSpec::Own(name) => all.push(table(name)),
            HeadSpec::Embedding | HeadSpec::Absent(_) => {}
            HeadSpec::Labels(head) => all.extend(head.tensors(self.d_model)),
        }
        all.extend(self.head_bias().map(|name| (name.to_owned(), vec![self.d_vocab])));
        all
    }

    /// Rows of the projection with most of them in any block; the head is none.
    pub fn widest_projection(&self) -> usize {
        let linears = self.blocks.iter().flat_map(BlockSpec::linears);
        linears.map(|linear| linear.stems.iter().map(|(_, rows)| rows).sum()).max().unwrap_or(0)
    }

    /// Tensors that a checkpoint may have in the place of some of [`tensors`](Self::tensors): those of
    /// [`BlockSpec::stacks`], and all experts of a block as one.
    pub fn stacks(&self) -> impl Iterator<Item = &StackSpec> {
        self.blocks.iter().flat_map(|block| {
            let experts = block.mlp.as_ref().and_then(MlpSpec::experts);
            block.stacks.iter().chain(experts.into_iter().flat_map(|experts| &experts.stacks))
        })
    }

    /// Prefixes of names of tensors that published files have though nothing uses them: projections
    /// and norms of keys and values in blocks that use keys of another, the head over the vocabulary
    /// of a model with labels, and the labels of a class of which states alone are read. A checkpoint
    /// may have them or not.
    pub fn idle_tensors(&self) -> impl Iterator<Item = String> {
        let sharing = self.blocks.iter().enumerate().filter(|(_, block)| matches!(block.keys, KeysSpec::Of(_)));
        let parts = ["k_proj", "v_proj", "k_norm"];
        let head = match &self.head {
            HeadSpec::Labels(head) => head.inner.is_none().then_some("lm_head."),
            HeadSpec::Absent(_) => Some("score."),
            HeadSpec::Own(_) | HeadSpec::Embedding => None,
        };
        let shared =
            sharing.flat_map(move |(index, _)| parts.map(|part| format!("model.layers.{index}.self_attn.{part}.")));
        shared.chain(head.map(str::to_owned))
    }

    /// The bias of the head over the vocabulary, if the model has such a head and it has one.
    pub fn head_bias(&self) -> Option<&str> {
        self.head_bias.as_deref().filter(|_| matches!(self.head, HeadSpec::Own(_) | HeadSpec::Embedding))
    }

    /// The head of labels, if the model has one in the place of logits over the vocabulary.
    pub fn labels(&self) -> Option<&LabelsSpec> {
        match &self.head {
            HeadSpec::Labels(head) => Some(head),
            HeadSpec::Own(_) | HeadSpec::Embedding | HeadSpec::Absent(_) => None,
        }
    }
}

impl TokenInputsSpec {
    /// The table, the projection and the norm, for a model of `n_layers` blocks.
    fn tensors(&self, n_layers: usize) -> Vec<NamedShape> {
        let (table, rows) = self.table.clone();
        let mut all = vec![(table, vec![rows, n_layers * self.width])];
        all.extend(self.projection.tensors());
        all.extend(self.norm.tensors());
        all
    }
}

impl BlockSpec {
    /// Whether the block has queries and keys, and so attention weights to read.
    pub fn has_attention(&self) -> bool {
        self.qkv.is_some() && self.delta.is_none() && self.conv.is_none() && self.mamba.is_none()
    }

    /// Its state space, in the place of attention or beside it.
    pub fn state_space(&self) -> Option<&MambaSpec> {
        self.mamba.as_ref().or(self.beside.as_ref().map(|beside| &beside.mamba))
    }

    /// Whether the block computes and keeps keys and values, which later passes need.
    pub fn has_own_keys(&self) -> bool {
        self.has_attention() && !matches!(self.keys, KeysSpec::Of(_))
    }

    /// Its projections: around attention, of the MLP and of the token gate.
    fn linears(&self) -> impl Iterator<Item = &LinearSpec> {
        let of_tokens = self.token_gate.iter().flat_map(|gate| [&gate.gate, &gate.out]);
        let beside = self.beside.iter().flat_map(|beside| [&beside.input, &beside.out]);
        let first = [&self.qkv, &self.out].into_iter().flatten().chain(beside);
        first.chain(self.mlp.iter().flat_map(MlpSpec::linears)).chain(of_tokens)
    }

    /// Name and shape of every tensor of the block: matrices and biases, then vectors, then norms.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let mut all: Vec<NamedShape> = self.linears().flat_map(LinearSpec::tensors).collect();
        all.extend(self.scalar.iter().map(|name| (name.clone(), vec![1])));
        all.extend(self.mlp.iter().flat_map(MlpSpec::numbers_of_experts));
        all.extend(self.sinks.iter().map(|(name, n_heads)| (name.clone(), vec![*n_heads])));
        all.extend(self.delta.iter().flat_map(DeltaSpec::tensors));
        all.extend(self.conv.iter().map(|conv| (conv.name.clone(), vec![conv.channels, 1, conv.kernel])));
        all.extend(self.state_space().into_iter().flat_map(MambaSpec::tensors));
        let of_heads = [&self.q_norm, &self.k_norm];
        let of_states = [&self.before_attention, &self.after_attention, &self.before_mlp, &self.after_mlp];
        let norms = of_heads.into_iter().chain(of_states).flatten();
        let norms =
            norms.chain(self.mlp.iter().flat_map(MlpSpec::norms)).chain(self.token_gate.iter().map(|gate| &gate.norm));
        all.extend(norms.flat_map(NormSpec::tensors));
        all
    }
}
