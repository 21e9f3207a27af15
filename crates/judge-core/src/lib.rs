//! Vocabulary, traits, judges and the runner that turn a frozen language model into a measuring instrument for text.

mod backbone;
mod contract;
mod error;
mod fields;
mod fit;
mod item_id;
mod judge;
mod lager;
mod layer;
mod model_info;
mod prompt;
mod reading;
mod request;
mod runner;
mod scale;
mod template;
pub mod testing;

pub use backbone::{Backbone, BackboneError, LabelInContext, RequestProblem, TokenId};
pub use contract::ContractBreach;
pub use error::Error;
pub use fields::Fields;
pub use fit::{Alpha, FitProblem, Graded, ItemOrder, LayerWeightFit, Plateau, RegressionLoss, TargetRule, ThetaInit};
pub use item_id::ItemId;
pub use judge::{Interval, Judge, Verdict};
pub use lager::{
    Condition, LagerJudge, LagerSettings, LayerTable, LayerWeights, ScoreRule, States, TableOrigin, Variant,
    VariantScore, WeightMismatch,
};
pub use layer::{Layer, Lens};
pub use model_info::ModelInfo;
pub use prompt::{Message, Prompt};
pub use reading::{Finish, Generated, LabelLogits, LabelStep, Outcome, PooledState, Reading, Reason, Unscored};
pub use request::{Generation, LabelRead, Pooling, ReadAt, Request, Sampling, Want};
pub use runner::{ItemResult, Progress, RunEvent, RunSettings, RunSummary, Runner, Tally};
pub use scale::{Scale, ScalePoint, ScaleProblem, ScoreDistribution};
pub use template::{PromptTemplate, TemplateProblem};
