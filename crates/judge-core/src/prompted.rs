//! Prompted judges: a prompt as data, and the verdict found in what the model writes or is about to write.

mod alternatives;
mod built_in;
mod family;
mod judge;
mod likelihood;
mod problem;
mod response_likelihood;
mod written;

pub use crate::convention::{GradeConvention, PairConvention};
pub use family::{PromptFamily, Task};
pub use judge::{PromptedJudge, VerdictFrom};
pub use likelihood::LikelihoodJudge;
pub use problem::FamilyProblem;
pub use response_likelihood::{ResponseLikelihood, ResponseLikelihoodJudge};
pub use written::WrittenJudge;
