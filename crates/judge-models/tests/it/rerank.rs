//! Scores of queries and documents against sentence-transformers' CrossEncoder and transformers:
//! `scripts/parity/make_rerank_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::fs;
use std::path::Path;

use judge_core::decision::{DecisionFit, Labelled, QuestionKind};
use judge_core::rerank::{Activation, Label, RerankItem, RerankJudge, RerankReadout, RerankSettings, ranked};
use judge_core::{ItemResult, Layer, Reason, Runner, Verdict};
use judge_models::{Dtype, Error, Model, RerankFolder, RerankForm, RerankFormProblem, RerankOptions, WeightsError};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{self, copy, copy_into, edit, fixtures, json};

fn expected() -> Value {
    json(fixtures().join("rerank/expected.json"))
}

/// The model of a case, with the tokenizer of characters and what lies beside it.
fn folder_of(case: &Value) -> TempDir {
    let folder = copy(case["model"].as_str().unwrap());
    if !case["beside"].is_null() || !case["template"].is_null() {
        copy_into(&fixtures().join("decisions/tokenizer"), folder.path());
    }
    if let Some(beside) = case["beside"].as_str() {
        fs::remove_file(folder.path().join("chat_template.jinja")).unwrap();
        copy_into(&fixtures().join("rerank").join(beside), folder.path());
    }
    for name in ["config.json", "tokenizer_config.json"] {
        let own = case[name].as_object().cloned().unwrap();
        edit(folder.path().join(name), |fields| fields.as_object_mut().unwrap().extend(own));
    }
    folder
}

/// A model that reads whole prompts, with the tokenizer of characters and these fields of `config.json`.
fn plain(model: &str, config: Value) -> TempDir {
    folder_of(&json!({
        "model": model, "beside": null, "template": true, "config.json": config, "tokenizer_config.json": {},
    }))
}

fn load(folder: &Path) -> Model {
    common::load(folder, Dtype::F32).unwrap()
}

fn form(folder: &Path, options: &RerankOptions) -> Result<RerankForm, Error> {
    RerankFolder::open(folder).and_then(|found| found.form(options))
}

/// What is wrong with how a folder is asked to rerank.
fn problem(folder: &Path, options: &RerankOptions) -> RerankFormProblem {
    match form(folder, options).map(|_| ()) {
        Err(Error::Rerank { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

/// Pairs as items of one document each, so that queries may differ.
fn judged(model: &Model, settings: RerankSettings, pairs: &Value) -> (RerankJudge, Vec<ItemResult<RerankItem>>) {
    let judge = RerankJudge::new(settings, model).unwrap();
    let pairs: Vec<[String; 2]> = serde_json::from_value(pairs.clone()).unwrap();
    let items = pairs
        .into_iter()
        .enumerate()
        .map(|(row, [query, document])| (row.to_string().as_str().into(), RerankItem::new(query, [document])));
    let results = Runner::new(model, vec![&judge]).collect(items).unwrap();
    (judge, results)
}

fn value(verdict: &Verdict) -> f64 {
    match &ranked(verdict)[..] {
        [only] => *only.score.as_ref().unwrap(),
        other => panic!("{verdict:?} {other:?}"),
    }
}

fn numbers(json: &Value) -> Vec<f64> {
    serde_json::from_value(json.clone()).unwrap()
}

#[test]
fn scores_equal_sentence_transformers_cross_encoder() {
    let mut worst = 0.0_f64;
    for case in expected()["cross_encoders"].as_array().unwrap() {
        let folder = folder_of(case);
        let model = load(folder.path());
        for (activation, key) in [(None, "scores"), (Some(Activation::Identity), "raw")] {
            let options = RerankOptions { activation, ..RerankOptions::default() };
            let settings = form(folder.path(), &options).unwrap().settings(&model).unwrap();
            let (_, results) = judged(&model, settings, &case["pairs"]);
            for (row, (found, expected)) in results.iter().zip(numbers(&case[key])).enumerate() {
                let found = value(&found.verdicts[0]);
                let difference = (found - expected).abs() / expected.abs().max(1.0);
                let of = format!("{} {} {key} {}", case["model"], case["beside"], case["pairs"][row]);
                // What a text spells like a control token stays text behind a chat template; there it is parsed.
                if !case["beside"].is_null() && ["</s>", "<s>"].iter().any(|token| of.contains(token)) {
                    assert!(difference > 1e-5 || key == "scores", "{of}: {found}");
                    continue;
                }
                assert!(difference < 1e-5, "{of}: found {found}, expected {expected}");
                worst = worst.max(difference);
            }
        }
    }
    println!("scores of cross-encoders: largest difference {worst:.1e}");
}

#[test]
fn labels_behind_a_template_equal_transformers_at_every_layer() {
    let case = &expected()["whole"];
    let folder = folder_of(case);
    let model = load(folder.path());
    let options = |labels: &[&str], activation| RerankOptions {
        template: case["template"].as_str().map(str::to_owned),
        labels: labels.iter().map(|label| Label::Text((*label).to_owned())).collect(),
        activation,
        most_tokens: case["most"].as_u64().map(|most| most as usize),
        ..RerankOptions::default()
    };
    let documents = case["documents"].as_array().unwrap();
    let of_layer = |layer: usize| {
        let rows = documents.iter().map(move |found| numbers(&found["layers"][layer]));
        rows.map(|row| [row[0], row[1]]).collect::<Vec<_>>()
    };
    let near = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{found} {expected}");
    };
    let last = 3;
    let settings = |labels: &[&str], activation| {
        form(folder.path(), &options(labels, activation)).unwrap().settings(&model).unwrap()
    };

    // Two labels are the probability of the first in the softmax over both, unless something else is asked for.
    let softmax = |[yes, no]: [f64; 2]| yes.exp() / (yes.exp() + no.exp());
    let (judge, results) = judged(&model, settings(&["Yes", "No"], None), &case["pairs"]);
    for ((result, row), document) in results.iter().zip(of_layer(last)).zip(documents) {
        near(value(&result.verdicts[0]), softmax(row));
        let rounds = result.rounds(0);
        let reading = judge.readings(&result.item, &rounds).unwrap()[0].unwrap();
        assert_eq!(Some(reading.cut_tokens as u64), document["cut"].as_u64());
        assert!(reading.prompt_tokens <= case["most"].as_u64().map(|most| most as usize));
    }
    let (_, results) = judged(&model, settings(&["Yes", "No"], Some(Activation::Identity)), &case["pairs"]);
    results.iter().zip(of_layer(last)).for_each(|(result, [yes, no])| near(value(&result.verdicts[0]), yes - no));
    let (_, results) = judged(&model, settings(&["Yes"], None), &case["pairs"]);
    results.iter().zip(of_layer(last)).for_each(|(result, [yes, _])| near(value(&result.verdicts[0]), yes));

    for layer in 0..last {
        let readout = RerankReadout::Layer(Layer(layer));
        let settings = RerankSettings { readout, ..settings(&["Yes", "No"], Some(Activation::Identity)) };
        let (_, results) = judged(&model, settings, &case["pairs"]);
        for (result, [yes, no]) in results.iter().zip(of_layer(layer)) {
            near(value(&result.verdicts[0]), yes - no);
        }
    }

    // Weights over layers, from the tables of these readings.
    let plain = settings(&["Yes", "No"], None);
    let (judge, results) = judged(&model, RerankSettings { every_layer: true, ..plain.clone() }, &case["pairs"]);
    let labelled = results.iter().enumerate().map(|(row, result)| {
        let (_, table) = judge.tables(&result.item, &result.rounds(0)).unwrap().remove(0);
        let relevance = (row % 2) as f64;
        Labelled { kind: QuestionKind::Noul, table, target: vec![relevance, 1.0 - relevance] }
    });
    let weights = DecisionFit::default().fit(&labelled.collect::<Vec<_>>(), &judge.origin()).unwrap();
    let kind = weights.get(QuestionKind::Noul).unwrap().clone();
    let readout = RerankReadout::Weights(Box::new(weights));
    let (_, results) = judged(&model, RerankSettings { readout, ..plain }, &case["pairs"]);
    for (row, result) in results.iter().enumerate() {
        let layers = kind.layers.iter().flatten().enumerate();
        let sum: f64 = layers.map(|(layer, weight)| weight * (of_layer(layer)[row][0] - of_layer(layer)[row][1])).sum();
        near(value(&result.verdicts[0]), Activation::Sigmoid.at(sum / kind.temperature));
    }
}

#[test]
fn a_folder_that_does_not_say_is_refused_by_what_to_give() {
    let folder = plain("families/qwen3-off", json!({}));
    let problem = |options: &RerankOptions| problem(folder.path(), options);
    let (labels, template) = (vec![Label::Text("Yes".into())], Some("{{ query }} {{ document }}".to_owned()));
    assert!(matches!(problem(&RerankOptions::default()), RerankFormProblem::NotSaid { .. }));
    let alone = RerankOptions { labels: labels.clone(), ..RerankOptions::default() };
    assert_eq!(problem(&alone), RerankFormProblem::NoPrompt);
    let alone = RerankOptions { template: template.clone(), ..RerankOptions::default() };
    assert_eq!(problem(&alone), RerankFormProblem::NoLabels);
    let lacks =
        RerankOptions { template: Some("{{ query }}".into()), labels: labels.clone(), ..RerankOptions::default() };
    assert_eq!(problem(&lacks), RerankFormProblem::Template { variable: "document" });
    let instruction = Some("Is it so?".to_owned());
    let unread =
        RerankOptions { template: template.clone(), labels: labels.clone(), instruction, ..RerankOptions::default() };
    assert_eq!(problem(&unread), RerankFormProblem::Template { variable: "instruction" });
    let three = RerankOptions {
        labels: [labels.clone(), labels.clone(), labels.clone()].concat(),
        template,
        ..RerankOptions::default()
    };
    assert_eq!(problem(&three), RerankFormProblem::Labels { found: 3 });
    // What is given alone is not said of the folder.
    for given in [lacks, unread, three] {
        assert!(matches!(form(folder.path(), &given), Err(Error::Rerank { path: None, .. })));
    }

    // A list of modules without the file that it names.
    fs::write(folder.path().join("modules.json"), r#"[{"path": "1_LogitScore", "type": "a.LogitScore"}]"#).unwrap();
    assert!(matches!(RerankFolder::open(folder.path()), Err(Error::Weights(WeightsError::MissingFile { .. }))));
    fs::create_dir(folder.path().join("1_LogitScore")).unwrap();
    fs::write(folder.path().join("1_LogitScore/config.json"), r#"{"true_token_id": "Yes"}"#).unwrap();
    let wrong = RerankFolder::open(folder.path()).unwrap_err().to_string();
    assert!(wrong.contains("true_token_id") && wrong.contains("the number of a token"), "{wrong}");
    fs::write(folder.path().join("1_LogitScore/config.json"), r#"{"true_token_id": 3}"#).unwrap();

    // A chat template that writes the texts of two roles only.
    let chat = "{% for m in messages %}{% if m.role != 'document' %}{{ m.content }}{% endif %}{% endfor %}";
    fs::write(folder.path().join("chat_template.jinja"), chat).unwrap();
    let model = load(folder.path());
    let dropped = form(folder.path(), &RerankOptions::default()).unwrap().settings(&model).map(|_| ());
    assert!(
        matches!(dropped, Err(Error::Rerank { problem: RerankFormProblem::Roles { role: "document", .. }, .. })),
        "{dropped:?}"
    );
    fs::write(folder.path().join("config_sentence_transformers.json"), r#"{"activation_fn": "a.Tanh"}"#).unwrap();
    let wrong = RerankFolder::open(folder.path()).unwrap_err().to_string();
    assert!(wrong.contains("a.Tanh"), "{wrong}");
}

#[test]
fn a_reward_model_reads_a_conversation_and_labels_are_one() {
    let folder = plain("heads/llama", json!({"pad_token_id": null}));
    let model = load(folder.path());
    let of = form(folder.path(), &RerankOptions::default()).unwrap();
    assert!(of.reads_head() && of.is_conversation());
    assert_eq!(of.activation(), Activation::Identity);
    let settings = of.settings(&model).unwrap();
    let pairs = json!([["Who?", "Ann"], ["Who?", "x".repeat(200)]]);
    let (judge, results) = judged(&model, settings, &pairs);
    let cut = |row: usize| {
        let rounds = results[row].rounds(0);
        judge.readings(&results[row].item, &rounds).unwrap()[0].unwrap().cut_tokens
    };
    assert_eq!(cut(0), 0);
    assert!(cut(1) > 100, "the document is cut to the 64 positions");
    let given = RerankOptions { instruction: Some("Is it so?".into()), ..RerankOptions::default() };
    let refused = form(folder.path(), &given).map(|_| ());
    assert!(matches!(refused, Err(Error::Rerank { problem: RerankFormProblem::Instruction, .. })), "{refused:?}");

    // A head that an adapter brings, whether the adapter is named as the model or beside it.
    let (base, adapters) = (fixtures().join("families/llama-off"), [fixtures().join("adapters/reward")]);
    assert!(!RerankFolder::open(&base).unwrap().is_said());
    let beside = RerankFolder::open_with(&base, &adapters).unwrap().form(&RerankOptions::default()).unwrap();
    assert!(beside.reads_head() && beside.is_conversation());

    // A task that is not stated, and a value head beside an adapter, as `Model::load` reads them.
    let unstated = copy("adapters/reward");
    edit(unstated.path().join("adapter_config.json"), |config| config["task_type"] = Value::Null);
    for adapter in [unstated.path().to_owned(), fixtures().join("adapters/value")] {
        let found = RerankFolder::open_with(&base, std::slice::from_ref(&adapter)).unwrap();
        assert!(found.form(&RerankOptions::default()).unwrap().reads_head(), "{}", adapter.display());
    }

    let labels = fixtures().join("encoder_heads/bert-labels");
    let settings = form(&labels, &RerankOptions::default()).unwrap().settings(&load(&labels)).unwrap();
    let refused = RerankJudge::new(settings, &load(&labels)).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("contradiction, entailment, neutral"), "{refused}");
}

/// sentence-transformers puts them beside the adapter that it saves, with the limit in the tokenizer's settings.
#[test]
fn files_beside_an_adapter_count_before_those_of_its_base() {
    let (base, adapter) = (copy("families/llama-off"), copy("adapters/reward"));
    edit(adapter.path().join("adapter_config.json"), |config| config["base_model_name_or_path"] = json!(base.path()));
    let said = |folder: &TempDir, prompt: &str, activation: &str| {
        let config = json!({
            "model_type": "CrossEncoder", "activation_fn": activation, "prompts": {"web": prompt}, "default_prompt_name": "web",
        });
        fs::write(folder.path().join("config_sentence_transformers.json"), config.to_string()).unwrap();
    };
    said(&base, "of the base", "torch.nn.modules.activation.Sigmoid");
    let adapters = [adapter.path().to_owned()];
    let both = || {
        let forms = [RerankFolder::open_with(base.path(), &adapters), RerankFolder::open(adapter.path())];
        forms.map(|found| found.unwrap().form(&RerankOptions::default()).unwrap().to_json())
    };
    let [beside, alone] = both();
    assert_eq!(beside, alone);
    assert_eq!(beside["prompt"]["instruction"], "of the base");

    said(&adapter, "of the adapter", "torch.nn.modules.linear.Identity");
    fs::write(adapter.path().join("tokenizer_config.json"), r#"{"model_max_length": 8}"#).unwrap();
    let [beside, alone] = both();
    assert_eq!(beside, alone);
    assert_eq!(
        (&beside["prompt"]["instruction"], &beside["prompt"]["most_tokens"]),
        (&json!("of the adapter"), &json!(8))
    );
    assert_eq!(beside["scoring"]["activation"], json!(Activation::Identity));
}

/// As sentence-transformers 4.0 to 5.3 saved a decoder: it is asked by turns of the roles of a pair, as version 6.2 asks it.
#[test]
fn a_decoder_whose_config_names_sentence_transformers_is_a_cross_encoder() {
    let said = json!({"version": "5.1.0", "activation_fn": "torch.nn.modules.activation.Sigmoid"});
    let folder = plain("heads/llama", json!({"sentence_transformers": said}));
    let of = form(folder.path(), &RerankOptions::default()).unwrap();
    assert!(of.reads_head() && !of.is_conversation());
    assert_eq!(
        (of.activation(), &of.to_json()["prompt"]["roles"]),
        (Activation::Sigmoid, &json!(["query", "document"]))
    );
}

#[test]
fn an_encoder_without_a_head_that_is_read_is_refused_without_advice_that_cannot_work() {
    let refused = problem(&fixtures().join("encoders/bert-off"), &RerankOptions::default());
    assert!(matches!(refused, RerankFormProblem::EncoderWithoutHead { .. }), "{refused}");
    // llama.cpp keeps the head of a sequence classifier.
    let (to, names) = (TempDir::new().unwrap(), [&b"blk.0.ffn_up.bias"[..], b"cls.output.weight"]);
    let mut bytes = fs::read(fixtures().join("gguf_encoders/bert.gguf")).unwrap();
    let at = bytes.windows(names[0].len()).position(|found| found == names[0]).unwrap();
    bytes[at..at + names[1].len()].copy_from_slice(names[1]);
    fs::write(to.path().join("bert.gguf"), bytes).unwrap();
    let refused = problem(&to.path().join("bert.gguf"), &RerankOptions::default());
    assert_eq!(refused, RerankFormProblem::HeadOfGguf { tensor: "cls.output.weight" });
}

#[test]
fn a_reranker_of_layers_reads_the_head_of_the_layer_that_is_asked_for() {
    let folder = plain("layer_wise/heads-scaled", json!({}));
    let options = |readout| RerankOptions {
        template: Some("{{ query }}<|split|>{{ document }}<|split|>?".into()),
        readout,
        ..RerankOptions::default()
    };
    let problem = |options: &RerankOptions| problem(folder.path(), options);
    // No file states the prompt that it was trained on.
    assert_eq!(problem(&RerankOptions::default()), RerankFormProblem::NoPrompt);
    let refused = problem(&options(RerankReadout::Layer(Layer(0))));
    assert_eq!(refused.to_string(), "expected a layer that has a head of labels (1 to 4), found layer 0");

    let model = load(folder.path());
    let scores = |readout| {
        let of = form(folder.path(), &options(readout)).unwrap();
        assert!(of.reads_head() && !of.is_conversation() && of.activation() == Activation::Identity);
        let (judge, results) = judged(&model, of.settings(&model).unwrap(), &json!([["Who?", "Ann"], ["Who?", "x"]]));
        let id = <RerankJudge as judge_core::Judge<RerankItem>>::settings(&judge).unwrap()["rerank"]["scoring"].clone();
        (id, results.iter().map(|result| value(&result.verdicts[0])).collect::<Vec<_>>())
    };
    let last = scores(RerankReadout::LastLayer);
    assert_eq!(last, scores(RerankReadout::Layer(Layer(4))));
    let inner = scores(RerankReadout::Layer(Layer(2)));
    assert!(inner.0 != last.0 && inner.1 != last.1, "{inner:?} {last:?}");

    // A head alone is that of the last layer.
    let other = fixtures().join("encoder_heads/bert");
    let readout = RerankReadout::Layer(Layer(1));
    let refused = form(&other, &RerankOptions { readout, ..RerankOptions::default() }).map(|_| ()).unwrap_err();
    assert!(
        matches!(&refused, Error::Rerank { problem: RerankFormProblem::LayerWithoutHead { .. }, .. }),
        "{refused:?}"
    );
}

/// The page's templates of Qwen3-Reranker and of layer-wise rerankers, in a tokenizer of characters.
#[test]
fn the_templates_of_the_page_are_read_and_write_both_texts() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rerank.md")).unwrap();
    let templates: Vec<&str> = page.split("```jinja\n").skip(1).map(|from| from.split("```").next().unwrap()).collect();
    assert_eq!(templates.len(), 2);
    let folder = plain("families/qwen3-off", json!({"max_position_embeddings": 2048}));
    let model = load(folder.path());
    for template in templates {
        let options = RerankOptions {
            template: Some(template.to_owned()),
            labels: ["Yes", "No"].map(|label| Label::Text(label.into())).into(),
            ..RerankOptions::default()
        };
        let settings = form(folder.path(), &options).unwrap().settings(&model).unwrap();
        let tokens =
            |query: &str, document: &str| model.tokens(&settings.prompt.prompt(query, document).unwrap()).unwrap();
        let plain = tokens("who", "ann");
        assert_eq!(tokens("who?", "ann").len(), plain.len() + 1);
        assert_eq!(tokens("who", "ann!!").len(), plain.len() + 2);
        if template.starts_with("<s>") {
            // A token for each character, and one for the beginning.
            assert_eq!((plain[0], plain.len()), (1, 1 + "A: who\nB: ann\n".len()));
        }
    }
}

#[test]
fn a_query_that_leaves_no_room_is_too_long() {
    let case = &expected()["whole"];
    let folder = folder_of(case);
    let model = load(folder.path());
    for (most_tokens, limit) in
        [(None, "without the text that may be cut, the context has"), (Some(20), "the limit of the prompt is 20")]
    {
        let options = RerankOptions {
            template: case["template"].as_str().map(str::to_owned),
            labels: vec![Label::Text("Yes".into())],
            most_tokens,
            ..RerankOptions::default()
        };
        let settings = form(folder.path(), &options).unwrap().settings(&model).unwrap();
        let judge = RerankJudge::new(settings, &model).unwrap();
        let long = ("1".into(), RerankItem::new("q".repeat(400), ["a", "b"]));
        let items = [long, ("2".into(), RerankItem::new("q", ["a"]))];
        let results = Runner::new(&model, vec![&judge]).collect(items).unwrap();
        let why = results[0].verdicts[0].unscored().unwrap();
        assert_eq!(why.reason, Reason::TooLong);
        assert!(why.detail.contains(limit), "{}", why.detail);
        assert!(most_tokens.is_some() || results[1].verdicts[0].value().is_some());
    }
}
