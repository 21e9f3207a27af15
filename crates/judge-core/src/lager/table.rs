use serde::{Deserialize, Serialize};

use crate::{
    Error, Layer, Scale,
    reading::{LabelLogits, LabelStep},
    scale::ScoreDistribution,
};

/// The label logits of several layers at the position that predicts a score. Shape `[layers, n_scores]`, `f64`.
///
/// Everything that LAGER does after the model has run starts from such a table, so tables can be stored and fitted or
/// scored again without the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TableFile", into = "TableFile")]
pub struct LayerTable {
    layers: Vec<Layer>,
    n_scores: usize,
    logits: Vec<f64>,
}

impl LayerTable {
    /// A table from its layers (strictly ascending) and its rows, row-major.
    ///
    /// # Errors
    /// [`Error::Shape`] for no layer, no score or a wrong number of logits, [`Error::LayerOrder`],
    /// [`Error::NonFinite`].
    pub fn new(layers: Vec<Layer>, n_scores: usize, logits: Vec<f64>) -> Result<Self, Error> {
        if layers.is_empty() {
            return Err(Error::Shape { what: "layers of a table, at least", expected: 1, found: 0 });
        }
        if n_scores == 0 {
            return Err(Error::Shape { what: "scores of a table, at least", expected: 1, found: 0 });
        }
        if let Some(pair) = layers.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::LayerOrder { before: pair[0], after: pair[1] });
        }
        Error::check_count("logits of a table", layers.len().saturating_mul(n_scores), logits.len())?;
        Error::check_finite("label logits", &logits)?;
        Ok(Self { layers, n_scores, logits })
    }

    /// A table from equal rows, `Layer(0)` first.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_rows(rows: &[Vec<f64>]) -> Result<Self, Error> {
        let n_scores = rows.first().map_or(0, Vec::len);
        rows.iter().try_for_each(|row| Error::check_count("logits per layer", n_scores, row.len()))?;
        Self::new((0..rows.len()).map(Layer).collect(), n_scores, rows.concat())
    }

    /// The given layers of one step of a reading, in the order given.
    ///
    /// # Errors
    /// [`Error::LayerNotRead`] if the reading lacks a layer, else as [`new`](Self::new).
    pub fn from_step(labels: &LabelLogits, step: &LabelStep, layers: &[Layer]) -> Result<Self, Error> {
        let mut logits = Vec::with_capacity(layers.len() * labels.tokens.len());
        for &layer in layers {
            let row = labels.needed_row(step, layer)?;
            logits.extend(row.iter().map(|&z| f64::from(z)));
        }
        Self::new(layers.to_vec(), labels.tokens.len(), logits)
    }

    /// The layers, ascending.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Number of labels.
    pub fn n_scores(&self) -> usize {
        self.n_scores
    }

    /// All logits, row-major.
    pub fn logits(&self) -> &[f64] {
        &self.logits
    }

    /// The rows `[n_scores]`, ascending by layer.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &[f64]> + ExactSizeIterator {
        self.logits.chunks_exact(self.n_scores)
    }

    /// The row of one layer; `None` if the table lacks it.
    pub fn row(&self, layer: Layer) -> Option<&[f64]> {
        let index = self.layers.binary_search(&layer).ok()?;
        self.logits.get(index * self.n_scores..(index + 1) * self.n_scores)
    }

    /// The same table with its columns in another order: column `k` is column `order[k]` of this one.
    /// For a pair whose responses were exchanged, the order that
    /// exchanges their labels makes the two tables speak of the same response.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `order` has every column once.
    pub fn with_columns(&self, order: &[usize]) -> Result<Self, Error> {
        Error::check_count("columns of a table", self.n_scores, order.len())?;
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if let Some((expected, &found)) = sorted.iter().enumerate().find(|(place, column)| place != *column) {
            return Err(Error::Shape { what: "columns of a table, each once: column", expected, found });
        }
        let logits = self.rows().flat_map(|row| order.iter().map(|&column| row[column])).collect();
        Ok(Self { logits, ..self.clone() })
    }

    /// The softmax of one layer's row: what this layer alone says.
    ///
    /// # Errors
    /// [`Error::LayerNotRead`] if the table lacks the layer, [`Error::Shape`] if it does not fit the scale.
    pub fn distribution(&self, layer: Layer, scale: &Scale) -> Result<ScoreDistribution, Error> {
        ScoreDistribution::softmax(scale, self.row(layer).ok_or(Error::LayerNotRead { layer })?)
    }
}

#[derive(Serialize, Deserialize)]
struct TableFile {
    layers: Vec<Layer>,
    logits: Vec<Vec<f64>>,
}

impl TryFrom<TableFile> for LayerTable {
    type Error = Error;

    fn try_from(file: TableFile) -> Result<Self, Error> {
        Error::check_count("rows of a table", file.layers.len(), file.logits.len())?;
        let rows = Self::from_rows(&file.logits)?;
        Self::new(file.layers, rows.n_scores, rows.logits)
    }
}

impl From<LayerTable> for TableFile {
    fn from(table: LayerTable) -> Self {
        let logits = table.rows().map(<[f64]>::to_vec).collect();
        Self { layers: table.layers, logits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lens;

    #[test]
    fn a_table_is_whole_or_an_error() {
        let layers = vec![Layer(0), Layer(2)];
        let table = LayerTable::new(layers.clone(), 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(table.row(Layer(2)), Some(&[3.0, 4.0][..]));
        assert_eq!(table.row(Layer(1)), None);
        assert!(matches!(LayerTable::new(vec![], 2, vec![]), Err(Error::Shape { .. })));
        assert!(matches!(LayerTable::new(layers.clone(), 0, vec![]), Err(Error::Shape { .. })));
        let turned = table.with_columns(&[1, 0]).unwrap();
        assert_eq!(turned.logits(), [2.0, 1.0, 4.0, 3.0]);
        assert!(matches!(table.with_columns(&[0, 0]), Err(Error::Shape { expected: 1, found: 0, .. })));
        let outside = table.with_columns(&[0, 5]).unwrap_err().to_string();
        assert_eq!(outside, "columns of a table, each once: column: expected 1, found 5");
        assert!(matches!(
            LayerTable::new(layers.clone(), 2, vec![1.0; 3]),
            Err(Error::Shape { expected: 4, found: 3, .. })
        ));
        assert!(matches!(LayerTable::new(layers.clone(), usize::MAX, vec![1.0; 3]), Err(Error::Shape { .. })));
        assert!(matches!(LayerTable::new(vec![Layer(1), Layer(1)], 2, vec![1.0; 4]), Err(Error::LayerOrder { .. })));
        let nan = LayerTable::new(layers, 2, vec![1.0, 2.0, f64::NAN, 4.0]);
        assert!(matches!(nan, Err(Error::NonFinite { index: 2, .. })));
    }

    #[test]
    fn files_are_checked_when_read() {
        let table = LayerTable::new(vec![Layer(1), Layer(3)], 2, vec![0.1, -2.0, 3.5, 1e-17]).unwrap();
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(json, r#"{"layers":[1,3],"logits":[[0.1,-2.0],[3.5,1e-17]]}"#);
        assert_eq!(serde_json::from_str::<LayerTable>(&json).unwrap(), table);
        for wrong in [
            r#"{"layers":[1],"logits":[]}"#,
            r#"{"layers":[1,2],"logits":[[1,2],[1]]}"#,
            r#"{"layers":[],"logits":[]}"#,
        ] {
            assert!(serde_json::from_str::<LayerTable>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reading_may_hold_more_layers_than_asked_for() {
        let labels = LabelLogits {
            tokens: vec![7, 8],
            layers: vec![Layer(0), Layer(1), Layer(2)],
            lens: Lens::Raw,
            at: crate::request::ReadAt::PromptEnd,
            steps: vec![LabelStep {
                step: 0,
                token: None,
                logits: vec![0.0, 0.5, 1.0, 1.5, 2.0, 2.5],
                label_mass: None,
            }],
        };
        let table = LayerTable::from_step(&labels, &labels.steps[0], &[Layer(0), Layer(2)]).unwrap();
        assert_eq!(table.logits(), [0.0, 0.5, 2.0, 2.5]);
        let missing = LayerTable::from_step(&labels, &labels.steps[0], &[Layer(3)]);
        assert!(matches!(missing, Err(Error::LayerNotRead { layer: Layer(3) })));
        let short = LabelStep { logits: vec![0.0, 0.5, 1.0], ..labels.steps[0].clone() };
        let short = LayerTable::from_step(&labels, &short, &[Layer(2)]);
        assert!(matches!(short, Err(Error::Shape { expected: 6, found: 3, .. })), "{short:?}");
    }
}
