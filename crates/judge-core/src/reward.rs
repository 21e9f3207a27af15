//! Reward models: the head of a sequence classifier over the last state of a conversation.

use serde_json::{Value, json};

use crate::{
    Error, Fields, Judge, JudgeError, Layer, Message, ModelInfo, Prompt, PromptTemplate, Reading, Request, Rounds,
    Score, Want, request::Pooling,
};

/// The head of a sequence classifier, such as a reward model: one number for each of its labels, made of one state that
/// the model has of a conversation.
///
/// Of a decoder it is linear in the last position's state behind all blocks and the final norm ([`Pooling::Last`] at the
/// model's last layer), mostly without a bias (`XForSequenceClassification` of transformers has none). Encoders have
/// [steps](HeadStep) before the labels and another pooling; a head of an inner [layer](Self::layer) norms its state as a
/// step. All arithmetic is `f64`, with sums in the order of the coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct RewardHead {
    labels: Vec<String>,
    d_model: usize,
    /// The layer whose state is read; `None`: the last one.
    layer: Option<Layer>,
    /// Which state is read.
    pooling: Pooling,
    /// What becomes of the state first.
    steps: Vec<HeadStep>,
    /// `[labels, d_model]`.
    weights: Vec<f32>,
    /// `[labels]`; empty: none.
    bias: Vec<f32>,
}

/// What a head makes of a state before its labels, from `d_model` numbers to as many.
#[derive(Clone, Debug, PartialEq)]
pub enum HeadStep {
    /// `weights · x + bias`.
    Linear {
        /// `[d_model, d_model]`.
        weights: Vec<f32>,
        /// `[d_model]`; empty: none.
        bias: Vec<f32>,
    },
    /// LayerNorm: `(x - mean) / sqrt(variance + eps) * weights + bias`.
    Norm {
        /// `[d_model]`.
        weights: Vec<f32>,
        /// `[d_model]`; empty: none.
        bias: Vec<f32>,
        /// Added to the variance.
        eps: f64,
    },
    /// `x / sqrt(mean(x²) + eps) * weights`.
    RmsNorm {
        /// `[d_model]`.
        weights: Vec<f32>,
        /// Added to the mean square.
        eps: f64,
    },
    /// A function of each coordinate.
    Activation(HeadActivation),
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadActivation {
    /// The hyperbolic tangent.
    Tanh,
    /// `x * Φ(x)`, with the error function.
    Gelu,
    /// The tanh approximation of GELU.
    GeluTanh,
    /// `max(x, 0)`.
    Relu,
    /// `x * sigmoid(x)`.
    Silu,
}

impl HeadActivation {
    /// The value at `x`.
    fn at(self, x: f64) -> f64 {
        match self {
            Self::Tanh => libm::tanh(x),
            Self::Gelu => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
            Self::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + libm::tanh(inner))
            }
            Self::Relu => x.max(0.0),
            Self::Silu => x / (1.0 + libm::exp(-x)),
        }
    }
}

/// `weights · x + bias`, without the bias if that is empty.
fn linear(weights: &[f32], bias: &[f32], x: &[f64]) -> Vec<f64> {
    let dot = |row: &[f32]| row.iter().zip(x).map(|(&w, &x)| f64::from(w) * x).sum::<f64>();
    let rows = weights.chunks_exact(x.len().max(1)).enumerate();
    rows.map(|(label, row)| dot(row) + bias.get(label).map_or(0.0, |&bias| f64::from(bias))).collect()
}

impl HeadStep {
    /// What becomes of `x`.
    fn apply(&self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::Linear { weights, bias } => linear(weights, bias, x),
            Self::Norm { weights, bias, eps } => {
                let count = x.len().max(1) as f64;
                let mean = x.iter().sum::<f64>() / count;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
                let scale = (variance + eps).sqrt().recip();
                let of = |(at, (x, &w)): (usize, (&f64, &f32))| {
                    (x - mean) * scale * f64::from(w) + bias.get(at).map_or(0.0, |&bias| f64::from(bias))
                };
                x.iter().zip(weights).enumerate().map(of).collect()
            }
            Self::RmsNorm { weights, eps } => {
                let square = x.iter().map(|x| x * x).sum::<f64>() / x.len().max(1) as f64;
                let scale = (square + eps).sqrt().recip();
                x.iter().zip(weights).map(|(x, &w)| x * scale * f64::from(w)).collect()
            }
            Self::Activation(function) => x.iter().map(|&x| function.at(x)).collect(),
        }
    }

    /// Its numbers, each part with how many it must be for this width; a bias may be empty.
    fn parts(&self, d_model: usize) -> [(&[f32], usize); 2] {
        match self {
            Self::Linear { weights, bias } => [(weights, d_model * d_model), (bias, d_model)],
            Self::Norm { weights, bias, .. } => [(weights, d_model), (bias, d_model)],
            Self::RmsNorm { weights, .. } => [(weights, d_model), (&[], 0)],
            Self::Activation(_) => [(&[], 0), (&[], 0)],
        }
    }
}

/// Fails unless there are as many numbers as expected, all of them finite.
pub(crate) fn check(what: &'static str, found: &[f32], expected: usize) -> Result<(), Error> {
    Error::check_count(what, expected, found.len())?;
    Error::check_finite(what, found)
}

impl RewardHead {
    /// A head with a row of `weights` `[labels, d_model]` for each of its labels, of the last state.
    ///
    /// # Errors
    /// [`Error::Shape`] unless there are so many weights, and at least one label; [`Error::NonFinite`] for a weight
    /// that is NaN or infinite.
    pub fn new(labels: Vec<String>, weights: Vec<f32>, d_model: usize) -> Result<Self, Error> {
        check("weights of a reward head", &weights, labels.len().max(1) * d_model)?;
        if labels.is_empty() {
            return Err(Error::shape("weights of a reward head", d_model, weights.len()));
        }
        Ok(Self { labels, d_model, layer: None, pooling: Pooling::Last, steps: Vec::new(), weights, bias: Vec::new() })
    }

    /// The same with a number that is added for each label.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::NonFinite`].
    pub fn with_bias(self, bias: Vec<f32>) -> Result<Self, Error> {
        check("the bias of a reward head", &bias, self.labels.len())?;
        Ok(Self { bias, ..self })
    }

    /// The same, of another state, which goes through `steps` first.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::NonFinite`] for numbers of a step that do not fit `d_model` or are not finite.
    pub fn with_steps(self, pooling: Pooling, steps: Vec<HeadStep>) -> Result<Self, Error> {
        for step in &steps {
            let [(weights, expected), (bias, width)] = step.parts(self.d_model);
            check("weights of a reward head", weights, expected)?;
            check("the bias of a reward head", bias, if bias.is_empty() { 0 } else { width })?;
        }
        Ok(Self { pooling, steps, ..self })
    }

    /// The same, of the state of an inner layer, which is as the blocks left it: no norm came behind them.
    #[must_use]
    pub fn at_layer(self, layer: Layer) -> Self {
        Self { layer: Some(layer), ..self }
    }

    /// The layer whose state is read; `None`: the model's last one, behind the final norm.
    #[must_use]
    pub fn layer(&self) -> Option<Layer> {
        self.layer
    }

    /// The layer of this model whose state is read.
    #[must_use]
    pub fn layer_in(&self, model: &ModelInfo) -> Layer {
        self.layer.unwrap_or(Layer(model.n_layers))
    }

    /// What its numbers are called, in their order; a reward model has one.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// Width of the states that it reads.
    #[must_use]
    pub fn d_model(&self) -> usize {
        self.d_model
    }

    /// BLAKE3 hash (64 hexadecimal digits) of its numbers, steps and layer: what tells one head from another.
    #[must_use]
    pub fn id(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        // A plain head has neither a bias nor steps, and keeps the hash that it had before there were any.
        for weight in self.weights.iter().chain(&self.bias) {
            hasher.update(&weight.to_le_bytes());
        }
        for step in &self.steps {
            let kind = match step {
                HeadStep::Linear { bias, .. } => format!("linear {}", bias.len()),
                HeadStep::Norm { bias, eps, .. } => format!("norm {} {eps}", bias.len()),
                HeadStep::RmsNorm { eps, .. } => format!("rms norm {eps}"),
                HeadStep::Activation(function) => format!("{function:?}"),
            };
            hasher.update(format!("{:?} {kind};", self.pooling).as_bytes());
            for number in step.parts(self.d_model).into_iter().flat_map(|(numbers, _)| numbers) {
                hasher.update(&number.to_le_bytes());
            }
        }
        if let Some(layer) = self.layer {
            hasher.update(format!("{layer};").as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The rewards of a state `[d_model]`, one for each label.
    ///
    /// # Errors
    /// [`Error::Shape`] for a state of another width.
    pub fn rewards(&self, state: &[f32]) -> Result<Vec<f64>, Error> {
        Error::check_count("a state for the reward head", self.d_model, state.len())?;
        let state = state.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let state = self.steps.iter().fold(state, |state, step| step.apply(&state));
        Ok(linear(&self.weights, &self.bias, &state))
    }

    /// What has to be read of a model for it.
    #[must_use]
    pub fn want(&self, model: &ModelInfo) -> Want {
        Want { pooled: vec![(self.layer_in(model), self.pooling)], ..Want::default() }
    }

    /// The rewards of what was read as [`want`](Self::want) says.
    ///
    /// # Errors
    /// [`Error::NotRead`] for another reading, and those of [`rewards`](Self::rewards).
    pub fn of_reading(&self, reading: &Reading, model: &ModelInfo) -> Result<Vec<f64>, Error> {
        let state = reading.pooled(self.layer_in(model), self.pooling);
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
        Error::check_count("the width of a reward head", model.d_model, head.d_model)?;
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
        let reward = rewards.get(self.label).ok_or(Error::shape("rewards", self.label + 1, rewards.len()))?;
        Ok(Score::new(*reward))
    }

    fn settings(&self) -> Option<Value> {
        let head = self.head.id();
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
        let biased = head.clone().with_bias(vec![0.5, -0.5]).unwrap();
        assert_eq!(biased.rewards(&[3.0, 4.0]).unwrap(), [11.5, -1.5]);
        assert!(matches!(head.clone().with_bias(vec![0.5]), Err(Error::Shape { expected: 2, found: 1, .. })));
        assert!(matches!(head.clone().with_bias(vec![0.5, f32::INFINITY]), Err(Error::NonFinite { index: 1, .. })));
        let named = |label| RewardJudge::new(head.clone(), label, &model());
        assert!(matches!(named(None), Err(Error::RewardLabel { .. })));
        assert!(matches!(named(Some("kind")), Err(Error::RewardLabel { .. })));
        assert_eq!(<RewardJudge as Judge<dyn Fields>>::name(&named(Some("safe")).unwrap()), "safe");
    }

    #[test]
    fn steps_come_before_the_labels() {
        let head = |steps| {
            let head = RewardHead::new(vec!["good".into()], vec![1.0, 10.0], 2).unwrap();
            head.with_steps(Pooling::First, steps)
        };
        let reward = |steps| head(steps).unwrap().rewards(&[3.0, -1.0]).unwrap()[0];
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        near(reward(Vec::new()), -7.0);
        let turn = || HeadStep::Linear { weights: vec![0.0, 1.0, 1.0, 0.0], bias: vec![0.0, 1.0] };
        near(reward(vec![turn()]), -1.0 + 40.0);
        near(reward(vec![turn(), HeadStep::Activation(HeadActivation::Relu)]), 40.0);
        near(reward(vec![HeadStep::Activation(HeadActivation::Tanh)]), 3.0_f64.tanh() - 10.0 * 1.0_f64.tanh());
        // Values of Φ from a table.
        let gelu = 3.0 * 0.998_650_101_968_369_9 - 10.0 * 0.158_655_253_931_457_05;
        near(reward(vec![HeadStep::Activation(HeadActivation::Gelu)]), gelu);
        assert!((reward(vec![HeadStep::Activation(HeadActivation::GeluTanh)]) - gelu).abs() < 1e-2);
        let silu = 3.0 / (1.0 + (-3.0_f64).exp()) - 10.0 / (1.0 + 1.0_f64.exp());
        near(reward(vec![HeadStep::Activation(HeadActivation::Silu)]), silu);
        // The mean is 1, the variance 4.
        let norm = |bias| HeadStep::Norm { weights: vec![2.0, 3.0], bias, eps: 0.0 };
        near(reward(vec![norm(Vec::new())]), 2.0 - 30.0);
        near(reward(vec![norm(vec![1.0, 1.0])]), 3.0 - 20.0);
        // The mean square is 5; with 4 more, the root is 3.
        let root = || HeadStep::RmsNorm { weights: vec![2.0, 3.0], eps: 4.0 };
        near(reward(vec![root()]), 2.0 - 10.0);
        let inner = head(vec![root()]).unwrap().at_layer(Layer(1));
        assert_eq!((inner.layer(), inner.want(&model()).pooled), (Some(Layer(1)), vec![(Layer(1), Pooling::First)]));
        assert_ne!(inner.id(), head(vec![root()]).unwrap().id());
        assert_eq!(head(Vec::new()).unwrap().want(&model()).pooled, [(Layer(2), Pooling::First)]);
        // What judges have told of themselves tells heads apart.
        let settings = |steps| {
            let judge = RewardJudge::new(head(steps).unwrap(), None, &model()).unwrap();
            <RewardJudge as Judge<dyn Fields>>::settings(&judge).unwrap()["head"].clone()
        };
        let all = [
            settings(Vec::new()),
            settings(vec![norm(Vec::new())]),
            settings(vec![norm(vec![1.0, 1.0])]),
            settings(vec![HeadStep::Activation(HeadActivation::Tanh)]),
            settings(vec![HeadStep::Activation(HeadActivation::Relu)]),
        ];
        assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
        assert!(matches!(head(vec![norm(vec![1.0])]), Err(Error::Shape { expected: 2, found: 1, .. })));
        let bad = HeadStep::Linear { weights: vec![0.0, f32::NAN, 0.0, 0.0], bias: Vec::new() };
        assert!(matches!(head(vec![bad]), Err(Error::NonFinite { index: 1, .. })));
    }
}
