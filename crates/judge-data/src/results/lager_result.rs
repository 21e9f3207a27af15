use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use judge_core::{Scale, lager::LayerTable, scale::ScoreDistribution};
use serde::Serializer;
use serde::de::DeserializeOwned;
use serde::ser::SerializeSeq;
use serde_json::{Value, json};

use crate::files::python_json::PythonFormatter;
use crate::{AtomicFile, Error, Extra, Row, Rows};

/// One element of the result file of LAGER's program: what its `get_pointwise_outputs` writes and its evaluation reads.
///
/// The file is a JSON array in Python's layout; its misspelt keys (`direct_socre`, `weighted_socre`,
/// `weighted_direct_socre`) are part of the format and appear here under their right names.
#[derive(Clone, Debug, PartialEq)]
pub struct LagerResult {
    /// Index of the row in the data set.
    pub idx: u64,
    /// The prompt.
    pub prompt: String,
    /// The mean of the raters.
    pub human_score: f64,
    /// The scores; `None` if the model wrote none. (In the file: three scores of -1, a table of -1 without `logits`.)
    pub scores: Option<LagerScores>,
}

/// The scores of a [`LagerResult`].
#[derive(Clone, Debug, PartialEq)]
pub struct LagerScores {
    /// The last layer's most likely score.
    pub direct_score: f64,
    /// The last layer's expected score. (LAGER's program computes it in bf16 and does not renormalise: above 5 now and then.)
    pub weighted_score: f64,
    /// The mean over the layers of each one's most likely score.
    pub weighted_direct_score: f64,
    /// The layers from 0; all have the same number of probabilities and logits.
    pub layers: Vec<LagerLayer>,
}

/// One layer of a [`LagerResult`].
#[derive(Clone, Debug, PartialEq)]
pub struct LagerLayer {
    /// The most likely score.
    pub direct_score: f64,
    /// The expected score.
    pub weighted_score: f64,
    /// Probabilities of the scores 1 to `n_scores`.
    pub probs: Vec<f64>,
    /// Their logits.
    pub logits: Vec<f64>,
}

impl LagerScores {
    /// The scores 1 to `n_scores` from the logits of all layers; all arithmetic in `f64`.
    ///
    /// # Errors
    /// If the table has more than 2³¹ scores; no other table is refused.
    pub fn from_table(table: &LayerTable) -> Result<Self, judge_core::Error> {
        let scale = Scale::integers(1, i32::try_from(table.n_scores()).unwrap_or(i32::MAX))?;
        let layer = |logits: &[f64]| {
            let distribution = ScoreDistribution::softmax(&scale, logits)?;
            Ok(LagerLayer {
                direct_score: distribution.mode().value,
                weighted_score: distribution.expected(),
                probs: distribution.probabilities().to_vec(),
                logits: logits.to_vec(),
            })
        };
        let layers = table.rows().map(layer).collect::<Result<Vec<_>, judge_core::Error>>()?;
        let direct_sum: f64 = layers.iter().map(|l| l.direct_score).sum();
        // A table has at least one layer.
        let (direct_score, weighted_score) = layers.last().map_or((0.0, 0.0), |l| (l.direct_score, l.weighted_score));
        Ok(Self { direct_score, weighted_score, weighted_direct_score: direct_sum / layers.len() as f64, layers })
    }

    /// The logits alone; layer k of the table is row k of the file.
    ///
    /// # Errors
    /// If they make no table, which cannot be in what was read from a file.
    pub fn table(&self) -> Result<LayerTable, judge_core::Error> {
        let rows: Vec<Vec<f64>> = self.layers.iter().map(|layer| layer.logits.clone()).collect();
        LayerTable::from_rows(&rows)
    }
}

impl LagerResult {
    /// Reads an element. Rows of its table may come in any order (programs that sort keys as text put `10` before
    /// `2`); `layer_n` must number them from 0 without a gap.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`]; [`Error::Ragged`] if the columns do not have the same rows, or rows not
    /// the same number of scores.
    pub fn from_row(row: &Row) -> Result<Self, Error> {
        let number = |field| row.required::<f64>(field, "a number");
        let (direct_score, weighted_score) = (number("direct_socre")?, number("weighted_socre")?);
        let weighted_direct_score = number("weighted_direct_socre")?;
        let failed = direct_score == -1.0 && weighted_score == -1.0;
        let scores = if failed {
            None
        } else {
            let table = row.required::<Extra>("df", "a table: an object of columns")?;
            let layers = layers(&row.inner(table))?;
            Some(LagerScores { direct_score, weighted_score, weighted_direct_score, layers })
        };
        Ok(Self {
            idx: row.required("idx", "a whole number from 0")?,
            prompt: row.string("prompt")?,
            human_score: number("human_score")?,
            scores,
        })
    }
}

type Column<T> = BTreeMap<u64, T>;

fn layers(table: &Row) -> Result<Vec<LagerLayer>, Error> {
    let numbers = "an object from row numbers to numbers";
    let lists = "an object from row numbers to lists of numbers";
    let order: Column<f64> = table.required("layer_n", numbers)?;
    let mut direct = column(table, "direct_score", numbers, &order)?;
    let mut weighted = column(table, "weighted_score", numbers, &order)?;
    let mut probs: Column<Vec<f64>> = column(table, "probs", lists, &order)?;
    let mut logits: Column<Vec<f64>> = column(table, "logits", lists, &order)?;

    let mut rows: Vec<(f64, u64)> = order.iter().map(|(&key, &layer)| (layer, key)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    if rows.is_empty() || rows.iter().enumerate().any(|(k, &(layer, _))| layer != k as f64) {
        return Err(table.wrong("layer_n", "the numbers 0, 1, … of the layers, each once"));
    }
    let mut layers: Vec<LagerLayer> = Vec::with_capacity(rows.len());
    for (_, key) in rows {
        let cells = (direct.remove(&key), weighted.remove(&key), probs.remove(&key), logits.remove(&key));
        let (Some(direct_score), Some(weighted_score), Some(probs), Some(logits)) = cells else {
            return Err(table.wrong("layer_n", "the row numbers of the other columns")); // `column` has compared them
        };
        let n_scores = layers.first().map_or(logits.len().max(2), |first| first.logits.len());
        for (name, list) in [("probs", &probs), ("logits", &logits)] {
            if list.len() != n_scores {
                let (what, found) = (format!("{name} of row {key}"), list.len());
                return Err(Error::Ragged { place: table.place().clone(), what, expected: n_scores, found });
            }
        }
        layers.push(LagerLayer { direct_score, weighted_score, probs, logits });
    }
    Ok(layers)
}

/// A column that has the same rows as `layer_n`.
fn column<T: DeserializeOwned>(
    table: &Row,
    name: &'static str,
    expected: &'static str,
    order: &Column<f64>,
) -> Result<Column<T>, Error> {
    let column: Column<T> = table.required(name, expected)?;
    if column.keys().eq(order.keys()) {
        return Ok(column);
    }
    let what = format!("column {name}, whose rows must be those of layer_n,");
    Err(Error::Ragged { place: table.place().clone(), what, expected: order.len(), found: column.len() })
}

/// Reads a result file, one element at a time.
///
/// # Errors
/// [`Error::Io`]; the iterator's items as [`LagerResult::from_row`].
pub fn read_lager_results(path: impl AsRef<Path>) -> Result<impl Iterator<Item = Result<LagerResult, Error>>, Error> {
    Ok(Rows::open(path)?.map(|row| LagerResult::from_row(&row?)))
}

/// Writes a result file as LAGER's program does (array, four spaces, floats as Python prints them); it appears whole or not at all.
/// Results are taken one at a time, so they can be streamed from another file. A file with other content is replaced only with `overwrite`.
///
/// # Errors
/// The first error among `results`, [`Error::NonFinite`], [`Error::OutputExists`], [`Error::Io`].
pub fn write_lager_results(
    path: impl AsRef<Path>,
    results: impl IntoIterator<Item = Result<LagerResult, Error>>,
    overwrite: bool,
) -> Result<(), Error> {
    let path = path.as_ref();
    let mut file = AtomicFile::create(path)?;
    let written = |source: serde_json::Error| Error::io("write", path)(source.into());
    let mut json = serde_json::Serializer::with_formatter(&mut file, PythonFormatter::new());
    let mut array = json.serialize_seq(None).map_err(written)?;
    for (index, result) in results.into_iter().enumerate() {
        let result = result?;
        check_finite(index, &result)?;
        array.serialize_element(&element(&result)).map_err(written)?;
    }
    array.end().map_err(written)?;
    file.flush().map_err(Error::io("write", path))?;
    file.commit_new(overwrite)
}

/// `serde_json` would write `null`, Python `NaN`; neither can be read back as a number.
fn check_finite(row: usize, result: &LagerResult) -> Result<(), Error> {
    let check = |what, index, value: f64| {
        if value.is_finite() { Ok(()) } else { Err(Error::NonFinite { what, row, index, value }) }
    };
    check("human_score", 0, result.human_score)?;
    let Some(scores) = &result.scores else { return Ok(()) };
    for (index, value) in
        [scores.direct_score, scores.weighted_score, scores.weighted_direct_score].into_iter().enumerate()
    {
        check("scores", index, value)?;
    }
    for (index, layer) in scores.layers.iter().enumerate() {
        let values = layer.probs.iter().chain(&layer.logits).chain([&layer.direct_score, &layer.weighted_score]);
        values.into_iter().try_for_each(|&value| check("layers", index, value))?;
    }
    Ok(())
}

/// An element in the file's own spelling: its table column by column, rows as text in numeric order.
fn element(result: &LagerResult) -> Value {
    let (direct, weighted, weighted_direct, df) = match &result.scores {
        Some(LagerScores { direct_score, weighted_score, weighted_direct_score, layers }) => {
            let column = |of: &dyn Fn(usize, &LagerLayer) -> Value| -> Value {
                layers.iter().enumerate().map(|(row, layer)| (row.to_string(), of(row, layer))).collect()
            };
            let df = json!({
                "layer_n": column(&|row, _| json!(row)),
                // An index plus one in Python, hence a whole number.
                "direct_score": column(&|_, layer| json!(layer.direct_score as i64)),
                "weighted_score": column(&|_, layer| json!(layer.weighted_score)),
                "probs": column(&|_, layer| json!(layer.probs)),
                "logits": column(&|_, layer| json!(layer.logits)),
            });
            (*direct_score, *weighted_score, *weighted_direct_score, df)
        }
        None => {
            let none = json!({"0": -1});
            (-1.0, -1.0, -1.0, json!({"layer_n": none, "direct_score": none, "weighted_score": none, "probs": none}))
        }
    };
    json!({
        "idx": result.idx, "prompt": result.prompt, "human_score": result.human_score, "direct_socre": direct,
        "weighted_socre": weighted, "weighted_direct_socre": weighted_direct, "df": df,
    })
}
