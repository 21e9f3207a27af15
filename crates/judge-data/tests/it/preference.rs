//! Rows of chosen and rejected replies, in every form that data sets have them in.

use std::cmp::Ordering;

use judge_core::Fields;
use judge_data::{
    AnswersRecord, Columns, Dataset, DatasetFormat, DatasetOptions, Field, Given, GradingRecord, GradingTask, Ids,
    Input, PairRecord, RaterGrade, Record, RowItem, Shown, graded_row,
};
use serde_json::{Value, json};

use crate::files::{lines, place};

/// Rows without an id go by their number.
fn numbered() -> DatasetOptions {
    DatasetOptions { ids: Ids::RowNumber, ..DatasetOptions::default() }
}

fn read(rows: &[Value], options: &DatasetOptions) -> (DatasetFormat, Vec<Record>) {
    let (_folder, path) = place("rows.jsonl");
    std::fs::write(&path, lines(rows)).expect("written");
    let dataset = Dataset::open(&path, options).expect("a data set");
    (dataset.format(), dataset.map(|record| record.expect("a record")).collect())
}

fn pair(row: Value) -> PairRecord {
    match read(&[row], &numbered()) {
        (DatasetFormat::Pairs, records) => match records.into_iter().next() {
            Some(Record::Pair(pair)) => pair,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// What was asked, the better reply and the worse one.
fn told(pair: &PairRecord) -> [&str; 3] {
    match pair.verdicts[..] {
        [Some(Ordering::Greater)] => [&pair.instruction, &pair.response_a, &pair.response_b],
        [Some(Ordering::Less)] => [&pair.instruction, &pair.response_b, &pair.response_a],
        _ => panic!("{pair:?}"),
    }
}

fn turn(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

#[test]
fn every_form_of_a_pair_is_read() {
    let (user, good, bad) = (turn("user", "2 + 2?"), turn("assistant", "4"), turn("assistant", "5"));
    let said = "\n\nHuman: 2 + 2?\n\nAssistant: ";
    for row in [
        json!({"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}),
        json!({"prompt": "2 + 2?", "chosen": [user, good], "rejected": [user, bad], "messages": [user, good]}),
        json!({"chosen": [user, good], "rejected": [user, bad]}),
        json!({"prompt": [user], "chosen": [good], "rejected": [bad]}),
        json!({"chosen": [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}], "rejected": [user, bad]}),
        json!({"chosen": format!("{said}4"), "rejected": format!("{said} 5 ")}),
        json!({"instruction": "2 + 2?", "chosen": [[user, good]], "rejected": "5"}),
    ] {
        if row["rejected"] == "5" && row["chosen"].is_array() {
            // One reply with its conversation and one without are of different conversations.
            assert!(Dataset::open(write(&row).path(), &numbered()).is_err());
            continue;
        }
        assert_eq!(told(&pair(row.clone())), ["2 + 2?", "4", "5"], "{row}");
    }
    let before = [turn("system", "Be brief."), turn("user", "Hi"), turn("assistant", "Hello"), turn("user", "2 + 2?")];
    let with = |last: &Value| [&before[..], std::slice::from_ref(last)].concat();
    let long = pair(json!({"chosen": with(&good), "rejected": with(&bad)}));
    assert_eq!(told(&long)[0], "system: Be brief.\n\nUser: Hi\n\nAssistant: Hello\n\nUser: 2 + 2?");
    // A text that names turns inside is split at them.
    let hh = "\n\nHuman: a\n\nAssistant: b\n\nHuman: c\n\nAssistant: ";
    let hh = pair(json!({"chosen": format!("{hh}x"), "rejected": format!("{hh}y")}));
    assert_eq!(told(&hh), ["User: a\n\nAssistant: b\n\nUser: c", "x", "y"]);
    let called = json!({"role": "assistant", "content": "4", "tool_calls": [{"id": "c"}]});
    let row = json!({"chosen": [user, called], "rejected": [user, bad]});
    let error = Dataset::open(write(&row).path(), &numbered()).expect_err("calls of tools").to_string();
    assert!(error.contains("turn 2 of \"chosen\": expected a turn without calls of tools"), "{error}");
}

fn write(row: &Value) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").expect("a file");
    std::fs::write(file.path(), format!("{row}\n")).expect("written");
    file
}

#[test]
fn what_else_a_row_has_is_kept() {
    let row = json!({"id": "a", "prompt": "?", "chosen": "x", "rejected": "y", "margin": 2.5, "score_chosen": 8.0, "reference": "r"});
    let pair = pair(row);
    assert_eq!(pair.extra.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["margin", "score_chosen"]);
    assert_eq!((pair.field("margin").as_deref(), pair.reference.as_deref()), (Some("2.5"), Some("r")));
}

/// The order depends on the seed and the id, and not on what else is in the file.
#[test]
fn which_reply_stands_first_is_drawn() {
    let row = |id: usize| json!({"id": id, "prompt": "?", "chosen": "x", "rejected": "y"});
    let all: Vec<Value> = (0..400).map(row).collect();
    let firsts = |rows: &[Value], seed| -> Vec<(String, bool)> {
        let (_, records) = read(rows, &DatasetOptions { seed, ..numbered() });
        let first = |record: Record| match record {
            Record::Pair(pair) => (pair.id.to_string(), pair.response_a == "x"),
            other => panic!("{other:?}"),
        };
        records.into_iter().map(first).collect()
    };
    let found = firsts(&all, 0);
    let n = found.iter().filter(|(_, is_first)| *is_first).count();
    assert!((150..250).contains(&n), "{n} of 400");
    let turned: Vec<Value> = all.iter().rev().cloned().collect();
    assert_eq!(firsts(&turned, 0).into_iter().rev().collect::<Vec<_>>(), found);
    assert_ne!(firsts(&all, 1), found);
}

/// A table without a column of ids goes by its rows' numbers, and says so; one whose column has an empty cell lacks an id.
#[test]
fn a_table_without_ids_is_numbered() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        let input = Input::open(&path).expect("a file");
        let all = Dataset::open(&input, &DatasetOptions::default()).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        all.map(|all| (all.iter().map(|record| record.id().to_string()).collect::<Vec<_>>(), input.notes().len()))
    };
    let (csv, tsv) = ("question,answer,human\nQ,A,3\nQ,B,\n", "question\tanswer\nQ\tA\nQ\tB\n");
    assert_eq!(read("a.csv", csv).expect("rows"), (vec!["0".to_owned(), "1".to_owned()], 1));
    assert_eq!(read("a.tsv", tsv).expect("rows").0, ["0", "1"]);
    assert_eq!(
        read("b.csv", "idx,question,answer\n7,Q,A\n8,Q,B\n").expect("rows"),
        (vec!["\"7\"".to_owned(), "\"8\"".to_owned()], 0)
    );
    let error = read("c.csv", "id,question,answer\na,Q,A\n,Q,B\n").expect_err("an empty cell");
    assert!(error.to_string().contains("no field for id"), "{error}");
    let error = read("d.jsonl", "{\"question\": \"Q\", \"answer\": \"A\"}\n").expect_err("rows of JSON have ids");
    assert!(error.to_string().contains("line 1: no field for id"), "{error}");
}

/// Such files are published without ids, and one odd row must not cost the run there either.
#[test]
fn a_file_without_ids_is_numbered() {
    let row = |reply: Value| json!({"prompt": "?", "chosen": "x", "rejected": reply});
    let (_, records) = read(&[row(json!("y")), row(Value::Null), row(json!("z"))], &DatasetOptions::default());
    assert_eq!(records.iter().map(|record| record.id().to_string()).collect::<Vec<_>>(), ["0", "1", "2"]);
    assert!(records[1].unread().is_some());
    // Ids that some rows have, or a column that was chosen, are meant to be there in all.
    let mixed = [json!({"id": "a", "prompt": "?", "chosen": "x", "rejected": "y"}), row(json!("y"))];
    let error = |rows: &[Value], options: &DatasetOptions| {
        let file = tempfile::NamedTempFile::with_suffix(".jsonl").expect("a file");
        std::fs::write(file.path(), lines(rows)).expect("written");
        let all = Dataset::open(file.path(), options).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        all.expect_err("a row without an id").to_string()
    };
    assert!(error(&mixed, &DatasetOptions::default()).contains("line 2: no field for id"));
    let columns = "id=uid".parse().expect("columns");
    let found = error(&[row(json!("y"))], &DatasetOptions { columns, ..DatasetOptions::default() });
    assert!(found.contains("uid"), "{found}");
}

/// The page shows the pair alone, and the row says what A and B are, whatever is carried. Where something else is graded, such replies are
/// fields like others.
#[test]
fn people_grade_them_as_pairs() {
    let (user, good, bad) = (turn("user", "2 + 2?"), turn("assistant", "4"), turn("assistant", "5"));
    let rows = [
        json!({"prompt": "2 + 2?", "chosen": "4", "rejected": "5", "margin": 2}),
        json!({"chosen": [user, good], "rejected": [user, bad], "messages": [user, good], "answer": "4"}),
        json!({"prompt": [user], "chosen": [good], "rejected": [bad]}),
        json!({"prompt": "2 + 2?", "response": "4", "chosen": true, "rejected": false}),
    ];
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").expect("a file");
    std::fs::write(file.path(), lines(&rows)).expect("written");
    let records = GradingRecord::all(&Input::open(file.path()).expect("a file"), None, &Columns::default());
    let records: Vec<_> = records.expect("rows").map(|row| row.expect("a row")).collect();
    assert!(GradingTask::Pairs.lacks(&records[3]).is_some_and(|why| why.contains("chosen")), "{:?}", records[3]);
    assert!(records.iter().all(|record| record.unread().is_none() && GradingTask::YesNo.lacks(record).is_none()));
    let fields = |record: &GradingRecord, task: &GradingTask| -> Vec<Field> {
        task.shown(record).iter().map(|(field, _)| *field).collect()
    };
    assert_eq!(fields(&records[3], &GradingTask::YesNo), [Field::Instruction, Field::Response]);
    let rater = ["ann".to_owned()];
    let graded: Vec<Value> = records[..3]
        .iter()
        .map(|record| {
            assert_eq!(GradingTask::Pairs.lacks(record), None);
            let task = GradingTask::Pairs;
            assert_eq!(fields(record, &task), [Field::Instruction, Field::ResponseA, Field::ResponseB]);
            let given = if task.shown(record)[1].1 == Shown::Text("4".to_owned()) { "A" } else { "B" };
            let given = Given::Values(vec![json!(given)]);
            let grade = RaterGrade { given, seconds: None, note: None, swapped: false };
            let grades = [(rater[0].clone(), grade)].into();
            let row = graded_row(record, &task, &rater, &grades, None, &"margin,chosen".parse().expect("fields"));
            serde_json::to_value(row.expect("a row")).expect("JSON")
        })
        .collect();
    assert_eq!((&graded[0]["margin"], &graded[1]["chosen"]), (&json!(2), &rows[1]["chosen"]));
    let (format, records) = read(&graded, &DatasetOptions::default());
    assert_eq!(format, DatasetFormat::Pairs);
    for record in records {
        let Record::Pair(pair) = record else { panic!("{record:?}") };
        assert_eq!(told(&pair), ["2 + 2?", "4", "5"]);
    }
}

#[test]
fn lists_of_replies_are_answers_with_grades() {
    let rows = [
        json!({"id": "rm", "prompt": "?", "chosen": ["a", "b", "c"], "rejected": ["d", "e", "f"]}),
        json!({"id": "one", "prompt": "?", "chosen": "a", "rejected": ["d", "e"]}),
        json!({"id": "none", "prompt": "?", "chosen": [], "rejected": ["d", "e"]}),
        json!({"id": "null", "prompt": "?", "chosen": null, "rejected": ["d", "e"]}),
    ];
    let (format, records) = read(&rows, &numbered());
    assert_eq!(format, DatasetFormat::Answers);
    for (record, expected) in records.iter().zip(["a1 b1 c1 d0 e0 f0", "a1 d0 e0"]) {
        let Record::Answers(AnswersRecord { responses, grades, .. }) = record else { panic!("{record:?}") };
        let mut found: Vec<String> =
            responses.iter().zip(grades).map(|(reply, grade)| format!("{reply}{}", grade.expect("a grade"))).collect();
        found.sort();
        assert_eq!(found.join(" "), expected);
    }
    let why = |record: &Record| record.unread().expect("not read").detail.clone();
    assert!(why(&records[2]).contains("expected \"chosen\" to be a text or a conversation"), "{}", why(&records[2]));
    assert!(why(&records[3]).contains("instruction") || why(&records[3]).contains("responses"), "{}", why(&records[3]));
    // A pair is a list of two where lists are asked for.
    let answers = DatasetOptions { format: Some(DatasetFormat::Answers), ..numbered() };
    let (_, records) = read(&[json!({"prompt": "?", "chosen": "a", "rejected": "b"})], &answers);
    assert!(matches!(&records[0], Record::Answers(record) if record.responses.len() == 2));
}

#[test]
fn an_odd_row_costs_itself() {
    let (user, good) = (turn("user", "?"), turn("assistant", "4"));
    let rows = [
        json!({"id": 1, "prompt": "?", "chosen": "x", "rejected": "y"}),
        json!({"id": 2, "prompt": "?", "chosen": 4, "rejected": "y"}),
        json!({"id": 3, "chosen": [user, good], "rejected": [turn("user", "other"), good]}),
        json!({"id": 4, "chosen": [user], "rejected": [user]}),
        json!({"id": 5, "chosen": "x", "rejected": "y"}),
        json!({"id": 6, "prompt": "?", "chosen": ["x", "z"], "rejected": "y"}),
        json!({"id": 7, "prompt": "?", "chosen": "x", "rejected": null}),
        json!({"id": 8, "prompt": [{"role": "user"}], "chosen": "x", "rejected": "y"}),
        json!({"id": 10, "prompt": "Be a pirate.", "chosen": [user, good], "rejected": [user, good]}),
        json!({"id": 9, "prompt": "?", "response_a": "x", "response_b": "y", "human": "A"}),
    ];
    let (format, records) = read(&rows, &numbered());
    assert_eq!(format, DatasetFormat::Pairs);
    for (at, said) in [
        (1, "expected \"chosen\" to be a text or a conversation"),
        (2, "a reply to the same conversation"),
        (3, "expected \"chosen\""),
        (4, "no instruction"),
        (5, "one reply, as in"),
        (6, "no "),
        (7, "turn 1 of \"prompt\""),
        (8, "in the conversation of"),
    ] {
        let why = records[at].unread().unwrap_or_else(|| panic!("{:?}", records[at]));
        assert!(why.detail.contains(said), "{at}: {}", why.detail);
    }
    assert!(matches!(&records[0], Record::Pair(_)) && matches!(&records[9], Record::Pair(_)));
}

#[test]
fn what_an_instruction_is_about_is_shown_to_people_and_stays_apart() {
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").expect("a file");
    let row = json!({"id": 1, "instruction": "Add.", "input": "7 + 5", "chosen": "12", "rejected": "13"});
    std::fs::write(file.path(), lines(&[row])).expect("written");
    let records = GradingRecord::all(&Input::open(file.path()).expect("a file"), None, &Columns::default());
    let record = records.expect("rows").next().expect("a row").expect("a record");
    for task in [GradingTask::Pairs, GradingTask::YesNo] {
        let shown = task.shown(&record);
        assert_eq!(shown[0], (Field::Instruction, Shown::Text("Add.\n\n7 + 5".to_owned())), "{task:?}");
    }
    // What is written is read back as it was.
    let given = Given::Values(vec![json!("A")]);
    let grade = RaterGrade { given, seconds: None, note: None, swapped: false };
    let grades = [("ann".to_owned(), grade)].into();
    let carry = "none".parse().expect("fields");
    let row = graded_row(&record, &GradingTask::Pairs, &["ann".to_owned()], &grades, None, &carry).expect("a row");
    let (_, records) = read(&[serde_json::to_value(row).expect("JSON")], &DatasetOptions::default());
    assert_eq!(records[0].field("instruction").as_deref(), Some("Add.\n\n7 + 5"));
}
