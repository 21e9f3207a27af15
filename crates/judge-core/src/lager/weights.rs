use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Condition, LayerTable, States, Variant, VariantScore, WeightNote};
use crate::scale::softmax;
use crate::{Error, Layer, Lens, ModelInfo, Scale, fit::LayerWeightFit, model::same_fingerprint};

/// What a set of layer tables was read from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableOrigin {
    /// The model's name; for people, not for comparison.
    pub model: String,
    /// The model's [`fingerprint`](ModelInfo::fingerprint).
    pub fingerprint: String,
    /// Number of blocks.
    pub n_layers: usize,
    /// Arithmetic of the weights.
    pub dtype: String,
    /// How states met the head.
    pub lens: Lens,
    /// The scale whose labels were read.
    pub scale: Scale,
    /// [`PromptTemplate::id`](crate::PromptTemplate::id) of the prompts.
    pub template: String,
    /// How the score position was reached.
    pub condition: Condition,
}

impl TableOrigin {
    /// The origin of tables that a model gives under these settings.
    pub fn new(info: &ModelInfo, lens: Lens, scale: Scale, template: &str, condition: Condition) -> Self {
        Self {
            model: info.name.clone(),
            fingerprint: info.fingerprint.clone(),
            n_layers: info.n_layers,
            dtype: info.dtype.clone(),
            lens,
            scale,
            template: template.to_owned(),
            condition,
        }
    }
}

/// Layer weights fitted by [`LayerWeightFit::fit`], with everything they were made from.
///
/// They belong to one model, its layer count, one choice of [`States`] and one [`Lens`]: [`check`](Self::check) refuses others. LAGER fits
/// them once per model and uses them on other scales and prompts; that is allowed and reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WeightsFile")]
pub struct LayerWeights {
    #[serde(flatten)]
    file: WeightsFile,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct WeightsFile {
    weights: Vec<f64>,
    theta: Vec<f64>,
    alpha: f64,
    losses: Vec<f64>,
    learning_rates: Vec<f64>,
    n_items: usize,
    origin: TableOrigin,
    settings: LayerWeightFit,
}

impl LayerWeights {
    pub(crate) fn from_fit(
        theta: Vec<f64>,
        alpha: f64,
        losses: Vec<f64>,
        learning_rates: Vec<f64>,
        n_items: usize,
        origin: TableOrigin,
        settings: LayerWeightFit,
    ) -> Result<Self, Error> {
        let weights = softmax(&theta);
        WeightsFile { weights, theta, alpha, losses, learning_rates, n_items, origin, settings }.try_into()
    }

    /// Weights that were learned otherwise than by [`LayerWeightFit::fit`], such as together with an adapter: the softmax of `theta`, one
    /// number for each layer of `settings.states`, from so many items. `settings` says what applies of it; there are no
    /// [`losses`](Self::losses) and no [`learning_rates`](Self::learning_rates).
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of layers than `origin` has, and [`Error::NonFinite`].
    pub fn learned(
        theta: Vec<f64>,
        n_items: usize,
        origin: TableOrigin,
        settings: LayerWeightFit,
    ) -> Result<Self, Error> {
        let alpha = settings.alpha.start();
        Self::from_fit(theta, alpha, Vec::new(), Vec::new(), n_items, origin, settings)
    }

    /// All weight on one layer, chosen rather than fitted, of tables that hold every layer: [`theta`](Self::theta) is 0 there and
    /// −1000 elsewhere, whose softmax is 1 and 0 exactly, and the [settings](Self::settings) are of 0 epochs.
    ///
    /// # Errors
    /// [`Error::LayerNotRead`] for a layer that the origin's model does not have.
    pub fn of_layer(layer: Layer, n_items: usize, origin: TableOrigin) -> Result<Self, Error> {
        let settings = LayerWeightFit { epochs: 0, ..LayerWeightFit::paper() };
        if layer.0 > origin.n_layers {
            return Err(Error::LayerNotRead { layer });
        }
        let theta = (0..=origin.n_layers).map(|other| if other == layer.0 { 0.0 } else { -1000.0 }).collect();
        Self::learned(theta, n_items, origin, settings)
    }

    /// One weight per layer of [`states`](Self::states), each in [0, 1], sum 1: the softmax of [`theta`](Self::theta).
    pub fn weights(&self) -> &[f64] {
        &self.file.weights
    }

    /// The fitted parameters.
    pub fn theta(&self) -> &[f64] {
        &self.file.theta
    }

    /// The mixing parameter after the fit: the share of the cross-entropy is its sigmoid if it was
    /// [learned](crate::fit::Alpha::Learned), or it is that share itself if it was [fixed](crate::fit::Alpha::Fixed).
    pub fn alpha(&self) -> f64 {
        self.file.alpha
    }

    /// The loss of every optimiser step, before that step's update.
    pub fn losses(&self) -> &[f64] {
        &self.file.losses
    }

    /// The learning rate of every epoch.
    pub fn learning_rates(&self) -> &[f64] {
        &self.file.learning_rates
    }

    /// Number of items fitted on.
    pub fn n_items(&self) -> usize {
        self.file.n_items
    }

    /// What they were fitted on.
    pub fn origin(&self) -> &TableOrigin {
        &self.file.origin
    }

    /// How they were fitted.
    pub fn settings(&self) -> &LayerWeightFit {
        &self.file.settings
    }

    /// The layers they are for.
    pub fn states(&self) -> States {
        self.file.settings.states
    }

    /// Whether they may be used on tables of another origin: what differs but is allowed (scale, template, condition, dtype) is returned.
    ///
    /// # Errors
    /// [`Error::WeightsRefused`] with both sides for another model, layer count, choice of states or lens.
    pub fn check(&self, used: &TableOrigin, states: States) -> Result<Vec<WeightNote>, Error> {
        let fitted = &self.file.origin;
        let note = |differs: bool, how, what, fitted: String, used: String| {
            differs.then_some(WeightNote { how, what, fitted, used })
        };
        let model = |of: &TableOrigin| format!("{} ({})", of.model, of.fingerprint);
        let (blocks, others) = (fitted.n_layers, used.n_layers);
        let is_other = !same_fingerprint(&fitted.fingerprint, &used.fingerprint);
        let refused = [
            note(is_other, "on", "the model ", model(fitted), model(used)),
            note(blocks != others, "on", "", format!("a model of {blocks} blocks"), format!("one of {others}")),
            note(self.states() != states, "on", "the states ", self.states().to_string(), states.to_string()),
            note(fitted.lens != used.lens, "with", "the lens ", in_words(&fitted.lens), in_words(&used.lens)),
        ];
        if let Some(mismatch) = refused.into_iter().flatten().next() {
            return Err(Error::WeightsRefused { mismatch });
        }
        let labels = |of: &TableOrigin| format!("[{}]", of.scale.labels().collect::<Vec<_>>().join(" "));
        let templates = (fitted.template.clone(), used.template.clone());
        let conditions = (in_words(&fitted.condition), in_words(&used.condition));
        let noted = [
            note(fitted.scale != used.scale, "on", "the scale ", labels(fitted), labels(used)),
            note(templates.0 != templates.1, "with", "the template ", templates.0, templates.1),
            note(fitted.condition != used.condition, "under", "", conditions.0, conditions.1),
            note(fitted.dtype != used.dtype, "in", "", fitted.dtype.clone(), used.dtype.clone()),
        ];
        Ok(noted.into_iter().flatten().collect())
    }

    /// The score of a table with these weights and their states. The table's layer count is checked here, all else by
    /// [`check`](Self::check).
    ///
    /// # Errors
    /// As [`Variant::score`], and [`Error::Shape`] for a table with another number of layers.
    pub fn score(&self, variant: Variant, table: &LayerTable, scale: &Scale) -> Result<VariantScore, Error> {
        variant.score_with(table, scale, self.states(), Some(self.weights()))
    }
}

impl TryFrom<WeightsFile> for LayerWeights {
    type Error = Error;

    fn try_from(file: WeightsFile) -> Result<Self, Error> {
        let expected = file.settings.states.count(file.origin.n_layers);
        for (what, values) in [("layer weights", &file.weights), ("layer parameters", &file.theta)] {
            Error::check_count(what, expected, values.len())?;
            Error::check_finite(what, values)?;
        }
        let sum: f64 = file.weights.iter().sum();
        if (sum - 1.0).abs() > 1e-6 || file.weights.iter().any(|&w| w < 0.0) {
            return Err(Error::NotADistribution { weights: file.weights });
        }
        Ok(Self { file })
    }
}

fn in_words(of: &impl fmt::Debug) -> String {
    format!("{of:?}")
}
