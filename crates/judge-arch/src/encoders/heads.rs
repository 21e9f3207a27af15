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

/// That of BERT, of the pooler's output, and of both RoBERTas, which have no pooler; `map` and `out` are the names of the two maps.
pub(super) fn bert(
    fields: &Value,
    map: &str,
    out: &str,
    labels: Vec<String>,
) -> Result<EncoderHeadSpec, ConfigProblem> {
    Ok(pooled(usize::deserialize(&fields["hidden_size"])?, map, HeadActivation::Tanh, out, labels))
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

/// The standard deviation of matrices: transformers takes 0 for silence.
fn deviation(fields: &Value) -> Result<f64, ConfigProblem> {
    let range = Option::<f64>::deserialize(&fields["initializer_range"])?;
    positive("initializer_range", range.filter(|&range| range != 0.0).unwrap_or(0.02))
}

/// How `PreTrainedModel` draws linear maps.
///
/// # Errors
/// [`ConfigProblem::Value`] for a standard deviation that is none.
pub(super) fn draws(fields: &Value) -> Result<HeadDraws, ConfigProblem> {
    let std = deviation(fields)?;
    Ok(HeadDraws { steps: std, out: std, cutoff: None })
}

/// How `ModernBertPreTrainedModel` draws its head: smaller numbers in deeper models, and none far out.
///
/// # Errors
/// [`ConfigProblem::Value`] for a standard deviation or a cutoff that is none.
pub(super) fn draws_of_modernbert(fields: &Value) -> Result<HeadDraws, ConfigProblem> {
    let size = |field: &str| usize::deserialize(&fields[field]);
    let cutoff = match fields.get("initializer_cutoff_factor") {
        None => 2.0,
        Some(Value::Null) => 3.0,
        Some(stated) => f64::deserialize(stated)?,
    };
    Ok(HeadDraws {
        steps: deviation(fields)? / (2.0 * size("num_hidden_layers")? as f64).sqrt(),
        out: (size("hidden_size")? as f64).sqrt().recip(),
        cutoff: Some(positive("initializer_cutoff_factor", cutoff)?),
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
