//! EXAONE 4: norms behind both halves of a block and of query and key heads; where blocks have windows, those without do not rotate.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{BlockNorms, Dense, QkNorm};
use crate::arch::shape::{Shape, size, window, windows};

#[derive(Deserialize)]
struct Exaone4 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    sliding_window: Option<usize>,
    // A number, or letters beside which `layer_types` is given.
    sliding_window_pattern: Value,
    layer_types: Option<Vec<String>>,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 102_400, "intermediate_size": 16384, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "sliding_window": 4096, "sliding_window_pattern": 4
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let found: Exaone4 = serde_json::from_value(fields)?;
    let sliding = window(found.sliding_window)?;
    let dense = found.shape.lower("exaone4", "hidden_act", &found.hidden_act)?;
    let pattern = match (&found.layer_types, sliding) {
        (None, Some(_)) => {
            let pattern = found.sliding_window_pattern.as_u64().and_then(|pattern| usize::try_from(pattern).ok());
            size("sliding_window_pattern", pattern.unwrap_or(0), usize::MAX)?
        }
        _ => 1,
    };
    let windows = windows(found.layer_types, sliding, pattern, dense.n_layers)?;
    let rope_of = windows.iter().map(|window| (sliding.is_none() || window.is_some()).then_some(0)).collect();
    Ok(Dense { norms: BlockNorms::AFTER, qk_norm: QkNorm::PerHead, windows, rope_of, ..dense })
}
