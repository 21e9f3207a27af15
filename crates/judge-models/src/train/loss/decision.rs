//! A decision between options that each prompt brings along: what `judge decide` reads.

use burn::tensor::{Bool, Tensor, TensorData, activation};
use judge_core::request::TokenId;
use serde::Serialize;

use super::labels::{ReadFrom, repeated};
use super::measure::Loss;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::{Limits, check_target, check_tokens};
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// Cross-entropy over the options of each prompt. With the same options for all prompts it is that of
/// [`Mark`](super::Mark).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Decision {
    /// Where the options' logits come from.
    pub from: ReadFrom,
    /// What bounds the logits, as the model bounds those that it writes by: `cap * tanh(z / cap)`. `judge decide` reads
    /// with the model's own cap. Positive; `None`, the default, for none.
    pub soft_cap: Option<f64>,
}

/// A prompt that ends where the answer stands.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionExample {
    /// The tokens of the prompt: at least one, at most the model's context, all in the vocabulary.
    pub prompt: Vec<TokenId>,
    /// The token of each option: at least two, each once.
    pub options: Vec<TokenId>,
    /// The probability of each option, in their order; several raters give a soft one. They add up to 1.
    pub target: Vec<f32>,
    /// What logits are divided by, as the model's form says for the kind of question: positive, mostly 1.
    pub temperature: f32,
}

/// The logit of what is no option, far below all that are. Finite, so that its product with 0 is 0.
const NO_OPTION: f32 = -1e9;

impl Loss for Decision {
    type Example = DecisionExample;

    const NAME: &'static str = "decision";

    fn check(&self, limits: Limits) -> Result<(), TrainError> {
        if let Some(cap) = self.soft_cap.filter(|cap| !(cap.is_finite() && *cap > 0.0)) {
            return Err(TrainError::setting("decision.soft_cap", cap, "a positive number"));
        }
        self.from.check(limits)
    }

    fn check_example(&self, example: &DecisionExample, limits: Limits) -> Result<(), ExampleProblem> {
        let DecisionExample { prompt, options, target, temperature } = example;
        check_tokens(prompt, 1, limits)?;
        if options.len() < 2 {
            return Err(ExampleProblem::Count { what: "options", expected: 2, found: options.len() });
        }
        check_tokens(options, 2, Limits { max_len: usize::MAX, ..limits })?;
        if let Some(token) = repeated(options) {
            return Err(ExampleProblem::value(
                format!("token {token}"),
                "that of two options",
                "another token for each",
            ));
        }
        if !(temperature.is_finite() && *temperature > 0.0) {
            return Err(ExampleProblem::value("the temperature", temperature, "a positive number"));
        }
        check_target(target, options.len())
    }

    fn read_from(&self) -> Option<&ReadFrom> {
        Some(&self.from)
    }

    fn sequences<'e>(&self, example: &'e DecisionExample) -> Vec<Sequence<'e>> {
        vec![Sequence::read_at_end(&example.prompt)]
    }

    fn sum(&self, reads: &Reads, examples: &[DecisionExample]) -> Result<Tensor<1>, Error> {
        // One product for the options of all examples, of which each sees its own.
        let mut all: Vec<TokenId> = examples.iter().flat_map(|example| &example.options).copied().collect();
        all.sort_unstable();
        all.dedup();
        let logits = self.from.logits(reads, &all)?; // [examples, all]
        let logits = match self.soft_cap {
            Some(cap) => logits.div_scalar(cap).tanh().mul_scalar(cap),
            None => logits,
        };
        let shape = logits.dims();
        let device = logits.device();
        let at = |example: &DecisionExample, token| example.options.iter().position(|&option| option == token);
        let places: Vec<Option<usize>> =
            examples.iter().flat_map(|example| all.iter().map(move |&token| at(example, token))).collect();
        let rows = || examples.iter().flat_map(|example| std::iter::repeat_n(example, all.len())).zip(&places);
        let targets: Vec<f32> =
            rows().map(|(example, place)| place.map_or(0.0, |place| example.target[place])).collect();
        let others: Vec<bool> = places.iter().map(Option::is_none).collect();
        let temperatures: Vec<f32> = examples.iter().map(|example| example.temperature).collect();
        let targets = Tensor::<2>::from_data(TensorData::new(targets, shape), &device);
        let others = Tensor::<2, Bool>::from_data(TensorData::new(others, shape), &device);
        let temperatures = Tensor::<2>::from_data(TensorData::new(temperatures, [examples.len(), 1]), &device);
        let log_probs = activation::log_softmax((logits / temperatures).mask_fill(others, NO_OPTION), 1);
        Ok((log_probs * targets).sum().neg())
    }
}
