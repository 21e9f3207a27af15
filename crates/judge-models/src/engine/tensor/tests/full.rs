//! Devices whose memory is full: what a batch lost is computed again in smaller ones, once, and nothing else is.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use judge_core::{
    Layer, Outcome, Prompt, Request, TextModel, Want,
    model::BackboneError,
    request::{Generation, Pooling, Sampling},
};

use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::shared::requests as sharing;
use super::{TOLERANCE, batched, compare, requests};
use crate::engine::tensor::faults::{Fault, with};
use crate::fixtures::families;
use crate::test_models::{answers, reading};
use crate::{Dtype, Error, Model};

/// What a run brings where passes fail, by their numbers, and the rows and columns of all passes.
fn run(
    model: &Model,
    requests: &[Request],
    faults: &[(usize, Fault)],
) -> (Result<Vec<Outcome>, Error>, Vec<[usize; 2]>) {
    let (found, passes) = with(faults, || {
        let mut answers = vec![None; requests.len()];
        let run = model.run(requests, &mut |index, outcome| {
            assert!(answers[index].replace(outcome).is_none(), "request {index} is answered twice");
            ControlFlow::Continue(())
        });
        run.map(|()| answers.into_iter().map(Option::unwrap).collect())
    });
    let found = found.map_err(|error| match error {
        BackboneError::Model(error) => *error.downcast::<Error>().unwrap(),
        other => panic!("{other}"),
    });
    (found, passes)
}

fn said(found: &Result<Vec<Outcome>, Error>) -> String {
    match found {
        Err(Error::Device { source }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Whichever pass it is, over prompts, a prefix or new tokens, of dense blocks, experts, convolutions and delta rules.
#[test]
fn what_a_full_device_lost_is_computed_again_in_smaller_batches() {
    let some = ["llama-off", "gemma3_text-on", "olmoe-off", "lfm2-off", "qwen3_5_text-off", "granitemoehybrid-mamba"];
    for family in some {
        assert!(families().iter().any(|found| found == family), "{family}");
        let model = || batched(family, Dtype::F32, 8, 400);
        let requests = [requests(&model()), sharing(&model())].concat();
        let (expected, passes) = run(&model(), &requests, &[]);
        let expected = expected.unwrap();
        let (mut again, mut alone) = (0, 0);
        for number in (0..passes.len()).step_by(3) {
            let fault = [Fault::Wait, Fault::Panic, Fault::Product][number % 4 % 3];
            let (found, passed) = run(&model(), &requests, &[(number, fault)]);
            match found {
                Ok(found) => {
                    again += 1;
                    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        let error = compare(reading(found), reading(expected));
                        assert!(error < TOLERANCE, "{family}, pass {number}, {fault:?}: request {index}: {error:e}");
                    }
                }
                // A batch of one row has nothing to give up, nor has one of which one text is left.
                found @ Err(_) => {
                    alone += 1;
                    assert!(said(&found).contains("out of device memory"), "{family}");
                    assert!(passed.len() <= number + 2, "{family}, pass {number}");
                }
            }
        }
        assert!(again > alone, "{family}: {again} tried again, {alone} were not");
    }
}

/// The warnings of a program.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Subscriber for Notes {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        *of.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut said = String::new();
        event.record(&mut |_: &Field, value: &dyn fmt::Debug| said += &format!("{value:?}"));
        self.0.lock().unwrap().push(said);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Prompts of different beginnings, all that are read alike.
fn prompts(count: usize, words: usize, new: Option<usize>) -> Vec<Request> {
    let names = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    let prompt = |i: usize| (0..words).map(|j| names[(i + j * (1 + i / 8)) % 8]).collect::<Vec<_>>().join(" ");
    let generate =
        new.map(|max_new_tokens| Generation { max_new_tokens, sampling: Sampling::Greedy, ..Generation::default() });
    (0..count)
        .map(|i| Request {
            prompt: Prompt::Raw(prompt(i)),
            want: Want { pooled: vec![(Layer(2), Pooling::Mean)], generate: generate.clone(), ..Want::default() },
        })
        .collect()
}

#[test]
fn only_what_was_lost_is_computed_again_and_later_batches_keep_to_the_smaller_size() {
    let model = batched("llama-off", Dtype::F32, 8, 200);
    let requests = prompts(32, 10, None);
    let sizes = |passes: &[[usize; 2]]| passes.iter().map(|[rows, seq]| rows * seq).collect::<Vec<_>>();
    let rows = |passes: &[[usize; 2]]| passes.iter().map(|[rows, _]| rows).sum::<usize>();
    let (expected, before) = run(&model, &requests, &[]);
    assert!(before.len() >= 3, "{before:?}");
    let notes = Notes::default();
    let (found, passes) =
        tracing::subscriber::with_default(notes.clone(), || run(&model, &requests, &[(1, Fault::Product)]));
    assert_eq!(found.unwrap().len(), expected.unwrap().len());
    assert_eq!(passes[..2], before[..2]);
    assert_eq!(rows(&passes), rows(&before) + before[1][0], "{passes:?}");
    let half = sizes(&before)[1] / 2;
    let notes = notes.0.lock().unwrap();
    assert!(notes.len() == 1 && notes[0].contains(&format!("batches have at most {half} positions")), "{notes:?}");
    assert!(sizes(&passes[2..]).iter().all(|&size| size <= half), "{passes:?}");
    // Another run of the same model begins with that, and may need a smaller one in turn.
    let (found, passes) = run(&model, &requests, &[(1, Fault::Wait)]);
    assert_eq!(found.unwrap().len(), 32);
    assert!(sizes(&passes).iter().all(|&size| size <= half));
    assert!(sizes(&passes[2..]).iter().all(|&size| size <= half / 2), "{passes:?}");
}

#[test]
fn texts_go_on_from_where_they_were() {
    let model = || batched("llama-off", Dtype::F32, 8, 400);
    let requests = prompts(8, 6, Some(6));
    let expected = answers(&model(), &requests);
    let (_, before) = run(&model(), &requests, &[]);
    assert!(before[0][0] == 8 && before[3][1] == 1, "{before:?}");
    let (found, passes) = run(&model(), &requests, &[(3, Fault::Wait)]);
    for (found, expected) in found.unwrap().iter().zip(&expected) {
        assert!(compare(reading(found), reading(expected)) < TOLERANCE);
    }
    let live = before[3][0];
    // Prompts and what was written before, in two halves, each up to the end of its texts before the other.
    let again: Vec<usize> = passes[4..].iter().filter(|pass| pass[1] > 1).map(|pass| pass[0]).collect();
    assert_eq!(again, [live.div_ceil(2), live / 2], "{passes:?}");
}

/// Behind a beginning that all share, which is fed once before each half, and not with each of its rows.
#[test]
fn texts_go_on_behind_a_prefix() {
    let words = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    let common = (0..40).map(|j| words[j * j % 7]).collect::<Vec<_>>().join(" ");
    for family in ["llama-off", "gemma3_text-on", "lfm2-off", "qwen3_5_text-off", "granitemoehybrid-mamba"] {
        let model = || batched(family, Dtype::F32, 8, 400);
        let mut requests = prompts(8, 6, Some(6));
        for request in &mut requests {
            let Prompt::Raw(text) = &mut request.prompt else { unreachable!() };
            *text = format!("{common} {text}");
            request.want.pooled = vec![(Layer(2), Pooling::Last)];
        }
        let expected = answers(&model(), &requests);
        let (_, before) = run(&model(), &requests, &[]);
        let [[1, prefix], [8, own], .., [live, 1]] = before[..5] else { panic!("{family}: {before:?}") };
        let (found, passes) = run(&model(), &requests, &[(4, Fault::Product)]);
        for (found, expected) in found.unwrap().iter().zip(&expected) {
            assert!(compare(reading(found), reading(expected)) < TOLERANCE, "{family}");
        }
        assert_eq!(passes[..5], before[..5], "{family}");
        let half = (prefix + live * (own + 8)) / 2;
        assert!(passes[5..].iter().all(|&[rows, seq]| rows == 1 || rows * seq <= half), "{family}: {half}, {passes:?}");
        // Each half is fed behind its prefix, and nothing is fed twice.
        let again: Vec<[usize; 2]> = passes[5..].iter().copied().filter(|pass| pass[1] > 1).collect();
        assert_eq!(again, [[1, prefix], [live.div_ceil(2), own], [1, prefix], [live / 2, own]], "{family}: {passes:?}");
    }
}

#[test]
fn a_second_failure_and_one_of_another_kind_are_errors() {
    let model = || batched("llama-off", Dtype::F32, 8, 200);
    let requests = prompts(32, 10, None);
    let (found, passes) = run(&model(), &requests, &[(1, Fault::Wait), (2, Fault::Product)]);
    assert!(said(&found).contains("out of device memory"));
    // The batch behind the failed one may be queued already, no more.
    assert!(passes.len() <= 4, "{passes:?}");
    let (found, passes) = run(&model(), &requests, &[(1, Fault::Other)]);
    assert_eq!(said(&found), "an illegal address");
    assert_eq!(passes.len(), 2);
    let (found, _) = run(&model(), &prompts(1, 10, None), &[(0, Fault::Wait)]);
    assert!(said(&found).contains("out of device memory"));
}
