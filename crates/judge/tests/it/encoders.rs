//! Encoders in the place of the model: their states are stored, probes are trained on them and judge by them, and what needs a decoder says
//! so.

use std::path::Path;

use judge_core::Layer;
use judge_data::StatesFile;
use serde_json::{Value, json};

use crate::program::{Desk, finished, fixture, read_json, refused, succeed, words};

/// A folder of `scripts/parity/make_encoder_fixtures.py`.
fn encoder(name: &str) -> String {
    fixture(&format!("encoders/{name}"))
}

#[test]
fn stored_states_are_those_of_transformers() {
    let folder = &Desk::new();
    for name in ["bert-off", "modernbert-off"] {
        let model = encoder(name);
        let expected = read_json(Path::new(&model).join("expected.json"));
        let prompts = expected["prompts"].as_array().unwrap();
        let texts: Vec<Value> =
            prompts.iter().enumerate().map(|(id, prompt)| json!({"id": id, "prompt": prompt["text"]})).collect();
        folder.write("prompts.jsonl", &texts);
        for (place, pooling) in ["first", "last", "mean", "min", "max"].into_iter().enumerate() {
            let output = format!("{name}.{pooling}.safetensors");
            let args = ["--input", "prompts.jsonl", "--output", &output, "--model", &model, "--pooling", pooling];
            succeed("hidden_states", folder, &[&args[..], &["--raw-prompt", "--dtype", "f32", "--quiet"]].concat());
            let states = StatesFile::open(folder.join(output)).unwrap();
            for (row, prompt) in prompts.iter().enumerate() {
                for (layer, expected) in prompt["pooled"][place].as_array().unwrap().iter().enumerate() {
                    let found = states.state(row, Layer(layer)).unwrap().unwrap();
                    let expected: Vec<f32> = serde_json::from_value(expected.clone()).unwrap();
                    assert_eq!(found.len(), expected.len());
                    let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4 * b.abs().max(1.0));
                    assert!(close, "{name}, {pooling}, row {row}, layer {layer}: {found:?} {expected:?}");
                }
            }
        }
    }
}

/// Answers of a few words; the grade is that of one of them.
fn graded(n: usize) -> Vec<Value> {
    let words = ["ba", "de", "fi", "go", "ku", "la", "me"];
    let word = |i: usize| words[i % words.len()];
    (0..n)
        .map(|id| {
            let score = 1 + id * id % 3;
            let response = format!("{} {} {}", word(id / 2), ["no", "pu", "ri"][score - 1], word(id * 3));
            json!({"id": id, "aspect": "fluency", "question": format!("{} {id}", word(id)), "response": response, "score": score})
        })
        .collect()
}

#[test]
fn probes_are_trained_on_an_encoder_and_judge_by_it() {
    let folder = &Desk::new();
    let model = encoder("bert-off");
    folder.write("graded.jsonl", &graded(120));
    folder.put("template.json", r#"{"raw": "{question}, {response}"}"#);
    let of_model = ["--model", model.as_str(), "--raw-prompt"];
    let train = words("--input graded.jsonl --output probes --template template.json --pooling first,mean");
    let how = words("--folds 2 --c 1 --top-k 2");
    let (_, said) = finished("inspector_train", folder, &[&train[..], &how, &of_model].concat());
    assert!(said.contains("no prompted score to compare with") && said.contains("encoder"), "{said}");
    let report = folder.json("probes/report.json");
    assert_eq!(report["model"]["family"], "bert");
    let predictors = &report["aspects"]["fluency"]["splits"]["test"]["predictors"];
    assert!(predictors["prompted"].is_null(), "{predictors}");
    // A word decides about the grade, and states of a random model tell words apart.
    assert!(predictors["probe"]["accuracy"]["estimate"].as_f64().unwrap() > 0.8, "{predictors}");

    let pairs: Vec<Value> =
        graded(30).into_iter().map(|row| json!({"question": row["question"], "response": row["response"]})).collect();
    folder.write("pairs.jsonl", &pairs);
    let judge = ["--input", "pairs.jsonl", "--probes", "probes", "--quiet"];
    let evaluate = [&judge[..], &of_model, &["--output", "judged.jsonl"]].concat();
    succeed("inspector_evaluate", folder, &evaluate);
    let judged = folder.rows("judged.jsonl");
    let right = judged.iter().zip(graded(30)).filter(|(judged, row)| judged["fluency"] == row["score"]).count();
    assert!(judged.len() == 30 && right > 24, "{right} of {}", judged.len());
    let filter = [&judge[..], &of_model, &["--output", "best.jsonl", "--top-share", "0.2"]].concat();
    succeed("inspector_filter", folder, &filter);
    assert_eq!(folder.rows("best.jsonl").len(), 6);

    // The same probe on stored states.
    let text = |(id, row): (usize, &Value)| {
        let [question, response] = ["question", "response"].map(|field| row[field].as_str().unwrap());
        json!({"id": id, "prompt": format!("{question}, {response}")})
    };
    folder.write("prompts.jsonl", &pairs.iter().enumerate().map(text).collect::<Vec<_>>());
    let mut apply = vec!["--probe", "probes/fluency.safetensors", "--output", "applied.jsonl", "--quiet", "--input"];
    for pooling in ["first", "mean"] {
        let output = format!("{pooling}.safetensors");
        let store = ["--input", "prompts.jsonl", "--output", &output, "--pooling", pooling, "--quiet"];
        succeed("hidden_states", folder, &[&store[..], &of_model].concat());
    }
    apply.extend(["first.safetensors", "mean.safetensors"]);
    succeed("probe_apply", folder, &apply);
    for (applied, judged) in folder.rows("applied.jsonl").iter().zip(&judged) {
        assert_eq!(applied["label"], judged["fluency"]);
    }
}

#[test]
fn what_needs_a_decoder_or_a_template_says_so() {
    let folder = &Desk::new();
    let model = encoder("bert-on");
    let pair = json!({"id": 1, "instruction": "ba", "response": "de"});
    folder.write("pairs.jsonl", &[pair]);
    let args = ["--input", "pairs.jsonl", "--output", "out.jsonl", "--model", &model, "--raw-prompt", "--quiet"];
    refused("lager_pointwise", folder, &args, 1, &["encoder", "judge states"]);
    folder.write("prompts.jsonl", &[json!({"id": 1, "prompt": "ba"})]);
    let args = ["--input", "prompts.jsonl", "--output", "s.safetensors", "--model", &model, "--quiet"];
    refused("hidden_states", folder, &args, 1, &["no chat template", "--raw-prompt"]);
    // Without a classifier's head there are no rewards.
    let model = encoder("bert-off");
    folder.write("talks.jsonl", &[json!({"id": 1, "messages": [{"role": "user", "content": "ba"}]})]);
    let args = ["--input", "talks.jsonl", "--output", "r.jsonl", "--model", &model, "--quiet"];
    refused("reward_scores", folder, &args, 1, &["no reward model"]);
}
