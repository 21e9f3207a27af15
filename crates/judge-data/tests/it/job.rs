//! One file judged by one call: checked, resumed, recognised.

use std::fs;
use std::ops::ControlFlow;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Scale,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{Carry, Error, Job, Program, load, record_path};
use serde_json::Value;

fn judge(model: &ScriptedBackbone, points: i32) -> LagerJudge {
    let scale = Scale::integers(1, points).unwrap();
    LagerJudge::new(LagerSettings::prompt_end(scale), model).unwrap()
}

/// The progress of a job that must judge no row.
fn none(_: usize, _: usize) {
    panic!("a row was judged");
}

fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(3)
        .with_logits(|before, _, label| if before.contains("four") == (label == '5') { 2.0 } else { 0.0 })
}

const ROWS: &str = r#"{"id": "a", "instruction": "2 + 2?", "response": "four", "human": 5, "topic": "sums"}
{"id": "b", "instruction": "2 + 2?", "response": null}
{"id": "c", "instruction": "2 + 2?", "response": "a fish"}
"#;

#[test]
fn a_file_is_judged_once_and_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    fs::write(&input, ROWS).unwrap();
    let model = model();
    let job = Job::new(&input, &output, Program::new("test", "1"));
    let mut seen = Vec::new();
    let counts = job.run(&model, &judge(&model, 5), |done, rows| seen.push((done, rows))).unwrap();
    assert_eq!((counts.scored, counts.graded, counts.rows()), (2, 1, 3));
    assert_eq!(seen, [(1, 3), (2, 3), (3, 3)]);
    let text = fs::read_to_string(&output).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["topic"], &rows[1]["unscored"]["reason"]), (&"sums".into(), &"missing".into()));
    assert!(rows[0]["score"].as_f64() > rows[2]["score"].as_f64());

    // Ended after a row, as by a signal: the others are judged later, to the same bytes.
    let broken = Job { output: folder.path().join("broken.jsonl"), ..job.clone() };
    let part = broken.run(&model, &judge(&model, 5), |_, _| ControlFlow::Break(())).unwrap();
    assert!(part.rows() < 3 && !broken.output.exists(), "{part:?}");
    assert_eq!(broken.run(&model, &judge(&model, 5), |_, _| {}).unwrap(), counts);
    assert_eq!(fs::read_to_string(&broken.output).unwrap(), text);

    // Again: nothing is computed. Another judge: refused, unless asked for.
    let again = job.run(&model, &judge(&model, 5), none).unwrap();
    assert_eq!(again, counts);
    let other = job.run(&model, &judge(&model, 4), none);
    assert!(matches!(other, Err(Error::OutputExists { .. })), "{other:?}");
    let mut overwriting = job.clone();
    overwriting.write.overwrite = true;
    overwriting.carry = Carry::Only(Vec::new());
    overwriting.run(&model, &judge(&model, 4), |_, _| {}).unwrap();
    assert!(!fs::read_to_string(&output).unwrap().contains("sums"));
    let record: judge_data::RunRecord = load(record_path(&output)).unwrap();
    assert_eq!(record.program.name, "test");
}

#[test]
fn what_is_wrong_with_the_file_is_said_before_any_row_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
    let model = model();
    let judge = judge(&model, 5);
    let job = Job::new(&input, &output, Program::new("test", "1"));
    fs::write(&input, format!("{ROWS}{{\"id\": \"a\", \"instruction\": \"x\", \"response\": \"y\"}}\n")).unwrap();
    let error = job.run(&model, &judge, none).unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
    fs::write(&input, ROWS).unwrap();
    fs::write(&output, "a file of mine\n").unwrap();
    assert!(job.run(&model, &judge, none).is_err());
    assert_eq!(fs::read_to_string(&output).unwrap(), "a file of mine\n");
}
