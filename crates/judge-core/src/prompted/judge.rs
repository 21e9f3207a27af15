use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LikelihoodJudge, PromptFamily, WrittenJudge};
use crate::{
    Backbone, Error, Fields, Judge, JudgeError, Request, Rounds, Score,
    error::by_name,
    lager::{LagerJudge, LagerSettings, LayerWeights, Variant},
    model::BackboneError,
};

/// Where a verdict is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictFrom {
    /// In the text that the model writes.
    Text,
    /// In the probabilities of the labels at the verdict's position, at the last layer.
    Logits,
    /// The same at all layers: combined by fitted weights, or without weights by the mean of the layers' logits.
    Layers,
}

crate::names! { VerdictFrom {
    Text: "text",
    Logits: "logits",
    Layers: "layers",
}}

impl FromStr for VerdictFrom {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        by_name("source of verdicts", name, &Self::ALL, Self::as_str)
    }
}

/// Any of the judges that ask a [`PromptFamily`]'s question, chosen by where the verdict is looked for.
#[derive(Clone, Debug)]
pub enum PromptedJudge {
    /// In what the model writes.
    Written(WrittenJudge),
    /// In the labels' logits at the verdict's position, of one layer or of all.
    Read(Box<LagerJudge>),
    /// In the probabilities of whole labels, for labels of several tokens.
    Likelihood(LikelihoodJudge),
}

impl PromptedJudge {
    /// The judge for one model.
    ///
    /// Probabilities of the last layer are read as [`LikelihoodJudge`] does it where a label is not one vocabulary entry, and as
    /// [`LagerJudge`] does it otherwise. Inner layers have no other way than the latter's.
    ///
    /// # Errors
    /// [`Error::Backbone`] if inner layers are to be read and a label is not one vocabulary entry;
    /// [`Error::WeightsRefused`] for weights that were fitted on something else.
    pub fn new(
        family: PromptFamily,
        from: VerdictFrom,
        weights: Option<LayerWeights>,
        backbone: &dyn Backbone,
    ) -> Result<Self, Error> {
        let settings = family.lager_settings();
        let settings = match from {
            VerdictFrom::Text => return Ok(Self::Written(WrittenJudge::new(family))),
            VerdictFrom::Logits => LagerSettings { variant: Some(Variant::LastExpected), ..settings },
            VerdictFrom::Layers => {
                let variant = if weights.is_some() { Variant::WeightedExpected } else { Variant::MeanExpected };
                let states = weights.as_ref().map_or(settings.states, LayerWeights::states);
                LagerSettings { variant: Some(variant), weights, states, ..settings }
            }
        };
        match LagerJudge::new(settings, backbone) {
            Ok(judge) => Ok(Self::Read(Box::new(judge))),
            Err(Error::Backbone(BackboneError::Label { .. })) if from == VerdictFrom::Logits => {
                Ok(Self::Likelihood(LikelihoodJudge::new(family)))
            }
            Err(error) => Err(error),
        }
    }

    /// The name of the judge that was chosen.
    pub fn name(&self) -> &str {
        self.chosen::<dyn Fields>().name()
    }

    fn chosen<Item: Fields + ?Sized>(&self) -> &dyn Judge<Item> {
        match self {
            Self::Written(judge) => judge,
            Self::Read(judge) => &**judge,
            Self::Likelihood(judge) => judge,
        }
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for PromptedJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.chosen().ask(item)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.chosen().decide(item, rounds)
    }

    fn settings(&self) -> Option<Value> {
        self.chosen::<Item>().settings()
    }
}
