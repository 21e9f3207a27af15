use std::error::Error as StdError;

use crate::{
    ItemId, Layer,
    decision::DecisionProblem,
    fit::FitProblem,
    lager::{Variant, WeightNote},
    model::BackboneError,
    prompted::FamilyProblem,
    request::Signal,
    rerank::RerankProblem,
    scale::ScaleProblem,
    template::TemplateProblem,
    testing::ContractBreach,
};

/// Everything that can go wrong in this crate, apart from what is one item's own fault
/// ([`Unscored`](crate::Unscored)).
///
/// Every message is whole: it ends with what its [`source`](StdError::source) says, which is there for programs. Whoever prints the chain
/// of causes leaves out those that the message before them holds.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The points do not make a scale.
    #[error("not a scale: {problem}")]
    Scale {
        /// What is wrong.
        problem: ScaleProblem,
    },
    /// A count is not what it must be.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What is counted.
        what: &'static str,
        /// The right count.
        expected: usize,
        /// The count found.
        found: usize,
    },
    /// NaN or infinity.
    #[error("{what}: value {index} is {value}, expected a finite number")]
    NonFinite {
        /// What the values are.
        what: &'static str,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Weights that cannot be divided by their sum to give probabilities.
    #[error("not a distribution: {weights:?}")]
    NotADistribution {
        /// The weights.
        weights: Vec<f64>,
    },
    /// A name that is not known.
    #[error("no {what} is called {found:?}; there are {known:?}")]
    UnknownName {
        /// What was to be named.
        what: &'static str,
        /// The name.
        found: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A reward head has no label of this name, or several where none is named.
    #[error("the reward head has the labels {known:?}; {}", if found.is_empty() { "name one of them".to_owned() } else { format!("{found:?} is none of them") })]
    RewardLabel {
        /// The name; empty if none is given.
        found: String,
        /// The labels there are.
        known: Vec<String>,
    },
    /// A template is wrong, or an item lacks what it names.
    #[error("prompt template: {problem}")]
    Template {
        /// What is wrong.
        problem: TemplateProblem,
    },
    /// A prompt family cannot work.
    #[error("prompt family {name:?}: {problem}")]
    Family {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: FamilyProblem,
    },
    /// Decisions: questions, labels, weights or a checklist that cannot work.
    #[error(transparent)]
    Decision(#[from] DecisionProblem),
    /// Reranking: a scoring that the model or the settings cannot bring.
    #[error(transparent)]
    Rerank(#[from] RerankProblem),
    /// Layers are not strictly ascending.
    #[error("layers do not ascend: {after} follows {before}")]
    LayerOrder {
        /// A layer.
        before: Layer,
        /// The layer after it.
        after: Layer,
    },
    /// A reading holds nothing of a kind that is needed: it is not the answer to the request that the judge made.
    #[error("the reading holds no {what}")]
    NotRead {
        /// What is missing.
        what: &'static str,
    },
    /// A layer is needed that was not read.
    #[error("{layer} was not read")]
    LayerNotRead {
        /// The layer.
        layer: Layer,
    },
    /// A score variant needs layer weights and there are none.
    #[error("{variant} needs layer weights")]
    WeightsNeeded {
        /// The variant.
        variant: Variant,
    },
    /// A judge whose preferences are asked for in both orders gives a value that is none.
    #[error("judge {judge} gives {value}; expected a preference for the response shown first, from 0 to 1")]
    NotAPreference {
        /// The judge.
        judge: String,
        /// Its value.
        value: f64,
    },
    /// A tournament's pairing lets answers meet that are not two of the item's.
    #[error("the pairing gives [{first}, {second}]; expected two different answers of 0 to {}", answers - 1)]
    NotAPair {
        /// One of them, from 0.
        first: usize,
        /// The other.
        second: usize,
        /// Answers of the item, at least 2.
        answers: usize,
    },
    /// Samples of a judge are wanted that does not draw.
    #[error(
        "judge {judge} decodes greedily, so repeated samples would be identical; use Sampling::Random in every request"
    )]
    NotSampled {
        /// The judge.
        judge: String,
    },
    /// Layer weights are not for what they are to be used on.
    #[error("these layer weights cannot be used here: {mismatch}")]
    WeightsRefused {
        /// What differs.
        mismatch: WeightNote,
    },
    /// Layer weights cannot be fitted.
    #[error("layer weights cannot be fitted: {problem}")]
    Fit {
        /// What is wrong.
        problem: FitProblem,
    },
    /// A probe is not for the model at hand.
    #[error("the probe is not for the model {model}: {source}")]
    ProbeRefused {
        /// The model.
        model: String,
        /// The probe's own reason.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A probe reads nothing, a signal twice, a layer beyond the model's, or the attention of the embeddings.
    #[error(
        "the probe reads {signals:?}: expected one signal or more, each once, of layers up to {n_layers}, and no attention of layer 0"
    )]
    ProbeSignals {
        /// What it reads.
        signals: Vec<(Layer, Signal)>,
        /// The model's last layer.
        n_layers: usize,
    },
    /// A probe reads states of a text that is written, where the prompt alone is read.
    #[error(
        "the probe of {aspect} reads states of a reply, and here nothing is written: expected a probe of the prompt's states"
    )]
    ProbeOfReply {
        /// What it judges.
        aspect: String,
    },
    /// A probe that is to say how likely a verdict is right says something else.
    #[error("the probe tells the classes {classes:?} apart: expected 0 (wrong) and 1 (right)")]
    NoConfidence {
        /// Its classes.
        classes: Vec<i64>,
    },
    /// A probe that is to say how likely a verdict is right knows no probabilities, as a support vector machine does not.
    #[error("the probe gives no probabilities: expected one that does, such as logistic regression")]
    NoProbabilities,
    /// A probe reads states of a text that is written, and the judge reads its verdict without writing.
    #[error(
        "the probe reads states of a reply, and this judge writes none: take a judge that writes its verdict, or a probe of the prompt's states"
    )]
    ReplyNotWritten,
    /// A probe could not judge the states it was given.
    #[error("the probe failed: {source}")]
    Probe {
        /// The probe's own reason.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Two items of a run have the same id.
    #[error("the id {id} appears twice")]
    DuplicateId {
        /// The id.
        id: ItemId,
    },
    /// The source of a run's items failed.
    #[error("the items could not be read: {source}")]
    Items {
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A judge could not work on an item.
    #[error("judge {judge}, item {id}: {source}")]
    Item {
        /// The judge's name.
        judge: String,
        /// The item.
        id: ItemId,
        /// Why: an [`Error`], a [`BackboneError`], or the judge's own.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The observer of a run failed. The message and the source are those of its error.
    #[error(transparent)]
    Observer {
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A judge makes requests about an item in every round.
    #[error("judge {judge} still makes requests about item {id} after {rounds} rounds")]
    TooManyRounds {
        /// The judge's name.
        judge: String,
        /// The item.
        id: ItemId,
        /// Rounds asked.
        rounds: usize,
    },
    /// A model or a judge does not do what its trait promises.
    #[error("{} breaks its contract: {breach}", breach.party())]
    Contract {
        /// How.
        breach: ContractBreach,
    },
    /// The backbone ended the run.
    #[error(transparent)]
    Backbone(#[from] BackboneError),
}

impl Error {
    pub(crate) fn shape(what: &'static str, expected: usize, found: usize) -> Self {
        Self::Shape { what, expected, found }
    }

    /// Fails unless there are as many as expected.
    pub(crate) fn check_count(what: &'static str, expected: usize, found: usize) -> Result<(), Self> {
        if found == expected { Ok(()) } else { Err(Self::shape(what, expected, found)) }
    }

    /// Fails unless all numbers are finite.
    pub(crate) fn check_finite<T: Copy + Into<f64>>(what: &'static str, numbers: &[T]) -> Result<(), Self> {
        let mut numbers = numbers.iter().copied().map(Into::<f64>::into).enumerate();
        match numbers.find(|(_, number)| !number.is_finite()) {
            Some((index, value)) => Err(Self::NonFinite { what, index, value }),
            None => Ok(()),
        }
    }

    /// The sum of weights; fails if one is negative, all are 0, or the sum is not finite.
    pub(crate) fn check_weights(weights: &[f64]) -> Result<f64, Self> {
        let sum: f64 = weights.iter().sum();
        if weights.iter().any(|&w| w < 0.0) || sum <= 0.0 || !sum.is_finite() {
            return Err(Self::NotADistribution { weights: weights.to_vec() });
        }
        Ok(sum)
    }
}

impl From<TemplateProblem> for Error {
    fn from(problem: TemplateProblem) -> Self {
        Self::Template { problem }
    }
}

impl From<FitProblem> for Error {
    fn from(problem: FitProblem) -> Self {
        Self::Fit { problem }
    }
}

impl From<ContractBreach> for Error {
    fn from(breach: ContractBreach) -> Self {
        Self::Contract { breach }
    }
}

/// The one of this name, out of all of its kind.
pub(crate) fn by_name<T: Copy>(
    what: &'static str,
    name: &str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<T, Error> {
    let found = all.iter().copied().find(|&one| as_str(one) == name);
    let known = || all.iter().map(|&one| as_str(one)).collect();
    found.ok_or_else(|| Error::UnknownName { what, found: name.to_owned(), known: known() })
}
