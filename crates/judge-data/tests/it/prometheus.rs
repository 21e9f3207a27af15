//! The published evaluations that hold whole prompts of Prometheus: single responses with grades, and pairs of HHH.
//!
//! The rows here are made up in the published form. HHH's own file is not among the test data.

use std::cmp::Ordering::{Greater, Less};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use judge_core::{Fields, ItemId};
use judge_data::{Benchmark, Dataset, DatasetFormat, DatasetOptions, Error, GradedRecord, Record};
use serde_json::{Value, json};

use crate::columns::with_columns;
use crate::files::{self, lines, test_data};

fn prompt(instruction: &str, response: &str, reference: Option<&str>, rubric: &str) -> String {
    let reference = reference.map_or(String::new(), |text| format!("###Reference Answer (Score 5):\n{text}\n\n"));
    format!(
        "###Task Description:\nSay how good it is.\n\n###The instruction to evaluate:\n{instruction}\n\n###Response to evaluate:\n{response}\n\n\
         {reference}###Score Rubrics:\n{rubric}\n\n###Feedback: "
    )
}

fn written(folder: &Path, rows: &[Value]) -> PathBuf {
    files::written(folder, "rows.jsonl", &lines(rows))
}

fn graded(source: &str, grades: &Value) -> Value {
    json!({
        "idx": 83, "response_source": source, "category": "writing", "instruction": prompt("Say hi.", "Hi!", Some("Hello."), "[Polite?]"),
        "gpt4_score": grades, "gpt4_feedback": ["f", "g", "h"],
    })
}

fn read(rows: &[Value], options: &DatasetOptions) -> Result<Vec<GradedRecord>, Error> {
    let folder = tempfile::tempdir().unwrap();
    let graded = |record: Result<Record, Error>| match record? {
        Record::Graded(record) => Ok(record),
        other => panic!("{other:?}"),
    };
    Dataset::open(written(folder.path(), rows), options)?.map(graded).collect()
}

#[test]
fn a_whole_prompt_is_a_graded_response() {
    let rows = [graded("x", &json!([3, 2, 3])), graded("y", &json!(5)), graded("z", &json!(null))];
    let records = read(&rows, &DatasetOptions::default()).unwrap();
    let first = &records[0];
    assert_eq!((first.instruction.as_str(), first.response.as_str()), ("Say hi.", "Hi!"));
    assert_eq!((first.reference.as_deref(), first.rubric.as_deref()), (Some("Hello."), Some("[Polite?]")));
    assert_eq!(first.field("instruction").as_deref(), Some("Say hi."));
    let scores: Vec<_> = records.iter().map(|record| (record.id.clone(), record.scores.clone())).collect();
    let id = |row: u64| ItemId::from(row);
    assert_eq!(scores, [(id(0), [3.0, 2.0, 3.0].map(Some).to_vec()), (id(1), vec![Some(5.0)]), (id(2), vec![])]);
    let names: Vec<_> = first.extra.iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["idx", "response_source", "category", "gpt4_feedback"]);
}

#[test]
fn other_columns_can_be_chosen() {
    let mut row = graded("x", &json!([3, 2, 3]));
    row["human_score"] = json!([1, 2]);
    let record = read(&[row.clone()], &with_columns("human=human_score,id=response_source")).unwrap().remove(0);
    assert_eq!((record.id, record.scores), (ItemId::from("x"), vec![Some(1.0), Some(2.0)]));
    assert!(record.extra.text("gpt4_score").is_some());
    // The whole prompt as it is, for a judge that takes it so.
    let folder = tempfile::tempdir().unwrap();
    let dataset =
        Dataset::open(written(folder.path(), &[row]), &with_columns("prompt=instruction,human=gpt4_score")).unwrap();
    assert_eq!(dataset.format(), DatasetFormat::Prompts);
}

#[test]
fn damaged_evaluations_cost_themselves() {
    let good = graded("x", &json!([3, 2, 3]));
    let error = |row: Value| {
        let folder = tempfile::tempdir().unwrap();
        let rows = Dataset::open(written(folder.path(), &[good.clone(), row]), &DatasetOptions::default()).unwrap();
        let rows: Vec<Record> = rows.collect::<Result<_, _>>().unwrap();
        assert!(rows[0].unread().is_none());
        rows[1].unread().expect("no evaluation").detail.clone()
    };
    for grades in [json!([3, 2]), json!([3, 2, 3, 4]), json!([3, 2, 6]), json!(0), json!([3, 2, 2.5]), json!("five")] {
        // Grades that are none cost themselves.
        let records = read(&[graded("y", &grades)], &DatasetOptions::default()).unwrap();
        let found = records[0].columns.no_grade().unwrap();
        assert!(
            found.contains("expected \"gpt4_score\" to be a whole number from 1 to 5, or a list of three"),
            "{found}"
        );
        assert_eq!(records[0].human(), None);
    }
    let mut cut = good.clone();
    cut["instruction"] = json!("###The instruction to evaluate:\nSay hi.");
    let found = error(cut.clone());
    assert!(found.contains("expected \"instruction\" to be a prompt of Prometheus"), "{found}");
    cut.as_object_mut().unwrap().remove("instruction");
    assert!(error(cut.clone()).starts_with("no instruction"));
    // Told from the first row, a file of other prompts is of no known kind.
    let unknown = read(&[cut], &DatasetOptions::default()).unwrap_err();
    assert!(matches!(unknown, Error::UnknownFormat { .. }), "{unknown}");
}

#[test]
fn the_published_evaluation_is_read_whole() {
    let Some(data) = test_data() else { return };
    let dataset = Dataset::open(data.join("prometheus_eval/mt_bench_eval.json"), &DatasetOptions::default()).unwrap();
    assert_eq!(dataset.format(), DatasetFormat::Prometheus);
    let (mut questions, mut models) = (HashSet::new(), HashSet::new());
    let mut n = 0;
    for record in dataset {
        let Record::Graded(record) = record.unwrap() else { panic!("another kind") };
        assert_eq!(record.scores.len(), 3);
        assert!(record.reference.is_some() && record.rubric.is_some(), "{}", record.id);
        questions.insert(record.extra.text("idx").unwrap().to_owned());
        models.insert(record.extra.string("response_source").unwrap());
        n += 1;
    }
    assert_eq!((n, questions.len(), models.len()), (320, 80, 4));
}

fn hhh(source: &str, better: &str, worse: &str) -> Value {
    let prompt = |response| prompt("Is it safe?", response, None, "[Harmless?]");
    json!({"source": source, "chosen_instruction": prompt(better), "rejected_instruction": prompt(worse)})
}

fn pairs(rows: &[Value]) -> Result<Vec<judge_data::BenchmarkPair>, Error> {
    let folder = tempfile::tempdir().unwrap();
    Benchmark::Hhh.read(written(folder.path(), rows))
}

#[test]
fn hhhs_better_response_takes_both_places_in_turn() {
    let rows = [hhh("harmless", "No.", "Yes!"), hhh("other", "Ask a doctor.", "Sure.")];
    let found = pairs(&rows).unwrap();
    let of = |row: usize| {
        let texts = found[row].texts.clone().unwrap();
        (found[row].groups[0].clone(), found[row].gold.unwrap(), texts.response_a, texts.response_b)
    };
    assert_eq!(of(0), ("harmless".into(), Greater, "No.".into(), "Yes!".into()));
    assert_eq!(of(1), ("other".into(), Less, "Sure.".into(), "Ask a doctor.".into()));
    assert_eq!((found[1].question.as_str(), found[1].rubric.as_deref()), ("Is it safe?", Some("[Harmless?]")));
    assert!(!Benchmark::Hhh.has_ties());
    assert_eq!("hhh".parse::<Benchmark>().unwrap(), Benchmark::Hhh);
}

#[test]
fn hhhs_own_form_keeps_the_order_of_its_choices() {
    let row =
        |labels: Value| json!({"input": "Is it safe?", "targets": {"choices": ["No.", "Yes!"], "labels": labels}});
    let mut second = row(json!([0, 1]));
    second["source"] = json!("honest");
    let found = pairs(&[row(json!([1, 0])), second]).unwrap();
    assert_eq!((found[0].gold, found[0].groups.len()), (Some(Greater), 0));
    assert_eq!((found[1].gold, found[1].groups[0].as_str()), (Some(Less), "honest"));
    assert_eq!(found[1].texts.as_ref().unwrap().response_a, "No.");
    for labels in [json!([1, 1]), json!([0, 0]), json!([1]), json!([1, 0, 0]), json!([2, 0]), json!(null)] {
        let error = pairs(&[row(json!([1, 0])), row(labels)]).unwrap_err().to_string();
        assert!(error.contains("line 2: expected \"targets\" to be two \"choices\""), "{error}");
    }
}

#[test]
fn damaged_pairs_of_hhh_are_refused_by_line() {
    let good = hhh("harmless", "No.", "Yes!");
    let error = |change: &dyn Fn(&mut Value)| {
        let mut row = good.clone();
        change(&mut row);
        pairs(&[good.clone(), row]).unwrap_err().to_string()
    };
    let unknown = error(&|row| row["source"] = json!("humble"));
    assert!(
        unknown
            .contains("line 2: expected \"source\" to be helpful, harmless, honest or other, found string \"humble\""),
        "{unknown}"
    );
    let other = error(&|row| row["rejected_instruction"] = json!(prompt("Is it new?", "Yes!", None, "[Harmless?]")));
    assert!(
        other.contains("line 2: expected \"rejected_instruction\" to be the prompt of \"chosen_instruction\""),
        "{other}"
    );
    let cut = error(&|row| row["chosen_instruction"] = json!("No."));
    assert!(cut.contains("line 2: expected \"chosen_instruction\" to be a prompt of Prometheus"), "{cut}");
    for field in ["source", "chosen_instruction", "rejected_instruction"] {
        let absent = error(&|row| {
            row.as_object_mut().unwrap().remove(field);
        });
        assert!(absent.contains(&format!("line 2: expected a field {field:?}")), "{absent}");
    }
    assert!(matches!(pairs(&[]), Err(Error::NoRows { .. })));
}
