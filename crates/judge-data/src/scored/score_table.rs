use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use judge_core::{
    ItemId, Layer, Reason, Scale,
    fit::{Graded, LayerWeightFit},
    lager::{LayerWeights, States, TableOrigin, Variant, WeightNote},
    scale::{ScalePoint, in_digits},
};

use crate::{Error, Input, ScoreFile, ScoreFormat, Unread, is_unrecorded, recorded_origin, unrecorded_origin};

/// All tables of a score file with their human scores, checked to belong together:
/// what layer weights are fitted on, and score variants compared on.
///
/// Holds everything in memory: some 1.3 kB per item of 33 layers and 5 labels.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ScoreTable {
    /// The file.
    pub path: PathBuf,
    /// What its rows are.
    pub format: ScoreFormat,
    /// Items with a table and a human score.
    pub graded: Vec<Graded>,
    /// Their ids.
    pub ids: Vec<ItemId>,
    /// The labels as a scale: those that are numbers are their values.
    pub scale: Scale,
    /// The last layer; every table has the layers from 0 to this one.
    pub n_layers: usize,
    /// Items without a table, by reason.
    pub unscored: BTreeMap<Reason, usize>,
    /// Items with a table that nobody graded.
    pub without_human: usize,
    /// Items in which what people gave is no grade, to be told of.
    pub unread: Unread,
    /// What the run record beside the file says of its tables; `None` if there is no record.
    pub origin: Option<TableOrigin>,
}

impl ScoreTable {
    /// Reads a score file of this project or of LAGER's program, and the run record beside it.
    /// Of pairs the scores are preferences for the first response, and logits the mean of their orders.
    ///
    /// # Errors
    /// [`Error::NobodyGraded`]; [`Error::Content`] where nothing is scored, for layers that do not run from 0 to the same last one, for labels
    /// that differ or are no numbers, and for a run record of a model with other layers; and whatever is wrong with the file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut first: Option<(Vec<String>, usize)> = None;
        let (mut graded, mut ids) = (Vec::new(), Vec::new());
        let (mut unscored, mut without_human, mut unread) = (BTreeMap::new(), 0, Unread::default());
        let file = ScoreFile::open(path)?;
        let format = file.format();
        for item in file {
            let item = item?;
            unread.note(&item.id, None);
            unread.note_grade(&item.id, item.no_grade.as_deref());
            let table = match item.table {
                Ok(table) => table,
                Err(reason) => {
                    *unscored.entry(reason.reason).or_default() += 1;
                    continue;
                }
            };
            let differs = |what, expected: String, found: String| {
                let found = format!("{found} in item {}", item.id);
                Err(Error::content(path, what, expected, found))
            };
            let n_layers = table.layers().len() - 1; // a table has at least one layer
            if !table.layers().iter().enumerate().all(|(index, layer)| *layer == Layer(index)) {
                let found = format!("{:?}", table.layers().iter().map(|layer| layer.0).collect::<Vec<_>>());
                return differs("layers", "from 0 to the last, all of them".to_owned(), found);
            }
            match &first {
                None => first = Some((item.labels.clone(), n_layers)),
                Some((_, last)) if *last != n_layers => {
                    return differs("the last layer", format!("{last}, as the first item has"), n_layers.to_string());
                }
                Some((labels, _)) if *labels != item.labels => {
                    return differs(
                        "the labels",
                        format!("{labels:?}, as the first item has"),
                        format!("{:?}", item.labels),
                    );
                }
                Some(_) => {}
            }
            match item.human {
                Some(human) => {
                    graded.push(Graded { table, human });
                    ids.push(item.id);
                }
                None => without_human += 1,
            }
        }
        let Some((labels, n_layers)) = first else {
            let found = format!("none: {} items have a reason instead", unscored.values().sum::<usize>());
            return Err(Error::content(path, "scored items", "at least 1", found));
        };
        if graded.is_empty() {
            let (what, why) = ("scored items", unread.notes("").next());
            return Err(Error::NobodyGraded { path: path.to_path_buf(), scored: without_human, what, why });
        }
        let origin = recorded_origin(path)?;
        if let Some(origin) = origin.as_ref().filter(|origin| origin.n_layers != n_layers) {
            let expected = format!("{} by its run record", origin.n_layers);
            return Err(Error::content(path, "the last layer", expected, n_layers.to_string()));
        }
        let scale = scale_of(path, &labels)?;
        let path = path.to_path_buf();
        Ok(Self { path, format, graded, ids, scale, n_layers, unscored, without_human, unread, origin })
    }

    /// The human scores, in the order of the items.
    pub fn human(&self) -> Vec<f64> {
        self.graded.iter().map(|item| item.human).collect()
    }

    /// Fits layer weights on the graded items.
    ///
    /// # Errors
    /// [`Error::Content`] for a human score outside the scale, with the item's id; [`Error::Core`] if the weights cannot be fitted.
    pub fn fit(&self, settings: &LayerWeightFit) -> Result<LayerWeights, Error> {
        let (low, high) = self.scale.range();
        if let Some((id, item)) = self.ids.iter().zip(&self.graded).find(|(_, g)| !(low..=high).contains(&g.human)) {
            let (expected, found) =
                (format!("a number from {low} to {high}"), format!("{} of item {id}", in_digits(item.human)));
            return Err(Error::content(&self.path, "human scores", expected, found));
        }
        Ok(settings.fit(&self.graded, &self.origin_or_file()?)?)
    }

    /// Whether layer weights may be used on these tables: what differs but is allowed is returned.
    /// Of weights or tables without a record only the number of layers is known.
    ///
    /// # Errors
    /// [`Error::Content`] for another number of layers; [`Error::Core`] for another model, lens or choice of layers.
    pub fn check_weights(&self, weights: &LayerWeights) -> Result<Vec<WeightNote>, Error> {
        let (fitted, found) = (weights.origin().n_layers, self.n_layers);
        if fitted != found {
            let expected = format!("0 to {fitted}, as the weights have");
            return Err(Error::content(&self.path, "layers", expected, format!("0 to {found}")));
        }
        match &self.origin {
            Some(origin) if !is_unrecorded(weights.origin()) => Ok(weights.check(origin, weights.states())?),
            _ => Ok(Vec::new()),
        }
    }

    /// The scores of one variant, in the order of the graded items; without weights over the layers of `states`.
    ///
    /// # Errors
    /// [`Error::Core`] if the variant needs weights and there are none.
    pub fn scores(&self, variant: Variant, states: States, weights: Option<&LayerWeights>) -> Result<Vec<f64>, Error> {
        let score = |item: &Graded| {
            let scored = match weights {
                Some(weights) => weights.score(variant, &item.table, &self.scale),
                None => variant.score(&item.table, &self.scale, states),
            };
            Ok(scored?.score)
        };
        self.graded.iter().map(score).collect()
    }

    /// What the tables were read from, for [`LayerWeightFit::fit`](judge_core::fit::LayerWeightFit::fit):
    /// what is recorded, or else the file itself in the model's place.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read again.
    pub fn origin_or_file(&self) -> Result<TableOrigin, Error> {
        match &self.origin {
            Some(origin) => Ok(origin.clone()),
            None => Ok(unrecorded_origin(&Input::identify(&self.path)?, self.n_layers, &self.scale)),
        }
    }
}

/// Labels that are numbers are their values.
fn scale_of(path: &Path, labels: &[String]) -> Result<Scale, Error> {
    let point = |label: &String| {
        let wrong = |_| Error::content(path, "labels", "numbers, to score by", format!("{label:?}"));
        let value = label.parse().map_err(wrong)?;
        Ok(ScalePoint { value, label: label.clone() })
    };
    Ok(Scale::new(labels.iter().map(point).collect::<Result<_, Error>>()?)?)
}
