//! Saved layer weights and run records.

use std::fs;

use judge_core::{
    Condition, Graded, LayerTable, LayerWeightFit, LayerWeights, Lens, ModelInfo, Reason, Scale, TableOrigin,
};
use judge_data::{Counts, Document, Error, InputFile, RunRecord, load, save};
use serde_json::{Value, json};

fn info() -> ModelInfo {
    ModelInfo {
        name: "tiny".into(),
        revision: None,
        fingerprint: "f00d".into(),
        family: "llama".into(),
        n_layers: 2,
        d_model: 8,
        n_heads: 2,
        d_vocab: 32,
        max_len: 64,
        dtype: "f32".into(),
        device: "cpu".into(),
    }
}

fn record() -> RunRecord {
    RunRecord {
        command: vec!["layer_logits".into(), "--input".into(), "a b.jsonl".into()],
        program_version: "0.1.0".into(),
        model: Some(info()),
        seed: Some(u64::MAX),
        settings: [("lens".to_owned(), json!("raw"))].into(),
        counts: Counts { scored: 3, unscored: [(Reason::TooLong, 2)].into() },
        started: Some("2026-01-02T03:04:05Z".into()),
        ..RunRecord::default()
    }
}

#[test]
fn run_records_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    save(&path, &record()).unwrap();
    assert_eq!(load::<RunRecord>(&path).unwrap(), record());
    assert_eq!(record().counts.rows(), 5);
    let json: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&json["format"], &json["version"]), (&json!("judge-run-record"), &json!(1)));
    assert_eq!(json["content"]["counts"], json!({"scored": 3, "unscored": {"too_long": 2}}));
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

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.json");
    save(&path, &weights).unwrap();
    assert_eq!(load::<LayerWeights>(&path).unwrap(), weights);
}

#[test]
fn what_is_not_the_document_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let error = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        load::<LayerWeights>(&path).unwrap_err()
    };
    let document =
        |format: Value, version: Value| json!({"format": format, "version": version, "content": {}}).to_string();
    let format = LayerWeights::FORMAT;
    let newer = error(document(json!(format), json!(2)).as_bytes());
    assert!(matches!(newer, Error::FileVersion { expected: 1, found: 2, .. }), "{newer}");
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in");
    fs::write(&path, "abc").unwrap();
    let file = InputFile::of(&path).unwrap();
    assert_eq!((file.bytes, file.path), (3, path));
    assert_eq!(file.blake3, "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}
