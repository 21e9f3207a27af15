//! Models: what they promise, what is known of them, how they fail, and several copies as one.

pub use crate::backbone::{Backbone, BackboneError, Exchange, LabelInContext, RequestProblem, TextModel};
pub use crate::model_info::{Dimensions, ModelIdentity, ModelInfo, same_fingerprint};
pub use crate::replicas::{Replicas, ReplicasProblem};
