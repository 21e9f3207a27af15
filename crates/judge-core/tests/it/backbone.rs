//! The contract check itself: it passes what keeps the contract and names every breach.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use judge_core::testing::{ScriptedBackbone, check_backbone};
use judge_core::{
    Backbone, Error, Layer, ModelInfo, Outcome, Prompt, Reading, Reason, Request, TextModel, Unscored,
    model::{BackboneError, Exchange, LabelInContext, ModelIdentity},
    request::TokenId,
    testing::ContractBreach,
};

fn prompts() -> Vec<Prompt> {
    vec![Prompt::user("One."), Prompt::Raw("Another, longer".into()), Prompt::Raw(String::new())]
}

fn scripted() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_reply(|prompt| format!("é{}", prompt.len()))
}

#[test]
fn the_scripted_model_keeps_the_contract() {
    check_backbone(&scripted(), &prompts()).unwrap();
    check_backbone(&ScriptedBackbone::new(0), &prompts()).unwrap();
    let mute = scripted().with_logits(|_, _, _| f32::NAN);
    check_backbone(&mute, &prompts()).unwrap();
}

/// What a spoilt backbone does with the answers of a good one.
type Spoil =
    fn(&dyn Backbone, &[Request], &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>) -> Result<(), BackboneError>;

struct Spoilt(ScriptedBackbone, Spoil);

impl Backbone for Spoilt {
    fn info(&self) -> &ModelInfo {
        self.0.info()
    }

    fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.0.token(label)
    }

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        self.0.label_in_context(prompt, label)
    }
}

impl TextModel for Spoilt {
    fn identity(&self) -> ModelIdentity {
        self.0.identity()
    }

    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        let requests = exchange.take(usize::MAX);
        (self.1)(&self.0, &requests, &mut |index, outcome| exchange.give(index, outcome))
    }
}

fn breach(spoil: Spoil) -> ContractBreach {
    match check_backbone(&Spoilt(scripted(), spoil), &prompts()) {
        Err(Error::Contract { breach }) => breach,
        other => panic!("expected a breach, found {other:?}"),
    }
}

/// Changes the reading of each request, told the number of requests.
fn change(
    good: &dyn Backbone,
    requests: &[Request],
    sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
    change: impl Fn(&mut Reading, &Request),
) -> Result<(), BackboneError> {
    good.run(requests, &mut |index, mut outcome| {
        if let Outcome::Read(reading) = &mut outcome {
            change(reading, &requests[index]);
        }
        sink(index, outcome)
    })
}

#[test]
fn every_breach_is_named() {
    assert!(matches!(breach(|_, _, _| Ok(())), ContractBreach::Unanswered { request: 0, requests: 1 }));
    let twice: Spoil = |good, requests, sink| {
        good.run(requests, sink)?;
        good.run(requests, sink)
    };
    assert!(matches!(breach(twice), ContractBreach::AnsweredTwice { request: 0 }));
    let astray: Spoil = |good, requests, sink| good.run(requests, &mut |index, outcome| sink(index + 1, outcome));
    assert!(matches!(breach(astray), ContractBreach::NoSuchRequest { request: 1, requests: 1 }));
    let deaf: Spoil = |good, requests, sink| {
        good.run(requests, &mut |index, outcome| {
            let _ = sink(index, outcome);
            ControlFlow::Continue(())
        })
    };
    assert!(matches!(breach(deaf), ContractBreach::CalledAfterBreak));

    let company: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, _| {
            if requests.len() > 1 {
                let steps = reading.labels.iter_mut().flat_map(|labels| &mut labels.steps);
                steps.for_each(|step| step.logits[0] += 1e-6);
            }
        })
    };
    assert!(matches!(breach(company), ContractBreach::NotInvariant { on: "its company", .. }));
    let order: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, _| {
            let first_generates = requests.len() > 1 && requests[0].want.generate.is_some();
            reading.prompt_tokens = reading.prompt_tokens.map(|n| n + usize::from(first_generates));
        })
    };
    assert!(matches!(breach(order), ContractBreach::NotInvariant { on: "the order", .. }));
    let sign: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, _| {
            let zero = if requests.len() > 1 { -0.0 } else { 0.0 };
            reading.pooled.iter_mut().for_each(|state| state.values[0] = zero);
        })
    };
    assert!(matches!(breach(sign), ContractBreach::NotInvariant { on: "its company", .. }));
    let parts: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, request| {
            if !request.want.labels.is_empty() {
                reading.pooled.iter_mut().for_each(|state| state.values[0] += 1.0);
            }
        })
    };
    assert!(matches!(breach(parts), ContractBreach::NotInvariant { on: "what else is read", .. }));
    let lens: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, request| {
            for (labels, read) in reading.labels.iter_mut().zip(&request.want.labels) {
                if read.layers == [Layer(2)] {
                    labels.steps.iter_mut().for_each(|step| step.logits[0] *= 2.0);
                }
            }
        })
    };
    assert!(matches!(breach(lens), ContractBreach::NotInvariant { on: "the lens, at the last layer", .. }));

    let short: Spoil = |good, requests, sink| change(good, requests, sink, |reading, _| reading.pooled.truncate(3));
    assert!(matches!(breach(short), ContractBreach::Shape { what: "pooled states", expected: 10, found: 3 }));

    let headless: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, _| {
            reading.attention_entropy.iter_mut().for_each(|heads| heads.values.truncate(1));
        })
    };
    let what = "heads of an attention entropy";
    assert_eq!(breach(headless), ContractBreach::Shape { what, expected: 2, found: 1 });
    let attention: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, request| {
            if !request.want.labels.is_empty() {
                reading.attention_entropy.iter_mut().for_each(|heads| heads.values[0] += 1.0);
            }
        })
    };
    assert!(matches!(breach(attention), ContractBreach::NotInvariant { on: "what else is read", .. }));

    let sure: Spoil = |good, requests, sink| {
        change(good, requests, sink, |reading, _| {
            reading.continuations.iter_mut().for_each(|found| found.tokens.log_probs[0] = 0.1);
        })
    };
    let what = "log-probabilities above 0 or not finite";
    assert_eq!(breach(sure), ContractBreach::Shape { what, expected: 0, found: 2 });
    let talkative: Spoil = |good, requests, sink| {
        let mut requests = requests.to_vec();
        requests.iter_mut().flat_map(|request| &mut request.want.generate).for_each(|generation| {
            generation.stop.retain(String::is_empty);
        });
        good.run(&requests, sink)
    };
    assert!(matches!(breach(talkative), ContractBreach::NotStopped { .. }));

    // Whatever is wrong with a request, it is taken for an item's fault.
    let lenient: Spoil = |good, requests, sink| match good.run(requests, &mut |_, _| ControlFlow::Break(())) {
        Ok(()) => good.run(requests, sink),
        Err(_) => {
            let unscored = || Outcome::Unscored(Unscored::new(Reason::NoLabel, ""));
            let _ = (0..requests.len()).try_for_each(|index| sink(index, unscored()));
            Ok(())
        }
    };
    let ContractBreach::NotRefused { case, expected, .. } = breach(lenient) else { panic!("not refused") };
    assert_eq!((case, expected), ("a layer above the last", "BackboneError::Layer"));
}

#[test]
fn scripts_answer_as_real_models_do() {
    let model = scripted().with_info(|info| info.max_len = 12);
    let calls = AtomicUsize::new(0);
    let ask = |prompt: Prompt| {
        let mut answer = None;
        let request = Request { prompt, want: judge_core::Want::default() };
        model
            .run(&[request], &mut |_, outcome| {
                calls.fetch_add(1, Ordering::Relaxed);
                answer = Some(outcome);
                ControlFlow::Continue(())
            })
            .unwrap();
        answer.unwrap()
    };
    let reason = |outcome| match outcome {
        Outcome::Unscored(Unscored { reason, .. }) => Some(reason),
        Outcome::Read(_) => None,
    };
    assert_eq!(reason(ask(Prompt::Raw("short".into()))), None);
    assert_eq!(reason(ask(Prompt::user("too long now"))), Some(Reason::TooLong));
    assert_eq!(reason(ask(Prompt::user(""))), Some(Reason::EmptyPrompt));
    assert_eq!(calls.into_inner(), model.passes());
}
