//! Saved layer weights and run records.

use std::fs;

use judge_core::{
    Lens, ModelInfo, Reason, Scale,
    fit::{Graded, LayerWeightFit},
    lager::{Condition, LayerTable, LayerWeights, TableOrigin},
};
use judge_data::{Counts, Document, Error, InputFile, OutputFile, Program, RunRecord, load, save};
use serde_json::{Value, json};

use crate::files::place;

fn info() -> ModelInfo {
    let dimensions = judge_core::model::Dimensions { n_layers: 2, d_model: 8, n_heads: 2, d_vocab: 32, max_len: 64 };
    let mut info = ModelInfo::new("tiny", "f00d", dimensions);
    info.family = "llama".into();
    info
}

fn record() -> RunRecord {
    RunRecord {
        command: vec!["layer_logits".into(), "--input".into(), "a b.jsonl".into()],
        program: Program { git_commit: Some("abc".into()), ..Program::new("layer_logits", "0.1.0") },
        model: Some(info()),
        seed: Some(u64::MAX),
        settings: [("lens".to_owned(), json!("raw"))].into(),
        resolved: [("layers".to_owned(), json!([0, 1]))].into(),
        inputs: vec![InputFile { path: "a b.jsonl".into(), bytes: 3, blake3: "cafe".into(), rows: Some(5) }],
        outputs: vec![OutputFile { path: "out".into(), rows: 5, bytes: 9, blake3: Some("beef".into()) }],
        counts: Counts { scored: 3, unscored: [(Reason::TooLong, 2)].into(), graded: 4 },
        started: Some("2026-01-02T03:04:05Z".into()),
        ..RunRecord::default()
    }
}

#[test]
fn run_records_come_back() {
    let (_folder, path) = place("run.json");
    save(&path, &record()).unwrap();
    assert_eq!(load::<RunRecord>(&path).unwrap(), record());
    assert_eq!(record().counts.rows(), 5);
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&json["format"], &json["version"]), (&json!("judge-run-record"), &json!(2)));
    assert_eq!(json["content"]["counts"], json!({"scored": 3, "unscored": {"too_long": 2}, "graded": 4}));
}

/// As version 1 wrote them: the first without the model's number of heads.
#[test]
fn records_of_version_1_are_read() {
    let (_folder, path) = place("run.json");
    let mut model = json!({"name": "tiny", "revision": null, "fingerprint": "f00d", "family": "llama", "n_layers": 2,
        "d_model": 8, "n_heads": 2, "d_vocab": 32, "max_len": 64, "dtype": "f32", "device": "cpu"});
    let written = |model: &Value| {
        json!({"format": "judge-run-record", "version": 1, "content": {
            "command": ["lager_pointwise", "--data", "x"], "program_version": "0.1.0", "git_commit": null,
            "model": model, "template": "t", "seed": 7, "settings": {"origin": {"lens": "raw"}},
            "inputs": [{"path": "x", "bytes": 3, "blake3": "cafe"}],
            "counts": {"scored": 3, "unscored": {"too_long": 2}},
            "started": "2026-01-02T03:04:05Z", "finished": null}})
    };
    let read = |text: String| {
        fs::write(&path, text).unwrap();
        load::<RunRecord>(&path)
    };
    let with_heads = read(written(&model).to_string()).unwrap();
    assert_eq!((with_heads.model, with_heads.program), (Some(info()), Program::new("", "0.1.0")));
    assert_eq!((with_heads.counts.rows(), with_heads.counts.graded, with_heads.seed), (5, 0, Some(7)));
    assert_eq!((with_heads.inputs[0].rows, with_heads.outputs.len()), (None, 0));

    model.as_object_mut().unwrap().remove("n_heads");
    let without = read(written(&model).to_string()).unwrap();
    assert_eq!(without.setting("origin"), Some(&json!({"lens": "raw"})));
    // Either the model can do without its heads, or it is kept as it was written; nothing is made up.
    assert_eq!(without.model.is_none(), without.resolved.get("model") == Some(&model));

    let none = read(written(&Value::Null).to_string()).unwrap();
    assert_eq!((none.model, none.resolved.len()), (None, 0));
}

#[test]
fn fields_of_later_programs_are_accepted_and_later_versions_are_not() {
    let (_folder, path) = place("run.json");
    save(&path, &record()).unwrap();
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    json["signature"] = json!("x");
    json["content"]["mood"] = json!(5);
    json["content"]["program"]["licence"] = json!("MIT");
    json["content"]["counts"]["skipped"] = json!(0);
    fs::write(&path, json.to_string()).unwrap();
    assert_eq!(load::<RunRecord>(&path).unwrap(), record());
    for version in [0, 3] {
        json["version"] = json!(version);
        fs::write(&path, json.to_string()).unwrap();
        let error = load::<RunRecord>(&path).unwrap_err();
        let words = format!("expected judge-run-record of a version from 1 to 2, found version {version}");
        assert!(error.to_string().ends_with(&words), "{error}");
    }
}

#[test]
fn fitted_weights_come_back_bit_for_bit() {
    let scale = Scale::integers(1, 3).unwrap();
    let items: Vec<(LayerTable, f64)> = (0..8)
        .map(|i| {
            let logits = (0..9).map(|k| f64::from(i * 9 + k).sin()).collect::<Vec<_>>();
            (
                LayerTable::from_rows(&logits.chunks(3).map(<[f64]>::to_vec).collect::<Vec<_>>()).unwrap(),
                f64::from(1 + i % 3),
            )
        })
        .collect();
    let graded: Vec<Graded> = items.into_iter().map(|(table, human)| Graded { table, human }).collect();
    let origin = TableOrigin::new(&info(), Lens::Raw, scale, "template", Condition::direct());
    let weights = LayerWeightFit::default().fit(&graded, &origin).unwrap();

    let (_folder, path) = place("weights.json");
    save(&path, &weights).unwrap();
    assert_eq!(load::<LayerWeights>(&path).unwrap(), weights);
}

#[test]
fn what_is_not_the_document_is_refused() {
    let (folder, path) = place("x.json");
    let error = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        load::<LayerWeights>(&path).unwrap_err()
    };
    let document =
        |format: Value, version: Value| json!({"format": format, "version": version, "content": {}}).to_string();
    let format = LayerWeights::FORMAT;
    let newer = error(document(json!(format), json!(2)).as_bytes());
    let words = format!("expected {format} of a version from 1 to 1, found version 2");
    assert!(newer.to_string().ends_with(&words), "{newer}");
    let other = error(document(json!("judge-run-record"), json!(1)).as_bytes());
    assert!(matches!(&other, Error::FileFormat { found, .. } if found.contains("judge-run-record")), "{other}");
    for text in [
        "{}",
        "[]",
        "5",
        "{\"format\": 1}",
        "{\"format\": \"judge-layer-weights\"}",
        "{\"format\": \"judge-layer-weights\", \"version\": \"1\"}",
    ] {
        assert!(matches!(error(text.as_bytes()), Error::FileFormat { .. }), "{text}");
    }
    assert!(matches!(error(document(json!(format), json!(1)).as_bytes()), Error::Document { .. }));
    assert!(matches!(error(b"{\"format\":"), Error::Document { .. }));
    assert!(matches!(error(b"{}\n\xff"), Error::Utf8 { ref place, column: 1 } if place.line == 2));
    assert!(matches!(load::<RunRecord>(folder.path().join("absent")), Err(Error::Io { .. })));
}

/// Expected hash: `printf abc | b3sum`.
#[test]
fn input_files_are_identified_by_content() {
    let (_folder, path) = place("in");
    fs::write(&path, "abc").unwrap();
    let file = InputFile::of(&path).unwrap();
    assert_eq!((file.bytes, file.path), (3, path));
    assert_eq!(file.blake3, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}
