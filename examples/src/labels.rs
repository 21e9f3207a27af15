//! Whether score labels are tokens of their own where they are read.

use anyhow::Result;
use judge_core::{Backbone, BackboneError, Prompt};
use judge_models::Error;

/// Says once, on stderr, where the tokenizer would not put a label as a token of its own right after the prompt. A prompt that has no tokens
/// is passed over; it will be unscored.
///
/// # Errors
/// If the model cannot be asked.
pub fn note_split_labels(model: &dyn Backbone, prompt: &Prompt, labels: &[String]) -> Result<()> {
    for label in labels {
        let found = match model.label_in_context(prompt, label) {
            Ok(found) => found,
            Err(BackboneError::Model(source)) if matches!(source.downcast_ref(), Some(Error::Prompt { .. })) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if !found.agrees {
            eprintln!(
                "note: after the first prompt the tokenizer would write label {label:?} as {:?}, not as {:?}; --prefill may end the prompt better",
                found.together, found.apart
            );
            return Ok(());
        }
    }
    Ok(())
}
