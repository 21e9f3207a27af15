//! Vocabulary, traits, judges and the runner that turn a frozen language model into a measuring instrument for text.

mod backbone;
mod error;
mod judge;
mod layer;
mod model_info;
mod prompt;
mod reading;
mod request;
mod scale;
pub mod testing;

pub use backbone::{Backbone, BackboneError, LabelInContext, RequestProblem, TokenId};
pub use error::Error;
pub use judge::{Interval, Judge, Verdict};
pub use layer::{Layer, Lens};
pub use model_info::ModelInfo;
pub use prompt::{Message, Prompt};
pub use reading::{Finish, Generated, LabelLogits, LabelStep, Outcome, PooledState, Reading, Reason, Unscored};
pub use request::{Generation, LabelRead, Pooling, ReadAt, Request, Sampling, Want};
pub use scale::{Scale, ScalePoint, ScaleProblem, ScoreDistribution};
