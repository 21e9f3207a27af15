//! The heads of encoders' sequence classifiers: from one state to a number for each label.
//!
//! | class | state | steps | labels |
//! |---|---|---|---|
//! | `BertForSequenceClassification` | first | `pooler.dense`, tanh | `classifier` |
//! | `DebertaV2ForSequenceClassification` | first | `pooler.dense`, an activation | `classifier` |
//! | `RobertaFor…`, `XLMRobertaFor…` | first | `classifier.dense`, tanh | `classifier.out_proj` |
//! | `ModernBertFor…` | first, or the mean (`classifier_pooling`) | `head.dense`, an activation, `head.norm` | `classifier` |
//!
//! A cross-encoder is such a class with one label. Programs that run one may put a sigmoid behind it, which is not
//! part of the head.

use judge_core::request::Pooling;
use judge_core::reward::HeadActivation;
use serde::Deserialize;
use serde_json::Value;

use crate::ConfigProblem;
use crate::checks::positive;
use crate::encoder::{EncoderHeadSpec, HeadDraws, HeadStepSpec};
use crate::spec::{LinearSpec, NormSpec};

/// A linear map of a head, `[rows, d_model]`.
fn linear(stem: &str, [rows, d_model]: [usize; 2], bias: bool) -> LinearSpec {
    LinearSpec::plain(vec![(stem.to_owned(), rows)], d_model, bias)
}

/// A head over the first state: a map, a function, and the map to the labels.
fn pooled(d_model: usize, map: &str, function: HeadActivation, out: &str, labels: Vec<String>) -> EncoderHeadSpec {
    let map = linear(map, [d_model, d_model], true);
    let steps = vec![HeadStepSpec::Linear(map), HeadStepSpec::Activation(function)];
    let out = linear(out, [labels.len(), d_model], true);
    EncoderHeadSpec { labels, pooling: Pooling::First, steps, out }
}

/// The width of the stream.
fn width(fields: &Value) -> Result<usize, ConfigProblem> {
    Ok(serde_json::from_value(fields["hidden_size"].clone())?)
}

/// BERT's: of the pooler's output.
pub(super) fn bert(fields: &Value, labels: Vec<String>) -> Result<EncoderHeadSpec, ConfigProblem> {
    Ok(pooled(width(fields)?, "pooler.dense", HeadActivation::Tanh, "classifier", labels))
}

/// That of both RoBERTas, which have no pooler.
pub(super) fn roberta(fields: &Value, labels: Vec<String>) -> Result<EncoderHeadSpec, ConfigProblem> {
    Ok(pooled(width(fields)?, "classifier.dense", HeadActivation::Tanh, "classifier.out_proj", labels))
}

/// The fields of DeBERTa that decide about its head.
#[derive(Deserialize)]
struct Deberta {
    /// Width of the stream.
    hidden_size: usize,
    /// Width of the pooler; another one than the stream's is refused.
    pooler_hidden_size: Option<usize>,
    /// The function behind the pooler.
    pooler_hidden_act: Option<String>,
}

/// DeBERTa's: of a pooler's output, as BERT's.
///
/// # Errors
/// [`ConfigProblem`] for another width or activation.
pub(super) fn deberta(fields: &Value, labels: Vec<String>) -> Result<EncoderHeadSpec, ConfigProblem> {
    let Deberta { hidden_size, pooler_hidden_size, pooler_hidden_act } = serde_json::from_value(fields.clone())?;
    if let Some(found) = pooler_hidden_size.filter(|&found| found != hidden_size) {
        return Err(ConfigProblem::Unsupported { field: "pooler_hidden_size", found: found.to_string() });
    }
    let function = activation("pooler_hidden_act", pooler_hidden_act.as_deref().unwrap_or("gelu"))?;
    Ok(pooled(hidden_size, "pooler.dense", function, "classifier", labels))
}

/// The fields of ModernBERT that decide about its head.
#[derive(Deserialize)]
struct ModernBert {
    /// Width of the stream.
    hidden_size: usize,
    /// `cls` or `mean`.
    classifier_pooling: Option<String>,
    /// The function behind the dense map.
    classifier_activation: Option<String>,
    /// Whether the dense map has a bias.
    classifier_bias: Option<bool>,
    /// Whether norms have biases.
    norm_bias: bool,
    /// Epsilon of all norms.
    norm_eps: f64,
}

/// ModernBERT's.
///
/// # Errors
/// [`ConfigProblem`] for another pooling or activation.
pub(super) fn modernbert(fields: &Value, labels: Vec<String>) -> Result<EncoderHeadSpec, ConfigProblem> {
    let fields: ModernBert = serde_json::from_value(fields.clone())?;
    let pooling = match fields.classifier_pooling.as_deref() {
        None | Some("cls") => Pooling::First,
        Some("mean") => Pooling::Mean,
        Some(found) => {
            let known = &["cls", "mean"];
            return Err(ConfigProblem::Unknown { field: "classifier_pooling", found: found.to_owned(), known });
        }
    };
    let name = fields.classifier_activation.as_deref().unwrap_or("gelu");
    let d_model = fields.hidden_size;
    let steps = vec![
        HeadStepSpec::Linear(linear("head.dense", [d_model, d_model], fields.classifier_bias == Some(true))),
        HeadStepSpec::Activation(activation("classifier_activation", name)?),
        HeadStepSpec::Norm(
            NormSpec::plain("head.norm", d_model, fields.norm_bias),
            positive("norm_eps", fields.norm_eps)?,
        ),
    ];
    let out = linear("classifier", [labels.len(), d_model], true);
    Ok(EncoderHeadSpec { labels, pooling, steps, out })
}

/// The fields that decide how a new head is drawn.
#[derive(Deserialize)]
struct Drawn {
    /// Width of the stream.
    hidden_size: usize,
    /// Number of blocks.
    num_hidden_layers: usize,
    /// Standard deviation of matrices.
    initializer_range: Option<f64>,
    /// ModernBERT: where the normal distribution is cut off, in standard deviations. Null means 3, silence 2.
    #[serde(default = "two", deserialize_with = "three_if_null")]
    initializer_cutoff_factor: f64,
}

/// ModernBERT's default cutoff.
fn two() -> f64 {
    2.0
}

/// A number, or 3 for `null`.
fn three_if_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(3.0))
}

impl Drawn {
    /// The fields, checked, and the standard deviation of matrices: transformers takes 0 for silence.
    fn of(fields: &Value) -> Result<(Self, f64), ConfigProblem> {
        let fields: Self = serde_json::from_value(fields.clone())?;
        let std = fields.initializer_range.filter(|&range| range != 0.0).unwrap_or(0.02);
        positive("initializer_range", std)?;
        positive("initializer_cutoff_factor", fields.initializer_cutoff_factor)?;
        Ok((fields, std))
    }
}

/// How `PreTrainedModel` draws linear maps.
///
/// # Errors
/// [`ConfigProblem::Value`] for a standard deviation that is none.
pub(super) fn draws(fields: &Value) -> Result<HeadDraws, ConfigProblem> {
    let (_, std) = Drawn::of(fields)?;
    Ok(HeadDraws { steps: std, out: std, cutoff: None })
}

/// How `ModernBertPreTrainedModel` draws its head: smaller numbers in deeper models, and none far out.
///
/// # Errors
/// [`ConfigProblem::Value`] for a standard deviation or a cutoff that is none.
pub(super) fn draws_of_modernbert(fields: &Value) -> Result<HeadDraws, ConfigProblem> {
    let (fields, std) = Drawn::of(fields)?;
    Ok(HeadDraws {
        steps: std / (2.0 * fields.num_hidden_layers as f64).sqrt(),
        out: (fields.hidden_size as f64).sqrt().recip(),
        cutoff: Some(fields.initializer_cutoff_factor),
    })
}

/// A function by its name in transformers.
///
/// # Errors
/// [`ConfigProblem::Unknown`] for one that heads here do not have.
pub(super) fn activation(field: &'static str, name: &str) -> Result<HeadActivation, ConfigProblem> {
    const KNOWN: &[&str] = &["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish", "tanh"];
    match name {
        "gelu" => Ok(HeadActivation::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(HeadActivation::GeluTanh),
        "relu" => Ok(HeadActivation::Relu),
        "silu" | "swish" => Ok(HeadActivation::Silu),
        "tanh" => Ok(HeadActivation::Tanh),
        _ => Err(ConfigProblem::Unknown { field, found: name.to_owned(), known: KNOWN }),
    }
}
