//! For `judge-models` alone, without a promise of stability: what a `config.json` says of a model, as a description that
//! engines are built from.
//!
//! This crate owns everything that is known of a model before its weights are opened: its numbers,
//! the order of its parts, and the name and shape of every tensor. It reads no file and no weight;
//! callers pass the parsed JSON. `model.rs`, `checked.rs`, `train` and the files of `engine/` that are named here are those of `judge-models`.
//!
//! ```text
//! config.json
//!     │  Architecture::from_json               (architecture.rs)
//!     ├─► encoders::spec ─────────────────────────────────────────► EncoderSpec   (encoder.rs)
//!     └─► ModelSpec::from_json                  (this file)
//!           tower::text          the fields of a text model inside a vision-language folder
//!           unread::check_number bounds the work of the search for unread fields
//!           families::fields     defaults + file, through one file of families/ ─► DecoderFields (decoder_fields.rs)
//!           DecoderFields::spec  one BlockSpec per block, with tensor names ───────► ModelSpec (spec.rs)
//!           angles::check        every rotation stays finite in f32
//!           head::of_class       replaces the head, of classes without one over the vocabulary
//!     Architecture::warn_of_unread names the fields that nothing reads (unread.rs)
//! ```
//!
//! What its users rely on:
//!
//! - A description that was returned is consistent: sizes are in range, head counts divide, lists
//!   have one entry per layer, and factors are finite and positive in f32 as well. Engines do not
//!   check again.
//! - Where the file is silent, defaults are those of transformers 5.23.
//! - A setting that is known to ask for something unsupported is an error. A field that nothing
//!   reads is named in a warning, by whoever loads the model.
//! - Lowering is a pure function of the JSON.

mod angles;
mod architecture;
mod blame;
mod checks;
mod decoder_fields;
mod encoder;
mod encoders;
mod experts;
mod families;
mod head;
mod mamba;
mod problem;
mod rope;
mod shape;
mod spec;
mod stacks;
mod tower;
mod unread;

use serde_json::{Map, Value};

pub use angles::{angles, inverse_frequencies, query_factors};
pub use architecture::Architecture;
pub use encoder::{
    EmbeddingSpec, EncoderBlockSpec, EncoderHeadSpec, EncoderSpec, HeadDraws, HeadStepSpec, NormPlace, PositionsSpec,
    RelativeSpec, TypesSpec,
};
pub use encoders::described as described_encoders;
pub use encoders::{classifier_of as encoder_classifier_class, draws_of as draws_of_head, head_of as encoder_head};
pub use families::{causal_class, classifier_class, described as described_decoders};
pub use head::of_adapter as labels_of_adapter;
pub use problem::ConfigProblem;
pub use rope::{RopeConfig, RopeScaling};
pub use shape::{TOKEN_IDS, TokenIds};
pub use spec::{
    BesideSpec, BlockSpec, BothSpec, ConvSpec, DeltaShape, DeltaSpec, EmbeddingScale, ExpertsSpec, GatedNorm,
    GatedSpec, HEAD, HeadShape, HeadSpec, KeysSpec, LabelsSpec, LinearSpec, MambaShape, MambaSpec, MlpSpec, ModelSpec,
    NamedRows, NamedShape, NoHead, NormSpec, Routing, SCORE, Scores, SharedSpec, StackPart, StackSpec, TokenGateSpec,
    TokenInputsSpec,
};
pub use tower::described as described_towers;

/// Whether a `config.json` is that of a decision model as transformers saves it, whose head is among the weights.
pub fn is_decision_model(config: &Value) -> bool {
    config.as_object().is_some_and(tower::is_decision_model)
}

/// The fields of the text model inside a vision-language folder, as a folder of that model alone
/// would have them. `None` for any other folder, and for JSON that is no object.
///
/// A merged folder has them as its `config.json`.
///
/// # Errors
/// [`ConfigProblem`] if such a folder has no `text_config`, or one with another text model than its
/// kind of folder has.
pub fn text_fields(config: &Value) -> Result<Option<Map<String, Value>>, ConfigProblem> {
    config.as_object().map_or(Ok(None), tower::text)
}

impl ModelSpec {
    /// Describes the decoder of a `config.json`, in the layout of transformers 5 or of earlier
    /// releases.
    ///
    /// # Errors
    /// [`ConfigProblem`] if the JSON is no object, if its `model_type` is no decoder that is known here,
    /// if a value is out of its range or contradicts another, or if it asks for something
    /// unsupported.
    pub fn from_json(config: &Value) -> Result<Self, ConfigProblem> {
        let Value::Object(file) = config else {
            return Err(ConfigProblem::value("config.json", config, "an object"));
        };
        let text = tower::text(file)?;
        let is_transposed = tower::has_transposed_experts(file);
        let file = text.as_ref().unwrap_or(file);
        unread::check_number(file)?;
        let fields = families::fields(file).map_err(|problem| families::name_field(problem, file))?;
        let mut spec = fields.spec();
        spec.is_tower = text.is_some();
        if is_transposed {
            experts::accept_transposed(&mut spec);
        }
        angles::check(&spec.ropes, spec.max_len)?;
        if let Some(head) = head::of_class(file, spec.n_layers())? {
            spec.head = head;
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests;
