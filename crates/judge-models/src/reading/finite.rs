//! Looks for NaN and infinity in what was read, so that none leaves the crate as a measurement.
//!
//! `Job::part` calls this for each sequence. Texts need no check: `NextToken` refuses logits that
//! are not finite before a token is chosen from them.

use judge_core::{Reading, Reason, Unscored, reading::TokenLogProbs};

/// Says which number of a reading, or of the log-probabilities of continuations beside it, is NaN
/// or infinite; `None` if all are finite. Looks in the order label logits and mass by step, pooled
/// states, states of the reply, attention entropies, the prompt's log-probabilities, continuations, and names the first.
pub(crate) fn non_finite<'a>(
    reading: &Reading,
    mut continuations: impl Iterator<Item = &'a TokenLogProbs>,
) -> Option<Unscored> {
    let bad = |values: &[f32]| values.iter().copied().find(|x| !x.is_finite());
    let fault = |what: String, value: f32| Unscored::new(Reason::NonFinite, format!("{what} is {value}"));
    for step in reading.labels.iter().flat_map(|labels| &labels.steps) {
        if let Some(value) = bad(&step.logits) {
            return Some(fault(format!("a label logit at step {}", step.step), value));
        }
        if let Some(value) = step.label_mass.filter(|mass| !mass.is_finite()) {
            return Some(fault(format!("the mass of the labels at step {}", step.step), value));
        }
    }
    for state in &reading.pooled {
        if let Some(value) = bad(&state.values) {
            return Some(fault(format!("a coordinate of the state of {}", state.layer), value));
        }
    }
    for state in &reading.reply {
        if let Some(value) = bad(&state.values) {
            return Some(fault(format!("a coordinate of the reply's state of {}", state.layer), value));
        }
    }
    for heads in &reading.attention_entropy {
        if let Some(value) = bad(&heads.values) {
            return Some(fault(format!("an attention entropy of {}", heads.layer), value));
        }
    }
    if let Some(value) = reading.prompt_log_probs.as_ref().and_then(|found| bad(&found.log_probs)) {
        return Some(fault("a log-probability of the prompt".to_owned(), value));
    }
    let value = continuations.find_map(|found| bad(&found.log_probs))?;
    Some(fault("a log-probability of a continuation".to_owned(), value))
}
