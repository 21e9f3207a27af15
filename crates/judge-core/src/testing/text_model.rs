use std::ops::ControlFlow;

use super::check::{all, check_stop};
use crate::{
    BackboneError, ContractBreach, Error, Generation, LabelRead, Layer, Lens, Outcome, Pooling, Prompt, ReadAt,
    Request, TextModel, Want,
};

/// Checks that a model that only writes text does what [`TextModel`] promises, on the given prompts (a handful of short ones).
///
/// * Every request for text is answered once, alone and among others, with a text or a reason.
/// * What it cannot bring is refused as [`BackboneError::Unsupported`]: label logits, states, attention entropies, log-probabilities.
/// * A stop text ends what is written, and is not part of it.
/// * [`ControlFlow::Break`] cancels.
///
/// It does not ask whether the same request brings the same text: a service need not promise that. Whoever can be read from the inside is checked by
/// [`check_backbone`](super::check_backbone) instead.
///
/// # Errors
/// [`Error::Contract`] with the first breach found, [`Error::Backbone`] if a run that should go well fails.
pub fn check_text_model(model: &dyn TextModel, prompts: &[Prompt]) -> Result<(), Error> {
    let text = || Want { generate: Some(Generation { max_new_tokens: 8, ..Generation::default() }), ..Want::default() };
    let requests: Vec<Request> =
        prompts.iter().map(|prompt| Request { prompt: prompt.clone(), want: text() }).collect();
    for outcome in all(model, &requests)? {
        if let Outcome::Read(reading) = outcome
            && reading.generated.is_none()
        {
            return Err(ContractBreach::Shape { what: "generated texts", expected: 1, found: 0 }.into());
        }
    }
    let mut calls = 0;
    model.run(&requests, &mut |_, _| {
        calls += 1;
        ControlFlow::Break(())
    })?;
    if calls > 1 {
        return Err(ContractBreach::CalledAfterBreak.into());
    }
    for prompt in prompts {
        check_stop(model, prompt)?;
        let labels = LabelRead {
            tokens: vec![0, 1],
            layers: vec![Layer(0)],
            lens: Lens::Raw,
            at: ReadAt::PromptEnd,
            label_mass: false,
        };
        let wants = [
            ("label logits", Want { labels: vec![labels], ..text() }),
            ("a pooled state", Want { pooled: vec![(Layer(0), Pooling::Mean)], ..text() }),
            ("attention entropies", Want { attention_entropy: vec![Layer(1)], ..text() }),
            ("log-probabilities of the prompt", Want { prompt_log_probs: true, ..text() }),
            ("the log-probability of a continuation", Want { continuations: vec!["a".to_owned()], ..text() }),
        ];
        for (case, want) in wants {
            let requests = [Request { prompt: prompt.clone(), want: text() }, Request { prompt: prompt.clone(), want }];
            let ended = model.run(&requests, &mut |_, _| ControlFlow::Continue(()));
            if !matches!(ended, Err(BackboneError::Unsupported { request: 1, .. })) {
                let (expected, found) = ("BackboneError::Unsupported", format!("{ended:?}"));
                return Err(ContractBreach::NotRefused { case, expected, found }.into());
            }
        }
    }
    Ok(())
}
