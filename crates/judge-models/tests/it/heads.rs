//! Heads of sequence classifiers against transformers: `scripts/parity/make_head_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use judge_core::{Backbone, Layer, Lens, Prompt, Request, TextModel, Want, model::BackboneError, request::Pooling};
use judge_models::{ConfigProblem, Dtype, Error};
use serde_json::{Value, json};

use crate::common::{
    copy, edit, fixtures, json, labels_at_end, load, of_tensor, raw, read, readings, rewards, rewards_by, text_of,
    wants_of_logits,
};
use crate::difference::largest_difference;

fn heads() -> PathBuf {
    fixtures().join("heads")
}

/// The prompts of some cases.
fn prompts_of(folder: &Path, cases: &[Value]) -> Vec<Prompt> {
    cases.iter().map(|case| Prompt::Raw(text_of(folder, &case["ids"]))).collect()
}

#[test]
fn every_familys_rewards_equal_transformers() {
    // A single number may err more than transformers' by chance; all together do not.
    let (mut seen, mut ours_in_bf16, mut theirs_in_bf16) = (BTreeSet::new(), 0.0, 0.0);
    for entry in std::fs::read_dir(heads()).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let expected = json(folder.join("expected.json"));
        let cases = expected.as_array().unwrap();
        let prompts = prompts_of(&folder, cases);
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let model = load(&folder, dtype).unwrap();
            let found = rewards(&model, &prompts);
            let mut worst = 0.0_f64;
            for (found, case) in found.iter().zip(cases) {
                let expected: Vec<f64> = case["f32"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
                assert_eq!((found.len(), expected.len()), (model.reward_head().unwrap().labels().len(), found.len()));
                let error = largest_difference(found, &expected);
                worst = worst.max(error);
                if dtype == Dtype::Bf16 {
                    ours_in_bf16 += error * error;
                    theirs_in_bf16 += case["bf16_error"].as_f64().unwrap().powi(2);
                }
            }
            println!("{}, {dtype}: largest error {worst:.1e}", folder.display());
            assert!(dtype == Dtype::Bf16 || worst < 1e-4, "{}: {worst:e}", folder.display());
            // One by one, the same bits.
            let alone: Vec<Vec<f64>> =
                prompts.iter().flat_map(|prompt| rewards(&model, std::slice::from_ref(prompt))).collect();
            assert_eq!(alone, found, "{}", folder.display());
        }
        seen.insert(folder.file_name().unwrap().to_owned());
    }
    // transformers has no classifier of these.
    let without: Vec<String> = serde_json::from_value(json(heads().join("without.json"))).unwrap();
    let families = std::fs::read_dir(heads().join("../families")).unwrap();
    let families = families.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let families = families.filter_map(|name| Some(name.strip_suffix("-off")?.to_owned()));
    let expected: BTreeSet<_> = families.filter(|name| !without.contains(name)).map(Into::into).collect();
    assert_eq!(seen, expected);
    println!("mean square error in bf16 over that of transformers: {:.2}", ours_in_bf16 / theirs_in_bf16);
    assert!(ours_in_bf16 <= theirs_in_bf16, "{ours_in_bf16:e} {theirs_in_bf16:e}");
}

/// MiniCPM by FlagEmbedding's code: `scripts/parity/make_layer_wise_fixtures.py`.
#[test]
fn heads_of_layers_equal_flag_embedding() {
    let layer_wise = |name: &str| heads().join("../layer_wise").join(name);
    for (name, first) in [("heads-scaled", 1), ("heads-plain", 4)] {
        let folder = layer_wise(name);
        let (model, expected) = (load(&folder, Dtype::F32).unwrap(), json(folder.join("expected.json")));
        let cases = expected.as_array().unwrap();
        let prompts = prompts_of(&folder, cases);
        let layers: Vec<usize> =
            model.reward_heads().iter().map(|head| head.layer().map_or(4, |layer| layer.0)).collect();
        assert_eq!(layers, (first..=4).collect::<Vec<_>>());
        assert_eq!(model.reward_head().unwrap().layer(), None);
        for (head, layer) in model.reward_heads().iter().zip(layers) {
            let found = rewards_by(head, &model, &prompts);
            for (found, case) in found.iter().zip(cases) {
                let expected = case["layers"][layer.to_string()].as_f64().unwrap();
                assert!((found[0] - expected).abs() < 1e-5, "{name} {layer}: {found:?} {expected}");
            }
            assert_eq!(rewards_by(head, &model, &prompts[1..2]), found[1..2]);
        }
    }

    let folder = layer_wise("plain");
    let (model, expected) = (load(&folder, Dtype::F32).unwrap(), json(folder.join("expected.json")));
    assert!(model.reward_heads().is_empty());
    let tokens: Vec<u32> = (0..model.info().d_vocab as u32).collect();
    let logits = labels_at_end(tokens, vec![Layer(4)], Lens::Raw);
    let want = Want { labels: vec![logits.clone()], ..Want::default() };
    let cases = expected.as_array().unwrap();
    for (case, reading) in cases.iter().zip(readings(&model, prompts_of(&folder, cases), &want)) {
        let labels = reading.labels(&logits).unwrap();
        let found = labels.row(labels.prompt_end().unwrap(), Layer(4)).unwrap();
        let expected: Vec<f32> = serde_json::from_value(case["layers"]["4"].clone()).unwrap();
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5 && found.len() == expected.len(), "{worst:e}");
    }
}

#[test]
fn other_heads_of_layers_are_refused_by_their_field() {
    for (field, value) in [
        ("head_type", json!("complex")),
        ("head_multi", json!(false)),
        ("start_layer", json!(5)),
        ("sparse_config", json!({"topk": 64})),
        ("dim_model_base", json!(0)),
        ("scale_depth", json!(-1.0)),
    ] {
        let to = copy("layer_wise/heads-scaled");
        edit(to.path().join("config.json"), |config| config[field] = value);
        let refused = load(to.path(), Dtype::F32).map(|_| ()).unwrap_err();
        let problem = format!("{refused:?}");
        assert!(matches!(refused, Error::Config { .. }) && problem.contains(field), "{field}: {problem}");
    }
}

#[test]
fn labels_have_the_names_of_the_folder_and_padding_at_the_end_is_passed_over() {
    let model = load(heads().join("gemma2"), Dtype::F32).unwrap();
    assert_eq!(model.reward_head().unwrap().labels(), ["helpful", "safe", "brief"]);
    let found = rewards(&model, &[raw("ba de fi"), raw("ba de fi 1 1"), raw("ba de 1 fi")]);
    assert_eq!(found[0], found[1]);
    assert_ne!(found[0], found[2]);
    // A head without padding reads the last token, whatever it is.
    let model = load(heads().join("llama"), Dtype::F32).unwrap();
    assert_eq!(model.reward_head().unwrap().labels(), ["LABEL_0"]);
    let found = rewards(&model, &[raw("ba de fi"), raw("ba de fi 1 1")]);
    assert_ne!(found[0], found[1]);
}

/// The last token that is not padding is read, also where padding is the token that ends a turn; without padding the last.
#[test]
fn padding_at_the_end_is_passed_over_as_by_transformers() {
    let cases = json(heads().join("padding.json"));
    let mut texts_of_padding = 0;
    for case in cases.as_array().unwrap() {
        let to = copy("heads/qwen3");
        edit(to.path().join("config.json"), |config| config["pad_token_id"] = case["pad_token_id"].clone());
        let model = load(to.path(), Dtype::F32).unwrap();
        let ids = case["ids"].as_array().unwrap();
        let prompt = Prompt::Raw(text_of(to.path(), &case["ids"]));
        assert_eq!(json!(model.tokens(&prompt).unwrap()), case["ids"]);
        let found = rewards(&model, &[prompt])[0][0];
        let is_padding = ids.iter().all(|id| *id == case["pad_token_id"]);
        texts_of_padding += usize::from(is_padding);
        for how in ["f32", "left", "right"] {
            // Of padding alone transformers reads the first position, which on the left is none of the text.
            let Some(expected) = case.get(how).filter(|_| !(how == "left" && is_padding)) else { continue };
            assert!((found - expected[0].as_f64().unwrap()).abs() < 1e-4, "{case}: {found}");
        }
    }
    assert_eq!((cases.as_array().unwrap().len(), texts_of_padding), (15, 1));
    let of = |pad: &Value| {
        let of_text = |case: &&Value| case["ids"] == json!([4, 5, 6, 2]) && case["pad_token_id"] == *pad;
        cases.as_array().unwrap().iter().find(of_text).unwrap()["f32"].clone()
    };
    assert_ne!(of(&json!(2)), of(&Value::Null));
}

#[test]
fn what_needs_a_vocabulary_is_refused() {
    let model = load(heads().join("qwen3"), Dtype::F32).unwrap();
    for want in wants_of_logits() {
        let request = Request { prompt: raw("ba de"), want };
        let refused = model.run(&[request], &mut |_, outcome| panic!("{outcome:?}"));
        assert!(matches!(refused, Err(BackboneError::Unsupported { request: 0, .. })), "{refused:?}");
    }
    let want = Want { pooled: vec![(Layer(1), Pooling::Mean)], ..Want::default() };
    read(&model, raw("ba de"), &want);
}

#[test]
fn other_heads_are_refused_by_name() {
    let refuse = |change: &dyn Fn(&mut Value)| {
        let to = copy("heads/qwen3");
        edit(to.path().join("config.json"), |config| change(config));
        load(to.path(), Dtype::F32).unwrap_err()
    };
    let problem = |error: Error| match error {
        Error::Config { problem, .. } => problem,
        other => panic!("{other:?}"),
    };
    let found = problem(refuse(&|config| config["architectures"] = json!(["LlamaForRewardModelWithGating"])));
    assert!(
        matches!(&found, ConfigProblem::Unknown { field: "architectures", found, .. } if found.ends_with("Gating"))
    );
    let found = problem(refuse(&|config| config["id2label"] = json!({"1": "a", "2": "b"})));
    assert!(matches!(found, ConfigProblem::Value { field: "id2label", .. }), "{found}");
    // A head of another number of labels than the configuration has.
    let found = refuse(&|config| config["id2label"] = json!({"0": "a", "1": "b"}));
    assert_eq!(of_tensor(found).0, "score.weight");
}
