//! Texts that are written greedily: the device feeds the tokens that it has chosen.

use judge_core::{
    Backbone, Layer, Prompt, Request, Want,
    request::{Generation, LabelRead, ReadAt, ReplyPooling, Sampling},
};

use super::{TOLERANCE, batched, compare, options};
use crate::engine::tensor::faults::waits;
use crate::fixtures::{families, folder};
use crate::test_models::{alone, answers, reading};
use crate::{Dtype, Model};

/// Texts of 1 to 9 tokens, some of which stop before, with states and labels of some.
fn texts(model: &Model) -> Vec<Request> {
    let words = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    let layers = model.info().layers();
    let text = |i: usize| {
        let prompt: Vec<&str> = (0..1 + i % 7).map(|j| words[(i + j * (1 + i / 8)) % 8]).collect();
        let generation = Generation {
            max_new_tokens: 1 + i * 5 % 9,
            stop: if i % 4 == 1 { vec!["a ".to_owned()] } else { Vec::new() },
            sampling: Sampling::Greedy,
            ..Generation::default()
        };
        let labels = LabelRead {
            tokens: vec![3, 4, 5],
            layers: layers.clone(),
            lens: Default::default(),
            at: ReadAt::EveryStep,
            label_mass: i % 4 < 2,
        };
        let last = Layer(layers.len() - 1);
        let want = Want {
            labels: (i % 3 < 1).then_some(labels).into_iter().collect(),
            reply: if i % 5 == 2 { vec![(last, ReplyPooling::Mean), (last, ReplyPooling::Last)] } else { Vec::new() },
            generate: Some(generation),
            ..Want::default()
        };
        Request { prompt: Prompt::Raw(prompt.join(" ")), want }
    };
    (0..24).map(text).collect()
}

#[test]
fn greedy_texts_equal_one_at_a_time_in_every_family() {
    for family in &families() {
        let alone = alone(&folder(family), &options(Dtype::F32, 1000));
        let requests = texts(&alone);
        let expected = answers(&alone, &requests);
        for max_tokens in [60, 100_000] {
            let found = answers(&batched(family, Dtype::F32, 8, max_tokens), &requests);
            for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let error = compare(reading(found), reading(expected));
                assert!(error < TOLERANCE, "{family}, {max_tokens}: request {index}: {error:e}");
            }
        }
    }
}

/// Each step but the first is queued before the one before it is waited for, and none behind the last token.
#[test]
fn a_step_is_queued_before_the_one_before_it_is_waited_for() {
    let model = batched("llama-off", Dtype::F32, 8, 400);
    let request = |sampling: &Sampling, reply: bool| {
        let generation = Generation { max_new_tokens: 4, sampling: sampling.clone(), ..Generation::default() };
        let reply = if reply { vec![(Layer(1), ReplyPooling::Mean)] } else { Vec::new() };
        let want = Want { generate: Some(generation), reply, ..Want::default() };
        Request { prompt: Prompt::Raw("ba de".to_owned()), want }
    };
    let waits = |request: Request| {
        waits(|| {
            let found = answers(&model, &[request]);
            assert_eq!(reading(&found[0]).generated.as_ref().unwrap().tokens.len(), 4);
        })
    };
    // The prompt's pass is waited for, then those of three tokens; where states are read, the fourth is fed too.
    assert_eq!(waits(request(&Sampling::Greedy, false)), [1, 3, 4, 4]);
    assert_eq!(waits(request(&Sampling::Greedy, true)), [1, 3, 4, 5, 5]);
    // Where chance decides, it does on the host.
    let chance = Sampling::Random { temperature: 1.0, top_k: None, top_p: None, seed: 1, stream: 0 };
    assert_eq!(waits(request(&chance, false)), [1, 2, 3, 4]);
}
