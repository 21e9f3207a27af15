use std::ops::ControlFlow;

use crate::{
    Backbone, BackboneError, ContractBreach, Error, Generation, LabelRead, Layer, Lens, Outcome, Pooling, Prompt,
    ReadAt, Reading, Request, Sampling, TokenId, Want,
};

/// Checks that a backbone does what [`Backbone`] promises, on the given prompts (a handful of short ones of different lengths; all are run about
/// ten times).
///
/// * Every request is answered once, with the parts and shapes asked for.
/// * An answer is the same to the bit alone, among others and in any order.
/// * Label logits, pooled states and attention entropies are the same to the bit whatever else is read in the same pass, and the last layer's
///   logits are the same through both lenses.
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
        check_parts(backbone, request, outcome)?;
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
    match prompts.first() {
        Some(prompt) => check_refusals(backbone, prompt),
        None => Ok(()),
    }
}

/// Length of what [`requests`] gives.
const WANTS: usize = 7;

/// Every kind of want, on one prompt. [`check_parts`] counts on the first five.
fn requests(backbone: &dyn Backbone, prompt: &Prompt) -> [Request; WANTS] {
    let info = backbone.info();
    let tokens: Vec<TokenId> = vec![1, 0];
    let top = Layer(info.n_layers);
    let read = |layers: Vec<Layer>, lens, at| Some(LabelRead { tokens: tokens.clone(), layers, lens, at });
    let generate = Some(Generation { max_new_tokens: 3, sampling: Sampling::Greedy });
    let poolings = [Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max];
    let pooled: Vec<(Layer, Pooling)> = poolings.iter().flat_map(|&p| [(Layer(0), p), (top, p)]).collect();
    let attention_entropy = info.layers().split_off(1);
    let wants = [
        Want { labels: read(info.layers(), Lens::Raw, ReadAt::PromptEnd), ..Want::default() },
        Want { labels: read(vec![top], Lens::Normed, ReadAt::PromptEnd), ..Want::default() },
        Want { pooled: pooled.clone(), ..Want::default() },
        Want { attention_entropy: attention_entropy.clone(), ..Want::default() },
        Want {
            labels: read(info.layers(), Lens::Raw, ReadAt::PromptEnd),
            pooled: pooled.clone(),
            attention_entropy: attention_entropy.clone(),
            generate: None,
        },
        Want {
            labels: read(info.layers(), Lens::Normed, ReadAt::EveryStep),
            generate: generate.clone(),
            pooled,
            attention_entropy,
        },
        Want { generate, ..Want::default() },
    ];
    wants.map(|want| Request { prompt: prompt.clone(), want })
}

fn one(backbone: &dyn Backbone, request: &Request) -> Result<Outcome, Error> {
    let mut outcomes = all(backbone, std::slice::from_ref(request))?;
    outcomes.pop().ok_or(ContractBreach::Unanswered { request: 0, requests: 1 }.into())
}

/// The answers in the order of the requests.
fn all(backbone: &dyn Backbone, requests: &[Request]) -> Result<Vec<Outcome>, Error> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; requests.len()];
    let mut wrong = None;
    backbone.run(requests, &mut |index, outcome| {
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

fn check_shape(backbone: &dyn Backbone, request: &Request, outcome: &Outcome) -> Result<(), Error> {
    let Outcome::Read(reading) = outcome else { return Ok(()) };
    let info = backbone.info();
    let count = |what, expected: usize, found: usize| match expected == found {
        true => Ok(()),
        false => Err(Error::from(ContractBreach::Shape { what, expected, found })),
    };
    let want = &request.want;
    count("label readings", usize::from(want.labels.is_some()), usize::from(reading.labels.is_some()))?;
    count("generated texts", usize::from(want.generate.is_some()), usize::from(reading.generated.is_some()))?;
    count("pooled states", want.pooled.len(), reading.pooled.len())?;
    for &(layer, pooling) in &want.pooled {
        count("values of a pooled state", info.d_model, reading.pooled(layer, pooling).map_or(0, <[f32]>::len))?;
    }
    count("attention entropies", want.attention_entropy.len(), reading.attention_entropy.len())?;
    for &layer in &want.attention_entropy {
        count("heads of an attention entropy", info.n_heads, reading.attention_entropy(layer).map_or(0, <[f32]>::len))?;
    }
    if let Some(generated) = &reading.generated {
        count("text ends", generated.tokens.len(), generated.text_ends.len())?;
        let inside = generated.text_ends.iter().filter(|&&end| end <= generated.text.len()).count();
        count("text ends within the text, ascending", generated.text_ends.len(), inside)?;
        count("ascending text ends", 1, usize::from(generated.text_ends.is_sorted()))?;
    }
    if let (Some(read), Some(labels)) = (&want.labels, &reading.labels) {
        count("labels", read.tokens.len(), labels.tokens.len())?;
        count("layers", read.layers.len(), labels.layers.len())?;
        let new = reading.generated.as_ref().map_or(0, |generated| generated.tokens.len());
        count("steps", if read.at == ReadAt::PromptEnd { 1 } else { new }, labels.steps.len())?;
        for step in &labels.steps {
            count("logits of a step", read.layers.len() * read.tokens.len(), step.logits.len())?;
        }
    }
    Ok(())
}

/// One pass for labels, states and entropies brings what three passes bring.
fn check_parts(backbone: &dyn Backbone, requests: &[Request], outcomes: &[Outcome]) -> Result<(), Error> {
    let [
        Outcome::Read(raw),
        Outcome::Read(normed),
        Outcome::Read(pooled),
        Outcome::Read(entropies),
        Outcome::Read(all),
        ..,
    ] = outcomes
    else {
        return Ok(());
    };
    let attention_entropy = entropies.attention_entropy.clone();
    let parts = Outcome::Read(Reading { labels: raw.labels.clone(), attention_entropy, ..pooled.clone() });
    same(&requests[4], "what else is read", &parts, outcomes[4].clone())?;
    let top = |reading: &Reading| {
        let labels = reading.labels.as_ref()?;
        let row = labels.row(labels.steps.first()?, Layer(backbone.info().n_layers))?;
        Some(row.iter().map(|z| z.to_bits()).collect::<Vec<_>>())
    };
    match top(normed) == top(all) {
        true => Ok(()),
        false => same(&requests[1], "the lens, at the last layer", &outcomes[1], outcomes[4].clone()),
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
    let logits = reading.labels.iter().flat_map(|labels| &labels.steps).flat_map(|step| &step.logits);
    let pooled = reading.pooled.iter().flat_map(|state| &state.values);
    let entropies = reading.attention_entropy.iter().flat_map(|heads| &heads.values);
    logits.chain(pooled).chain(entropies).map(|value| value.to_bits()).collect()
}

fn check_break(backbone: &dyn Backbone, requests: &[Request]) -> Result<(), Error> {
    let mut calls = 0;
    backbone.run(requests, &mut |_, _| {
        calls += 1;
        ControlFlow::Break(())
    })?;
    if calls > 1 { Err(ContractBreach::CalledAfterBreak.into()) } else { Ok(()) }
}

fn check_refusals(backbone: &dyn Backbone, prompt: &Prompt) -> Result<(), Error> {
    let info = backbone.info();
    let beyond = Layer(info.n_layers + 1);
    let read = |tokens: &[TokenId], layers: &[Layer], at| Want {
        labels: Some(LabelRead { tokens: tokens.to_vec(), layers: layers.to_vec(), lens: Lens::Raw, at }),
        ..Want::default()
    };
    let entropy = |layers: &[Layer]| Want { attention_entropy: layers.to_vec(), ..Want::default() };
    let nothing = Some(Generation { max_new_tokens: 0, sampling: Sampling::Greedy });
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
        ("an attention twice", "BackboneError::Request", entropy(&[Layer(info.n_layers), Layer(info.n_layers)])),
        ("a token outside the vocabulary", "BackboneError::Token", read(&[outside], &[Layer(0)], end)),
        ("a layer twice", "BackboneError::Request", read(&[0], &[Layer(0), Layer(0)], end)),
        ("no layer", "BackboneError::Request", read(&[0], &[], end)),
        ("no label", "BackboneError::Request", read(&[], &[Layer(0)], end)),
        ("steps without generation", "BackboneError::Request", read(&[0], &[Layer(0)], ReadAt::EveryStep)),
        ("no new token", "BackboneError::Request", Want { generate: nothing, ..Want::default() }),
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
