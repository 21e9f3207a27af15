//! Decoder or encoder: decides which of the two a folder holds, and answers what both have in
//! common.
//!
//! A `model_type` of `encoders` makes an encoder; everything else goes to [`ModelSpec::from_json`].
//! Callers that run or check a model (`model.rs`, `checked.rs`, `reading/`) hold an
//! [`Architecture`]; engines take the description inside. What is special to one kind is asked of
//! that description.

use std::sync::{Arc, LazyLock};

use judge_core::{Layer, model::Dimensions, request::TokenId};
use serde_json::Value;

use super::encoder::{EmbeddingSpec, EncoderHeadSpec, EncoderSpec};
use super::rope::RopeConfig;
use super::spec::{LabelsSpec, ModelSpec, NamedShape};
use super::{ConfigProblem, encoders, families, tower, unread};

/// A model of either kind, shared by reference count between the model and its engine.
#[derive(Clone, Debug)]
pub enum Architecture {
    /// Every position sees those before it. It writes text, or scores labels.
    Decoder(Arc<ModelSpec>),
    /// Every position sees all others. Only its states are read.
    Encoder(Arc<EncoderSpec>),
}

/// Every `model_type` that this crate knows: decoders and vision-language folders, then encoders.
/// Listed in the error for an unknown one.
static NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| families::NAMES.iter().chain(encoders::NAMES.iter()).copied().collect());

impl Architecture {
    /// Describes the model of a `config.json`.
    ///
    /// # Errors
    /// [`ConfigProblem`] as of [`ModelSpec::from_json`] and of the encoder families. An unknown
    /// `model_type` is answered with the names of both kinds.
    pub fn from_json(config: &Value) -> Result<Self, ConfigProblem> {
        if let Some(file) = config.as_object()
            && let Some(encoder) = encoders::spec(file)?
        {
            return Ok(Self::Encoder(Arc::new(encoder)));
        }
        match ModelSpec::from_json(config) {
            Ok(decoder) => Ok(Self::Decoder(Arc::new(decoder))),
            Err(ConfigProblem::Unknown { field: "model_type", found, .. }) => {
                Err(ConfigProblem::Unknown { field: "model_type", found, known: &NAMES })
            }
            Err(problem) => Err(problem),
        }
    }

    /// Warns of fields of `config`, from which it was made, that nothing here reads, unless they are known to change no number.
    /// It is for whoever loads the model: a program may describe a folder several times before.
    pub fn warn_of_unread(&self, config: &Value) {
        let Some(file) = config.as_object() else { return };
        let unread = match self {
            Self::Decoder(_) => {
                let text = tower::text(file).ok().flatten();
                unread::unread_keys(text.as_ref().unwrap_or(file), &|file| families::fields(file).is_ok())
            }
            Self::Encoder(_) => encoders::unread_of(file),
        };
        unread::warn(self.family(), &unread);
    }

    /// `model_type`; for a vision-language folder that of the text model inside.
    pub fn family(&self) -> &'static str {
        match self {
            Self::Decoder(spec) => spec.family,
            Self::Encoder(spec) => spec.family,
        }
    }

    /// Sizes that are public in `ModelInfo`. `n_layers` counts blocks, so there are `n_layers + 1`
    /// layers of states.
    pub fn dimensions(&self) -> Dimensions {
        let (n_layers, d_model, n_heads, d_vocab, max_len) = match self {
            Self::Decoder(spec) => (spec.n_layers(), spec.d_model, spec.n_heads, spec.d_vocab, spec.max_len),
            Self::Encoder(spec) => (spec.n_layers(), spec.d_model, spec.n_heads, spec.d_vocab, spec.max_len),
        };
        Dimensions { n_layers, d_model, n_heads, d_vocab, max_len }
    }

    /// Number of blocks.
    pub fn n_layers(&self) -> usize {
        self.dimensions().n_layers
    }

    /// Name and shape of every tensor of the model; see [`ModelSpec::tensors`] and
    /// [`EncoderSpec::tensors`].
    pub fn tensors(&self) -> Vec<NamedShape> {
        match self {
            Self::Decoder(spec) => spec.tensors(),
            Self::Encoder(spec) => spec.tensors(),
        }
    }

    /// Name and shape of every tensor of one block.
    pub fn tensors_of_block(&self, index: usize) -> Vec<NamedShape> {
        match self {
            Self::Decoder(spec) => spec.blocks[index].tensors(),
            Self::Encoder(spec) => spec.blocks[index].tensors(),
        }
    }

    /// Names of the tensors that layer 0 is made of: tables, and of an encoder the norm of their sum.
    pub fn tensors_of_embedding(&self) -> Vec<String> {
        match self {
            Self::Decoder(spec) => {
                let positions = spec.positions.as_ref().map(|(name, _)| name);
                [&spec.embedding].into_iter().chain(positions).cloned().collect()
            }
            Self::Encoder(spec) => {
                let EmbeddingSpec { words, types, positions, norm } = &spec.embedding;
                let tables = types.iter().map(|types| &types.name).chain(positions.iter().map(|table| &table.name));
                [words, &norm.name].into_iter().chain(tables).chain(&norm.bias).cloned().collect()
            }
        }
    }

    /// The rotations that blocks refer to by index. Empty if positions come from a table alone.
    pub fn ropes(&self) -> &[RopeConfig] {
        match self {
            Self::Decoder(spec) => &spec.ropes,
            Self::Encoder(spec) => &spec.ropes,
        }
    }

    /// Layers whose attention entropies can be read: [`Layer`] `i + 1` for each block `i` with
    /// attention. Blocks with a delta rule or a convolution have no attention weights. Empty for
    /// encoders, whose entropies are not supported.
    pub fn attention_layers(&self) -> Vec<Layer> {
        match self {
            Self::Decoder(spec) => {
                let blocks = spec.blocks.iter().enumerate();
                blocks.filter(|(_, block)| block.has_attention()).map(|(index, _)| Layer(index + 1)).collect()
            }
            Self::Encoder(_) => Vec::new(),
        }
    }

    /// `c` in `c * tanh(logit / c)`, which caps the logits that text is generated from. `None`: no
    /// cap.
    pub fn final_soft_cap(&self) -> Option<f64> {
        match self {
            Self::Decoder(spec) => spec.final_soft_cap,
            Self::Encoder(_) => None,
        }
    }

    /// The head of a sequence classifier; `None` for other decoders and for all encoders.
    pub fn labels(&self) -> Option<&LabelsSpec> {
        match self {
            Self::Decoder(spec) => spec.labels(),
            Self::Encoder(_) => None,
        }
    }

    /// How many labels the head of a sequence classifier has; `None` where there is no such head.
    pub fn n_labels(&self) -> Option<usize> {
        match self {
            Self::Decoder(spec) => spec.labels().map(|head| head.labels.len()),
            Self::Encoder(spec) => spec.head.as_ref().map(|head| head.labels.len()),
        }
    }

    /// Names of the tensors of an encoder's head of labels. Empty without one, and for decoders.
    pub fn tensors_of_head(&self) -> Vec<String> {
        match self {
            Self::Decoder(_) => Vec::new(),
            Self::Encoder(spec) => spec.head.iter().flat_map(EncoderHeadSpec::tensors).map(|(name, _)| name).collect(),
        }
    }

    /// Tokens that end a text, from `config.json`. Empty if the file names none, and for encoders.
    pub fn eos(&self) -> &[TokenId] {
        match self {
            Self::Decoder(spec) => &spec.eos,
            Self::Encoder(_) => &[],
        }
    }
}
