//! The examples around probes as a user runs them: training, judging, filtering, importing, applying.

use std::fs;
use std::path::Path;

use half::f16;
use judge_core::{
    Layer,
    request::{Pooling, Signal},
};
use judge_data::StatesFile;
use judge_probe::pickle::Limits;
use judge_probe::{FittedClassifier, FittedEstimator, Matrix, Precision, ProbeStage, SavedProbe, SklearnProbe};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use tiny_judge::planted::{Item, Split, generate};

use crate::program::{Desk, finished, read_json, refused, succeed, words, write_rows};

/// Graded pairs of two aspects; each question appears once.
fn write_pairs(path: &Path, n: usize) {
    let row = |(index, item): (usize, Item)| {
        let aspect = if index % 3 == 0 { "logicality" } else { "fluency" };
        let (question, response) = (item.instruction, item.response);
        json!({"id": index, "aspect": aspect, "question": question, "response": response, "score": item.quality.round(), "source": [index, "kept"]})
    };
    write_rows(path, &generate(Split::Test, n, 0).into_iter().enumerate().map(row).collect::<Vec<_>>());
}

#[test]
fn probes_are_trained_and_judge_and_filter() {
    let folder = &Desk::new();
    write_pairs(&folder.join("graded.jsonl"), 150);
    let line =
        "--input graded.jsonl --output probes --binary --layers 1-3 --c 0.01,1 --folds 3 --top-k 2 --ungrouped --quiet";
    let train = words(line);
    let table = succeed("inspector_train", folder, &train);
    assert!(
        table.contains("fluency: 100 rows, 0 unscored") && table.contains("probe minus surface features (tuned)"),
        "{table}"
    );
    let report = folder.json("probes/report.json");
    for (aspect, n) in [("fluency", 100), ("logicality", 50)] {
        let found = &report["aspects"][aspect];
        assert_eq!((&found["n"], &found["unscored"]), (&json!(n), &json!(0)));
        assert_eq!(found["n_train"], n * 4 / 5);
        let test = &found["splits"]["test"];
        assert_eq!(test["n"], n / 5);
        assert_eq!(found["artefacts"]["test"]["questions"]["n_tested"], n / 5);
        for predictor in ["probe", "majority", "surface", "tfidf"] {
            let f1 = test["predictors"][predictor]["weighted_f1"]["estimate"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&f1), "{predictor} {f1}");
        }
        // The last layer is not read, so the model is not run to its end and has no score of its own.
        assert!(test["predictors"].get("prompted").is_none());
        // Two poolings of three layers.
        assert_eq!(found["selection"]["scan"].as_array().unwrap().len(), 6);
        let probe = SavedProbe::from_bytes(&folder.read(format!("probes/{aspect}.safetensors"))).unwrap();
        assert_eq!(probe.origin().signals.len(), found["chosen"].as_array().unwrap().len());
        assert!(probe.origin().signals.iter().all(|(layer, _)| (1..=3).contains(&layer.0)));
        assert_eq!(probe.probe().classes(), [0, 1]);
        assert!(folder.text(format!("probes/{aspect}.svg")).starts_with("<svg"));
    }
    // A finished run is recognised; without its report it is done again from the states, to the same bytes.
    let before = folder.read("probes/report.json");
    assert!(succeed("inspector_train", folder, &train).contains("probes is complete"));
    fs::remove_file(folder.join("probes/report.json")).unwrap();
    succeed("inspector_train", folder, &train);
    assert_eq!(folder.read("probes/report.json"), before);
    // Results of other settings are not replaced, and states of other layers not mixed with these.
    let other = line.replace("1-3", "1-2");
    let other = words(&other);
    refused("inspector_train", folder, &other, 2, &[r#"layers was "1-3", is "1-2""#]);
    assert_eq!(folder.read("probes/report.json"), before);
    let overwrite = [&other[..], &["--overwrite"]].concat();
    refused("inspector_train", folder, &overwrite, 2, &["shape.layers was [1,2,3], is [1,2]"]);

    let judge = ["--input", "graded.jsonl", "--probes", "probes", "--output", "judged.jsonl", "--quiet"];
    let table = succeed("inspector_evaluate", folder, &judge);
    assert!(table.contains("150 of 150 pairs"), "{table}");
    let judged = folder.rows("judged.jsonl");
    for (index, row) in judged.iter().enumerate() {
        assert_eq!((&row["id"], &row["source"]), (&json!(index), &json!([index, "kept"])));
        let (fluency, logicality) = (row["fluency"].as_i64().unwrap(), row["logicality"].as_i64().unwrap());
        assert_eq!(row["total_score"], fluency + logicality);
        let p = row["probabilities"]["fluency"]["1"].as_f64().unwrap();
        assert_eq!(i64::from(p > 0.5), fluency);
    }

    let best = ["--top-percent", "0.31", "--output", "best.json"];
    succeed("inspector_evaluate", folder, &[&judge[..4], &best[..], &["--quiet"]].concat());
    let best = folder.json("best.json");
    let mut expected: Vec<&Value> = judged.iter().collect();
    // Of equal totals the higher expected grades are better; the sort is stable.
    let merit = |row: &Value| (row["total_score"].as_i64().unwrap() as f64, row["expected_total"].as_f64().unwrap());
    expected.sort_by(|a, b| merit(b).partial_cmp(&merit(a)).unwrap());
    expected.truncate(46); // ⌊150 · 0.31⌋
    assert_eq!(best.as_array().unwrap().iter().collect::<Vec<_>>(), expected);

    let filter = ["--input", "graded.jsonl", "--probes", "probes", "--output", "kept.jsonl", "--quiet"];
    succeed("inspector_filter", folder, &[&filter[..], &["--min-total", "2", "--report", "filter.json"]].concat());
    let kept = folder.rows("kept.jsonl");
    let all = folder.rows("graded.jsonl");
    let wanted: Vec<&Value> =
        judged.iter().zip(&all).filter(|(judged, _)| judged["total_score"] == 2).map(|(_, row)| row).collect();
    assert_eq!(kept.iter().collect::<Vec<_>>(), wanted);
    assert_eq!(folder.json("filter.json")["kept"], wanted.len());
    refused("inspector_filter", folder, &filter, 2, &["--top-share <SHARE>|--min-total <TOTAL>"]);

    // A probe without its prompt is of no use, nor one of another model.
    fs::create_dir(folder.join("alone")).unwrap();
    fs::copy(folder.join("probes/fluency.safetensors"), folder.join("alone/fluency.safetensors")).unwrap();
    let alone = ["--input", "graded.jsonl", "--probes", "alone", "--output", "x.jsonl", "--quiet"];
    // The aspect's own prompt was used, so it is known.
    succeed("inspector_evaluate", folder, &alone);
    folder.put("alone/fluency.template.json", r#"{"raw": "Another {question} {response}"}"#);
    refused("inspector_evaluate", folder, &alone, 1, &["fitted on another prompt"]);
}

/// Attention entropies stand beside the states of their layer, and the probe judges by both.
#[test]
fn probes_read_how_heads_attend() {
    let folder = &Desk::new();
    write_pairs(&folder.join("graded.jsonl"), 60);
    let train = |layers| {
        let what = ["--input", "graded.jsonl", "--aspect", "fluency", "--output", "p", "--binary", "--quiet"];
        let how = ["--layers", layers, "--pooling", "mean", "--folds", "2", "--attention-entropy"];
        [what.as_slice(), how.as_slice()].concat()
    };
    refused("inspector_train", folder, &train("0"), 2, &["attend to nothing"]);
    succeed("inspector_train", folder, &train("1-2"));
    let probe = SavedProbe::from_bytes(&folder.read("p/fluency.safetensors")).unwrap();
    let report = folder.json("p/report.json");
    let chosen = report["aspects"]["fluency"]["chosen"].as_array().unwrap();
    let expected: Vec<(Layer, Signal)> = chosen
        .iter()
        .map(|view| Layer(view["layer"].as_u64().unwrap() as usize))
        .flat_map(|layer| [(layer, Signal::State(Pooling::Mean)), (layer, Signal::AttentionEntropy)])
        .collect();
    assert_eq!(probe.origin().signals, expected);
    let model = &probe.origin().model;
    assert_eq!(probe.probe().n_features(), chosen.len() * (model.d_model + model.n_heads.unwrap()));

    let judge = ["--input", "graded.jsonl", "--probes", "p", "--output", "judged.jsonl", "--quiet"];
    let table = succeed("inspector_evaluate", folder, &judge);
    assert!(table.contains("60 of 60 pairs"), "{table}");
    assert!(folder.rows("judged.jsonl").iter().all(|row| row["fluency"].is_i64()));
}

#[test]
fn bad_training_data_is_named() {
    let folder = &Desk::new();
    let train = |text: &str, code: i32, expected: &str, more: &[&str]| {
        folder.put("in.json", text);
        let args = [&["--input", "in.json", "--output", "out", "--quiet"], more].concat();
        refused("inspector_train", folder, &args, code, &[expected]);
    };
    let row = r#"{"id": 1, "prompt": "a", "score": 4}"#;
    train("", 1, "has no rows", &[]);
    train("{\"id\": 1, \"prompt\": \"a\"}", 1, "score", &[]);
    train("{\"id\": 1, \"question\": \"a\", \"response\": \"b\", \"score\": 1}", 1, "nothing to learn", &[]);
    train(r#"{"fluency": [{"id": 1, "score": 2}]}"#, 1, "no probing file", &[]);
    train(r#"{"fluency": [{"id": 1, "eval_prompt": "x", "score": null}]}"#, 1, "none of the 1 rows", &[]);
    train(
        r#"{"fluency": [{"id": 1, "eval_prompt": "x", "score": 2}]}"#,
        1,
        "no aspect \"charm\"",
        &["--aspect", "charm"],
    );
    train(row, 1, "nothing to learn", &[]);
    train(row, 2, "expected a number above 0", &["--c", "0"]);
    train(row, 2, "--test-share", &["--test-share", "1"]);
    // Two rows belong together, and none is trained on.
    let prompt = |id: usize| format!("Question: Which of the towers is {}?\nAnswer: {id}", id.max(1));
    let tested = |id: usize| json!({"id": id, "prompt": prompt(id), "score": 1 + id % 4, "split": "test"});
    let rows: String = (0..12).map(|id| format!("{}\n", tested(id))).collect();
    train(&rows, 1, "no row is in the split \"train\", found [\"test\"]", &[]);
    // Two classes, one of a single row: no fold that lacks it has anything to learn.
    let rare = |id: usize| json!({"id": format!("r{id}"), "prompt": format!("Prompt {id}"), "score": if id == 7 { 5 } else { 2 }});
    let rows: String = (0..30).map(|id| format!("{}\n", rare(id))).collect();
    train(&rows, 1, "of the rows trained on \"r7\" alone is not of class 2", &["--ungrouped"]);
}

/// The published probes through both examples: labels and decisions as scikit-learn's, in three precisions.
#[test]
fn published_probes_judge_as_published() {
    let Some(data) = crate::published::data() else { return };
    let data = data.join("inspector");
    let golden = read_json(data.join("classifier_golden.json"));
    let folder = &Desk::new();
    let mut seen = 0;
    for (name, expected) in golden.as_object().unwrap() {
        let pickle = data.join(name);
        if !pickle.is_file() {
            continue;
        }
        seen += 1;
        let bytes = fs::read(&pickle).unwrap();
        let probe = SklearnProbe::from_pickle(&bytes, &Limits::default(), Precision::F64).unwrap().probe;
        let [ProbeStage::Scaler(scaler)] = probe.stages() else { panic!("{:?}", probe.stages()) };
        let d = probe.n_features();
        let mut features = Vec::new();
        for i in 0..12_u64 {
            for j in 0..d as u64 {
                let mixed = (i + 1) * 1_315_423_911 + (j + 1) * 2_654_435_761 + (i + 1) * (j + 1) * 40_503;
                let z = 4.0 * (mixed % (1 << 32)) as f64 / (1_u64 << 32) as f64 - 2.0;
                features.push(scaler.mean()[j as usize] + scaler.scale()[j as usize] * z);
            }
        }
        let of = |dtype: Dtype| -> Vec<u8> {
            match dtype {
                Dtype::F64 => features.iter().flat_map(|x| x.to_le_bytes()).collect(),
                Dtype::F32 => features.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
                // Rounded once, as NumPy does; the conversions of `half` lose bits on the way.
                _ => features.iter().flat_map(|x| f16::from_f64(Precision::F16.round(*x)).to_le_bytes()).collect(),
            }
        };
        for (precision, dtype) in [("float64", Dtype::F64), ("float32", Dtype::F32), ("float16", Dtype::F16)] {
            let bytes = of(dtype);
            let view = TensorView::new(dtype, vec![12, d], &bytes).unwrap();
            folder.put("f.safetensors", serialize([("features", view)], None).unwrap());
            let args =
                ["--probe", pickle.to_str().unwrap(), "--input", "f.safetensors", "--output", "o.jsonl", "--quiet"];
            succeed("probe_apply", folder, &[&args[..], &["--overwrite"]].concat());
            let expected = &expected[precision];
            for (row, found) in folder.rows("o.jsonl").iter().enumerate() {
                assert_eq!((&found["row"], &found["label"]), (&json!(row), &expected["predict"][row]), "{name}");
                let decision = match &expected["decision"][row] {
                    Value::Array(all) => all.clone(),
                    one => vec![one.clone()],
                };
                let found = found["decision"].as_array().unwrap();
                assert_eq!(found.len(), decision.len());
                for (found, expected) in found.iter().zip(&decision) {
                    let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
                    assert!(
                        (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
                        "{name} {precision} {found} {expected}"
                    );
                }
            }
        }
        let args = ["--input", pickle.to_str().unwrap(), "--output", "p.safetensors", "--overwrite"];
        let said = succeed("probe_import", folder, &args);
        assert!(said.contains("Qwen3-1.7B") && said.contains("tied to no model yet"), "{said}");
        let saved = SavedProbe::from_bytes(&folder.read("p.safetensors")).unwrap();
        assert_eq!(saved.probe().classes(), probe.classes());
        // Of another model than the embedded one.
        let pairs = folder.join("pairs.jsonl");
        fs::write(&pairs, "{\"question\": \"q\", \"prediction\": \"r\"}\n").unwrap();
        fs::create_dir_all(folder.join("t")).unwrap();
        for aspect in ["semantic_consistency", "logicality", "informativeness", "fluency", "factuality"] {
            folder.put(format!("t/{aspect}.json"), r#"{"raw": "{question} {response}"}"#);
        }
        let args = words("--input pairs.jsonl --probes p.safetensors --output j.jsonl --templates t --quiet");
        refused("inspector_evaluate", folder, &args, 1, &["the probe is not for the model"]);
    }
    assert!(seen > 0, "no published probe in {}", data.display());
}

#[test]
fn features_that_do_not_fit_are_refused() {
    let folder = &Desk::new();
    let write = |name: &str, tensor: &str, shape: Vec<usize>, values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let view = TensorView::new(Dtype::F32, shape, &bytes).unwrap();
        folder.put(name, serialize([(tensor, view)], None).unwrap());
    };
    write_pairs(&folder.join("graded.jsonl"), 60);
    let train = "--input graded.jsonl --aspect fluency --output p --binary --layers 1 --pooling last --folds 2 --quiet";
    succeed("inspector_train", folder, &words(train));
    let apply = |input: &str, code: i32, expected: &str| {
        let args = ["--probe", "p/fluency.safetensors", "--input", input, "--output", "o.jsonl", "--quiet"];
        refused("probe_apply", folder, &args, code, &[expected]);
        assert!(!folder.join("o.jsonl").exists());
    };
    write("narrow.safetensors", "features", vec![2, 3], &[0.0; 6]);
    apply("narrow.safetensors", 1, "rows have 3 features, the probe was fitted on 128");
    let mut values = vec![0.0; 256];
    values[130] = f32::NAN;
    write("nan.safetensors", "features", vec![2, 128], &values);
    // It costs its row alone.
    let args = "--probe p/fluency.safetensors --input nan.safetensors --output nan.jsonl --quiet";
    let said = succeed("probe_apply", folder, &words(args));
    assert!(said.contains("2 rows -> nan.jsonl") && said.contains("unscored, non_finite: 1"), "{said}");
    let judged = folder.rows("nan.jsonl");
    assert!(judged[0]["label"].is_i64() && judged[0].get("unscored").is_none(), "{judged:?}");
    let why = json!({"reason": "non_finite", "detail": "feature 2 is NaN, not a finite number"});
    assert_eq!(judged[1], json!({"row": 1, "unscored": why}));
    write("other.safetensors", "states", vec![2, 128], &[0.0; 256]);
    apply("other.safetensors", 1, "neither a tensor `features` nor hidden states");
    write("axes.safetensors", "features", vec![256], &[0.0; 256]);
    apply("axes.safetensors", 1, "two axes");
    folder.put("cut.safetensors", [9, 0, 0]);
    apply("cut.safetensors", 1, "no safetensors file");
    apply("absent.safetensors", 1, "cannot open");
    folder.put("evil.pkl", b"\x80\x04cos\nsystem\n(V:\ntR.");
    let args = ["--input", "evil.pkl"];
    refused("probe_import", folder, &args, 1, &["os.system"]);
}

/// Hidden states of the example go straight into a probe, which takes its own layers and poolings.
#[test]
fn probes_apply_to_hidden_states() {
    let folder = &Desk::new();
    let row =
        |id: usize| json!({"id": format!("p{id}"), "prompt": format!("Prompt {id} of many"), "score": 1 + id * id % 3});
    folder.write("in.jsonl", &(0..40).map(row).collect::<Vec<_>>());
    let train = ["--input", "in.jsonl", "--output", "p", "--layers", "1,3", "--folds", "2", "--c", "0.1", "--quiet"];
    succeed("inspector_train", folder, &train);
    let probe = SavedProbe::from_bytes(&folder.read("p/quality.safetensors")).unwrap();
    for pooling in ["last", "mean"] {
        let output = format!("{pooling}.safetensors");
        let args = ["--input", "in.jsonl", "--output", &output, "--layers", "1-4", "--pooling", pooling, "--quiet"];
        succeed("hidden_states", folder, &args);
    }
    let apply = ["--probe", "p/quality.safetensors", "--output", "o.jsonl", "--quiet", "--input"];
    succeed("probe_apply", folder, &[&apply[..], &["mean.safetensors", "last.safetensors"]].concat());
    let rows = folder.rows("o.jsonl");
    assert_eq!(rows.len(), 40);
    let files =
        ["last", "mean"].map(|pooling| StatesFile::open(folder.join(format!("{pooling}.safetensors"))).unwrap());
    for (index, row) in rows.iter().enumerate() {
        let mut features = Vec::new();
        for &(layer, signal) in &probe.origin().signals {
            let file = &files[usize::from(signal == Signal::State(Pooling::Mean))];
            features.extend(file.state(index, layer).unwrap().unwrap().into_iter().map(f64::from));
        }
        let features = Matrix::from_rows([features]).unwrap();
        assert_eq!((&row["row"], &row["id"]), (&json!(index), &json!(format!("p{index}"))));
        assert_eq!(row["label"], probe.probe().predict(&features).unwrap()[0]);
        assert_eq!(row["classes"], json!([1, 2]));
        let probabilities = probe.probe().predict_proba(&features).unwrap().unwrap();
        assert_eq!(row["probabilities"], json!(probabilities.values()));
    }
    fs::remove_file(folder.join("o.jsonl")).unwrap();
    // A table in shards goes by its name; each shard alone is of some of the rows.
    for pooling in ["last", "mean"] {
        let output = format!("cut.{pooling}.safetensors");
        let args = ["--input", "in.jsonl", "--output", &output, "--layers", "1-4", "--pooling", pooling, "--quiet"];
        succeed("hidden_states", folder, &[&args[..], &["--rows-per-shard", "15"]].concat());
    }
    let twice = ["mean.safetensors", "cut.mean-00001-of-00003.safetensors", "cut.mean-00002-of-00003.safetensors"];
    let refuse = |inputs: &[&str], said: &[&str]| {
        refused("probe_apply", folder, &[&apply[..], inputs].concat(), 1, said);
        assert!(!folder.join("o.jsonl").exists());
    };
    refuse(&twice[1..], &["--input cut.mean.safetensors", "cut.mean-00002-of-00003.safetensors both have mean"]);
    refuse(&twice[..2], &["mean.safetensors and cut.mean-00001-of-00003.safetensors both have mean of layer 1"]);
    let set =
        ["--probe", "p/quality.safetensors", "--quiet", "--input", "cut.mean.safetensors", "cut.last.safetensors"];
    succeed("probe_apply", folder, &[&set[..], &["--output", "set.jsonl"]].concat());
    assert_eq!(folder.rows("set.jsonl"), rows);
    let shard = "cut.mean-00001-of-00003.safetensors";
    refused("probe_apply", folder, &[&set[..], &["--overwrite", "--output", shard]].concat(), 2, &[shard]);
    fs::remove_file(folder.join("cut.last-00002-of-00003.safetensors")).unwrap();
    refuse(&["cut.last.safetensors"], &["cut.last-00002-of-00003.safetensors"]);
    // Tables of other rows do not go together, be they as many: of other texts, or of other ids.
    let other = |id: usize| json!({"id": format!("p{id}"), "prompt": format!("Another {id} of many")});
    folder.write("other.jsonl", &(0..40).map(other).collect::<Vec<_>>());
    let args = words("--input other.jsonl --output other.safetensors --layers 1-4 --pooling mean --quiet");
    succeed("hidden_states", folder, &args);
    refuse(&["last.safetensors", "other.safetensors"], &["other.safetensors holds states of other rows than last."]);
    let ids = folder.text("mean.ids.jsonl");
    folder.put("mean.ids.jsonl", ids.replace("\"p3\"", "\"q3\""));
    refuse(&["last.safetensors", "mean.safetensors"], &["row 3 is \"q3\", not \"p3\""]);
    // The probe reads layer 1 or 3, by whichever pooling.
    let args = ["--input", "in.jsonl", "--output", "min.safetensors", "--layers", "2", "--pooling", "min", "--quiet"];
    succeed("hidden_states", folder, &args);
    refused("probe_apply", folder, &[&apply[..], &["min.safetensors"]].concat(), 1, &["found min of layer 2"]);
    assert!(!folder.join("o.jsonl").exists());
}

/// A scikit-learn pickle of one's own becomes a probe of the embedded model.
#[test]
fn a_bare_pickle_is_imported_with_what_its_owner_says() {
    let folder = &Desk::new();
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/judge-probe/tests/fixtures/sklearn_pickles.json");
    let fixture = read_json(fixture);
    let write = |pickle: &Value| {
        let text = pickle.as_str().unwrap();
        let byte = |i: usize| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        folder.put("lr.pkl", (0..text.len()).step_by(2).map(byte).collect::<Vec<u8>>());
    };
    write(&fixture["wide"]);
    folder.put("t.json", r#"{"raw": "Grade this. {question} {response}"}"#);
    let model = crate::program::embedded_model();
    let args = ["--input", "lr.pkl", "--output", "p/fluency.safetensors"];
    fs::create_dir(folder.join("p")).unwrap();
    refused("probe_import", folder, &args, 1, &["give --model, --layer and --pooling"]);
    let model = ["--model", model.to_str().unwrap()];
    let named = ["--layer", "6", "--pooling", "last", "--aspect", "fluency", "--template", "t.json"];
    succeed("probe_import", folder, &[&args[..], &model, &named].concat());
    let probe = SavedProbe::from_bytes(&folder.read("p/fluency.safetensors")).unwrap();
    assert_eq!(probe.origin().signals, [(Layer(6), Signal::State(Pooling::Last))]);
    assert_eq!(probe.origin().notes["aspect"], "fluency");
    folder.put("pairs.jsonl", "{\"question\": \"q\", \"prediction\": \"r\"}\n");
    let judge = ["--input", "pairs.jsonl", "--probes", "p", "--output", "j.jsonl", "--quiet"];
    succeed("inspector_evaluate", folder, &judge);
    assert!(folder.rows("j.jsonl")[0]["fluency"].is_i64());

    // A judged row has a field of that name; of a probe that does not say its aspect, the file's name is that.
    let clash = ["--input", "lr.pkl", "--output", "unscored.safetensors", "--layer", "6", "--pooling", "last"];
    let named = [&clash[..], &model, &["--aspect", "probabilities"]].concat();
    refused("probe_import", folder, &named, 1, &["an aspect cannot be called \"probabilities\""]);
    assert!(!folder.join("unscored.safetensors").exists());
    succeed("probe_import", folder, &[&clash[..], &model, &["--template", "t.json"]].concat());
    let judge = ["--input", "pairs.jsonl", "--probes", "unscored.safetensors", "--output", "k.jsonl", "--quiet"];
    refused("inspector_evaluate", folder, &judge, 1, &["an aspect cannot be called \"unscored\""]);
    let two_layers = ["--layer", "5,6", "--pooling", "last"];
    let width =
        "last of layer 5, 6 cannot be 128 features: a state of the model has 128 coordinates, and a block 4 heads";
    refused("probe_import", folder, &[&args[..], &model, &two_layers].concat(), 1, &[width]);
    for (name, says) in [
        ("joblib_bz2", "compressed (bzip2)"),
        ("text_classes", "LabelEncoder"),
        ("dictionary", "found a dictionary of [\"weights\", \"bias\"]"),
    ] {
        write(&fixture[name]);
        refused("probe_import", folder, &["--input", "lr.pkl"], 1, &[says]);
    }
    for case in fixture["others"].as_array().unwrap() {
        write(&case["pickle"]);
        succeed("probe_import", folder, &["--input", "lr.pkl"]);
    }
    // What is not applied is named.
    let whole = fixture["cross_validated"][0]["pickle"].as_str().unwrap();
    let model = &whole[4..whole.len() - 2];
    let beside = format!("80047d288c056d6f64656c{model}8c097468726573686f6c644b01752e");
    write(&json!(beside));
    let said = succeed("probe_import", folder, &["--input", "lr.pkl"]);
    assert!(said.contains("beside the model, not applied") && said.contains("[\"threshold\"]"), "{said}");
    let zeros = [0; 2 * 3 * 8];
    let view = TensorView::new(Dtype::F64, vec![2, 3], &zeros).unwrap();
    folder.put("f.safetensors", serialize([("features", view)], None).unwrap());
    let apply = ["--probe", "lr.pkl", "--input", "f.safetensors", "--output", "o.jsonl", "--quiet"];
    let (_, told) = finished("probe_apply", folder, &apply);
    assert!(told.contains("note: lr.pkl: what it has beside the model is not applied: [\"threshold\"]"), "{told}");
    write(&fixture["reduced"][0]["pickle"]);
    let said = succeed("probe_import", folder, &["--input", "lr.pkl"]);
    assert!(said.contains("PCA to 2 of 3 features, then StandardScaler"), "{said}");
}
