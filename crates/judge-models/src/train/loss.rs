//! What examples are learnt by: a loss for each kind of judge.
//!
//! | loss | example | per example | counts | read back by |
//! |---|---|---|---|---|
//! | [`Completion`] | tokens with weights | cross-entropy of weighted tokens | weights | generation, prompted judges |
//! | [`Mark`] | a prompt, and a distribution over labels | cross-entropy over the labels alone | 1 | `LagerJudge`, judges of pairs |
//! | [`Decision`] | a prompt with options of its own, and a distribution over them | cross-entropy over the options | 1 | `judge decide` |
//! | [`BradleyTerry`] | a better and a worse answer's prompt | `-ln σ(better - worse - margin)` | 1 | rewards, preferences |
//! | [`Class`] | a prompt, and a class | cross-entropy over the score head's labels | 1 | `judge reward`, classifiers |
//! | [`Ordinal`] | the same, of an ordered scale | binary cross-entropies of "above class k" | 1 | `judge reward` |
//!
//! A loss is a sum over examples and a count of what it adds up. They are divided once, after micro-batches
//! have been added.

mod bradley_terry;
mod class;
mod completion;
mod decision;
mod labels;
mod mark;
mod measure;
mod ordinal;

pub use bradley_terry::{BradleyTerry, PairExample, Reward};
pub use class::{Class, ClassExample};
pub use completion::{Completion, CompletionExample};
pub use decision::{Decision, DecisionExample};
pub use labels::{Labels, ReadFrom};
pub use mark::{Mark, MarkExample};
pub use measure::Loss;
pub use ordinal::Ordinal;
