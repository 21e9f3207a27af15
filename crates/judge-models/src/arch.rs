//! `config.json` of a Hugging Face folder, lowered to the description that a decoder, or an encoder, is built from.

mod angles;
mod architecture;
mod dense;
mod encoder;
mod encoders;
mod experts;
mod families;
mod head;
mod problem;
mod rope;
mod shape;
mod spec;
mod tower;
mod unread;

use serde_json::{Map, Value};

pub(crate) use angles::{angles, inverse_frequencies, query_factors};
pub(crate) use architecture::Architecture;
pub(crate) use encoder::{EncoderBlockSpec, EncoderSpec, LayerNormSpec, NormPlace, PositionsSpec};
#[cfg(test)]
pub(crate) use families::names as family_names;
pub use problem::ConfigProblem;
#[cfg(any(test, feature = "bench"))]
pub(crate) use rope::RopeScaling;
pub(crate) use rope::{Pairs, RopeConfig};
pub(crate) use shape::OneOrMany;
pub(crate) use spec::{
    Activation, BlockSpec, BothSpec, ConvSpec, DeltaShape, DeltaSpec, ExpertsSpec, GatedSpec, HeadShape, HeadSpec,
    KeysSpec, LinearSpec, MlpSpec, ModelSpec, NamedRows, NormKind, NormSpec, Routing, StackPart, StackSpec,
    TokenGateSpec, TokenInputsSpec,
};

/// Longest context that is believed; a larger number is a damaged file.
const MAX_CONTEXT: usize = 1 << 28;

/// The fields of the text model inside a vision-language folder, as a folder of its own would have them; `None` for any other folder.
///
/// # Errors
/// If there is none, or another one than such folders have.
pub(crate) fn text_fields(config: &Value) -> Result<Option<Map<String, Value>>, ConfigProblem> {
    config.as_object().map_or(Ok(None), tower::text)
}

impl ModelSpec {
    /// Reads the `config.json` of a decoder, in the layout of transformers 5 or of the releases before. Warns of fields that nothing here
    /// reads, unless they are known to change no number.
    pub(crate) fn from_json(config: &Value) -> Result<Self, ConfigProblem> {
        let Value::Object(file) = config else {
            return Err(ConfigProblem::Value {
                field: "config.json",
                found: config.to_string(),
                expected: "an object".to_owned(),
            });
        };
        let text = tower::text(file)?;
        let fields = text.as_ref().unwrap_or(file);
        unread::check_number(fields)?;
        let mut spec = families::dense(fields)?.spec();
        spec.is_tower = text.is_some();
        angles::check(&spec.ropes, spec.max_len)?;
        unread::warn(spec.family, &unread::unread_keys(fields, &|file| families::dense(file).is_ok()));
        if let Some(labels) = head::labels(fields)? {
            spec.head = HeadSpec::Labels(labels);
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests;
