//! Turns a frozen language model into a measuring instrument for text: the vocabulary, the traits, the judges and the runner.
//!
//! A [`Judge`] turns an item into [`Request`]s and what comes back into a [`Verdict`]: a [`ScoreDistribution`] over a [`Scale`], or the
//! reason why there is none. A [`Backbone`] is the model that answers. The [`Runner`] stands between them. [`LagerJudge`] is the
//! judge of this crate: it reads the logits of the score labels at *every* layer (LAGER, arXiv 2508.03550) and puts them together,
//! with weights that [`LayerWeightFit`] learns from human scores.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use judge_core::testing::ScriptedBackbone;
//! use judge_core::{ItemId, LagerJudge, LagerSettings, RunEvent, Runner, Scale, Verdict};
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
//!     let fields = [("instruction", "What is the capital of France?"), ("response", response), ("rubric", "Correctness.")];
//!     (ItemId::from(response), fields)
//! });
//! let mut scores = Vec::new();
//! let summary = Runner::new(&model, vec![&judge]).run(answers, &mut |event| {
//!     if let RunEvent::Item(result) = event
//!         && let Verdict::Scored { distribution, .. } = &result.verdicts[0]
//!     {
//!         scores.push(distribution.expected());
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!(summary.judges[0].scored, 2);
//! assert!(scores[0] > 4.0 && scores[1] < 2.0);
//! # Ok(())
//! # }
//! ```
//!
//! [`InspectorJudge`] reads pooled states or attention entropies instead, with a [`Probe`] per [`Aspect`] (INSPECTOR, arXiv 2601.22588); `judge-probe` fits and loads probes.
//!
//! * A judge of your own: implement [`Judge`]; for prompts, [`PromptTemplate`] fills the [`Fields`] of your item type.
//! * A model of your own: implement [`Backbone`] and let [`testing::check_backbone`] look at it.
//! * Weights of your own: collect [`LagerJudge::table`]s beside human scores as [`Graded`] items and call [`LayerWeightFit::fit`].
//!
//! # When not to use it
//!
//! Inner states need the model's weights: a model behind a text-only service cannot be a [`Backbone`]. A score is one vocabulary entry here, so a scale
//! whose labels the tokenizer splits (often `10`) is refused. This crate reads no file and no network, loads no model (`judge-models`),
//! and computes no agreement (`judge-metrics`).

mod backbone;
mod combine;
mod contract;
mod error;
mod fields;
mod fit;
mod inspector;
mod item_id;
mod judge;
mod lager;
mod layer;
mod model_info;
mod prompt;
mod reading;
mod replicas;
mod request;
mod runner;
mod scale;
mod template;
pub mod testing;
mod verdict;

pub use backbone::{Backbone, BackboneError, Exchange, LabelInContext, RequestProblem, TextModel, TokenId};
pub use combine::{Calibrated, Calibrator, OrderPolicy, Panel, PanelRule, Repeated, Swapped, SwappedFields};
pub use contract::ContractBreach;
pub use error::Error;
pub use fields::Fields;
pub use fit::{Alpha, FitProblem, Graded, ItemOrder, LayerWeightFit, Plateau, RegressionLoss, TargetRule, ThetaInit};
pub use inspector::{
    Aspect, InspectorJudge, InspectorSettings, Probe, ProbeError, ProbeOutput, class_scale, total_score,
};
pub use item_id::ItemId;
pub use judge::{Judge, JudgeError, Rounds};
pub use lager::{
    Condition, LagerJudge, LagerSettings, LayerTable, LayerWeights, ScoreRule, States, TableOrigin, Variant,
    VariantScore, WeightMismatch,
};
pub use layer::{Layer, Lens};
pub use model_info::{Dimensions, ModelIdentity, ModelInfo};
pub use prompt::{Message, Prompt};
pub use reading::{
    ContinuationLogProbs, Finish, Generated, HeadEntropies, LabelLogits, LabelStep, Outcome, PooledState, Reading,
    Reason, TokenLogProbs, Unscored,
};
pub use replicas::{Replicas, ReplicasProblem};
pub use request::{Generation, LabelRead, Pooling, ReadAt, Request, Sampling, Signal, Want};
pub use runner::{Flow, ItemResult, Progress, ReadOnly, RunEvent, RunSettings, RunSummary, Runner, Tally};
pub use scale::{Scale, ScalePoint, ScaleProblem, ScoreDistribution};
pub use template::{PromptTemplate, TemplateProblem};
pub use verdict::{Calibration, CombinedBy, Part, Score, Verdict};
