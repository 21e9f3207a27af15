use std::ops::ControlFlow;

use crate::{
    Backbone, Error, Layer, Lens, Outcome, Prompt, Reading, Request, TextModel, Want,
    model::BackboneError,
    reading::{Finish, Generated, ReplyState},
    request::{Generation, LabelRead, Pooling, ReadAt, ReplyPooling, TokenId},
    testing::ContractBreach,
};

/// Checks that a backbone does what [`Backbone`] promises, on the given prompts (a handful of short ones of different lengths; all are run
/// about ten times).
///
/// * Every request is answered once, with the parts and shapes asked for.
/// * An answer is the same to the bit alone, among others and in any order.
/// * Label logits, pooled states, attention entropies and log-probabilities are the same to the bit whatever else is read in the same pass
///   and whether text is
///   written behind the prompt, and the last layer's logits are the same through both lenses.
/// * A stop text ends what is written, and is not part of it.
/// * [`ControlFlow::Break`] cancels.
/// * Layers and tokens that do not exist, and requests that contradict themselves, end the run with the right error.
///
/// Meant for tests of backbones whose arithmetic is exact in this sense; one on a GPU may differ by rounding and fail.
///
/// # Errors
/// [`Error::Contract`] with the first breach found, [`Error::Backbone`] if a run that should go well fails.
pub fn check_backbone(backbone: &dyn Backbone, prompts: &[Prompt]) -> Result<(), Error> {
    let requests: Vec<Request> = prompts.iter().flat_map(|prompt| requests(backbone, prompt)).collect();
    let alone = requests.iter().map(|request| one(backbone, request)).collect::<Result<Vec<Outcome>, Error>>()?;
    for (request, outcome) in requests.iter().zip(&alone) {
        check_shape(backbone, request, outcome)?;
    }

    for (request, outcome) in requests.chunks(WANTS).zip(alone.chunks(WANTS)) {
        check_parts(request, outcome)?;
    }

    let together: Vec<usize> = (0..requests.len()).collect();
    let reversed: Vec<usize> = together.iter().rev().copied().collect();
    let every_other: Vec<usize> =
        together.iter().step_by(2).chain(together.iter().skip(1).step_by(2)).copied().collect();
    for (order, on) in [(together, "its company"), (reversed, "the order"), (every_other, "the order")] {
        let shuffled: Vec<Request> = order.iter().map(|&index| requests[index].clone()).collect();
        for (found, &index) in all(backbone, &shuffled)?.into_iter().zip(&order) {
            same(&requests[index], on, &alone[index], found)?;
        }
    }
    check_break(backbone, &requests)?;
    for prompt in prompts {
        check_stop(backbone, prompt)?;
    }
    match prompts.first() {
        Some(prompt) => check_refusals(backbone, prompt),
        None => Ok(()),
    }
}

/// Length of what [`requests`] gives.
const WANTS: usize = 10;

/// Every kind of want, on one prompt: six alone, all of them together, the same with text written behind the prompt, and text.
/// [`check_parts`] counts on the first eight.
fn requests(backbone: &dyn Backbone, prompt: &Prompt) -> [Request; WANTS] {
    let info = backbone.info();
    let top = Layer(info.n_layers);
    let read =
        |layers: Vec<Layer>, lens, at, label_mass| LabelRead { tokens: vec![1, 0], layers, lens, at, label_mass };
    let raw = read(info.layers(), Lens::Raw, ReadAt::PromptEnd, true);
    let normed = read(vec![top], Lens::Normed, ReadAt::PromptEnd, false);
    let generate = Some(Generation { max_new_tokens: 3, ..Generation::default() });
    let poolings = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max];
    let pooled: Vec<(Layer, Pooling)> = poolings.iter().flat_map(|&p| [(Layer(0), p), (top, p)]).collect();
    let attention_entropy = backbone.attention_layers();
    let continuations = continuations(prompt);
    let all = Want {
        labels: vec![raw.clone(), normed.clone()],
        pooled: pooled.clone(),
        attention_entropy: attention_entropy.clone(),
        prompt_log_probs: true,
        continuations: continuations.clone(),
        ..Want::default()
    };
    let reply: Vec<(Layer, ReplyPooling)> = ReplyPooling::ALL.iter().flat_map(|&p| [(Layer(0), p), (top, p)]).collect();
    let mut every_step = all.labels.clone();
    every_step.push(read(vec![top], Lens::Normed, ReadAt::EveryStep, true));
    let wants = [
        Want { labels: vec![raw], ..Want::default() },
        Want { labels: vec![normed], ..Want::default() },
        Want { pooled, ..Want::default() },
        Want { attention_entropy, ..Want::default() },
        Want { prompt_log_probs: true, ..Want::default() },
        Want { continuations, ..Want::default() },
        all.clone(),
        Want { generate: generate.clone(), ..all.clone() },
        Want { labels: every_step, generate: generate.clone(), reply: reply.clone(), ..all },
        Want { generate, reply, ..Want::default() },
    ];
    wants.map(|want| Request { prompt: prompt.clone(), want })
}

/// Two texts that the tokenizer knows, since the prompt has them: all of it, and its first character.
fn continuations(prompt: &Prompt) -> Vec<String> {
    let text = match prompt {
        Prompt::Raw(text) => text,
        Prompt::Chat { messages, .. } => match messages.last() {
            Some(message) => &message.content,
            None => return Vec::new(),
        },
        Prompt::Whole(whole) => &whole.template,
    };
    let mut texts: Vec<String> = text.chars().next().map(String::from).into_iter().collect();
    if texts.first().is_some_and(|first| first != text) {
        texts.push(text.clone());
    }
    texts
}

pub(super) fn one(model: &dyn TextModel, request: &Request) -> Result<Outcome, Error> {
    let mut outcomes = all(model, std::slice::from_ref(request))?;
    outcomes.pop().ok_or(ContractBreach::Unanswered { request: 0, requests: 1 }.into())
}

/// The answers in the order of the requests.
pub(super) fn all(model: &dyn TextModel, requests: &[Request]) -> Result<Vec<Outcome>, Error> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; requests.len()];
    let mut wrong = None;
    model.run(requests, &mut |index, outcome| {
        match outcomes.get_mut(index) {
            None => wrong = Some(ContractBreach::NoSuchRequest { request: index, requests: requests.len() }),
            Some(Some(_)) => wrong = Some(ContractBreach::AnsweredTwice { request: index }),
            Some(slot) => *slot = Some(outcome),
        }
        ControlFlow::Continue(())
    })?;
    if let Some(wrong) = wrong {
        return Err(wrong.into());
    }
    let unanswered = |request| ContractBreach::Unanswered { request, requests: requests.len() }.into();
    outcomes.into_iter().enumerate().map(|(index, outcome)| outcome.ok_or_else(|| unanswered(index))).collect()
}

/// Fails unless there are as many as expected.
pub(super) fn count(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(ContractBreach::Shape { what, expected, found }.into()) }
}

fn check_shape(backbone: &dyn Backbone, request: &Request, outcome: &Outcome) -> Result<(), Error> {
    let Outcome::Read(reading) = outcome else { return Ok(()) };
    let info = backbone.info();
    let want = &request.want;
    count("lengths of the prompt", 1, usize::from(reading.prompt_tokens.is_some()))?;
    count("label readings", want.labels.len(), reading.labels.len())?;
    count("generated texts", usize::from(want.generate.is_some()), usize::from(reading.generated.is_some()))?;
    count("pooled states", want.pooled.len(), reading.pooled.len())?;
    for &(layer, pooling) in &want.pooled {
        count("values of a pooled state", info.d_model, reading.pooled(layer, pooling).map_or(0, <[f32]>::len))?;
    }
    let tokens = reading.generated.as_ref().map_or(0, |generated| generated.tokens.len());
    for &(layer, pooling) in want.reply.iter().filter(|(_, pooling)| *pooling != ReplyPooling::ThoughtEnd) {
        let expected = if tokens == 0 { 0 } else { info.d_model };
        count("values of a state of the reply", expected, reading.reply(layer, pooling).map_or(0, <[f32]>::len))?;
    }
    let asked = |state: &ReplyState| want.reply.contains(&(state.layer, state.pooling));
    count("states of the reply", reading.reply.len(), reading.reply.iter().filter(|state| asked(state)).count())?;
    count("attention entropies", want.attention_entropy.len(), reading.attention_entropy.len())?;
    for &layer in &want.attention_entropy {
        count("heads of an attention entropy", info.n_heads, reading.attention_entropy(layer).map_or(0, <[f32]>::len))?;
    }
    if want.prompt_log_probs {
        let tokens = reading.prompt_tokens.unwrap_or_default();
        let found = reading.prompt_log_probs.as_ref().map_or(0, |found| found.log_probs.len());
        count("log-probabilities of the prompt", tokens.saturating_sub(1), found)?;
    }
    count("continuations", want.continuations.len(), reading.continuations.len())?;
    for (text, found) in want.continuations.iter().zip(&reading.continuations) {
        count("continuations in the order asked for", 1, usize::from(found.text == *text))?;
        count("log-probabilities of a continuation", found.tokens.tokens.len(), found.tokens.log_probs.len())?;
    }
    let log_probs = reading.prompt_log_probs.iter().chain(reading.continuations.iter().map(|found| &found.tokens));
    let impossible = log_probs.flat_map(|found| &found.log_probs).filter(|p| !p.is_finite() || **p > 0.0).count();
    count("log-probabilities above 0 or not finite", 0, impossible)?;
    if let Some(generated) = &reading.generated {
        count("counts of new tokens", 1, usize::from(generated.n_tokens.is_some()))?;
        count("text ends", generated.tokens.len(), generated.text_ends.len())?;
        let inside = generated.text_ends.iter().filter(|&&end| end <= generated.text.len()).count();
        count("text ends within the text, ascending", generated.text_ends.len(), inside)?;
        count("ascending text ends", 1, usize::from(generated.text_ends.is_sorted()))?;
    }
    for read in &want.labels {
        let labels = reading.labels(read)?;
        count("labels", read.tokens.len(), labels.tokens.len())?;
        count("layers", read.layers.len(), labels.layers.len())?;
        let new = reading.generated.as_ref().map_or(0, |generated| generated.tokens.len());
        count("steps", if read.at == ReadAt::PromptEnd { 1 } else { new }, labels.steps.len())?;
        for step in &labels.steps {
            count("logits of a step", read.layers.len() * read.tokens.len(), step.logits.len())?;
            let share = step.label_mass.filter(|mass| (0.0..=1.0).contains(mass));
            count("shares of probability on the labels", usize::from(read.label_mass), usize::from(share.is_some()))?;
            let token = read.at != ReadAt::PromptEnd;
            count("tokens of a step", usize::from(token), usize::from(step.token.is_some()))?;
        }
    }
    Ok(())
}

/// One pass for everything brings what a pass for each part brings, whether text is written behind the prompt or not.
fn check_parts(requests: &[Request], outcomes: &[Outcome]) -> Result<(), Error> {
    let read: Vec<&Reading> = outcomes.iter().take(8).filter_map(|outcome| outcome.reading().ok()).collect();
    let [raw, normed, pooled, entropies, log_probs, continuations, _, written] = read[..] else { return Ok(()) };
    let parts = Reading {
        labels: [raw, normed].iter().flat_map(|reading| reading.labels.clone()).collect(),
        pooled: pooled.pooled.clone(),
        attention_entropy: entropies.attention_entropy.clone(),
        prompt_log_probs: log_probs.prompt_log_probs.clone(),
        continuations: continuations.continuations.clone(),
        ..raw.clone()
    };
    same(&requests[6], "what else is read", &Outcome::Read(parts.clone()), outcomes[6].clone())?;
    let parts = Reading { generated: written.generated.clone(), ..parts };
    same(&requests[7], "what else is read", &Outcome::Read(parts), outcomes[7].clone())?;
    if let [every_step, text] = [&outcomes[8], &outcomes[9]].map(Outcome::reading)
        && let (Ok(every_step), Ok(text)) = (every_step, text)
    {
        let parts = Reading { reply: text.reply.clone(), ..every_step.clone() };
        same(&requests[8], "what else is read", &Outcome::Read(parts), outcomes[8].clone())?;
    }
    // The two lenses agree at the last layer.
    let top = |reading: &Reading| {
        let labels = reading.labels.first()?;
        let row = labels.row(labels.steps.first()?, *labels.layers.last()?)?;
        Some(row.iter().map(|z| z.to_bits()).collect::<Vec<_>>())
    };
    match top(normed) == top(raw) {
        true => Ok(()),
        false => same(&requests[1], "the lens, at the last layer", &outcomes[1], outcomes[0].clone()),
    }
}

fn same(request: &Request, on: &'static str, alone: &Outcome, found: Outcome) -> Result<(), Error> {
    // `==` on floats takes 0.0 and -0.0 for the same; the bits are what counts.
    if *alone == found && bits(alone) == bits(&found) {
        return Ok(());
    }
    let (request, alone) = (Box::new(request.clone()), Box::new(alone.clone()));
    Err(ContractBreach::NotInvariant { request, on, alone, found: Box::new(found) }.into())
}

fn bits(outcome: &Outcome) -> Vec<u32> {
    let Outcome::Read(reading) = outcome else { return Vec::new() };
    let steps = || reading.labels.iter().flat_map(|labels| &labels.steps);
    let logits = steps().flat_map(|step| &step.logits).chain(steps().filter_map(|step| step.label_mass.as_ref()));
    let log_probs = reading.prompt_log_probs.iter().chain(reading.continuations.iter().map(|found| &found.tokens));
    let log_probs = log_probs.flat_map(|found| &found.log_probs);
    let pooled = reading.pooled.iter().flat_map(|state| &state.values);
    let pooled = pooled.chain(reading.reply.iter().flat_map(|state| &state.values));
    let entropies = reading.attention_entropy.iter().flat_map(|heads| &heads.values);
    logits.chain(pooled).chain(entropies).chain(log_probs).map(|value| value.to_bits()).collect()
}

/// A text ends before the first stop text that is written.
pub(super) fn check_stop(model: &dyn TextModel, prompt: &Prompt) -> Result<(), Error> {
    let write = |stop: Vec<String>| -> Result<Option<Generated>, Error> {
        let generate = Some(Generation { max_new_tokens: 8, stop, ..Generation::default() });
        let request = Request { prompt: prompt.clone(), want: Want { generate, ..Want::default() } };
        Ok(one(model, &request)?.reading().ok().and_then(|reading| reading.generated.clone()))
    };
    let Some(free) = write(Vec::new())? else { return Ok(()) };
    let Some(last) = free.text.chars().next_back() else { return Ok(()) };
    let stop = last.to_string();
    let expected = free.text.split(last).next().unwrap_or_default();
    let found = write(vec![stop.clone()])?.map(|found| (found.text, found.finish));
    match found {
        Some((text, Finish::StopText)) if text == expected => Ok(()),
        other => {
            let found = other.map(|(text, _)| text).unwrap_or_default();
            Err(ContractBreach::NotStopped { text: free.text, stop, found }.into())
        }
    }
}

pub(super) fn check_break(model: &dyn TextModel, requests: &[Request]) -> Result<(), Error> {
    let mut calls = 0;
    model.run(requests, &mut |_, _| {
        calls += 1;
        ControlFlow::Break(())
    })?;
    if calls > 1 { Err(ContractBreach::CalledAfterBreak.into()) } else { Ok(()) }
}

fn label_read(tokens: &[TokenId], layers: &[Layer], at: ReadAt) -> LabelRead {
    LabelRead { tokens: tokens.to_vec(), layers: layers.to_vec(), lens: Lens::Raw, at, label_mass: false }
}

fn check_refusals(backbone: &dyn Backbone, prompt: &Prompt) -> Result<(), Error> {
    let info = backbone.info();
    let beyond = Layer(info.n_layers + 1);
    let read = |tokens: &[TokenId], layers: &[Layer], at| Want {
        labels: vec![label_read(tokens, layers, at)],
        ..Want::default()
    };
    let twice = label_read(&[0], &[Layer(0)], ReadAt::PromptEnd);
    // Without attention, that of the embeddings, which nothing has.
    let attended = backbone.attention_layers().last().copied().unwrap_or(Layer(0));
    let entropy = |layers: &[Layer]| Want { attention_entropy: layers.to_vec(), ..Want::default() };
    let nothing = Some(Generation { max_new_tokens: 0, ..Generation::default() });
    let no_stop = Some(Generation { stop: vec![String::new()], ..Generation::default() });
    let outside = TokenId::try_from(info.d_vocab).unwrap_or(TokenId::MAX);
    let end = ReadAt::PromptEnd;
    let cases = [
        ("a layer above the last", "BackboneError::Layer", read(&[0], &[beyond], end)),
        (
            "pooling a layer above the last",
            "BackboneError::Layer",
            Want { pooled: vec![(beyond, Pooling::Mean)], ..Want::default() },
        ),
        ("the attention of a layer above the last", "BackboneError::Layer", entropy(&[beyond])),
        ("the attention of the embeddings", "BackboneError::Request", entropy(&[Layer(0)])),
        ("an attention twice", "BackboneError::Request", entropy(&[attended, attended])),
        ("a token outside the vocabulary", "BackboneError::Token", read(&[outside], &[Layer(0)], end)),
        ("a layer twice", "BackboneError::Request", read(&[0], &[Layer(0), Layer(0)], end)),
        ("no layer", "BackboneError::Request", read(&[0], &[], end)),
        ("no label", "BackboneError::Request", read(&[], &[Layer(0)], end)),
        ("steps without generation", "BackboneError::Request", read(&[0], &[Layer(0)], ReadAt::EveryStep)),
        (
            "the reply where there is none",
            "BackboneError::Request",
            Want { reply: vec![(Layer(0), ReplyPooling::Mean)], ..Want::default() },
        ),
        ("no new token", "BackboneError::Request", Want { generate: nothing, ..Want::default() }),
        ("an empty stop text", "BackboneError::Request", Want { generate: no_stop, ..Want::default() }),
        (
            "an empty continuation",
            "BackboneError::Request",
            Want { continuations: vec![String::new()], ..Want::default() },
        ),
        (
            "the same labels twice",
            "BackboneError::Request",
            Want { labels: vec![twice.clone(), twice], ..Want::default() },
        ),
    ];
    for (case, expected, want) in cases {
        let good = Request { prompt: prompt.clone(), want: Want::default() };
        let requests = [good, Request { prompt: prompt.clone(), want }];
        let ended = backbone.run(&requests, &mut |_, _| ControlFlow::Continue(()));
        let (kind, at) = match &ended {
            Ok(()) => ("no error", None),
            Err(BackboneError::Layer { request, .. }) => ("BackboneError::Layer", Some(*request)),
            Err(BackboneError::Token { request, .. }) => ("BackboneError::Token", Some(*request)),
            Err(BackboneError::Request { request, .. }) => ("BackboneError::Request", Some(*request)),
            Err(_) => ("another error", None),
        };
        if kind != expected || at != Some(1) {
            let found = format!("{kind}: {ended:?}");
            return Err(ContractBreach::NotRefused { case, expected, found }.into());
        }
    }
    Ok(())
}
