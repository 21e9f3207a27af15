//! Turns a frozen language model into a measuring instrument for text: the vocabulary, the traits, the judges and the runner.
//!
//! A [`Judge`] turns an item into [`Request`]s and what comes back into a [`Score`], or into the reason why there is none. A [`TextModel`]
//! answers requests for text; a [`Backbone`] can be read from the inside as well. The [`Runner`] stands between them:
//!
//! ```text
//! item ──Judge::ask──► Request ──┐                        ┌──► Outcome ──Judge::decide──► Verdict
//! (Fields, PromptTemplate)       └─► Runner ─► TextModel ─┘      (Reading, or Unscored)    (Score, or Unscored)
//! ```
//!
//! [`LagerJudge`](lager::LagerJudge) reads the logits of the score labels at *every* layer (LAGER, arXiv 2508.03550) and combines them with
//! weights that [`LayerWeightFit`](fit::LayerWeightFit) learns from human scores. [`InspectorJudge`](inspector::InspectorJudge) reads
//! pooled states or attention entropies with a [`Probe`](inspector::Probe) per [`Aspect`](inspector::Aspect) (INSPECTOR, arXiv 2601.22588);
//! `judge-probe` fits and loads probes.
//!
//! ```
//! use judge_core::testing::ScriptedBackbone;
//! use judge_core::{lager::{LagerJudge, LagerSettings}, Runner, Scale};
//!
//! # fn main() -> Result<(), judge_core::Error> {
//! // A stand-in; `judge-models` loads a real model from a Hugging Face folder.
//! let model = ScriptedBackbone::new(4).with_logits(|before, layer, label| match label {
//!     '5' if before.contains("Paris") => layer.0 as f32,
//!     '1' if !before.contains("Paris") => layer.0 as f32,
//!     _ => 0.0,
//! });
//! let judge = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5)?), &model)?;
//!
//! let answers = ["Paris.", "London."].map(|response| {
//!     (response.into(), [("instruction", "What is the capital of France?"), ("response", response)])
//! });
//! let results = Runner::new(&model, vec![&judge]).collect(answers)?;
//! let scores: Vec<Option<f64>> = results.iter().map(|result| result.verdicts[0].value()).collect();
//! assert!(scores[0] > Some(4.0) && scores[1] < Some(2.0));
//! # Ok(())
//! # }
//! ```
//!
//! What every program needs is here at the root; the rest is in modules:
//!
//! | module | for |
//! |---|---|
//! | [`prompted`] | judges that are asked in words: prompts as data, verdicts in text or in the probabilities of labels |
//! | [`lager`], [`fit`] | LAGER, and layer weights of your own from tables and human scores |
//! | [`inspector`], [`reward`] | probes on inner states; the heads of reward models |
//! | [`decision`] | typed questions about one state, a probability for every option; checklists |
//! | [`rag`] | answers from retrieved contexts: faithfulness, relevance, recall, precision, correctness |
//! | [`rerank`] | documents in the order of their relevance to a query, by heads, labels or layers |
//! | [`combine`] | panels, names, samples, both orders of a pair, rankings, the human scale |
//! | [`runner`] | how a run goes and what it tells; [`JudgeQueue`](runner::JudgeQueue), the handle for a service |
//! | [`request`], [`reading`], [`verdict`] | what a model is asked, what it answers, what a judge makes of it |
//! | [`scale`], [`template`], [`settings`] | scales, prompts with placeholders, files that people write |
//! | [`model`], [`testing`] | models of your own; checks of models and judges, and a stand-in for a model |
//!
//! * A judge of your own: implement [`Judge`] and let [`testing::check_judge`] look at it.
//!   [`PromptTemplate`] fills the [`Fields`] of your item type.
//! * A model of your own: implement [`TextModel`], and [`Backbone`] if it can be read; see [`testing::check_text_model`] and
//!   [`testing::check_backbone`].
//! * Readings without a judge: [`read`], or [`ReadOnly`](runner::ReadOnly) for more than fits into memory.
//!
//! # When not to use it
//!
//! Inner states need the model's weights: a model behind a text-only service cannot be a [`Backbone`]. A label whose
//! logit is read at every layer must be one vocabulary entry; labels of several tokens (often `10`) are scored at the
//! last layer, as [`Want::continuations`]. This crate reads no file and no network, loads no model (`judge-models`),
//! and computes no agreement (`judge-metrics`).

mod backbone;
pub mod combine;
mod contract;
mod convention;
pub mod decision;
mod error;
mod fields;
pub mod fit;
pub mod inspector;
mod item_id;
mod judge;
pub mod lager;
mod layer;
#[doc(hidden)]
pub mod mersenne_twister;
pub mod model;
mod model_info;
mod names;
#[doc(hidden)]
pub mod panicked;
mod prompt;
pub mod prompted;
pub mod rag;
pub mod reading;
mod replicas;
pub mod request;
pub mod rerank;
pub mod reward;
pub mod runner;
pub mod scale;
pub mod settings;
pub mod template;
pub mod testing;
pub mod verdict;

pub use backbone::{Backbone, TextModel};
pub use error::Error;
pub use fields::Fields;
pub use item_id::ItemId;
pub use judge::{Judge, JudgeError, Rounds};
pub use layer::{Layer, Lens};
pub use model_info::ModelInfo;
pub use prompt::{Cut, Message, Prompt, PromptEnd, WholePrompt};
pub use reading::{Outcome, Reading, Reason, Unscored};
pub use request::{Request, Want};
pub use runner::{ItemResult, Runner, read};
pub use scale::Scale;
pub use template::PromptTemplate;
pub use verdict::{Score, Verdict};
