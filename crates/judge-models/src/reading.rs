//! What a request wants of a model and how the answer is made of what a pass brings, whichever engine runs it.

pub(crate) mod answers;
mod check;
pub(crate) mod context;
pub(crate) mod driver;
pub(crate) mod exp;
mod finite;
pub(crate) mod groups;
pub(crate) mod jobs;
pub(crate) mod labels;
pub(crate) mod next_token;
pub(crate) mod passes;
pub(crate) mod pooling;
pub(crate) mod sampling;
mod written;
