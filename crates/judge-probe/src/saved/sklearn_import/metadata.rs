//! What INSPECTOR's program writes beside a classifier, and the layers that it names. It is a stranger's word: counts are bounded before
//! anything is compared.
//!
//! The entries are INSPECTOR's own and no format of scikit-learn's: `llm`, `dimension`, `classification`, `use_attn`, `pool`, `layers` and
//! `clf_name` must be there, `best_score` and `timestamp` may be. Others are ignored.

use std::collections::HashSet;

use judge_core::{Layer, request::Pooling};

use super::ImportError;
use super::place::Place;
use crate::pickle::Value;

/// What INSPECTOR's program writes beside a classifier.
///
/// It is a claim: apart from the number of classes and the width of a row, nothing in it can be checked against the classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct InspectorMetadata {
    /// Name of the model whose states were read, on the hub. No revision is known.
    pub llm: String,
    /// The aspect that is judged.
    pub dimension: String,
    /// `binary` or `multi`.
    pub classification: String,
    /// What stands side by side in a row of features, in order; the file's layers, which count from the first block's output, in the
    /// numbering of this project.
    ///
    /// Layer by layer, and within a layer by pooling; for `concat` that is min, max, mean. No pair appears twice.
    pub pooled: Vec<(Layer, Pooling)>,
    /// Width of one state: features of a row by the number of states in it.
    ///
    /// It is derived, since the file does not state it, and exact: a row that does not divide is refused.
    pub d_model: usize,
    /// The file's short name of the classifier.
    pub clf_name: String,
    /// The cross-validated score it states.
    ///
    /// Of the best of several settings, if there was a search, and so too high.
    pub best_score: Option<f64>,
    /// When it was made.
    ///
    /// Text in the file's own format, not parsed.
    pub timestamp: Option<String>,
}

impl InspectorMetadata {
    /// Reads the metadata and compares them with what the classifier itself says of its classes, and with the width of a row.
    ///
    /// `layers` counts from 0 at the output of the first block; [`Layer`] counts that as 1, because 0 is the embeddings.
    ///
    /// # Errors
    ///
    /// For a classification that contradicts the classes, attention entropies, an unknown pooling, a repeated layer, no layers, and
    /// features that are not a multiple of the states.
    pub(super) fn read(place: &Place<'_, '_>, n_classes: usize, n_features: usize) -> Result<Self, ImportError> {
        let classification = place.get("classification")?;
        if classification.text()? != if n_classes == 2 { "binary" } else { "multi" } {
            let expected = "binary for two classes, multi for more";
            return Err(classification.setting_error(expected, &classification.text()?));
        }
        place.check_off("use_attn", "features without attention entropies")?;
        let pool = place.get("pool")?;
        let poolings = match pool.text()?.as_str() {
            "last" => &[Pooling::Last][..],
            "mean" => &[Pooling::Mean],
            "min" => &[Pooling::Min],
            "max" => &[Pooling::Max],
            "concat" => &[Pooling::Min, Pooling::Max, Pooling::Mean],
            other => return Err(pool.setting_error("last, mean, min, max or concat", other)),
        };
        let layers = place.get("layers")?;
        let mut pooled: Vec<(Layer, Pooling)> = Vec::new();
        let mut known: HashSet<Layer> = HashSet::new();
        for block in layers.items()? {
            let layer = Layer(block.count()?.saturating_add(1));
            if !known.insert(layer) {
                return Err(block.unexpected("each layer once"));
            }
            pooled.extend(poolings.iter().map(|pooling| (layer, *pooling)));
        }
        if pooled.is_empty() || !n_features.is_multiple_of(pooled.len()) {
            return Err(layers.count_error("features to make whole states of", pooled.len(), n_features));
        }
        Ok(Self {
            llm: place.get("llm")?.text()?,
            dimension: place.get("dimension")?.text()?,
            classification: classification.text()?,
            d_model: n_features / pooled.len(),
            pooled,
            clf_name: place.get("clf_name")?.text()?,
            best_score: place.find("best_score").map(|score| score.number()).transpose()?,
            timestamp: place.find("timestamp").map(|timestamp| timestamp.text()).transpose()?,
        })
    }
}

/// A setting as Python prints it; of an object its class alone.
///
/// Floats are the shortest text that gives the same number. Rust and Python agree on that for ordinary sizes, and may differ in how an
/// exponent is written.
pub(super) fn printed(value: &Value<'_>) -> String {
    let quoted = |value: &Value<'_>| match value {
        Value::Str(text) => format!("'{text}'"),
        other => printed(other),
    };
    let listed = |items: &[Value<'_>]| items.iter().map(quoted).collect::<Vec<_>>().join(", ");
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Str(text) => (*text).to_owned(),
        Value::List(items) => format!("[{}]", listed(items)),
        Value::Tuple(items) if items.len() == 1 => format!("({},)", listed(items)),
        Value::Tuple(items) => format!("({})", listed(items)),
        Value::Dict(entries) => {
            let entry = |(key, value): &(Value<'_>, Value<'_>)| format!("{}: {}", quoted(key), quoted(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::Opaque { name, .. } => (*name).to_owned(),
        Value::Global(name) => name.rsplit('.').next().unwrap_or(name).to_owned(),
        other => other.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// What takes minutes if each layer is compared with all before it.
    #[test]
    fn many_layers_cost_no_more_than_they_are() {
        let n = 400_000;
        let entry = |name: &'static str, value: Value<'static>| (Value::Str(name), value);
        let layers = |last: i64| Value::List((0..n).chain([last]).map(Value::Int).collect());
        let metadata = |last: i64| {
            Value::Dict(vec![
                entry("classification", Value::Str("binary")),
                entry("use_attn", Value::Bool(false)),
                entry("pool", Value::Str("last")),
                entry("layers", layers(last)),
            ])
        };
        let started = Instant::now();
        let problem = |last: i64| InspectorMetadata::read(&Place::root(&metadata(last)), 2, 7).unwrap_err().problem;
        assert_eq!(problem(n), "expected 400001 features to make whole states of, found 7");
        assert!(problem(5).starts_with("expected each layer once, found"));
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
