//! What examples are learnt by: a loss for each kind of judge.
//!
//! | loss | example | per example | counts | read back by |
//! |---|---|---|---|---|
//! | [`Completion`] | tokens with weights | cross-entropy of weighted tokens | weights | generation, prompted judges |
//! | [`Mark`] | a prompt, and a distribution over labels | cross-entropy over the labels alone | 1 | `LagerJudge`, judges of pairs |
//! | [`BradleyTerry`] | a better and a worse answer's prompt | `-ln σ(better - worse - margin)` | 1 | rewards, preferences |
//! | [`Class`] | a prompt, and a class | cross-entropy over the score head's labels | 1 | `reward_scores`, classifiers |
//!
//! A loss is a sum over examples and a count of what it adds up. They are divided once, after micro-batches
//! have been added.

mod bradley_terry;
mod class;
mod completion;
mod labels;
mod mark;
mod measure;

pub use bradley_terry::{BradleyTerry, PairExample, Reward};
pub use class::{Class, ClassExample};
pub use completion::{Completion, CompletionExample};
pub use labels::Labels;
pub use mark::{Mark, MarkExample};
pub use measure::Loss;
