use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ByKind, DecisionFit, DecisionForm, DecisionProblem, QuestionKind};
use crate::{Lens, ModelInfo, model::same_fingerprint};

/// What decisions are read from: what a fitted weight or temperature belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionOrigin {
    /// The model's name; for people, not for comparison.
    pub model: String,
    /// The model's [`fingerprint`](ModelInfo::fingerprint).
    pub fingerprint: String,
    /// Number of blocks.
    pub n_layers: usize,
    /// Arithmetic of the weights.
    pub dtype: String,
    /// How states meet the head.
    pub lens: Lens,
    /// [What tells the prompt from another](super::DecisionPrompt::settings).
    pub prompt: Value,
    /// The labels of the options, and their order.
    pub form: DecisionForm,
}

impl DecisionOrigin {
    /// The origin of what a model says under these settings.
    pub(crate) fn new(model: &ModelInfo, lens: Lens, prompt: Value, form: DecisionForm) -> Self {
        Self {
            model: model.name.clone(),
            fingerprint: model.fingerprint.clone(),
            n_layers: model.n_layers,
            dtype: model.dtype.clone(),
            lens,
            prompt,
            form,
        }
    }
}

/// How the label logits of a kind of question are combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindWeights {
    /// One weight for each layer, at least 0, sum 1; `None`: the last layer alone.
    pub layers: Option<Vec<f64>>,
    /// What the combined logits are divided by.
    pub temperature: f64,
    /// Labelled decisions they were fitted on.
    pub n: usize,
    /// The mean cross-entropy of these, in nats, before and after the fit.
    pub loss: [f64; 2],
    /// Why these are not the best there are; `None` where they are, or as near as the steps came: the loss of weights no longer fell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsettled: Option<Unsettled>,
}

/// Why a fit ended at no optimum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Unsettled {
    /// The loss still fell by more than 0.001 nats in the last quarter of the steps.
    #[error(
        "the cross-entropy still fell, by {fell:.4} in the last quarter of the steps; more of them may find better weights"
    )]
    StillFalling {
        /// By how much, in nats.
        fell: f64,
    },
    /// The last layer's logits do not go with the labels: no temperature is better than the same probability for every option.
    #[error(
        "the last layer's logits do not go with the labels, so nothing is better than the same probability for every option"
    )]
    Uniform,
    /// Every label is an option with the largest logit, so no temperature is low enough. This one is the best with one label more, spread
    /// evenly over the options of all decisions.
    #[error(
        "the last layer is right on every label, so no temperature is low enough; this one is the best with one label more, spread evenly"
    )]
    AllAgree,
}

/// Weights and temperatures by kind of question, fitted by [`DecisionFit`], with what they belong to.
///
/// They are used with the same model, dtype, lens, prompt and labels alone: [`check`](Self::check) refuses others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WeightsFile")]
pub struct DecisionWeights {
    #[serde(flatten)]
    file: WeightsFile,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsFile {
    kinds: ByKind<Option<KindWeights>>,
    origin: DecisionOrigin,
    settings: DecisionFit,
}

impl DecisionWeights {
    pub(super) fn of_fit(
        kinds: ByKind<Option<KindWeights>>,
        origin: DecisionOrigin,
        settings: DecisionFit,
    ) -> Result<Self, DecisionProblem> {
        WeightsFile { kinds, origin, settings }.try_into()
    }

    /// Those of a kind of question; `None` where no labelled decision was of that kind.
    #[must_use]
    pub fn get(&self, kind: QuestionKind) -> Option<&KindWeights> {
        self.file.kinds.get(kind).as_ref()
    }

    /// What they belong to.
    #[must_use]
    pub fn origin(&self) -> &DecisionOrigin {
        &self.file.origin
    }

    /// How they were fitted.
    #[must_use]
    pub fn settings(&self) -> &DecisionFit {
        &self.file.settings
    }

    /// That they may be used on decisions of this origin.
    ///
    /// # Errors
    /// [`DecisionProblem::Weights`] for another model, dtype, lens, prompt or other labels.
    pub fn check(&self, used: &DecisionOrigin) -> Result<(), DecisionProblem> {
        let fitted = self.origin();
        let model = |of: &DecisionOrigin| format!("{} ({})", of.model, of.fingerprint);
        let lens = |of: &DecisionOrigin| format!("{:?}", of.lens);
        let is_other = !same_fingerprint(&fitted.fingerprint, &used.fingerprint) || fitted.n_layers != used.n_layers;
        let (one, other) = (&fitted.form, &used.form);
        let other_labels = one.labels != other.labels || one.false_first != other.false_first;
        let differences = [
            (is_other, "on the model", model(fitted), model(used)),
            (fitted.dtype != used.dtype, "in", fitted.dtype.clone(), used.dtype.clone()),
            (fitted.lens != used.lens, "with the lens", lens(fitted), lens(used)),
            (fitted.prompt != used.prompt, "with the prompt", fitted.prompt.to_string(), used.prompt.to_string()),
            (other_labels, "with the labels", in_words(one), in_words(other)),
        ];
        match differences.into_iter().find(|(differs, ..)| *differs) {
            Some((_, what, fitted, used)) => Err(DecisionProblem::Weights { what, fitted, used }),
            None => Ok(()),
        }
    }
}

fn in_words(form: &DecisionForm) -> String {
    let of = |kind| form.labels.get(kind).join(" ");
    let [noul, choice, score] = QuestionKind::ALL.map(of);
    let order = if form.false_first { "false, true" } else { "true, false" };
    format!("noul ({order}): {noul}; choice: {choice}; score: {score}")
}

impl TryFrom<WeightsFile> for DecisionWeights {
    type Error = DecisionProblem;

    fn try_from(file: WeightsFile) -> Result<Self, DecisionProblem> {
        let layers = file.origin.n_layers.saturating_add(1);
        for kind in QuestionKind::ALL {
            let Some(found) = file.kinds.get(kind) else { continue };
            let wrong = |field: &str, expected, found: String| {
                Err(DecisionProblem::Setting { setting: format!("kinds.{kind}.{field}"), expected, found })
            };
            if !found.temperature.is_finite() || found.temperature <= 0.0 {
                return wrong("temperature", "a number above 0", found.temperature.to_string());
            }
            let Some(weights) = &found.layers else { continue };
            let is_one = (weights.iter().sum::<f64>() - 1.0).abs() <= 1e-6;
            if weights.len() != layers || !is_one || weights.iter().any(|w| !w.is_finite() || *w < 0.0) {
                let expected = "a weight for each layer, none negative, with the sum 1";
                return wrong("layers", expected, format!("{} for {layers} layers: {weights:?}", weights.len()));
            }
        }
        Ok(Self { file })
    }
}
