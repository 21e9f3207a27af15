//! Prompts that begin alike, whose beginning is computed once, against one sequence at a time.

use judge_core::{
    Backbone, Layer, Lens, Prompt, Request, Want,
    request::{Generation, LabelRead, Pooling, ReadAt, Sampling},
};

use super::{TOLERANCE, batched, compare, options, spread};
use crate::engine::tensor::Shapes;
use crate::engine::tensor::schedule::{Feeds, Sequence, schedule};
use crate::fixtures::{families, folder};
use crate::test_models::{alone, answers, reading};
use crate::{Dtype, Model};

/// A rubric of 34 tokens, some responses to it, and a few questions about each response.
fn prompts() -> Vec<String> {
    let words = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    let text =
        |seed: usize, len: usize| (0..len).map(|j| words[(seed + j * j + j / 3) % 8]).collect::<Vec<_>>().join(" ");
    let rubric = text(1, 34);
    let mut prompts = Vec::new();
    for (response, len) in [(2, 9), (5, 3), (6, 12), (7, 6)] {
        for (question, len_of_question) in [(3, 2), (4, 6), (0, 4)] {
            prompts.push(format!("{rubric} {} {}", text(response, len), text(question, len_of_question)));
        }
    }
    prompts.push(text(4, 17)); // begins otherwise
    prompts
}

/// Label logits of all layers, as the judges of LAGER read them, and what else is read of last
/// positions; every third one has text written behind it.
pub(super) fn requests(model: &Model) -> Vec<Request> {
    let layers = model.info().layers();
    let one = |(i, prompt): (usize, String)| {
        let generate = (i % 3 == 1).then(|| Generation {
            max_new_tokens: 3 + 4 * (i % 2),
            sampling: match i % 2 {
                0 => Sampling::Greedy,
                _ => Sampling::Random { temperature: 1.5, top_k: None, top_p: None, seed: 7, stream: i as u64 },
            },
            ..Generation::default()
        });
        let labels = LabelRead {
            tokens: vec![3, 4, 5, 6, 7],
            layers: layers.clone(),
            lens: if i % 2 == 0 { Lens::Raw } else { Lens::Normed },
            at: if generate.is_some() { ReadAt::EveryStep } else { ReadAt::PromptEnd },
            label_mass: i % 4 > 1,
        };
        let continuations = ["ba", "de go fi", "de go ba"][..i % 4].iter().map(|text| format!(" {text}"));
        // Two of them are read at all positions, or scored from the second token on: they share nothing.
        let pooled = if i == 5 { vec![(Layer(1), Pooling::Mean)] } else { vec![(Layer(2), Pooling::Last)] };
        let want = Want {
            labels: vec![labels],
            pooled,
            prompt_log_probs: i == 8,
            continuations: continuations.collect(),
            generate,
            ..Want::default()
        };
        Request { prompt: Prompt::Raw(prompt), want }
    };
    prompts().into_iter().enumerate().map(one).collect()
}

/// Prefixes that the prompts share at this padding and in this room, by their depth.
fn prefixes(model: &Model, shapes: Shapes, max_tokens: usize) -> Vec<usize> {
    let ids: Vec<Vec<u32>> = requests(model).iter().map(|request| model.tokens(&request.prompt).unwrap()).collect();
    let sequences: Vec<Sequence<'_>> =
        ids.iter().map(|ids| Sequence { ids, new: None, shareable: ids.len() - 1 }).collect();
    let planned = schedule(&sequences, shapes, max_tokens);
    let prefixes = planned.iter().filter(|planned| matches!(planned.feeds, Feeds::Prefix { .. }));
    prefixes.map(|planned| planned.depth).collect()
}

#[test]
fn what_is_behind_a_shared_beginning_equals_whole_prompts_in_every_family() {
    for family in &families() {
        let alone = alone(&folder(family), &options(Dtype::F32, 1000));
        let requests = requests(&alone);
        let expected = answers(&alone, &requests);
        for (step, max_tokens) in [(1, 100_000), (4, 1000), (16, 400)] {
            let depths = prefixes(&alone, Shapes { step, pass: 8 }, max_tokens);
            assert!(depths.contains(&0) && (step == 16 || depths.contains(&1)), "{family}: {depths:?}");
            let model = batched(family, Dtype::F32, step, max_tokens);
            let found = answers(&model, &requests);
            for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = compare(reading(found), reading(expected));
                assert!(error < TOLERANCE, "{family}, {step}, {max_tokens}: request {index}: {error:e}");
            }
            let spread = spread(&folder(family), &options(Dtype::F32, max_tokens), step, 2);
            assert_eq!(answers(&spread, &requests), found, "{family}, {step}: over two devices");
        }
    }
}

/// In the precision of a GPU a prefix keeps its keys in bf16, and what is behind it attends to them.
#[test]
fn a_shared_beginning_is_as_precise_as_whole_prompts() {
    for family in ["llama-on", "gemma2-on", "qwen2-on"] {
        let alone = alone(&folder(family), &options(Dtype::Bf16, 1000));
        let model = batched(family, Dtype::Bf16, 16, 1000);
        let labels = |request: &Request| Request {
            want: Want { labels: request.want.labels.clone(), ..Want::default() },
            ..request.clone()
        };
        let requests: Vec<Request> =
            requests(&alone).iter().filter(|request| request.want.generate.is_none()).map(labels).collect();
        for (found, expected) in answers(&model, &requests).iter().zip(&answers(&alone, &requests)) {
            let error = compare(reading(found), reading(expected));
            assert!(error < 0.03, "{family}: {error:e}");
        }
    }
}
