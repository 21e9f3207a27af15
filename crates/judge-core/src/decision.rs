//! Decisions: typed questions about one state, with a probability for every option.
//!
//! This is the interface that the field calls System One: a *state* (text, or any JSON) and named [`Question`]s (yes or no, a choice, an
//! ordered score) in, an [`Answer`] for each out, from one pass and without a text being written. [`DecisionJudge`] reads the answers from
//! a model: from the logits of the options' labels at the last layer, or at all layers with fitted [`DecisionWeights`], or by a
//! [`DecisionHead`] that comes with a model. [`ChecklistJudge`] asks many yes-or-no questions about one response and adds them up.
//! [`DecisionServiceJudge`] puts the questions to a service that answers decisions.
//!
//! ```
//! use judge_core::decision::{Answer, DecisionItem, DecisionJudge, DecisionSettings, Questions};
//! use judge_core::{Runner, testing::ScriptedBackbone};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A stand-in; `judge-models` loads a real model from a folder or a GGUF file.
//! let model = ScriptedBackbone::new(2).with_logits(|before, _, label| match label {
//!     'B' if before.contains("refund") => 3.0,
//!     _ => 0.0,
//! });
//! let questions: Questions = serde_json::from_value(json!({
//!     "tone": {"type": "choice", "instructions": "What is the tone?", "criteria": {"calm": null, "angry": "Accuses or shouts"}},
//! }))?;
//! let judge = DecisionJudge::new(DecisionSettings::default(), &model)?;
//! let item = DecisionItem { state: json!("I want a refund, now!"), questions };
//! let results = Runner::new(&model, vec![&judge]).collect([("mail".into(), item.clone())])?;
//! let answers = item.questions.answers(&results[0].verdicts[0])?;
//! let Ok(Answer::Choice { choice, confidence, .. }) = &answers[0].answer else { panic!("a choice") };
//! assert_eq!(choice, "angry");
//! assert!(*confidence > 0.9);
//! # Ok(())
//! # }
//! ```

mod answer;
mod asked;
mod checklist;
mod combined;
pub mod exact_json;
mod fit;
mod form;
mod head;
mod item;
mod judge;
mod kind;
mod problem;
mod prompt;
mod question;
mod service;
mod weights;

pub use answer::{Answer, Answered};
pub use asked::Asked;
pub use checklist::{Checklist, ChecklistJudge, Criterion};
pub(crate) use combined::Combined;
pub use fit::{DecisionFit, Labelled};
pub use form::DecisionForm;
pub use head::DecisionHead;
pub use item::{Decidable, DecisionItem};
pub use judge::{DecisionJudge, DecisionSettings, DecisionTable, Readout};
pub use kind::{ByKind, QuestionKind};
pub use problem::{DecisionProblem, QuestionFault};
pub use prompt::{DecisionPrompt, PlainPrompt};
pub use question::{NoulCriteria, Question, Questions};
pub use service::{DecisionRoute, DecisionServiceJudge};
pub use weights::{DecisionOrigin, DecisionWeights, KindWeights, Unsettled};
