//! The score of each layer of a row, where the row has label logits.

use anyhow::{Result, ensure};
use judge_core::Scale;
use judge_core::scale::{ScalePoint, ScoreDistribution};
use judge_data::Row;

/// Layers of a model, beyond which a curve over them is none that anybody could read.
const LAYERS: usize = 512;

/// Which layers there are, and which scores their labels are.
pub type Tables = (Vec<usize>, Vec<String>);

/// The expected scores of a row's layers.
pub type OfLayers = (Tables, Vec<f64>);

/// The expected score of each layer alone; or why it is not known.
pub fn of_layers(row: &Row) -> Result<Result<OfLayers, &'static str>> {
    let Some(logits) = row.optional::<Vec<Vec<f64>>>("logits", "a list of lists of numbers")? else {
        return Ok(Err("rows have no label logits"));
    };
    let layers: Vec<usize> = row.required("layers", "a list of layer numbers from 0")?;
    ensure!(layers.len() == logits.len(), "logits of {} layers, expected {}", logits.len(), layers.len());
    if layers.len() > LAYERS {
        return Ok(Err("rows have more than 512 layers"));
    }
    let labels: Vec<String> = row.required("labels", "a list of texts")?;
    let Ok(values) = labels.iter().map(|label| label.parse()).collect::<Result<Vec<f64>, _>>() else {
        return Ok(Err("labels are no numbers"));
    };
    let points = values.into_iter().zip(labels.clone()).map(|(value, label)| ScalePoint { value, label });
    let scale = Scale::new(points.collect())?;
    let expected = |logits: &Vec<f64>| Ok(ScoreDistribution::softmax(&scale, logits)?.expected());
    let scores = logits.iter().map(expected).collect::<Result<Vec<f64>>>()?;
    Ok(Ok(((layers, labels), scores)))
}
