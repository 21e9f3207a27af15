use std::fmt;
use std::sync::Arc;

use super::Probe;
use crate::{
    ContractBreach, Error, Fields, Judge, ModelInfo, Outcome, PromptTemplate, Request, Scale, ScalePoint,
    ScoreDistribution, Verdict, Want,
};

/// What an [`InspectorJudge`] is to do.
#[derive(Clone)]
pub struct InspectorSettings {
    /// The prompt; the probe must have been fitted on states of the same one.
    pub template: PromptTemplate,
    /// What reads the states.
    pub probe: Arc<dyn Probe>,
}

/// Judges one aspect of an item by a probe on the model's states (INSPECTOR): one pass over the prompt, no block above the highest layer that
/// the probe reads, nothing generated.
///
/// The scale's values are the probe's classes. The verdict's distribution is the probe's probabilities; of a probe without any, such as a support
/// vector machine, all of it lies on the predicted class, which says which class that is and nothing of how sure the probe is.
///
/// Several aspects are several judges of one [`Runner`](crate::Runner); [`total_score`] adds them up.
#[derive(Clone)]
pub struct InspectorJudge {
    settings: InspectorSettings,
    scale: Scale,
    d_model: usize,
}

impl InspectorJudge {
    /// A judge for one model.
    ///
    /// # Errors
    /// [`Error::ProbeRefused`] if the probe belongs to another model; [`Error::ProbeStates`] if it reads nothing, a layer that the model
    /// does not have, or a state twice; [`Error::Scale`] if its classes are no scale.
    pub fn new(settings: InspectorSettings, model: &ModelInfo) -> Result<Self, Error> {
        let probe = &settings.probe;
        probe.check_model(model).map_err(|source| Error::ProbeRefused { model: model.name.clone(), source })?;
        let states = probe.states();
        let once = (1..states.len()).all(|i| !states[..i].contains(&states[i]));
        if states.is_empty() || !once || states.iter().any(|(layer, _)| layer.0 > model.n_layers) {
            return Err(Error::ProbeStates { states: states.to_vec(), n_layers: model.n_layers });
        }
        let scale = class_scale(probe.classes())?;
        Ok(Self { scale, d_model: model.d_model, settings })
    }

    /// The settings.
    pub fn settings(&self) -> &InspectorSettings {
        &self.settings
    }

    /// The probe's classes as a scale.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The states that the probe reads, side by side, `[states, d_model]`.
    fn features(&self, reading: &crate::Reading) -> Result<Vec<f32>, Error> {
        let states = self.settings.probe.states();
        let mut features = Vec::with_capacity(states.len() * self.d_model);
        for &(layer, pooling) in states {
            // The pass may have been shared with judges that wanted other states too.
            let state = reading.pooled.iter().find(|state| (state.layer, state.pooling) == (layer, pooling));
            let values = state.map_or(&[][..], |state| &state.values);
            if values.len() != self.d_model {
                let breach =
                    ContractBreach::Shape { what: "a pooled state", expected: self.d_model, found: values.len() };
                return Err(breach.into());
            }
            features.extend_from_slice(values);
        }
        Ok(features)
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for InspectorJudge {
    fn ask(&self, item: &Item) -> Result<Vec<Request>, Error> {
        let want = Want { pooled: self.settings.probe.states().to_vec(), ..Want::default() };
        Ok(vec![Request { prompt: self.settings.template.fill(item)?, want }])
    }

    fn decide(&self, _: &Item, done: &[Outcome]) -> Result<Verdict, Error> {
        let [outcome] = done else {
            return Err(ContractBreach::Shape { what: "outcomes", expected: 1, found: done.len() }.into());
        };
        let reading = match outcome {
            Outcome::Read(reading) => reading,
            Outcome::Unscored(unscored) => return Ok(Verdict::Unscored(unscored.clone())),
        };
        let output =
            self.settings.probe.classify(&self.features(reading)?).map_err(|source| Error::Probe { source })?;
        let weights = match output.probabilities {
            Some(probabilities) => probabilities,
            None => (0..self.scale.len()).map(|class| f64::from(u8::from(class == output.class))).collect(),
        };
        Ok(Verdict::Scored { distribution: ScoreDistribution::from_weights(&self.scale, &weights)?, interval: None })
    }
}

impl fmt::Debug for InspectorJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InspectorJudge")
            .field("template", &self.settings.template.id())
            .field("states", &self.settings.probe.states())
            .field("scale", &self.scale)
            .finish_non_exhaustive()
    }
}

/// The scale whose points are classes, each labelled with its number.
///
/// # Errors
/// [`Error::Scale`] if they are fewer than two or do not ascend.
pub fn class_scale(classes: &[i64]) -> Result<Scale, Error> {
    let point = |&class: &i64| ScalePoint { value: class as f64, label: class.to_string() };
    Scale::new(classes.iter().map(point).collect())
}

/// INSPECTOR's total: the sum of the aspects' predicted classes; `None` unless all are scored. Five aspects on 1 to 5 give 5 to 25.
#[must_use]
pub fn total_score(verdicts: &[Verdict]) -> Option<f64> {
    verdicts
        .iter()
        .map(|verdict| match verdict {
            Verdict::Scored { distribution, .. } => Some(distribution.mode().value),
            Verdict::Unscored(_) => None,
        })
        .sum()
}
