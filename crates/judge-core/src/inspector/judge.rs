use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Probe, ProbeReader};
use crate::{
    Error, Fields, Judge, JudgeError, ModelInfo, PromptTemplate, Request, Rounds, Scale, Score, Verdict, Want,
    scale::{ScalePoint, ScoreDistribution},
};

/// What an [`InspectorJudge`] is to do.
#[derive(Clone)]
pub struct InspectorSettings {
    /// What is judged, e.g. `fluency`: the judge's name.
    pub aspect: String,
    /// The prompt; the probe must have been fitted on states of the same one.
    pub template: PromptTemplate,
    /// What reads the states.
    pub probe: Arc<dyn Probe>,
}

/// Judges one aspect of an item by a probe on the model's states, or on how its heads attend (INSPECTOR): one pass over
/// the prompt, no block above the highest layer that the probe reads, nothing generated.
///
/// The score is the predicted class, and of a regression the [number](crate::inspector::ProbeOutput::number) that it predicts, between the
/// classes. Its distribution is the probe's probabilities over the classes; a probe that knows none, such as a support vector machine,
/// gives none. A probe that was saved with a calibrator also gives the value and the interval on the human scale ([`Score::calibrated`]);
/// no [`Calibrated`](crate::combine::Calibrated) is needed around the judge, and one that is there replaces them.
///
/// Several aspects are several judges of one [`Runner`](crate::Runner); [`total_score`] adds them up.
#[derive(Clone)]
pub struct InspectorJudge {
    settings: InspectorSettings,
    scale: Scale,
    reader: ProbeReader,
}

impl InspectorJudge {
    /// A judge for one model.
    ///
    /// # Errors
    /// [`Error::ProbeRefused`] if the probe belongs to another model; [`Error::ProbeSignals`] if it reads nothing, a layer that the model
    /// does not have, the attention of the embeddings, or a signal twice; [`Error::ProbeOfReply`] if it reads what is written, since here
    /// nothing is; as [`class_scale`] for its classes.
    pub fn new(settings: InspectorSettings, model: &ModelInfo) -> Result<Self, Error> {
        let reader = ProbeReader::new(settings.probe.clone(), model)?;
        if reader.reads_reply() {
            return Err(Error::ProbeOfReply { aspect: settings.aspect });
        }
        let scale = class_scale(settings.probe.classes())?;
        Ok(Self { scale, reader, settings })
    }

    /// The settings.
    pub fn settings(&self) -> &InspectorSettings {
        &self.settings
    }

    /// The probe's classes as a scale.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// The aspect.
    pub fn name(&self) -> &str {
        &self.settings.aspect
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for InspectorJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let want = Want::of_signals(self.settings.probe.signals());
        Ok(vec![Request { prompt: self.settings.template.fill(item)?, want }])
    }

    fn decide(&self, _: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let output = self.reader.classify(rounds.only()?)?;
        let output = output.ok_or(Error::NotRead { what: "signal of the prompt" })?;
        let Some(point) = self.scale.points().get(output.class) else {
            return Err(Error::shape("the predicted class, below", self.scale.len(), output.class).into());
        };
        let mut score = Score::new(output.number.unwrap_or(point.value));
        score.calibrated = output.calibrated;
        if let Some(probabilities) = &output.probabilities {
            score.distribution = Some(ScoreDistribution::from_weights(&self.scale, probabilities)?);
        }
        Ok(score)
    }

    fn settings(&self) -> Option<Value> {
        let InspectorSettings { aspect, template, probe } = &self.settings;
        Some(json!({"judge": "inspector", "aspect": aspect, "template": template, "probe": probe.settings()?}))
    }
}

impl fmt::Debug for InspectorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { aspect, template, probe } = self;
        f.debug_struct("InspectorSettings")
            .field("aspect", aspect)
            .field("template", &template.id())
            .field("signals", &probe.signals())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for InspectorJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InspectorJudge")
            .field("template", &self.settings.template.id())
            .field("signals", &self.settings.probe.signals())
            .field("scale", &self.scale)
            .finish_non_exhaustive()
    }
}

/// The scale whose points are classes, each labelled with its number.
///
/// # Errors
/// [`Error::Shape`] if they are fewer than two, [`Error::Scale`] if they do not ascend.
pub fn class_scale(classes: &[i64]) -> Result<Scale, Error> {
    if classes.len() < 2 {
        return Err(Error::Shape { what: "classes of a probe, at least", expected: 2, found: classes.len() });
    }
    let point = |&class: &i64| ScalePoint { value: class as f64, label: class.to_string() };
    Scale::new(classes.iter().map(point).collect())
}

/// INSPECTOR's total: the sum of the aspects' values, which for classifiers are the predicted classes; `None` unless all are scored, and of
/// no aspect. Five aspects on 1 to 5 give 5 to 25.
#[must_use]
pub fn total_score(verdicts: &[Verdict]) -> Option<f64> {
    if verdicts.is_empty() { None } else { verdicts.iter().map(Verdict::value).sum() }
}
