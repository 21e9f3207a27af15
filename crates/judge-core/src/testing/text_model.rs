use std::ops::ControlFlow;

use super::check::{all, check_break, check_stop, count, one};
use crate::{
    Error, Layer, Lens, Outcome, Prompt, Request, TextModel, Want,
    model::BackboneError,
    reading::Generated,
    request::{Generation, LabelRead, Pooling, ReadAt, ReplyPooling},
    testing::ContractBreach,
};

/// Checks that a model that only writes text does what [`TextModel`] promises, on the given prompts (a handful of short ones).
///
/// * Every request for text is answered once, alone and among others, with a text or a reason.
/// * What it cannot bring is refused as [`BackboneError::Unsupported`]: label logits, states, attention entropies, log-probabilities.
/// * Alternatives of generated tokens, where they are asked for, are refused in the same way, left out, or those of the text in order.
/// * A stop text ends what is written, and is not part of it.
/// * [`ControlFlow::Break`] cancels.
///
/// It does not ask whether the same request brings the same text: a service need not promise that.
/// Whoever can be read from the inside is checked by
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
    check_break(model, &requests)?;
    for prompt in prompts {
        check_stop(model, prompt)?;
        check_alternatives(model, prompt)?;
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
            ("a state of the reply", Want { reply: vec![(Layer(0), ReplyPooling::Mean)], ..text() }),
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

/// Whoever shows alternatives shows them of the text's own tokens, in order, with log-probabilities.
fn check_alternatives(model: &dyn TextModel, prompt: &Prompt) -> Result<(), Error> {
    let generate = Some(Generation { max_new_tokens: 8, top_log_probs: 2, ..Generation::default() });
    let request = Request { prompt: prompt.clone(), want: Want { generate, ..Want::default() } };
    let outcome = match one(model, &request) {
        Err(Error::Backbone(BackboneError::Unsupported { .. })) => return Ok(()),
        outcome => outcome?,
    };
    let Ok(Some(Generated { text, alternatives, .. })) = outcome.reading().map(|reading| &reading.generated) else {
        return Ok(());
    };
    let mut end = 0;
    for token in alternatives {
        count("the start of a token, where the one before it ends", end, token.start)?;
        end = token.end;
        let impossible = token.top.iter().filter(|(_, p)| !p.is_finite() || *p > 0.0).count();
        count("log-probabilities above 0 or not finite", 0, impossible)?;
        let twice = |(place, one): (usize, &(String, f32))| token.top[..place].iter().any(|other| other.0 == one.0);
        count("alternatives that appear twice", 0, token.top.iter().enumerate().filter(|&one| twice(one)).count())?;
        if let Some(written) = text.get(token.start..token.end) {
            let there = token.top.iter().any(|(other, _)| other.starts_with(written));
            count("written tokens among their alternatives", 1, usize::from(there))?;
        }
    }
    if alternatives.is_empty() { Ok(()) } else { count("bytes of text that are tokens", text.len(), end) }
}
