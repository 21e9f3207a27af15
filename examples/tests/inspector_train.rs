//! What `inspector_train` reports besides its probes, checked against its inputs.

mod program;

use std::fs;
use std::path::Path;

use judge_core::Layer;
use judge_data::StatesFile;
use judge_examples::planted::{Split, generate, prompt};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs the example on rows that it finds in `in.jsonl`: its table, or what it says where it fails.
fn train(folder: &Path, rows: &[Value], more: &[&str]) -> Result<String, String> {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(folder.join("in.jsonl"), text).unwrap();
    let args = ["--input", "in.jsonl", "--output", "out", "--folds", "2", "--c", "0.01", "--top-k", "1", "--quiet"];
    let output = program::run("inspector_train", folder, &[&args[..], more].concat());
    let said = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(said(output.stdout)) } else { Err(said(output.stderr)) }
}

fn report(folder: &Path) -> Value {
    let report: Value = serde_json::from_slice(&fs::read(folder.join("out/report.json")).unwrap()).unwrap();
    report["aspects"]["fluency"].clone()
}

/// Only the first layer is read, which is done in a moment.
const QUICK: [&str; 4] = ["--layers", "0", "--pooling", "mean"];

fn pair(id: usize, split: &str, question: &str, response: &str, score: u8) -> Value {
    json!({"id": id, "aspect": "fluency", "split": split, "question": question, "response": response, "score": score})
}

#[test]
fn artefacts_are_reported() {
    let folder = TempDir::new().unwrap();
    let mut rows = Vec::new();
    for id in 0..60 {
        let split = if id < 40 { "train" } else { "test" };
        let score = [1, 2, 2, 1, 2, 1, 1][id % 7];
        let mut row = pair(id, split, &format!("What is item {id}?"), &format!("It is number {}.", id % 9), score);
        row["from"] = json!(format!("file {score}"));
        rows.push(row);
    }
    rows[45]["question"] = json!("what is  ITEM 3?");
    let table = train(folder.path(), &rows, &[&QUICK[..], &["--source", "from"]].concat()).unwrap();
    let same = u8::from(rows[45]["score"] == rows[3]["score"]);
    let said = format!("1 of 20 rows have a question that was learnt from, {same} with the same label");
    assert!(table.contains("artefacts of test") && table.contains(&said), "{table}");
    assert!(table.contains("20 of 20 rows have a response that was learnt from"), "{table}");
    assert!(table.contains("rows of each label from file 1: 1: "), "{table}");

    let found = &report(folder.path())["artefacts"]["test"];
    assert_eq!(found["questions"]["found"], json!([{"split": 0, "test": 45, "train": 3}]));
    assert_eq!((&found["responses"]["n_tested"], &found["scoring"]), (&json!(20), &json!("weighted_f1")));
    let baselines = found["baselines"].as_array().unwrap();
    assert_eq!(
        baselines.iter().map(|b| b["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["surface", "tfidf", "source"]
    );
    assert_eq!((&baselines[2]["score"]["estimate"], &baselines[2]["explains"]), (&json!(1.0), &json!(true)));
    assert!(
        train(folder.path(), &rows, &[&QUICK[..], &["--source", "file"]].concat())
            .unwrap_err()
            .contains("no field \"file\"")
    );
}

#[test]
fn rows_without_a_question_do_not_share_one() {
    let folder = TempDir::new().unwrap();
    let rows: Vec<Value> = (0..40)
        .map(|id| {
            let split = if id < 30 { "train" } else { "test" };
            json!({"id": id, "aspect": "fluency", "split": split, "prompt": format!("Prompt {id}"), "score": 1 + id * id % 3})
        })
        .collect();
    train(folder.path(), &rows, &QUICK).unwrap();
    let found = &report(folder.path())["artefacts"]["test"];
    assert_eq!((&found["questions"]["found"], &found["questions"]["n_tested"]), (&json!([]), &json!(10)));
    assert!(found["majority"]["low"].as_f64() < found["majority"]["high"].as_f64());
}

/// As scikit-learn's `f1_score(average="macro")` has it.
#[test]
fn classes_that_are_not_tested_have_no_part_in_macro_f1() {
    let folder = TempDir::new().unwrap();
    let rows: Vec<Value> = (0..50)
        .map(|id| {
            // Of 40 rows to learn from, 20 are 1, 10 are 2 and 10 are 3; of 10 to test on, 5 are 1 and 5 are 2.
            let (split, score) = if id < 40 { ("train", [1, 2, 1, 3][id % 4]) } else { ("test", 1 + (id % 2) as u8) };
            pair(id, split, &format!("Question {id}?"), &format!("Answer {}", id % 7), score)
        })
        .collect();
    train(folder.path(), &rows, &QUICK).unwrap();
    let majority = &report(folder.path())["splits"]["test"]["predictors"]["majority"];
    // Class 1 has precision 1/2 and recall 1, class 2 has neither, class 3 is not there.
    assert!((majority["macro_f1"]["estimate"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12, "{majority}");
    assert_eq!(majority["accuracy"]["estimate"], 0.5);
}

#[test]
fn the_models_own_score_is_of_grades_where_classes_are_two() {
    let folder = TempDir::new().unwrap();
    let rows: Vec<Value> = generate(Split::Test, 70, 0)
        .into_iter()
        .enumerate()
        .map(|(id, item)| {
            let split = if id < 40 { "train" } else { "test" };
            let messages = json!([{"role": "user", "content": prompt(&item)}]);
            json!({"id": id, "aspect": "fluency", "split": split, "messages": messages, "score": item.human().round()})
        })
        .collect();
    let grades: std::collections::BTreeSet<i64> =
        rows.iter().map(|row| row["score"].as_f64().unwrap() as i64).collect();
    assert!(grades.len() > 3, "{grades:?}");
    let args = ["--binary", "--layers", "1,6", "--pooling", "last"];
    train(folder.path(), &rows, &args).unwrap();
    let labels = StatesFile::open(folder.path().join("out/states/fluency.labels.safetensors")).unwrap();
    assert_eq!((labels.layers(), labels.d_model()), (&[Layer(6)][..], grades.len()));
    let right = (40..70).filter(|&row| {
        let logits = labels.row(row).unwrap().unwrap();
        let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
        let good: f64 = grades.iter().zip(&weights).filter(|&(&grade, _)| grade >= 4).map(|(_, weight)| weight).sum();
        let says_good = 2.0 * good > weights.iter().sum::<f64>();
        says_good == (rows[row]["score"].as_f64().unwrap() >= 4.0)
    });
    let expected = right.count() as f64 / 30.0;
    let found = &report(folder.path())["splits"]["test"]["predictors"]["prompted"]["accuracy"]["estimate"];
    assert!((found.as_f64().unwrap() - expected).abs() < 1e-12, "{found} {expected}");
    // The embedded model was made for this.
    assert!(expected > 0.6, "{expected}");
}

#[test]
fn stored_logits_of_other_grades_are_refused() {
    let folder = TempDir::new().unwrap();
    let rows = |grades: [u8; 2]| -> Vec<Value> {
        (0..40)
            .map(|id| {
                let split = if id < 30 { "train" } else { "test" };
                pair(id, split, &format!("Question {id}?"), &format!("Answer {}", id % 7), grades[id * id % 3 % 2])
            })
            .collect()
    };
    let args = ["--layers", "6", "--pooling", "last"];
    train(folder.path(), &rows([1, 2]), &args).unwrap();
    train(folder.path(), &rows([1, 2]), &args).unwrap();
    let error = train(folder.path(), &rows([4, 5]), &args).unwrap_err();
    assert!(error.contains("fluency.labels-00001-of-00001.safetensors") && error.contains("tokens was"), "{error}");
}

#[test]
fn aspects_must_be_names_of_files() {
    let folder = TempDir::new().unwrap();
    for aspect in ["../x", "a/b", "", "/"] {
        let mut rows = [json!({"id": 1, "prompt": "a", "score": 1}), json!({"id": 2, "prompt": "b", "score": 2})];
        rows.iter_mut().for_each(|row| row["aspect"] = json!(aspect));
        let error = train(folder.path(), &rows, &[]).unwrap_err();
        assert!(error.contains("cannot be a file's name"), "{aspect:?}: {error}");
    }
}
