//! Texts that end a text, on every engine.

use judge_core::{
    Layer, Lens, Prompt, Request, Want,
    reading::{Finish, LabelStep},
    request::{Generation, LabelRead, ReadAt},
};

use crate::fixtures::folder;
use crate::test_models::{answers, engines, reading};

const PROMPT: &str = "ba de fi go ku la me ni po ru sa te vi zo";

fn request(stop: Vec<String>) -> Request {
    let labels = LabelRead {
        tokens: vec![3, 4],
        layers: vec![Layer(1)],
        lens: Lens::Raw,
        at: ReadAt::EveryStep,
        label_mass: true,
    };
    let at_end = LabelRead { at: ReadAt::PromptEnd, ..labels.clone() };
    let generate = Some(Generation { max_new_tokens: 6, stop, ..Generation::default() });
    Request {
        prompt: Prompt::Raw(PROMPT.to_owned()),
        want: Want { labels: vec![labels, at_end], generate, ..Want::default() },
    }
}

/// The same steps, whose numbers may differ by rounding where sequences share batches.
fn same(found: &[LabelStep], expected: &[LabelStep]) -> bool {
    let close = |a: f32, b: f32| (a - b).abs() < 1e-4;
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(a, b)| {
            (a.step, a.token) == (b.step, b.token)
                && a.logits.iter().zip(&b.logits).all(|(&a, &b)| close(a, b))
                && a.label_mass.zip(b.label_mass).is_some_and(|(a, b)| close(a, b))
        })
}

/// Every part of the text that is written without a stop text is one: within a token, across tokens, at the beginning, at the end.
#[test]
fn a_text_ends_with_the_token_that_completes_a_stop_text() {
    for (engine, model) in engines(&folder("qwen3-on")) {
        let free = answers(&model, &[request(Vec::new())]).remove(0);
        let free = reading(&free);
        let written = free.generated.clone().unwrap();
        assert_eq!((written.tokens.len(), written.n_tokens), (6, Some(6)), "{engine}");
        let starts = || written.text.char_indices().map(|(start, _)| start);
        let stops: Vec<&str> = starts()
            .flat_map(|start| (start + 1..=written.text.len().min(start + 5)).map(move |end| start..end))
            .filter_map(|range| written.text.get(range))
            .collect();
        assert!(stops.len() > 20 && stops.iter().any(|stop| stop.trim().contains(' ')), "{engine}: {:?}", written.text);

        let requests: Vec<Request> =
            stops.iter().map(|&stop| request(vec!["never written".to_owned(), stop.to_owned()])).collect();
        for (stop, found) in stops.iter().zip(answers(&model, &requests)) {
            let found = reading(&found);
            let text = found.generated.as_ref().unwrap();
            let cut = written.text.find(stop).unwrap();
            let needed = (1..=6).find(|&n| model.context.codec.decode(&written.tokens[..n]).0.contains(stop)).unwrap();
            assert_eq!(text.finish, Finish::StopText, "{engine}: {stop:?}");
            assert_eq!(text.text, written.text[..cut], "{engine}: {stop:?}");
            assert_eq!(text.tokens, written.tokens[..needed], "{engine}: {stop:?}");
            assert_eq!(text.n_tokens, Some(needed));
            let ends: Vec<usize> = written.text_ends[..needed].iter().map(|&end| end.min(cut)).collect();
            assert_eq!(text.text_ends, ends, "{engine}: {stop:?}");

            // A step is reported if its token begins before the cut.
            let begins = |step: usize| if step == 0 { 0 } else { written.text_ends[step - 1] };
            let expected: Vec<_> = free.labels[0].steps.iter().filter(|s| begins(s.step) < cut).cloned().collect();
            assert!(same(&found.labels[0].steps, &expected), "{engine}: {stop:?}");
            assert!(
                same(&found.labels[1].steps, &free.labels[1].steps),
                "{engine}: {stop:?}: the prompt's end is not cut"
            );
        }
    }
}

#[test]
fn a_stop_text_that_is_not_written_changes_nothing() {
    for (engine, model) in engines(&folder("llama-off")) {
        let found = answers(&model, &[request(Vec::new()), request(vec!["never written".to_owned()])]);
        assert_eq!(found[0], found[1], "{engine}");
    }
}
