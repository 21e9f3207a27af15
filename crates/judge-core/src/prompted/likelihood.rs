use serde_json::{Value, json};

use crate::{
    Fields, Judge, JudgeError, PromptTemplate, Request, Rounds, Score, Want, prompted::PromptFamily,
    scale::ScoreDistribution,
};

/// Asks a [`PromptFamily`]'s question and compares how likely each of its labels is as the reply, at the last layer:
/// label and closing text as a whole, so that labels may have several tokens (`10`) and one may begin like another
/// (`1`).
///
/// The value is the expected value under the labels' probabilities, normalised over the labels. Where all labels are single tokens,
/// [`LagerJudge`](crate::lager::LagerJudge) reads the same kind of distribution in one pass, and at every layer.
#[derive(Clone, Debug)]
pub struct LikelihoodJudge {
    family: PromptFamily,
    /// With the opening at its end.
    template: PromptTemplate,
    /// Each label with the closing text.
    replies: Vec<String>,
}

impl LikelihoodJudge {
    /// A judge that asks this family's question.
    pub fn new(family: PromptFamily) -> Self {
        let template = family.template().clone().with_prefill(family.opening());
        let replies = family.scale().labels().map(|label| format!("{label}{}", family.closing())).collect();
        Self { family, template, replies }
    }

    /// The family.
    pub fn family(&self) -> &PromptFamily {
        &self.family
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.family.name()
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for LikelihoodJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let want = Want { continuations: self.replies.clone(), ..Want::default() };
        Ok(vec![Request { prompt: self.template.fill(item)?, want }])
    }

    fn decide(&self, _item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let reading = rounds.only()?;
        let log_probs = self.replies.iter().map(|reply| Ok(reading.continuation(reply)?.sum()));
        let log_probs = log_probs.collect::<Result<Vec<f64>, JudgeError>>()?;
        let mass: f64 = log_probs.iter().map(|p| p.exp()).sum();
        let distribution = ScoreDistribution::softmax(self.family.scale(), &log_probs)?;
        // Rounding may take a sum of probabilities past 1.
        Ok(Score::expected(distribution).with_label_mass(Some(mass.min(1.0) as f32)))
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "likelihood", "family": self.family}))
    }
}
