//! Which requests a model takes. `model.rs` checks all requests that are answered together before
//! any is tokenised, so nothing is computed for a run that must end.
//!
//! Here is what a request asks for, not what its prompt says: texts without tokens or beyond the
//! context are one item's fault and are found in `jobs`. Everything below this room relies on these
//! checks: layers and tokens are in range, lists of layers ascend without repetition, and no label
//! read is there twice.
//!
//! In this order:
//!
//! | refused | error |
//! |---|---|
//! | a layer above the model's last | `Layer` |
//! | a label outside the vocabulary | `Token` |
//! | what contradicts itself, whatever the model: `Want::check` | `Request` |
//! | label logits, log-probabilities or text of a model without logits | `Unsupported` |
//! | attention entropies of a block without attention, or of an encoder | `Unsupported` |
//! | alternatives of generated tokens | `Unsupported` |

use judge_arch::{Architecture, HeadSpec, NoHead};
use judge_core::{
    Request,
    model::{BackboneError, Dimensions},
};

use super::context::Context;

impl Context {
    /// What cannot be brought because the model has no logits over a vocabulary, and why it has
    /// none, as the end of a sentence; `None` if it has them. Encoders, models with a head of
    /// labels and models without a head have none.
    pub(crate) fn no_logits(&self) -> Option<&'static str> {
        match &self.spec {
            Architecture::Encoder(_) => {
                Some("logits of tokens, log-probabilities or text: it is an encoder, of which pooled states are read")
            }
            Architecture::Decoder(spec) => match spec.head {
                HeadSpec::Own(_) | HeadSpec::Embedding => None,
                HeadSpec::Labels(_) => Some(
                    "logits of tokens, log-probabilities or text: the model has a head of labels in the place of one over the vocabulary",
                ),
                HeadSpec::Absent(NoHead::Class) => Some(
                    "logits of tokens, log-probabilities or text: the class that architectures in config.json names \
                    has no head over the vocabulary, and no lm_head.weight is stored",
                ),
                HeadSpec::Absent(NoHead::NotStored) => Some(
                    "logits of tokens, log-probabilities or text: no lm_head.weight is stored, and tie_word_embeddings \
                    in config.json does not say that the embedding is the head",
                ),
            },
        }
    }

    /// Refuses what a request asks for in vain, whatever its prompt: layers and tokens that the
    /// model does not have, contradictions, and what no model of this kind can bring.
    ///
    /// # Errors
    /// [`BackboneError`] with the request's number, which is `index`: `Layer` and `Token` for what
    /// is out of range, `Request` for contradictions, `Unsupported` for what this model does not
    /// bring.
    pub(crate) fn check(&self, index: usize, request: &Request) -> Result<(), BackboneError> {
        let (Dimensions { n_layers, d_vocab, .. }, want) = (self.spec.dimensions(), &request.want);
        if let Some(layer) = want.layers().find(|layer| layer.0 > n_layers) {
            return Err(BackboneError::Layer { request: index, layer, n_layers });
        }
        for &token in want.labels.iter().flat_map(|read| &read.tokens) {
            if token as usize >= d_vocab {
                return Err(BackboneError::Token { request: index, token, d_vocab });
            }
        }
        want.check().map_err(|problem| BackboneError::Request { request: index, problem })?;
        let unsupported = |what| Err(BackboneError::Unsupported { request: index, what });
        if let Some(what) = self.no_logits().filter(|_| !want.labels.is_empty() || want.needs_all_blocks()) {
            return unsupported(what);
        }
        let with_attention = self.spec.attention_layers();
        if want.attention_entropy.iter().any(|layer| !with_attention.contains(layer)) {
            return unsupported(match &self.spec {
                Architecture::Decoder(_) => "the attention entropy of a block that has no attention",
                Architecture::Encoder(_) => {
                    "attention entropies, which are of causal attention: it is an encoder, of which pooled states are read"
                }
            });
        }
        if want.generate.as_ref().is_some_and(|generation| generation.top_log_probs > 0) {
            return unsupported("the alternatives of generated tokens; read the labels' logits at every step instead");
        }
        Ok(())
    }
}
