//! Answers from retrieved contexts, under the names and in the forms that people have them.

use judge_core::ItemId;
use judge_core::rag::{RagField, RagItem};
use judge_data::{Columns, Error, Input, RagRecord};

use crate::files::place;

fn read_with(name: &str, text: &str, columns: &str) -> Result<Vec<RagRecord>, Error> {
    let (_folder, path) = place(name);
    std::fs::write(&path, text).unwrap();
    let columns: Columns = columns.parse().unwrap();
    RagRecord::all(&Input::open(&path)?, None, &columns)?.collect()
}

fn read(name: &str, text: &str) -> Vec<RagRecord> {
    read_with(name, text, "").unwrap()
}

fn expected() -> RagItem {
    RagItem {
        question: Some("Where?".to_owned()),
        contexts: vec!["In Paris.".to_owned(), "It's \"here\"".to_owned()],
        response: Some("Paris".to_owned()),
        reference: Some("In Paris".to_owned()),
        ..RagItem::default()
    }
}

#[test]
fn the_names_and_forms_of_other_tools_are_known() {
    let contexts = r#"["In Paris.", "It's \"here\""]"#;
    for (tool, row) in [
        ("own", format!(r#"{{"id": 7, "question": "Where?", "contexts": {contexts}, "response": "Paris", "reference": "In Paris"}}"#)),
        ("ragas", format!(r#"{{"user_input": "Where?", "retrieved_contexts": {contexts}, "response": "Paris", "reference": "In Paris", "reference_contexts": ["x"]}}"#)),
        ("ragas 0.1", format!(r#"{{"question": "Where?", "contexts": {contexts}, "answer": "Paris", "ground_truths": ["In Paris"]}}"#)),
        ("deepeval", format!(r#"{{"input": "Where?", "retrieval_context": {contexts}, "context": ["other"], "actual_output": "Paris", "expected_output": "In Paris"}}"#)),
        ("langsmith", r#"{"query": "Where?", "documents": [{"page_content": "In Paris.", "metadata": {"k": 1}}, {"text": "It's \"here\""}], "output": "Paris", "expected": "In Paris"}"#.to_owned()),
        ("promptfoo", format!(r#"{{"vars": {{"query": "Where?", "context": {contexts}}}, "output": "Paris", "reference": "In Paris"}}"#)),
    ] {
        let records = read("rows.jsonl", &row);
        assert_eq!((records[0].rag.clone(), records.len()), (expected(), 1), "{tool}");
    }
    let ideal = read("rows.jsonl", r#"{"input": "a", "retrieval_context": ["b"], "context": ["c"]}"#);
    assert_eq!(ideal[0].extra.text("context"), Some(r#"["c"]"#), "what is not read is carried");
}

/// The ideal contexts of a row for which nothing was retrieved stood in for these.
#[test]
fn the_ideal_context_of_deepeval_is_never_what_was_retrieved() {
    let row = |retrieved: &str| format!(r#"{{"input": "a", {retrieved}"context": ["ideal"], "actual_output": "b"}}"#);
    let rows = [r#""retrieval_context": ["In Paris."], "#, r#""retrieval_context": null, "#, ""].map(row).join("\n");
    let records = read("rows.jsonl", &rows);
    assert_eq!(records[0].rag.contexts, ["In Paris."]);
    for record in &records[1..] {
        assert_eq!(record.rag.lacks(RagField::Contexts).as_deref(), Some("the row has no contexts"));
        assert_eq!(record.extra.text("context"), Some(r#"["ideal"]"#));
    }
    // In a file of its own it is what it seems to be, and so it is where it is chosen.
    assert_eq!(read("rows.jsonl", &row(""))[0].rag.contexts, ["ideal"]);
    let chosen = read_with("rows.jsonl", &rows, "contexts=context").unwrap();
    assert!(chosen.iter().all(|record| record.rag.contexts == ["ideal"]));
}

/// A log in a column `output` was the response of rows whose `answer` was `null`, or was not there.
#[test]
fn a_field_stays_in_the_column_of_the_first_rows() {
    let first = r#"{"contexts": ["a"], "answer": "b"}"#;
    let rows = [
        first,
        first,
        r#"{"contexts": ["a"], "answer": null, "output": "log: 200 OK sent."}"#,
        r#"{"contexts": ["a"], "output": "log: 200 OK sent."}"#,
        r#"{"context": ["a"], "answer": "b"}"#,
    ];
    let records = read("rows.jsonl", &rows.join("\n"));
    assert!(records[..2].iter().all(|record| record.rag.response.as_deref() == Some("b")));
    assert_eq!(records[2].rag.lacks(RagField::Response).as_deref(), Some("the row has no response"));
    let moved = records[3].rag.lacks(RagField::Response).unwrap();
    assert!(moved.contains("output") && moved.contains("answer"), "{moved}");
    assert!(records[3].rag.contexts == ["a"] && records[4].rag.response.is_some(), "the rest of the row stays");
    let moved = records[4].rag.lacks(RagField::Contexts).unwrap();
    assert!(moved.contains("\"context\"") && moved.contains("\"contexts\""), "{moved}");
    // Those of promptfoo's `vars` are columns too.
    let vars = r#"{"vars": {"context": ["a"]}, "output": "b"}"#;
    let records =
        read("rows.jsonl", &[vars, vars, r#"{"vars": {"context": null}, "context": ["c"], "output": "b"}"#].join("\n"));
    assert_eq!(records[0].rag.contexts, ["a"]);
    assert!(records[2].rag.lacks(RagField::Contexts).is_some(), "{:?}", records[2].rag);
}

#[test]
fn contexts_without_words_are_none() {
    for (contexts, lacks) in [(r#"["", " "]"#, true), (r#"["--"]"#, true), (r#"["", "In 1889."]"#, false)] {
        let found = &read("rows.jsonl", &format!(r#"{{"contexts": {contexts}, "answer": "b"}}"#))[0];
        let why = found.rag.lacks(RagField::Contexts);
        assert_eq!(why.as_deref(), lacks.then_some("the contexts have no words"), "{contexts}");
    }
}

#[test]
fn a_table_of_pandas_holds_lists_as_text() {
    let text = "question,contexts,answer,ground_truth,team\nWhere?,\"['In Paris.', 'It\\'s \"\"here\"\"']\",Paris,In Paris,a\n\
                Who?,[],Lee,,b\nWhen?,\"['a' 'b']\",1931,,b\n";
    let records = read("rows.csv", text);
    assert_eq!(records[0].rag, expected());
    assert_eq!((records[1].id.clone(), records[1].rag.contexts.len()), (ItemId::from(1_u64), 0));
    assert_eq!(records[1].rag.lacks(RagField::Contexts).as_deref(), Some("the row has no contexts"));
    let why = records[2].rag.lacks(RagField::Contexts).unwrap();
    assert!(why.contains("a list of texts as Python writes it") && why.contains("['a' 'b']"), "{why}");
    assert!(records[2].rag.response.is_some(), "the rest of the row stays");
    assert_eq!(records[2].extra.string("team").as_deref(), Some("b"));
    // A reference as a list of one, and sentences.
    let sentences = r#""[{""start"": 0, ""end"": 3}]""#;
    let text = format!(
        "response,ground_truths,sentences\nJa. So.,['In Paris.'],{sentences}\nJa.,\"['a', 'b']\",\nJa.,[1],\nJa.,[],\n"
    );
    let records = read("rows.csv", &text);
    assert_eq!(records[0].rag.sentences.as_ref().map(Vec::len), Some(1));
    let why = records[1].rag.lacks(RagField::Reference).unwrap();
    assert!(why.contains("one text, or a list of one"), "{why}");
    let references = [0, 2, 3].map(|row| records[row].rag.reference.as_deref());
    assert_eq!(references, [Some("In Paris."), Some("[1]"), None]);
}

#[test]
fn columns_are_chosen_and_what_may_be_either_is_refused() {
    let row = r#"{"frage": "Where?", "belege": "In Paris.", "antwort": "Paris", "question": "x"}"#;
    let records = read_with("rows.jsonl", row, "question=frage,contexts=belege,response=antwort").unwrap();
    assert_eq!(records[0].rag.contexts, ["In Paris."]);
    assert_eq!(records[0].rag.question.as_deref(), Some("Where?"));
    let records = read("rows.jsonl", r#"{"query": "a", "input": "b", "contexts": ["c"], "response": "d"}"#);
    let why = records[0].rag.lacks(RagField::Question).unwrap();
    assert!(why.contains("query") && why.contains("input"), "{why}");
    assert!(records[0].rag.lacks(RagField::Contexts).is_none());
    let missing = read_with("rows.jsonl", row, "contexts=gone").unwrap_err();
    assert!(matches!(missing, Error::NoSuchColumn { .. }), "{missing}");
}

#[test]
fn sentences_that_people_marked_keep_their_places() {
    let row = r#"{"contexts": ["a"], "response": "Größe zählt. Ja.", "human": 0.5,
                  "sentences": [{"start": 0, "end": 12, "text": "Größe zählt.", "human": [1, null, 0]}, {"start": 13, "end": 16, "supported": 0.5}]}"#;
    let record = &read("rows.json", row)[0];
    let cut = record.rag.sentences.as_ref().unwrap();
    assert_eq!((cut[0].text.as_str(), cut[1].text.as_str()), ("Größe zählt.", "Ja."));
    assert_eq!(
        (record.labels.clone(), record.human.clone()),
        (vec![vec![Some(1.0), None, Some(0.0)], vec![]], vec![Some(0.5)])
    );
    assert_eq!(record.extra.len(), 0);
    // A mark of another scale is none.
    for odd in ["5", "-1", "[1, 2]", r#""yes""#] {
        let sentences =
            format!(r#"[{{"start": 0.0, "end": 12.0, "human": {odd}}}, {{"start": 13, "end": 16, "human": 0.25}}]"#);
        let row = format!(r#"{{"contexts": ["a"], "response": "Größe zählt. Ja.", "sentences": {sentences}}}"#);
        let record = &read("rows.json", &row)[0];
        let kept = if odd.starts_with('[') { vec![Some(1.0), None] } else { vec![] };
        assert_eq!(record.labels, [kept, vec![Some(0.25)]], "{odd}");
        let why = record.no_grade.as_deref().unwrap();
        assert!(why.contains("sentence 1 has ") && why.contains("expected a number from 0 to 1"), "{why}");
    }
    for (sentences, expected) in [
        (r#"[{"start": 0, "end": 99}]"#, "up to 16 characters"),
        (r#"[{"start": 0.5, "end": 3}]"#, "`start` and `end`"),
        (r#"[{"start": -1, "end": 3}]"#, "`start` and `end`"),
        (r#"[{"start": 5, "end": 5}]"#, "from 5 to 5"),
        (r#"[{"start": 0, "end": 3, "text": "Klein"}]"#, "found \"Grö\""),
        (r#"["Größe"]"#, "`start` and `end`"),
    ] {
        let row = format!(r#"{{"contexts": ["a"], "response": "Größe zählt. Ja.", "sentences": {sentences}}}"#);
        // They cost the measures of sentences alone.
        let records = read("rows.json", &row);
        let why = records[0].rag.lacks(RagField::Sentences).unwrap();
        assert!(why.contains(expected) && records[0].rag.lacks(RagField::Response).is_none(), "{why}");
    }
}

#[test]
fn a_field_is_found_by_its_name_and_by_that_of_its_column() {
    let row = r#"{"user_input": "Where?", "contexts": ["a", "b"], "answer": "d", "team": 7, "gone": null}"#;
    let record = &read("rows.jsonl", row)[0];
    for name in ["question", "user_input"] {
        assert_eq!(record.text(name).as_deref(), Some("Where?"), "{name}");
    }
    let found = ["contexts", "response", "answer", "team", "gone", "reference", "query"].map(|name| record.text(name));
    let found = found.each_ref().map(|text| text.as_deref());
    assert_eq!(found, [Some("a\n\nb"), Some("d"), Some("d"), Some("7"), None, None, None]);
}
