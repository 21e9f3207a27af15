//! What a model calls a stored tensor: one rule for the files of a model and of its adapters.
//!
//! | stored | own | written by |
//! |---|---|---|
//! | `model.layers.0.mlp.down_proj.weight` | the same | a causal language model |
//! | `layers.0.mlp.down_proj.weight` | with `model.` before it, of GPT-2 `transformer.` | its base class, `AutoModel` |
//! | `model.language_model.layers.0.…`, `language_model.model.layers.0.…`, `language_model.layers.0.…` | `model.layers.0.…` | vision-language classes, by release |
//! | `model.text_model.layers.0.…` | `model.layers.0.…` | Idefics 3, SmolVLM |
//! | `language_model.lm_head.weight` | `lm_head.weight` | the same |
//! | `model.visual.…`, `vision_tower.…` | none: they are not read | the same |
//! | `backbone.layers.0.…` | `model.layers.0.…` | Nemotron-H |
//! | `embed_out.weight` | `lm_head.weight` | GPT-NeoX |
//! | `_orig_mod.model.layers.0.…` | without the wrapper | `torch.compile`, FSDP, activation checkpoints, DDP |
//!
//! The names in a file decide, not the version or the class that `config.json` names: programs move
//! weights from one to the other. Names that no rule fits stay as they are, for the check of names
//! to report.

use std::collections::BTreeSet;

use judge_weights::names::unwrapped;

use judge_arch::ModelSpec;

/// What the names of the text model's tensors begin with inside a vision-language model, and what
/// they begin with in a model of its own. The first that fits counts.
const TOWERS: [(&str, &str); 7] = [
    ("language_model.model.", "model."),
    ("model.text_model.", "model."),
    ("language_model.lm_head.", "lm_head."),
    ("model.language_model.lm_head.", "lm_head."),
    ("model.language_model.", "model."),
    ("language_model.", "model."),
    ("backbone.", "model."),
];

/// What the names of all other tensors in such a folder begin with, without `model.`: the parts that
/// see, hear and decide.
const OTHER_TOWERS: [&str; 10] = [
    "vision_tower.",
    "vision_model.",
    "vision_embedder.",
    "multi_modal_projector.",
    "connector.",
    "visual.",
    "audio_tower.",
    "embed_vision.",
    "embed_audio.",
    // The head of a decision model, which `decision.rs` reads.
    "proj.",
];

/// What the head over the vocabulary is called in files, and here.
const HEADS: (&str, &str) = ("embed_out.", "lm_head.");

/// The rule for one model.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnNames {
    /// Whether parts that see and hear may be there.
    is_tower: bool,
    /// What the base class is called inside the class with a head, with a point behind: `model.` in
    /// most families.
    base: String,
    /// What follows `base` in the names of the model's tensors, up to the next dot: `layers`,
    /// `embed_tokens`, `norm` and the like. Names that begin so are those of a base class.
    roots: BTreeSet<String>,
}

impl OwnNames {
    /// The rule for a decoder.
    pub(crate) fn of(spec: &ModelSpec) -> Self {
        let names = spec.tensors();
        let base = format!("{}.", spec.embedding.split('.').next().unwrap_or_default());
        let roots = names.iter().filter_map(|(name, _)| name.strip_prefix(&base)?.split('.').next().map(str::to_owned));
        Self { is_tower: spec.is_tower, roots: roots.collect(), base }
    }

    /// The model's own name of a stored tensor; `None` for one that is not read.
    pub(crate) fn own(&self, stored: &str) -> Option<String> {
        let name = unwrapped(stored);
        let within = name.strip_prefix(&self.base).unwrap_or(&name);
        if self.is_tower && OTHER_TOWERS.iter().any(|other| within.starts_with(other)) {
            return None;
        }
        if let Some(own) = TOWERS.iter().find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?))) {
            return Some(own);
        }
        if let Some(rest) = name.strip_prefix(HEADS.0) {
            return Some(format!("{}{rest}", HEADS.1));
        }
        let root = name.split('.').next().unwrap_or_default();
        Some(if self.roots.contains(root) { format!("{}{name}", self.base) } else { name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_become_the_models_own() {
        let roots = ["embed_tokens", "layers", "norm"].map(str::to_owned).into();
        let tower = OwnNames { is_tower: true, roots, base: "model.".to_owned() };
        let text = OwnNames { is_tower: false, ..tower.clone() };
        for (stored, own) in [
            ("model.norm.weight", "model.norm.weight"),
            ("norm.weight", "model.norm.weight"),
            ("layers.3.self_attn.q_proj.qweight", "model.layers.3.self_attn.q_proj.qweight"),
            ("lm_head.weight", "lm_head.weight"),
            ("embed_out.weight", "lm_head.weight"),
            ("score.weight", "score.weight"),
            ("_orig_mod.model.layers.0._orig_mod.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"),
            ("module.model.norm.weight", "model.norm.weight"),
            ("_fsdp_wrapped_module.norm.weight", "model.norm.weight"),
            ("model.language_model.norm.weight", "model.norm.weight"),
            ("language_model.model.norm.weight", "model.norm.weight"),
            ("language_model.norm.weight", "model.norm.weight"),
            ("model.text_model.norm.weight", "model.norm.weight"),
            ("language_model.lm_head.weight", "lm_head.weight"),
            ("what.is.this", "what.is.this"),
        ] {
            assert_eq!(text.own(stored).as_deref(), Some(own), "{stored}");
            assert_eq!(tower.own(stored).as_deref(), Some(own), "{stored}");
        }
        for stored in [
            "model.visual.norm.weight",
            "vision_tower.layers.0.norm.weight",
            "model.embed_audio.x",
            "model.connector.x",
        ] {
            assert_eq!(tower.own(stored), None);
            assert_eq!(text.own(stored).as_deref(), Some(stored));
        }
    }
}
