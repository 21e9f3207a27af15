//! The names that a model takes, compared with those that a file has.
//!
//! Used by [`Store::check`](crate::tensors::Store::check) before anything is read, and by
//! [`Store::finish`](crate::tensors::Store::finish) after everything was.

use std::collections::BTreeSet;

use crate::Error;

/// Full name of the embedding of most decoders.
pub const EMBEDDING: &str = "model.embed_tokens.weight";

/// Full name of every decoder's head over the vocabulary, where it is not the embedding.
pub const HEAD: &str = "lm_head.weight";

/// Parts of names that wrappers of modules put in, anywhere.
const WRAPPERS: [&str; 3] = ["_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"];

/// The same, at the beginning only: `DataParallel` and `DistributedDataParallel`.
const FIRST_WRAPPER: &str = "module.";

/// Compares two sets of names; duplicates and order do not matter.
///
/// # Errors
/// [`Error::TensorNames`] if `expected` has a name that is not in `available`, or if `available`
/// has one that is neither in `expected` nor `redundant`. Both lists are complete and sorted, so
/// one look at the error shows whether a folder is another model or only has other prefixes.
pub(crate) fn compare<'a>(
    expected: impl IntoIterator<Item = &'a str>,
    available: impl IntoIterator<Item = &'a str>,
    redundant: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let expected: BTreeSet<&str> = expected.into_iter().collect();
    let available: BTreeSet<&str> = available.into_iter().collect();
    let missing: Vec<String> = expected.difference(&available).map(|&name| name.to_owned()).collect();
    let unused: Vec<String> =
        available.difference(&expected).filter(|name| !redundant(name)).map(|&name| name.to_owned()).collect();
    if missing.is_empty() && unused.is_empty() { Ok(()) } else { Err(Error::TensorNames { missing, unused }) }
}

/// A name without what wrappers of modules have put into it.
pub fn unwrapped(stored: &str) -> String {
    let stored = stored.strip_prefix(FIRST_WRAPPER).unwrap_or(stored);
    stored.split('.').filter(|part| !WRAPPERS.contains(part)).collect::<Vec<_>>().join(".")
}

/// Whether a tensor holds what no model here computes with, or what follows from `config.json`: heads
/// that predict further tokens (text is written one token at a time here), and buffers, which old
/// releases stored and which every model makes itself.
pub(crate) fn is_needless(own: &str) -> bool {
    /// The last parts of the names of buffers.
    const BUFFERS: [&str; 8] = [
        "inv_freq",
        "original_inv_freq",
        "cos_cached",
        "sin_cached",
        "position_ids",
        "causal_mask",
        "masked_bias",
        "embed_scale",
    ];
    let mut parts = own.rsplit('.');
    let (last, module) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    own.split('.').any(|part| part == "mtp" || part.starts_with("rotary_emb"))
        || BUFFERS.contains(&last)
        // The causal mask of GPT-2 and GPT-NeoX.
        || last == "bias" && ["attn", "attention"].contains(&module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_and_heads_of_further_tokens_are_needless() {
        for name in ["mtp.fc.weight", "model.rotary_emb_local.x", "model.layers.0.self_attn.rotary_emb.inv_freq"] {
            assert!(is_needless(name), "{name}");
        }
        for name in [
            "transformer.h.0.attn.bias",
            "gpt_neox.layers.0.attention.bias",
            "model.embed_tokens.position_ids",
            "model.embed_tokens.embed_scale",
        ] {
            assert!(is_needless(name), "{name}");
        }
        for name in ["lm_head.weight", "model.layers.0.self_attn.q_proj.bias", "model.norm.weight"] {
            assert!(!is_needless(name), "{name}");
        }
    }
}
