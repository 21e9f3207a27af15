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
    for (sentences, expected) in [
        (r#"[{"start": 0, "end": 99}]"#, "up to 16 characters"),
        (r#"[{"start": 5, "end": 5}]"#, "from 5 to 5"),
        (r#"[{"start": 0, "end": 3, "text": "Klein"}]"#, "found \"Grö\""),
        (r#"["Größe"]"#, "`start` and `end`"),
    ] {
        let row = format!(r#"{{"contexts": ["a"], "response": "Größe zählt. Ja.", "sentences": {sentences}}}"#);
        let why = read("rows.json", &row)[0].rag.lacks(RagField::Response).unwrap();
        assert!(why.contains(expected), "{why}");
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
