use std::path::Path;

use judge_arch::{Architecture, ModelSpec};
use judge_core::{
    Lens, Outcome, Want,
    request::{Generation, LabelRead, ReadAt},
};
use judge_kernels::softmax::TILE;
use judge_kernels::supported::Supported;

use super::*;
use crate::engine::packed::PackedCache;
use crate::folder::Folder;
use crate::reading::answers::Answers;
use crate::reading::driver::{Driver, drive};
use crate::reading::jobs::End;
use crate::reading::labels::Heads;
use crate::weights::checkpoint;
use crate::{Dtype, LoadOptions, Model};

/// Tokens that are written behind every other prompt, at most: over the end of a tile, or of some.
const NEW: usize = 100;

/// Prompts in a tree: rubrics of 80 to 330 tokens, each before three aspects of 40 to 80, each before as many tails as `count`
/// gives; one prompt is another's beginning. Every other one has text written behind it.
fn prompts(count: usize) -> Vec<Vec<TokenId>> {
    let text = |seed: usize, len: usize| (0..len).map(move |i| 10 + ((seed * 131 + i * i) % 1000) as TokenId);
    let mut prompts: Vec<Vec<TokenId>> = (0..count)
        .map(|i| {
            let (rubric, aspect) = (i % 3, i / 3 % 3);
            let shared = text(rubric, 80 + 125 * rubric).chain(text(10 + aspect, 40 + 20 * aspect));
            shared.chain(text(100 + i, 1 + i * 7 % 60)).collect()
        })
        .collect();
    let beginning = prompts[5][..200].to_vec();
    prompts.push(beginning);
    prompts
}

fn wants() -> [Want; 2] {
    let layers = vec![Layer(2), Layer(6)];
    let labels =
        LabelRead { tokens: vec![20, 21, 22], layers, lens: Lens::Raw, at: ReadAt::EveryStep, label_mass: true };
    let reads = Want {
        labels: vec![LabelRead { at: ReadAt::PromptEnd, ..labels.clone() }],
        pooled: vec![(Layer(6), Pooling::Mean)],
        prompt_log_probs: true,
        ..Want::default()
    };
    let generation = Generation { max_new_tokens: NEW, ..Generation::default() };
    [reads.clone(), Want { labels: vec![labels], generate: Some(generation), ..reads }]
}

/// Positions that keys have room for, and how many hold them; those that several refer to are counted once.
fn held(passes: &SharedPasses<'_>) -> (usize, usize) {
    let mut seen = Vec::new();
    let mut count = 0;
    let ends = passes.computed.iter().flatten().map(|computed| &*computed.keys);
    for end in ends.chain(passes.writing.iter().map(|one| &one.held.keys)) {
        let mut at = Some(end);
        while let Some(keys) = at.filter(|&keys| !seen.contains(&std::ptr::from_ref(keys))) {
            seen.push(std::ptr::from_ref(keys));
            count += keys.room();
            at = keys.before();
        }
    }
    (count, seen.len())
}

/// Positions that every other block sees in the second test: less than a tile.
const WINDOW: usize = 20;

#[test]
fn what_is_kept_is_counted_and_bounded_and_does_not_show() {
    kept_is_counted_and_does_not_show(27, None);
}

#[test]
fn keys_that_windows_have_left_are_freed_and_it_does_not_show() {
    // What windows free leaves room: it takes more texts until one has to wait.
    kept_is_counted_and_does_not_show(45, Some(WINDOW));
}

/// With a `window` in every other block, the first among them.
fn kept_is_counted_and_does_not_show(count: usize, window: Option<usize>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny-judge");
    let options = LoadOptions { dtype: Some(Dtype::Bf16), ..LoadOptions::default() };
    let model = Model::load(&folder, &options).unwrap();
    let mut checkpoint = checkpoint(&Folder::open(&folder).unwrap()).unwrap();
    let Architecture::Decoder(spec) = &model.context.spec else { panic!("it is a decoder") };
    let mut spec = ModelSpec::clone(spec);
    spec.blocks.iter_mut().step_by(2).for_each(|block| block.window = window);
    let spec = Arc::new(spec);
    let decoder =
        &PackedDecoder::load(spec, Supported::fastest(), Dtype::Bf16, &mut checkpoint, &mut PackedCache::Off).unwrap();
    let (prompts, wants, nothing) = (prompts(count), wants(), Want::default());
    let longest = prompts.iter().map(Vec::len).max().unwrap() + NEW;
    let labels = [20, 21, 22];
    let heads = Heads::from([(labels.as_slice(), decoder.rows_of_head(&labels))]);
    let group = |indices: &[usize]| -> Group<'_> {
        let job = |&index: &usize| {
            let (ids, prompt_len, end) =
                (prompts[index].clone(), prompts[index].len(), End { continuation: 0, token: 7 });
            // Every fourth is a prompt of 70 tokens with a continuation: what comes before it is not scored.
            let is_continued = index % 4 == 0 && prompt_len > 70;
            Job {
                types: Vec::new(),
                index,
                number: 0,
                want: if is_continued { &nothing } else { &wants[index % 2] },
                heads: &heads,
                ids,
                prompt_len: if is_continued { 70 } else { prompt_len },
                scored_from: Some(if is_continued { 70 } else { 1 }),
                ends: if is_continued { vec![end] } else { Vec::new() },
            }
        };
        Group { blocks: 6, jobs: indices.iter().map(job).collect() }
    };
    let expect = |answers: &mut Answers<'_>, indices: &[usize]| {
        let want = Want { continuations: vec!["one".to_owned()], ..Want::default() };
        assert!(indices.iter().all(|&index| answers.expect(index, &want, [1, 0], 1).is_continue()));
    };
    let mut alone = Vec::new();
    for index in 0..prompts.len() {
        let mut sink = |_, outcome| {
            alone.push(outcome);
            ControlFlow::Continue(())
        };
        let mut answers = Answers::new(&mut sink);
        expect(&mut answers, &[index]);
        let group = group(&[index]);
        let mut passes = SharedPasses::new(decoder, &group, 16384);
        assert!(drive(&model.context, &group.jobs, &mut passes, &mut answers).unwrap().is_continue());
    }
    assert!(alone.iter().all(|outcome| matches!(outcome, Outcome::Read(_))));
    assert!((0..alone.len()).all(|i| !alone[..i].contains(&alone[i])), "each has an answer of its own");

    let indices: Vec<usize> = (0..prompts.len()).collect();
    let all = group(&indices);
    // Of what a text has written, and of the prompt before its last segment.
    let (mut has_grown, mut has_waited, mut has_freed) = (false, false, [false; 2]);
    for max_tokens in [1, 100, 400, 700, 16384] {
        let mut together = vec![None; prompts.len()];
        let mut sink = |index: usize, outcome| {
            assert_eq!(together[index].replace(outcome), None);
            ControlFlow::Continue(())
        };
        let mut answers = Answers::new(&mut sink);
        expect(&mut answers, &indices);
        let mut passes = SharedPasses::new(decoder, &all, max_tokens);
        // Texts fill their keys, where those above had all room at once.
        passes.growth = TILE;
        let mut driver = Driver::new(&model.context, &all.jobs, &mut answers);
        let mut most = 0;
        while passes.prefill(&mut |found| driver.take(found)).unwrap()
            || passes.step(&mut |found| driver.take(found)).unwrap()
        {
            let (kept, (held, holders)) = (passes.kept, held(&passes));
            // Keys may have a tile that was not counted whole.
            let whole_tiles = TILE * (passes.writing.len() + holders);
            assert!(held <= kept + whole_tiles, "{max_tokens}: {kept} counted, {held} held");
            has_grown |= passes.writing.iter().any(|text| {
                let prompt = all.jobs[passes.plan[text.held.segment].sequence].ids.len();
                text.held.keys.before().is_some_and(|before| before.end() > prompt)
            });
            has_waited |= passes.preempted.iter().any(|text| !text.fed.is_empty());
            for Writing { held: text, .. } in &passes.writing {
                let mut before = text.keys.before();
                while let Some(keys) = before {
                    // Only windows free anything.
                    assert!(keys.numbers(1) > 0);
                    let prompt = &passes.plan[text.segment].positions;
                    has_freed[usize::from(keys.end() <= prompt.start)] |= keys.numbers(0) == 0;
                    before = keys.before();
                }
            }
            most = most.max(kept);
        }
        assert_eq!(passes.kept, 0);
        // A prompt has two places at most where others part from it, and each costs it a copy of less than a tile.
        assert!(most > 0 && most <= max_tokens + longest + 2 * TILE, "{max_tokens}: {most}");
        for (index, (together, alone)) in together.iter().zip(&alone).enumerate() {
            assert_eq!(together.as_ref(), Some(alone), "{max_tokens}: prompt {index}");
        }
    }
    assert!(has_grown, "a text is longer than its first keys");
    assert!(has_waited, "a text was preempted");
    assert_eq!(has_freed, [window.is_some(); 2]);
}
