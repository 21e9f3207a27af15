//! Turns a frozen language model into a measuring instrument for text: the vocabulary, the traits, the judges and the runner.
//!
//! A [`Judge`] turns an item into [`Request`]s and what comes back into a [`Score`], or into the reason why there is none. A [`TextModel`] answers requests for text; a
//! [`Backbone`] can be read from the inside as well. The [`Runner`] stands between them:
//!
//! ```text
//! item ──Judge::ask──► Request ──┐                        ┌──► Outcome ──Judge::decide──► Verdict
//! (Fields, PromptTemplate)       └─► Runner ─► TextModel ─┘      (Reading, or Unscored)    (Score, or Unscored)
//! ```
//!
//! [`LagerJudge`] reads the logits of the score labels at *every* layer (LAGER, arXiv 2508.03550) and combines them with weights that [`LayerWeightFit`] learns
//! from human scores. [`InspectorJudge`] reads pooled states or attention entropies with a [`Probe`] per [`Aspect`] (INSPECTOR, arXiv 2601.22588); `judge-probe`
//! fits and loads probes.
//!
//! ```
//! use judge_core::testing::ScriptedBackbone;
//! use judge_core::{LagerJudge, LagerSettings, Runner, Scale};
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
//! * Judges that are asked in words: a [`PromptFamily`] with a [`WrittenJudge`], a [`LikelihoodJudge`], or the settings of a [`LagerJudge`].
//! * No question at all: [`ResponseLikelihoodJudge`] reads how likely a response is, by itself and behind its prompt.
//! * A judge of your own: implement [`Judge`] and let [`testing::check_judge`] look at it; for prompts, [`PromptTemplate`] fills the [`Fields`] of your item type.
//! * Several judges as one: [`Panel`], [`Repeated`] for samples, [`Swapped`] for both orders of a pair, [`GradedPair`] for two grades, [`Tournament`] and [`EachAnswer`] to rank many answers, [`Calibrated`] for the human scale.
//! * A model of your own: implement [`TextModel`], and [`Backbone`] if it can be read; [`testing::check_text_model`] and [`testing::check_backbone`] look at it.
//! * Readings without a judge: [`ReadOnly`].
//! * Weights of your own: collect [`LagerJudge::table`]s beside human scores as [`Graded`] items and call [`LayerWeightFit::fit`].
//!
//! # When not to use it
//!
//! Inner states need the model's weights: a model behind a text-only service cannot be a [`Backbone`]. A label whose logit is read at every layer must be one
//! vocabulary entry; labels of several tokens (often `10`) are scored at the last layer, as [`Want::continuations`]. This crate reads no file and no network, loads no
//! model (`judge-models`), and computes no agreement (`judge-metrics`).

mod backbone;
pub mod combine;
mod contract;
mod convention;
mod error;
mod fields;
pub mod fit;
pub mod inspector;
mod item_id;
mod judge;
pub mod lager;
mod layer;
pub mod model;
mod model_info;
mod prompt;
pub mod prompted;
pub mod reading;
mod replicas;
pub mod request;
pub mod reward;
pub mod runner;
pub mod scale;
pub mod settings;
pub mod template;
pub mod testing;
pub mod verdict;

pub use backbone::{Backbone, BackboneError, Exchange, LabelInContext, RequestProblem, TextModel};
pub use combine::{
    Calibrated, Calibrator, Compared, EachAnswer, GradedPair, Named, Pairing, Panel, Repeated, RoundRobin, Swapped,
    SwappedFields, Tournament,
};
pub use contract::ContractBreach;
pub use convention::{GradeConvention, PairConvention};
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
    VariantScore, WeightMismatch, WeightNote,
};
pub use layer::{Layer, Lens};
pub use model_info::{Dimensions, ModelIdentity, ModelInfo, same_fingerprint};
pub use prompt::{Message, Prompt};
pub use prompted::{
    FamilyProblem, LikelihoodJudge, PromptFamily, PromptedJudge, ResponseLikelihood, ResponseLikelihoodJudge, Task,
    VerdictFrom, WrittenJudge,
};
pub use reading::{
    ContinuationLogProbs, Finish, Generated, HeadEntropies, LabelLogits, LabelStep, Outcome, PooledState, Reading,
    Reason, TokenAlternatives, TokenLogProbs, Unscored,
};
pub use replicas::{Replicas, ReplicasProblem};
pub use request::{Generation, LabelRead, Pooling, ReadAt, Request, Sampling, Signal, TokenId, Want};
pub use reward::{RewardHead, RewardJudge, closed_conversation};
pub use runner::{
    Flow, ItemResult, JudgeQueue, Pending, Progress, QueueError, ReadOnly, RunEvent, RunSettings, RunSummary, Runner,
    Tally, read,
};
pub use scale::{Scale, ScalePoint, ScaleProblem, ScoreDistribution};
pub use settings::{SettingsError, nearest_name, settings_from_json};
pub use template::{PromptTemplate, TemplateProblem};
pub use verdict::{Calibration, CombinedBy, OrderPolicy, PanelRule, Part, Score, Verdict};
