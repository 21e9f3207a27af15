//! What a folder holds: a decoder or an encoder. What is the same of both is asked here.

use std::sync::Arc;

use judge_core::{Dimensions, Layer, TokenId};
use serde_json::Value;

use super::encoder::EncoderSpec;
use super::rope::RopeConfig;
use super::spec::{LabelsSpec, ModelSpec, NamedShape};
use super::{ConfigProblem, encoders, families};

/// The description of a model of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Architecture {
    Decoder(Arc<ModelSpec>),
    Encoder(Arc<EncoderSpec>),
}

const N_NAMES: usize = families::NAMES.len() + encoders::NAMES.len();

/// Values of `model_type` that this crate knows, those of encoders behind the others.
const NAMES: [&str; N_NAMES] = {
    let mut names = [""; N_NAMES];
    let mut index = 0;
    while index < N_NAMES {
        names[index] = match index.checked_sub(families::NAMES.len()) {
            None => families::NAMES[index],
            Some(index) => encoders::NAMES[index],
        };
        index += 1;
    }
    names
};

impl Architecture {
    /// Reads a `config.json`; see [`ModelSpec::from_json`].
    pub(crate) fn from_json(config: &Value) -> Result<Self, ConfigProblem> {
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

    /// `model_type`.
    pub(crate) fn family(&self) -> &'static str {
        match self {
            Self::Decoder(spec) => spec.family,
            Self::Encoder(spec) => spec.family,
        }
    }

    pub(crate) fn dimensions(&self) -> Dimensions {
        match self {
            Self::Decoder(spec) => Dimensions {
                n_layers: spec.n_layers(),
                d_model: spec.d_model,
                n_heads: spec.n_heads,
                d_vocab: spec.d_vocab,
                max_len: spec.max_len,
            },
            Self::Encoder(spec) => Dimensions {
                n_layers: spec.n_layers(),
                d_model: spec.d_model,
                n_heads: spec.n_heads,
                d_vocab: spec.d_vocab,
                max_len: spec.max_len,
            },
        }
    }

    pub(crate) fn n_layers(&self) -> usize {
        self.dimensions().n_layers
    }

    /// Every tensor that the model is made of.
    pub(crate) fn tensors(&self) -> Vec<NamedShape> {
        match self {
            Self::Decoder(spec) => spec.tensors(),
            Self::Encoder(spec) => spec.tensors(),
        }
    }

    /// The rotations of positions.
    pub(crate) fn ropes(&self) -> &[RopeConfig] {
        match self {
            Self::Decoder(spec) => &spec.ropes,
            Self::Encoder(spec) => &spec.ropes,
        }
    }

    /// The layers whose attention entropies are read: those above blocks with attention to what comes before.
    pub(crate) fn attention_layers(&self) -> Vec<Layer> {
        match self {
            Self::Decoder(spec) => {
                let blocks = spec.blocks.iter().enumerate();
                blocks.filter(|(_, block)| block.has_attention()).map(|(index, _)| Layer(index + 1)).collect()
            }
            Self::Encoder(_) => Vec::new(),
        }
    }

    /// The soft-cap of the logits that text is generated from.
    pub(crate) fn final_soft_cap(&self) -> Option<f64> {
        match self {
            Self::Decoder(spec) => spec.final_soft_cap,
            Self::Encoder(_) => None,
        }
    }

    /// The head of labels that is read, if it has one.
    pub(crate) fn labels(&self) -> Option<&LabelsSpec> {
        match self {
            Self::Decoder(spec) => spec.labels(),
            Self::Encoder(_) => None,
        }
    }

    /// The tokens that end a text.
    pub(crate) fn eos(&self) -> &[TokenId] {
        match self {
            Self::Decoder(spec) => &spec.eos,
            Self::Encoder(_) => &[],
        }
    }
}
