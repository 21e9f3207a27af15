//! The lists of a row's own fields say what is written, no more and no less: whoever adds a field to a row type has to fill it in here.

use std::collections::BTreeSet;

use judge_core::{ItemId, Layer, Reason, Scale, Score, Unscored, Verdict, lager::LayerTable, scale::ScoreDistribution};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Carry, Extra, GradedRecord, Human, Judged, JudgedAspect, JudgedPair, JudgedResponse, JudgedScore, LabelRow,
    LabelTable, OrderRow, OutputRow, PairRow, PairVerdict, Record, RowColumns, ScoreOutcome, ScoreRow, SingleRow,
};

/// The names of all fields that the rows have.
fn names<T: Serialize>(rows: &[T]) -> BTreeSet<String> {
    let fields = |row: &T| match serde_json::to_value(row) {
        Ok(Value::Object(fields)) => fields,
        other => panic!("{other:?}"),
    };
    rows.iter().flat_map(|row| fields(row).into_iter().map(|(name, _)| name)).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn unscored() -> Unscored {
    Unscored::new(Reason::Missing, "none")
}

/// A verdict with everything that a row shows of one, and one without.
fn verdicts() -> [Verdict; 2] {
    let scale = Scale::integers(1, 2).unwrap();
    let distribution = ScoreDistribution::from_weights(&scale, &[1.0, 3.0]).unwrap();
    let mut score = Score::expected(distribution).with_text("2").with_label_mass(Some(0.5));
    score.confidence = Some(0.5);
    [Verdict::Scored(score), Verdict::Unscored(unscored())]
}

fn row<J: Judged>(human: Human, judged: J) -> OutputRow<J> {
    OutputRow::of(ItemId::from(1_u64), human, judged, Extra::new(), &Carry::All).expect("no field is carried").0
}

#[test]
fn score_rows() {
    let table = LayerTable::new(vec![Layer(0)], 1, vec![0.0]).unwrap();
    let read = LabelTable { labels: vec!["1".into()], table, step: 0, completion: String::new() };
    let judged = JudgedScore { score: 1.0, probabilities: Some(vec![1.0]), label_mass: Some(1.0) };
    let outcomes = [ScoreOutcome::Read(read, Some(judged)), ScoreOutcome::Unscored(unscored())];
    let rows = outcomes.map(|outcome| ScoreRow {
        id: ItemId::from(1_u64),
        human: vec![Some(1.0)],
        outcome,
        extra: Extra::new(),
    });
    assert_eq!(names(&rows), set(&ScoreRow::KNOWN));
}

#[test]
fn rag_rows() {
    use judge_core::decision::{DecisionJudge, DecisionSettings};
    use judge_core::rag::{RagItem, RagJudge, RagSettings, Sentence};
    use judge_core::{Judge, Outcome, Rounds, Runner, testing::ScriptedBackbone};

    let model = ScriptedBackbone::new(1).with_logits(|_, _, label| if label == 'Y' { 1.0 } else { 0.0 });
    let mut decisions = DecisionSettings::default();
    decisions.form.labels.noul = vec!["Y".to_owned(), "N".to_owned()];
    let settings = RagSettings { claims_only: true, by_context: true, ..RagSettings::default() };
    let judge = RagJudge::new(settings, DecisionJudge::new(decisions, &model).unwrap()).unwrap();
    let full = RagItem {
        question: Some("a".to_owned()),
        contexts: vec!["b".to_owned()],
        response: Some("c".to_owned()),
        reference: Some("d".to_owned()),
        sentences: Some(vec![Sentence { chars: 0..1, text: "c".to_owned() }]),
        unread: Vec::new(),
    };
    let rows = [full, RagItem::default()].map(|rag| {
        let results = Runner::new(&model, vec![&judge as &dyn Judge<RagItem>]).collect([("one".into(), rag)]).unwrap();
        let rounds: Vec<&[Outcome]> = results[0].outcomes[0].iter().map(Vec::as_slice).collect();
        let findings = judge.findings(&results[0].item, &Rounds::new(rounds)).unwrap();
        let record = crate::RagRecord {
            row: 0,
            id: ItemId::from(1_u64),
            rag: results[0].item.clone(),
            human: vec![Some(1.0)],
            labels: vec![vec![Some(1.0)]],
            no_grade: None,
            columns: RowColumns::default(),
            extra: Extra::new(),
        };
        crate::RagRow::new(record, findings, Some(3), &Carry::All).unwrap().0
    });
    assert_eq!(names(&rows), set(crate::RagRow::KNOWN));
    let json = serde_json::to_value(&rows[0]).unwrap();
    assert_eq!((&json["sentences"][0]["human"], &json["sentences"][0]["text"]), (&1.0.into(), &"c".into()));
    let json = serde_json::to_value(&rows[1]).unwrap();
    assert_eq!(json["unscored"]["faithfulness"]["detail"], "the row has no contexts");
}

#[test]
fn single_rows() {
    let row = |verdict| row(Human::Numbers(vec![Some(1.0)]), JudgedResponse { verdict, text: Some(String::new()) });
    let rows = verdicts().map(row);
    assert_eq!(names(&rows), set(SingleRow::KNOWN));
}

#[test]
fn pair_rows() {
    let orders = || {
        let (verdict, text) = (Some(PairVerdict::A), Some(String::new()));
        vec![OrderRow {
            order: "given",
            verdict,
            text,
            probabilities: None,
            label_mass: None,
            confidence: None,
            table: None,
        }]
    };
    let rows = [Ok(PairVerdict::A), Err(unscored())]
        .map(|verdict| row(Human::Preferences(vec![Some(1.0)]), JudgedPair { verdict, orders: orders() }));
    assert_eq!(names(&rows), set(PairRow::KNOWN));
}

#[test]
fn label_rows() {
    let record = Record::Graded(GradedRecord {
        id: ItemId::from(1_u64),
        instruction: String::new(),
        response: String::new(),
        rubric: Some(String::new()),
        reference: Some(String::new()),
        scores: vec![Some(1.0)],
        columns: RowColumns::default(),
        extra: Extra::new(),
    });
    let rows = verdicts().map(|verdict| {
        let judged = JudgedResponse { verdict, text: Some(String::new()) };
        let judged = JudgedAspect { record: record.clone(), aspect: String::new(), judged };
        row(Human::Numbers(Vec::new()), judged)
    });
    // Beside its own fields, the names under which a reader of graded rows looks for the grade first.
    let reserved = set(&["human", "scores"]);
    assert_eq!(&names(&rows) | &reserved, set(LabelRow::KNOWN));
}

#[test]
fn graded_rows() {
    use crate::{Given, GradingRecords, GradingScale, GradingTask, Input, RaterGrade, Source, graded_row, grades_of};
    use judge_core::decision::{Question, Questions};
    use std::collections::BTreeMap;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let text = r#"{"id": 1, "response": "It is. It was.", "contexts": ["a"], "response_a": "b", "response_b": "c", "sentences": null}"#;
    std::fs::write(&path, text).unwrap();
    let source =
        GradingRecords { input: Input::open(&path).unwrap(), columns: crate::Columns::default(), max_rows: None };
    let record = source.items().unwrap().next().unwrap().unwrap();
    let scale = GradingScale { points: [1, 2], words: vec![String::new(); 2] };
    let questions = Questions::one("good", Question::noul("Is it good?")).unwrap();
    for task in [
        GradingTask::Scale(scale),
        GradingTask::YesNo,
        GradingTask::Pairs,
        GradingTask::Questions(Some(questions)),
        GradingTask::Sentences,
    ] {
        assert_eq!(task.lacks(&record), None);
        let groups = task.groups(&record);
        let values = groups.iter().map(|group| group.options[0].value.clone()).collect();
        let grade = |given| RaterGrade {
            given,
            seconds: Some(1.5),
            note: Some("n".to_owned()),
            swapped: task == GradingTask::Pairs,
        };
        let given = [("ann", Given::Values(values)), ("bob", Given::Skipped("why".to_owned()))];
        let grades: BTreeMap<String, RaterGrade> = given.map(|(rater, given)| (rater.to_owned(), grade(given))).into();
        let raters = ["ann", "bob", "eve"].map(str::to_owned);
        let row = graded_row(&record, &task, &raters, &grades, Some(0.5), &Carry::Only(Vec::new())).unwrap();
        let mut expected = set(task.known());
        if task == GradingTask::Sentences {
            // The input may have it: it is written again with what people said.
            expected.insert("sentences".to_owned());
        }
        assert_eq!(names(&[&row]), expected);
        assert_eq!(grades_of(&row, &task, &groups).unwrap(), grades, "what is written is read back");
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["human"].as_array().map(Vec::len), Some(3), "a place for each: {json}");
    }
}
