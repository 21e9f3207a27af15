//! States of what is written are those of reading it again behind its prompt.

use judge_core::{
    Backbone, Reading, Want,
    reading::Finish,
    request::{Generation, Pooling, ReplyPooling},
};
use judge_models::{Dtype, Model};

use crate::common::{self, copy, fixtures, load, of_every_layer, raw};
use crate::difference::relative_error;

const TOLERANCE: f32 = 1e-4;

fn read(model: &Model, prompt: &str, want: Want) -> Reading {
    common::read(model, raw(prompt), &want)
}

/// The folder of the models that differ in their rotation, which is no model itself.
const OF_ROTATIONS: &str = "rope";

#[test]
fn states_of_a_reply_are_those_of_reading_it_again() {
    let families = fixtures().join("families");
    let mut compared = 0;
    let mut names: Vec<_> = std::fs::read_dir(families).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for folder in names {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if name == OF_ROTATIONS {
            continue;
        }
        let model = load(&folder, Dtype::F32).unwrap_or_else(|error| panic!("{name}: {error}"));
        let layers = model.info().layers();
        for prompt in ["ba de fi go", "ku xa me ba 3"] {
            let generate = Some(Generation { max_new_tokens: 5, ..Generation::default() });
            let reply = layers.iter().flat_map(|&layer| ReplyPooling::ALL.map(|pooling| (layer, pooling))).collect();
            let written = read(&model, prompt, Want { generate: generate.clone(), reply, ..Want::default() });
            let generated = written.generated.clone().unwrap();
            let tokens = generated.tokens.len();
            // What is written does not depend on whether its states are read.
            let plain = read(&model, prompt, Want { generate, ..Want::default() });
            assert_eq!(plain.generated.as_ref(), Some(&generated), "{name}");
            assert_eq!(written.reply.len(), if tokens == 0 { 0 } else { 2 * layers.len() }, "{name}: no thought ends");
            let pooled = of_every_layer(&model, &[Pooling::Last, Pooling::Mean]);
            let before = read(&model, prompt, pooled.clone());
            let again = read(&model, &format!("{prompt} {}", generated.text), pooled);
            let (n, all) = (before.prompt_tokens.unwrap(), again.prompt_tokens.unwrap());
            if tokens == 0 || all != n + tokens {
                continue; // written tokens that a text does not become again
            }
            for &layer in &layers {
                let last = written.reply(layer, ReplyPooling::Last).unwrap();
                let error = relative_error(last, again.pooled(layer, Pooling::Last).unwrap());
                assert!(error < TOLERANCE, "{name}, {layer}: {error:e}");
                let mean = |reading: &Reading| reading.pooled(layer, Pooling::Mean).unwrap().to_vec();
                let rest = mean(&again).into_iter().zip(mean(&before));
                let rest: Vec<f32> = rest.map(|(a, b)| (a * all as f32 - b * n as f32) / tokens as f32).collect();
                let error = relative_error(written.reply(layer, ReplyPooling::Mean).unwrap(), &rest);
                assert!(error < 10.0 * TOLERANCE, "{name}, {layer}: {error:e}");
            }
            compared += 1;
        }
    }
    assert!(compared >= 20, "only {compared} texts are read again as the tokens that were written");
}

/// Where an end token follows, its choice brings the last token's states; else one more pass does.
#[test]
fn a_reply_has_the_same_states_however_it_ends() {
    let model = load(fixtures().join("families/qwen3-on"), None).unwrap();
    let want = |max_new_tokens| Want {
        generate: Some(Generation { max_new_tokens, ..Generation::default() }),
        reply: model.info().layers().iter().flat_map(|&l| ReplyPooling::ALL.map(|pooling| (l, pooling))).collect(),
        ..Want::default()
    };
    let cut = read(&model, "ba de", want(2));
    let next = read(&model, "ba de", want(3)).generated.unwrap().tokens[2];
    assert!(!cut.generated.as_ref().unwrap().tokens.contains(&next), "the third token is not one of the first two");
    let ending = copy("families/qwen3-on");
    let config = format!(r#"{{"eos_token_id": {next}}}"#);
    std::fs::write(ending.path().join("generation_config.json"), config).unwrap();
    let ended = read(&load(ending.path(), None).unwrap(), "ba de", want(5));
    let first = read(&model, "ba de", want(1));
    let stop = vec![" ".to_owned()]; // before the second token
    let stopped = Want { generate: want(5).generate.map(|generation| Generation { stop, ..generation }), ..want(5) };
    let stopped = read(&model, "ba de", stopped);
    let finish = |reading: &Reading| reading.generated.as_ref().unwrap().finish;
    let finishes = [&cut, &ended, &stopped].map(finish);
    assert_eq!(finishes, [Finish::Length, Finish::EndToken, Finish::StopText]);
    assert_eq!(cut.reply, ended.reply);
    assert_eq!(cut.reply, stopped.reply, "the tokens of a stop text count");
    assert_ne!(cut.reply, first.reply);
    assert_eq!(cut.reply.len(), 2 * model.info().layers().len());
}
