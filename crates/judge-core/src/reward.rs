//! Reward models: the head of a sequence classifier over the last state of a conversation.

use serde_json::{Value, json};

use crate::{
    Error, Fields, Judge, JudgeError, Layer, Message, ModelInfo, Prompt, PromptTemplate, Reading, Request, Rounds,
    Score, Want, request::Pooling,
};

/// The head of a sequence classifier, such as a reward model: one number for each of its labels, linear in the state that the model has at
/// the end of a conversation.
///
/// It reads the last position's state behind all blocks and the final norm ([`Pooling::Last`] at the model's last layer). Products are
/// `f64`, in the order of the coordinates; there is no bias (`XForSequenceClassification` of transformers has none).
#[derive(Clone, Debug, PartialEq)]
pub struct RewardHead {
    labels: Vec<String>,
    d_model: usize,
    /// `[labels, d_model]`.
    weights: Vec<f32>,
}

impl RewardHead {
    /// A head with a row of `weights` `[labels, d_model]` for each of its labels.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are so many weights, and at least one label; [`Error::NonFinite`] for a weight
    /// that is NaN or infinite.
    pub fn new(labels: Vec<String>, weights: Vec<f32>, d_model: usize) -> Result<Self, Error> {
        let expected = labels.len().max(1) * d_model;
        if weights.len() != expected || labels.is_empty() {
            return Err(Error::Shape { what: "weights of a reward head", expected, found: weights.len() });
        }
        if let Some(index) = weights.iter().position(|weight| !weight.is_finite()) {
            let value = f64::from(weights[index]);
            return Err(Error::NonFinite { what: "weights of a reward head", index, value });
        }
        Ok(Self { labels, d_model, weights })
    }

    /// What its numbers are called, in their order; a reward model has one.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The rewards of a state `[d_model]`, one for each label.
    ///
    /// # Errors
    /// [`Error::Shape`] for a state of another width.
    pub fn rewards(&self, state: &[f32]) -> Result<Vec<f64>, Error> {
        if state.len() != self.d_model {
            return Err(Error::Shape {
                what: "a state for the reward head",
                expected: self.d_model,
                found: state.len(),
            });
        }
        let dot = |row: &[f32]| row.iter().zip(state).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
        Ok(self.weights.chunks_exact(self.d_model).map(dot).collect())
    }

    /// What has to be read of a model for it.
    #[must_use]
    pub fn want(&self, model: &ModelInfo) -> Want {
        Want { pooled: vec![(Layer(model.n_layers), Pooling::Last)], ..Want::default() }
    }

    /// The rewards of what was read as [`want`](Self::want) says.
    ///
    /// # Errors
    /// [`Error::NotRead`] for another reading, and those of [`rewards`](Self::rewards).
    pub fn of_reading(&self, reading: &Reading, model: &ModelInfo) -> Result<Vec<f64>, Error> {
        let state = reading.pooled(Layer(model.n_layers), Pooling::Last);
        self.rewards(state.ok_or(Error::NotRead { what: "the state that a reward head reads" })?)
    }
}

/// A conversation for a reward model: its last turn, the one that is judged, is complete, and no reply is opened behind it.
#[must_use]
pub fn closed_conversation(messages: Vec<Message>) -> Prompt {
    Prompt::chat(messages).with_template_arg("add_generation_prompt", false.into())
}

/// Judges a response by the reward that a sequence classifier's head gives it.
///
/// The value is the reward of one label, on no fixed scale: rewards of responses to the same request compare, by
/// [`EachAnswer`](crate::combine::EachAnswer) and by
/// [`GradedPair::of_rewards`](crate::combine::GradedPair::of_rewards).
#[derive(Clone, Debug)]
pub struct RewardJudge {
    head: RewardHead,
    label: usize,
    model: ModelInfo,
    template: PromptTemplate,
}

impl RewardJudge {
    /// A judge by the label of this name; `None` is the only label that there is. Items have the fields `instruction` and `response`, see
    /// [`template`](Self::template).
    ///
    /// # Errors
    /// [`Error::UnknownName`] for a label that the head does not have, or none where it has several;
    /// [`Error::Shape`] for a head that is not the model's.
    pub fn new(head: RewardHead, label: Option<&str>, model: &ModelInfo) -> Result<Self, Error> {
        if head.d_model != model.d_model {
            return Err(Error::Shape {
                what: "the width of a reward head",
                expected: model.d_model,
                found: head.d_model,
            });
        }
        let place = match label {
            None if head.labels.len() == 1 => Some(0),
            label => head.labels.iter().position(|known| Some(known.as_str()) == label),
        };
        let Some(label) = place else {
            return Err(Error::RewardLabel { found: label.unwrap_or_default().to_owned(), known: head.labels });
        };
        Ok(Self { head, label, model: model.clone(), template: Self::template() })
    }

    /// The same with another template; it must not open a reply.
    #[must_use]
    pub fn with_template(self, template: PromptTemplate) -> Self {
        Self { template, ..self }
    }

    /// The request as the user's turn and the response as the assistant's.
    #[must_use]
    pub fn template() -> PromptTemplate {
        let turns = vec![Message::user("{instruction}"), Message::new("assistant", "{response}")];
        PromptTemplate::known_good(closed_conversation(turns))
    }
}

impl RewardJudge {
    /// The label that is read.
    pub fn name(&self) -> &str {
        &self.head.labels[self.label]
    }
}

impl<Item: Fields + ?Sized> Judge<Item> for RewardJudge {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        Ok(vec![Request { prompt: self.template.fill(item)?, want: self.head.want(&self.model) }])
    }

    fn decide(&self, _: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let rewards = self.head.of_reading(rounds.only()?, &self.model)?;
        let (expected, found) = (self.label + 1, rewards.len());
        let reward = rewards.get(self.label).ok_or(Error::Shape { what: "rewards", expected, found })?;
        Ok(Score::new(*reward))
    }

    fn settings(&self) -> Option<Value> {
        let mut hasher = blake3::Hasher::new();
        for weight in &self.head.weights {
            hasher.update(&weight.to_le_bytes());
        }
        let head = hasher.finalize().to_hex().to_string();
        Some(json!({
            "judge": "reward", "labels": self.head.labels, "head": head, "label": self.label, "template": self.template,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dimensions;

    fn model() -> ModelInfo {
        ModelInfo::new("m", "f", Dimensions { n_layers: 2, d_model: 2, n_heads: 1, d_vocab: 5, max_len: 9 })
    }

    #[test]
    fn rewards_are_products_with_the_last_state() {
        let head = RewardHead::new(vec!["good".into(), "safe".into()], vec![1.0, 2.0, -1.0, 0.5], 2).unwrap();
        assert_eq!(head.rewards(&[3.0, 4.0]).unwrap(), [11.0, -1.0]);
        assert!(matches!(head.rewards(&[3.0]), Err(Error::Shape { expected: 2, found: 1, .. })));
        assert!(matches!(RewardHead::new(vec!["good".into()], vec![1.0], 2), Err(Error::Shape { expected: 2, .. })));
        assert!(RewardHead::new(Vec::new(), Vec::new(), 2).is_err());
        assert!(matches!(RewardHead::new(vec!["good".into()], vec![1.0, f32::NAN], 2), Err(Error::NonFinite { .. })));
        let named = |label| RewardJudge::new(head.clone(), label, &model());
        assert!(matches!(named(None), Err(Error::RewardLabel { .. })));
        assert!(matches!(named(Some("kind")), Err(Error::RewardLabel { .. })));
        assert_eq!(<RewardJudge as Judge<dyn Fields>>::name(&named(Some("safe")).unwrap()), "safe");
    }
}
