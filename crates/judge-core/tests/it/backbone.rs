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

/// Takes what a backbone answers.
type Sink<'s> = &'s mut dyn FnMut(usize, Outcome) -> ControlFlow<()>;

/// What a spoilt backbone does with the answers of a good one.
type Spoil = Box<dyn Fn(&dyn Backbone, &[Request], Sink<'_>) -> Result<(), BackboneError> + Send + Sync>;

struct Spoilt(ScriptedBackbone, Spoil);

impl Backbone for Spoilt {
    fn info(&self) -> &ModelInfo {
        self.0.info()
    }

    fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.0.token(label)
    }

    fn label_token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.0.label_token(label)
    }

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        self.0.label_in_context(prompt, label)
    }

    fn attention_layers(&self) -> Vec<Layer> {
        self.0.attention_layers()
    }
}

impl TextModel for Spoilt {
    fn identity(&self) -> ModelIdentity {
        self.0.identity()
    }

    fn tokens_in(&self, text: &str) -> Option<usize> {
        self.0.tokens_in(text)
    }

    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        let requests = exchange.take(usize::MAX);
        (self.1)(&self.0, &requests, &mut |index, outcome| exchange.give(index, outcome))
    }
}

fn breach(
    spoil: impl Fn(&dyn Backbone, &[Request], Sink<'_>) -> Result<(), BackboneError> + Send + Sync + 'static,
) -> ContractBreach {
    match check_backbone(&Spoilt(scripted(), Box::new(spoil)), &prompts()) {
        Err(Error::Contract { breach }) => breach,
        other => panic!("expected a breach, found {other:?}"),
    }
}

/// The breach of a backbone that changes each reading; `change` is also given its request and all requests.
fn changed(change: impl Fn(&mut Reading, &Request, &[Request]) + Send + Sync + 'static) -> ContractBreach {
    breach(move |good, requests, sink| {
        good.run(requests, &mut |index, mut outcome| {
            if let Outcome::Read(reading) = &mut outcome {
                change(reading, &requests[index], requests);
            }
            sink(index, outcome)
        })
    })
}

#[test]
fn every_breach_is_named() {
    assert!(matches!(breach(|_, _, _| Ok(())), ContractBreach::Unanswered { request: 0, requests: 1 }));
    let twice = breach(|good, requests, sink| {
        good.run(requests, sink)?;
        good.run(requests, sink)
    });
    assert!(matches!(twice, ContractBreach::AnsweredTwice { request: 0 }));
    let astray = breach(|good, requests, sink| good.run(requests, &mut |index, outcome| sink(index + 1, outcome)));
    assert!(matches!(astray, ContractBreach::NoSuchRequest { request: 1, requests: 1 }));
    let deaf = breach(|good, requests, sink| {
        good.run(requests, &mut |index, outcome| {
            let _ = sink(index, outcome);
            ControlFlow::Continue(())
        })
    });
    assert!(matches!(deaf, ContractBreach::CalledAfterBreak));

    let company = changed(|reading, _, requests| {
        if requests.len() > 1 {
            let steps = reading.labels.iter_mut().flat_map(|labels| &mut labels.steps);
            steps.for_each(|step| step.logits[0] += 1e-6);
        }
    });
    assert!(matches!(company, ContractBreach::NotInvariant { on: "its company", .. }));
    let order = changed(|reading, _, requests| {
        let first_generates = requests.len() > 1 && requests[0].want.generate.is_some();
        reading.prompt_tokens = reading.prompt_tokens.map(|n| n + usize::from(first_generates));
    });
    assert!(matches!(order, ContractBreach::NotInvariant { on: "the order", .. }));
    let sign = changed(|reading, _, requests| {
        let zero = if requests.len() > 1 { -0.0 } else { 0.0 };
        reading.pooled.iter_mut().for_each(|state| state.values[0] = zero);
    });
    assert!(matches!(sign, ContractBreach::NotInvariant { on: "its company", .. }));
    let parts = changed(|reading, request, _| {
        if !request.want.labels.is_empty() {
            reading.pooled.iter_mut().for_each(|state| state.values[0] += 1.0);
        }
    });
    assert!(matches!(parts, ContractBreach::NotInvariant { on: "what else is read", .. }));
    let lens = changed(|reading, request, _| {
        for (labels, read) in reading.labels.iter_mut().zip(&request.want.labels) {
            if read.layers == [Layer(2)] {
                labels.steps.iter_mut().for_each(|step| step.logits[0] *= 2.0);
            }
        }
    });
    assert!(matches!(lens, ContractBreach::NotInvariant { on: "the lens, at the last layer", .. }));

    let short = changed(|reading, _, _| reading.pooled.truncate(3));
    assert!(matches!(short, ContractBreach::Shape { what: "pooled states", expected: 10, found: 3 }));

    let headless = changed(|reading, _, _| {
        reading.attention_entropy.iter_mut().for_each(|heads| heads.values.truncate(1));
    });
    let what = "heads of an attention entropy";
    assert_eq!(headless, ContractBreach::Shape { what, expected: 2, found: 1 });
    let attention = changed(|reading, request, _| {
        if !request.want.labels.is_empty() {
            reading.attention_entropy.iter_mut().for_each(|heads| heads.values[0] += 1.0);
        }
    });
    assert!(matches!(attention, ContractBreach::NotInvariant { on: "what else is read", .. }));

    let sure = changed(|reading, _, _| {
        reading.continuations.iter_mut().for_each(|found| found.tokens.log_probs[0] = 0.1);
    });
    let what = "log-probabilities above 0 or not finite";
    assert_eq!(sure, ContractBreach::Shape { what, expected: 0, found: 2 });
    let talkative = breach(|good, requests, sink| {
        let mut requests = requests.to_vec();
        requests.iter_mut().flat_map(|request| &mut request.want.generate).for_each(|generation| {
            generation.stop.retain(String::is_empty);
        });
        good.run(&requests, sink)
    });
    assert!(matches!(talkative, ContractBreach::NotStopped { .. }));

    // Whatever is wrong with a request, it is taken for an item's fault.
    let lenient = breach(|good, requests, sink| match good.run(requests, &mut |_, _| ControlFlow::Break(())) {
        Ok(()) => good.run(requests, sink),
        Err(_) => {
            let unscored = || Outcome::Unscored(Unscored::new(Reason::NoLabel, ""));
            let _ = (0..requests.len()).try_for_each(|index| sink(index, unscored()));
            Ok(())
        }
    });
    let ContractBreach::NotRefused { case, expected, .. } = lenient else { panic!("not refused") };
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
