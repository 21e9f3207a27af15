//! INSPECTOR: probes on a model's pooled states, one per aspect (Representation-as-a-Judge, arXiv 2601.22588).

mod aspect;
mod judge;
mod probe;
mod reader;

pub use aspect::Aspect;
pub use judge::{InspectorJudge, InspectorSettings, class_scale, total_score};
pub use probe::{Probe, ProbeError, ProbeOutput};
pub(crate) use reader::ProbeReader;
