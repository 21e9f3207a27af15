//! Answers that rest on retrieved contexts (RAG), measured by yes-or-no decisions of a local model.
//!
//! Of a question, the contexts that were retrieved for it, the response, and a reference where there is one, a [`RagJudge`] asks for each
//! [`RagMeasure`] what that needs: of each [sentence](sentences) of the response whether the contexts support it, of each context whether it
//! helps, and so on. Every answer is a probability that is read where the model would write `Yes` or `No`
//! ([`DecisionJudge`](crate::decision::DecisionJudge)); no text is written and none is parsed, so the same row has the same numbers each time.
//!
//! ```
//! use judge_core::decision::{DecisionJudge, DecisionSettings};
//! use judge_core::rag::{RagItem, RagJudge, RagMeasure, RagSettings};
//! use judge_core::{Runner, testing::ScriptedBackbone};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A stand-in, which doubts the Moon; `judge-models` loads a real model from a folder or a GGUF file.
//! let model = ScriptedBackbone::new(2).with_logits(|before, _, label| match label {
//!     'N' if before.contains("Statement: It is on the Moon.") => 4.0,
//!     'Y' => 2.0,
//!     _ => 0.0,
//! });
//! let mut decisions = DecisionSettings::default();
//! decisions.form.labels.noul = vec!["Y".to_owned(), "N".to_owned()]; // of the stand-in; a real model has `Yes` and `No`
//! let judge = RagJudge::new(RagSettings::default(), DecisionJudge::new(decisions, &model)?)?;
//! let item = RagItem {
//!     question: Some("Where is the tower?".to_owned()),
//!     contexts: vec!["The tower stands in Paris.".to_owned()],
//!     response: Some("It stands in Paris. It is on the Moon.".to_owned()),
//!     ..RagItem::default()
//! };
//! let results = Runner::new(&model, vec![&judge]).collect([("tower".into(), item)])?;
//! let found = judge.findings(&results[0].item, &results[0].rounds(0))?;
//! let faithfulness = found.measures[&RagMeasure::Faithfulness].as_ref().unwrap();
//! assert_eq!(faithfulness.share, 0.5);
//! assert!(found.sentences[1].supported < Some(0.2));
//! # Ok(())
//! # }
//! ```

mod findings;
mod item;
mod judge;
mod measure;
mod plan;
mod sentences;
mod settings;

pub use findings::{JudgedSentence, RagFindings, RagValue};
pub use item::{RagField, RagItem};
pub use judge::RagJudge;
pub use measure::RagMeasure;
pub use plan::{sentence_prompt_settings, sentence_prompts};
pub use sentences::{Sentence, sentences};
pub use settings::RagSettings;
