//! The description of an encoder: what it is built from, and what its tensors are called.
//!
//! Families of `encoders/` make it, `checked.rs` compares it with a checkpoint, and
//! `engine/packed/encoder.rs` runs it. It is apart from the decoder's description (`spec.rs`)
//! because little is shared: LayerNorm with biases, sums of tables, attention to both sides, no
//! keys to keep and no head over the vocabulary.
//!
//! ```text
//! Post (BERT)        x ─ attention ─ (+x) ─ attention_norm ─► y ─ MLP ─ (+y) ─ mlp_norm ─►
//! Pre (ModernBERT)   x ─ attention_norm ─ attention ─ (+x) ─► y ─ mlp_norm ─ MLP ─ (+y) ─►
//! ```
//!
//! Layer 0 is the embedding after its norm; the last layer is after `final_norm`, where there is
//! one. The head of a sequence classifier is read by `reward_head.rs`; other heads and poolers are not.

use judge_core::request::{Pooling, TokenId};
use judge_core::reward::HeadActivation;
use judge_kernels::functions::Activation;

use super::rope::RopeConfig;
use super::spec::{LinearSpec, NamedShape, NormSpec};

/// All that an encoder is built from. Families differ in this data alone.
///
/// Tensors are named as in a folder whose model is bare, without the prefix of classes with a head;
/// [`own_name`](Self::own_name) translates.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderSpec {
    /// `model_type`.
    pub family: &'static str,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Heads of each block, for queries, keys and values alike; divides `d_model`.
    pub n_heads: usize,
    /// Rows of the table of tokens.
    pub d_vocab: usize,
    /// Longest text in tokens, special ones included.
    pub max_len: usize,
    /// Added to the variance in every norm; above 0.
    pub norm_eps: f64,
    /// Which rows each half of a block norms.
    pub norm_place: NormPlace,
    /// The function inside every MLP.
    pub activation: Activation,
    /// The rotations that blocks refer to by index: none, or of global and local blocks.
    pub ropes: Vec<RopeConfig>,
    /// What the first states are made from.
    pub embedding: EmbeddingSpec,
    /// Scores by relative position, in all blocks.
    pub relative: Option<RelativeSpec>,
    /// `[n_layers]`, in the order of the forward pass.
    pub blocks: Vec<EncoderBlockSpec>,
    /// The norm after the last block, where blocks norm what enters them.
    pub final_norm: Option<NormSpec>,
    /// How names in files differ from those here.
    pub(super) names: StoredNames,
    /// The head of a sequence classifier.
    pub head: Option<EncoderHeadSpec>,
}

/// Scores by relative position, with a table whose rows `r` stand for distances (DeBERTa). A block multiplies the rows
/// with its own matrices, biases included, so that they are queries `q_r` and keys `k_r`. With `r` the row of `i - j`,
/// the score of query `i` and key `j` is
///
/// ```text
/// (q_i · k_j + q_i · k_r + q_r · k_j) / sqrt(head_dim * number of terms)
/// ```
///
/// where the second term is there with `of_keys` and the third with `of_queries`.
#[derive(Clone, Debug, PartialEq)]
pub struct RelativeSpec {
    /// Full name of the table, `[2 * span, d_model]`.
    pub table: String,
    /// The norm of its rows.
    pub norm: Option<NormSpec>,
    /// Buckets to either side: distances beyond half of them share buckets by their logarithms. `None`: each distance
    /// has a row.
    pub(crate) buckets: Option<usize>,
    /// The distance that has the last bucket, plus 1; more than `buckets / 2 + 1`.
    pub farthest: usize,
    /// `c2p`: whether queries meet the keys of distances.
    pub of_keys: bool,
    /// `p2c`: whether keys meet the queries of distances.
    pub of_queries: bool,
}

impl RelativeSpec {
    /// Half the rows of the table.
    pub fn span(&self) -> usize {
        self.buckets.unwrap_or(self.farthest)
    }

    /// How many terms a score has.
    pub fn n_terms(&self) -> usize {
        1 + usize::from(self.of_keys) + usize::from(self.of_queries)
    }

    /// The row of a distance `i - j`. Logarithms are f32, as in transformers; their quotient decides between two
    /// buckets.
    pub fn row(&self, distance: i64) -> usize {
        let bucket = match self.buckets.map(|buckets| (buckets / 2) as i64) {
            Some(middle) if distance.abs() > middle => {
                let log = |x: i64, y: i64| libm::logf(x as f32 / y as f32);
                let (found, last) = (log(distance.abs(), middle), log(self.farthest as i64 - 1, middle));
                let beyond = (found / last * (middle - 1) as f32).ceil() as i64;
                (beyond + middle) * distance.signum()
            }
            _ => distance,
        };
        let span = self.span() as i64;
        (bucket + span).clamp(0, 2 * span - 1) as usize
    }
}

/// The head of a sequence classifier: what becomes of one state of the last layer.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderHeadSpec {
    /// Names of the labels, in the order of the rows of `out`. At least one.
    pub labels: Vec<String>,
    /// Which state it is.
    pub pooling: Pooling,
    /// What comes before the labels, in this order, from `d_model` numbers to as many.
    pub steps: Vec<HeadStepSpec>,
    /// `[labels, d_model]`.
    pub out: LinearSpec,
}

/// One step of a head.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadStepSpec {
    /// A map `[d_model, d_model]`.
    Linear(LinearSpec),
    /// A norm with its epsilon.
    Norm(NormSpec, f64),
    /// A function of each coordinate.
    Activation(HeadActivation),
}

/// How transformers draws the matrices of a new head; biases begin at 0, norms at 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadDraws {
    /// Standard deviation of the matrices before the labels.
    pub steps: f64,
    /// That of the matrix of the labels.
    pub out: f64,
    /// The normal distribution is cut off at so many standard deviations.
    pub cutoff: Option<f64>,
}

impl EncoderHeadSpec {
    /// Name and shape of every tensor of the head.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let mut all = self.out.tensors();
        for step in &self.steps {
            match step {
                HeadStepSpec::Linear(map) => all.extend(map.tensors()),
                HeadStepSpec::Norm(norm, _) => all.extend(norm.tensors()),
                HeadStepSpec::Activation(_) => {}
            }
        }
        all
    }
}

/// Which rows each half of a block norms (Xiong et al., *On Layer Normalization in the Transformer
/// Architecture*, 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlace {
    /// What enters it: `x + f(norm(x))` (ModernBERT).
    Pre,
    /// The sum after it: `norm(x + f(x))` (BERT).
    Post,
}

/// The first states: `norm(words[token] + types[type] + positions[row])`, without the tables that are
/// absent. All tables are `d_model` wide.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingSpec {
    /// Full name of the table of tokens, `[d_vocab, d_model]`.
    pub words: String,
    /// The table of `token_type_ids`.
    pub types: Option<TypesSpec>,
    /// The table of positions; `None` where positions are rotations.
    pub positions: Option<PositionsSpec>,
    /// The norm of the sum.
    pub norm: NormSpec,
}

impl EmbeddingSpec {
    /// The row of each token of a sequence in the table of positions. Without a padding token that is its position.
    /// With one, the padding token has the row of its own number, wherever it is, and the other tokens count on from
    /// the row after that one (RoBERTa).
    pub fn rows(&self, ids: &[TokenId]) -> impl Iterator<Item = usize> {
        let padding = self.positions.as_ref().and_then(|positions| positions.padding);
        let mut next = padding.map_or(0, |padding| padding as usize + 1);
        ids.iter().map(move |&id| {
            if Some(id) == padding {
                return id as usize;
            }
            next += 1;
            next - 1
        })
    }
}

/// A table of the states of tokens' types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypesSpec {
    /// Full name, `[rows, d_model]`.
    pub name: String,
    /// Number of types.
    pub rows: usize,
    /// Whether the texts of a pair have different types, as the tokenizer says (BERT). Else all tokens are of type 0.
    pub of_pairs: bool,
}

/// A table of positions' states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionsSpec {
    /// Full name, `[rows, d_model]`.
    pub name: String,
    /// Rows of the table; more than `max_len` with `padding`.
    pub rows: usize,
    /// RoBERTa: this token always has the row of its own number, and all others are counted from
    /// the row after it on. `None`: the position is the row.
    pub padding: Option<TokenId>,
}

/// What one block is and what its weights are called.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderBlockSpec {
    /// Distance to either side that a position sees: key `j` is visible to query `i` if
    /// `|i - j| <= window`. `None`: the whole text.
    pub window: Option<usize>,
    /// Index into `EncoderSpec::ropes`; `None`: the block does not rotate.
    pub rope: Option<usize>,
    /// The norm before or after attention, by `norm_place`. `None` in ModernBERT's first block,
    /// whose input is normed already.
    pub attention_norm: Option<NormSpec>,
    /// All queries, all keys, all values: `[3 * d_model, d_model]`.
    pub qkv: LinearSpec,
    /// `[d_model, d_model]`.
    pub out: LinearSpec,
    /// The norm before or after the MLP, by `norm_place`.
    pub mlp_norm: NormSpec,
    /// `[d_ff, d_model]`; or `[2 * d_ff, d_model]`, then the first half goes through the activation
    /// and is multiplied with the second.
    pub up: LinearSpec,
    /// `[d_model, d_ff]`.
    pub down: LinearSpec,
}

impl EncoderBlockSpec {
    /// Its projections, in the order of a pass.
    pub fn projections(&self) -> [&LinearSpec; 4] {
        [&self.qkv, &self.out, &self.up, &self.down]
    }

    /// Name and shape of each of its tensors: matrices and biases, then norms.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let mut all = Vec::new();
        for linear in self.projections() {
            all.extend(linear.weights().into_iter().map(|(name, rows)| (name, vec![rows, linear.d_in])));
            all.extend(linear.biases().into_iter().map(|(name, rows)| (name, vec![rows])));
        }
        all.extend(self.attention_norm.iter().chain([&self.mlp_norm]).flat_map(NormSpec::tensors));
        all
    }
}

/// How names in files differ from those of the bare model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredNames {
    /// What classes with a head put before all names of the model.
    pub(super) prefix: &'static str,
    /// Prefixes of names of heads and buffers, which no state depends on; matched after `prefix` is
    /// removed.
    pub(super) others: &'static [&'static str],
    /// Prefixes of those names of a sequence classifier that `prefix` is not put before.
    pub(super) beside: &'static [&'static str],
}

/// Endings of norms' names in files converted from TensorFlow, and PyTorch's.
const OLD_NAMES: [(&str, &str); 2] = [("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")];

impl EncoderSpec {
    /// Number of blocks.
    pub fn n_layers(&self) -> usize {
        self.blocks.len()
    }

    /// Coordinates of a head.
    pub fn head_dim(&self) -> usize {
        self.d_model / self.n_heads
    }

    /// The name here of a tensor that a file or an adapter calls `stored`; `None` for one of a
    /// head that the model does not have, which is not read. A name that is already the bare model's stays.
    pub fn own_name(&self, stored: &str) -> Option<String> {
        let name = stored.strip_prefix(self.names.prefix).unwrap_or(stored);
        let is_of_head = |head: &EncoderHeadSpec| head.tensors().iter().any(|(own, _)| own == name);
        if self.head.as_ref().is_some_and(is_of_head) {
            return Some(name.to_owned());
        }
        if self.names.others.iter().any(|other| name.starts_with(other)) {
            return None;
        }
        let renamed = OLD_NAMES.iter().find_map(|(old, new)| Some(format!("{}{new}", name.strip_suffix(old)?)));
        Some(renamed.unwrap_or_else(|| name.to_owned()))
    }

    /// What a sequence classifier of this family calls a tensor of the model.
    pub fn name_in_classifier(&self, own: &str) -> String {
        let is_beside = self.names.beside.iter().any(|beside| own.starts_with(beside));
        if is_beside { own.to_owned() } else { format!("{}{own}", self.names.prefix) }
    }

    /// Name and shape of every tensor: tables, blocks, the remaining norms, then the head's.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let EmbeddingSpec { words, types, positions, norm } = &self.embedding;
        let table = |name: &String, rows: usize| (name.clone(), vec![rows, self.d_model]);
        let mut all = vec![table(words, self.d_vocab)];
        all.extend(types.iter().map(|types| table(&types.name, types.rows)));
        all.extend(positions.iter().map(|positions| table(&positions.name, positions.rows)));
        all.extend(self.blocks.iter().flat_map(EncoderBlockSpec::tensors));
        let mut norms = vec![norm];
        norms.extend(&self.final_norm);
        if let Some(relative) = &self.relative {
            all.push(table(&relative.table, 2 * relative.span()));
            norms.extend(&relative.norm);
        }
        all.extend(norms.into_iter().flat_map(NormSpec::tensors));
        all.extend(self.head.iter().flat_map(EncoderHeadSpec::tensors));
        all
    }
}
