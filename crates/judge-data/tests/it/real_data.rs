//! Published files, read where `JUDGE_TEST_DATA` says they are.

use std::collections::HashSet;

use judge_data::{Dataset, DatasetFormat, DatasetOptions, Error, HumanScores, Layout, Record, Rows};

use crate::columns::with_columns;
use crate::files::test_data;

#[test]
fn emotion_items() {
    let Some(folder) = test_data() else { return };
    let dataset = Dataset::open(folder.join("lager/emotional_data.json"), &DatasetOptions::default()).unwrap();
    assert_eq!(dataset.format(), DatasetFormat::Emotion);
    let records: Vec<_> = dataset
        .map(|record| match record.unwrap() {
            Record::Emotion(record) => record,
            other => panic!("{other:?}"),
        })
        .collect();
    let dialogues: HashSet<&str> = records.iter().map(|record| record.dialogue.as_str()).collect();
    assert_eq!((records.len(), dialogues.len()), (430, 171));
    let is_grade =
        |score: &Option<f64>| score.is_some_and(|score| score.fract() == 0.0 && (1.0..=9.0).contains(&score));
    assert!(records.iter().all(|record| record.scores.len() == 1 && record.scores.iter().all(is_grade)));
}

#[test]
fn flask_scores() {
    let Some(folder) = test_data() else { return };
    let mut rows = Rows::open(folder.join("lager/flask_llama31_8b_scores.json")).unwrap();
    assert_eq!(rows.layout(), Layout::Lines);
    let row = rows.next().unwrap().unwrap();
    for field in ["direct_score", "e_score", "lager_w", "human"] {
        assert_eq!(row.required::<Vec<f64>>(field, "numbers").unwrap().len(), 1998, "{field}");
    }
    assert!(rows.next().is_none());
}

#[test]
fn prometheus_evaluation() {
    let Some(folder) = test_data() else { return };
    let path = folder.join("prometheus_eval/mt_bench_eval.json");
    // `idx` is the number of a question there, and several models answer each.
    let mut repeated = Dataset::open(&path, &with_columns("prompt=instruction,human=gpt4_score")).unwrap();
    assert!(matches!(repeated.find_map(Result::err), Some(Error::DuplicateId { .. })));
    let dataset = Dataset::open(&path, &with_columns("id=,prompt=instruction,human=gpt4_score")).unwrap();
    assert_eq!(dataset.format(), DatasetFormat::Prompts);
    let records: Vec<Record> = dataset.collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 320);
    assert!(records.iter().all(|record| record.human().is_some_and(|score| (1.0..=5.0).contains(&score))));

    let mut humans = HumanScores::default();
    for record in Dataset::open(&path, &with_columns("id=,prompt=instruction")).unwrap() {
        humans.see(&record.unwrap());
    }
    assert_eq!(humans.candidates().collect::<Vec<_>>(), ["gpt4_score"]);
}
