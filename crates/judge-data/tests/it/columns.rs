//! Users' own column names, nulls, raters and what is carried along.

use std::fs;

use judge_core::{Fields, ItemId, Prompt, PromptTemplate, Reason};
use judge_data::{
    Columns, Dataset, DatasetFormat, DatasetOptions, Error, Field, HumanScores, Ids, Input, PromptInput, Record,
};
use proptest::prelude::*;

use crate::files::place;

fn dataset(text: &str, options: &DatasetOptions) -> Result<Vec<Record>, Error> {
    let (_folder, path) = place("in.jsonl");
    fs::write(&path, text).unwrap();
    Dataset::open(&path, options)?.collect()
}

fn read(text: &str) -> Vec<Record> {
    dataset(text, &DatasetOptions::default()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn error(text: &str) -> Error {
    match dataset(text, &DatasetOptions::default()) {
        Err(error) => error,
        Ok(records) => panic!("{text}: {records:?}"),
    }
}

pub(crate) fn with_columns(text: &str) -> DatasetOptions {
    DatasetOptions { columns: text.parse().unwrap_or_else(|e| panic!("{text}: {e}")), ..DatasetOptions::default() }
}

fn graded(record: &Record) -> (&str, &str, Option<f64>) {
    match record {
        Record::Graded(record) => (&record.instruction, &record.response, record.human()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_alias_is_read() {
    for instruction in Field::Instruction.aliases() {
        for response in Field::Response.aliases() {
            for (human, id) in Field::Human.aliases().iter().zip(["id", "idx", "id"]) {
                let row = format!(r#"{{"{id}": 7, "{instruction}": "i", "{response}": "r", "{human}": [4, null, 5]}}"#);
                let records = read(&row);
                assert_eq!(graded(&records[0]), ("i", "r", Some(4.5)), "{row}");
                assert_eq!(*records[0].id(), ItemId::from(7_u64));
                assert!(records[0].extra().is_empty(), "{row}");
            }
        }
    }
}

#[test]
fn the_field_s_own_name_goes_before_its_aliases() {
    let records = read(
        r#"{"id":1,"idx":0,"prompt":"formatted","question":"q","instruction":"i","answer":"gold","response":"r","score":1,"human":5}"#,
    );
    assert_eq!(graded(&records[0]), ("i", "r", Some(5.0)));
    let kept: Vec<_> = records[0].extra().iter().map(|(name, _)| name).collect();
    assert_eq!(kept, ["idx", "prompt", "question", "answer", "score"], "what was not read is kept, in order");
}

#[test]
fn two_aliases_that_differ_are_refused() {
    for (row, field, first, second) in [
        // The reference solution and what the model wrote: either could be graded.
        (r#"{"id":1,"question":"q","answer":"gold","completion":"r"}"#, Field::Response, "answer", "completion"),
        (r#"{"id":1,"question":"q","prompt":"Q: q","response":"r"}"#, Field::Instruction, "question", "prompt"),
    ] {
        let found = error(row);
        assert!(
            matches!(&found, Error::AmbiguousColumns { field: f, first: a, second: b, .. } if (*f, &**a, &**b) == (field, first, second)),
            "{found}"
        );
        let options = with_columns(&format!("{field}={second}"));
        assert_eq!(dataset(row, &options).unwrap_or_else(|e| panic!("{row}: {e}")).len(), 1);
    }
    let same = read(r#"{"id":1,"question":"q","prompt":"q","output":"r","answer":"r"}"#);
    assert_eq!(graded(&same[0]), ("q", "r", None), "equal columns leave no choice");
}

#[test]
fn a_field_stays_in_its_column() {
    let text = "{\"id\":1,\"question\":\"q\",\"response\":\"r\",\"answer\":\"gold\"}\n\
                {\"id\":2,\"question\":\"q\",\"response\":null,\"answer\":\"gold\"}\n\
                {\"id\":3,\"question\":\"q\",\"answer\":\"gold\"}\n";
    let records = read(text);
    assert_eq!(graded(&records[0]).1, "r");
    let why = |record: &Record| record.unread().map(|why| (why.reason, why.detail.clone())).expect("no score");
    let (reason, detail) = why(&records[1]);
    assert_eq!(reason, Reason::Missing);
    assert_eq!(
        detail,
        r#"no response (response, output, prediction, answer, completion), found the fields ["id", "question", "response (null)", "answer"]"#
    );
    assert_eq!(why(&records[2]).1, r#"expected the response in "response", as on line 1, found it in "answer""#);
    // What is carried of them is what is carried of the others.
    for record in &records {
        assert_eq!(serde_json::to_string(record.extra()).unwrap(), r#"{"answer":"gold"}"#);
        assert_eq!(record.unread().map(|_| record.names()).unwrap_or_default(), [""; 0]);
    }
    let chosen = dataset(text, &with_columns("response=response|answer")).unwrap();
    assert_eq!(chosen.iter().map(|r| graded(r).1).collect::<Vec<_>>(), ["r", "gold", "gold"]);
    let strict = dataset(text, &with_columns("response=response")).unwrap();
    assert_eq!(strict.iter().filter(|record| record.unread().is_some()).count(), 2);
    // The column is the one that most rows have, wherever a row stands.
    let odd = "{\"id\":1,\"question\":\"q\",\"output\":\"other\"}\n{\"id\":2,\"question\":\"q\",\"answer\":\"r\"}\n\
               {\"id\":3,\"question\":\"q\",\"answer\":\"r\"}\n";
    let records = read(odd);
    assert!(records[0].unread().is_some() && records[1..].iter().all(|record| graded(record).1 == "r"));
}

#[test]
fn chosen_columns_replace_the_table() {
    let row = r#"{"key":"a","frage":"q","antwort":"r","gold_score":4,"response":"other"}"#;
    let options = with_columns("id=key,instruction=frage,response=antwort,human=gold_score");
    let records = dataset(row, &options).unwrap();
    assert_eq!(graded(&records[0]), ("q", "r", Some(4.0)));
    assert_eq!(records[0].extra().text("response"), Some("\"other\""));
    // The canonical name is the field, not the column of that name.
    assert_eq!(records[0].field("response").as_deref(), Some("r"));
    assert_eq!(records[0].field("antwort").as_deref(), Some("r"));
    // A column chosen for one field is not another's alias.
    let records =
        dataset(r#"{"id":1,"question":"q","answer":"gold","completion":"r"}"#, &with_columns("reference=answer"));
    assert_eq!(graded(&records.unwrap()[0]).1, "r");
    // Another name for the prompt is that of a prompt that is an instruction.
    let records = dataset(r#"{"id":1,"text":"q","completion":"r"}"#, &with_columns("prompt=text")).unwrap();
    assert_eq!(graded(&records[0]), ("q", "r", None));
    // No column at all.
    let records = dataset(r#"{"id":1,"prompt":"q","human":"tie"}"#, &with_columns("human=")).unwrap();
    assert_eq!((records[0].human(), records[0].extra().text("human")), (None, None));
}

#[test]
fn choices_of_columns_are_checked() {
    let error = |text: &str| text.parse::<Columns>().unwrap_err();
    assert!(matches!(error("respnse=x"), Error::Unknown { what: "field", .. }));
    assert!(error("respnse=x").to_string().contains("id, prompt, messages, instruction, response"));
    for text in ["response", "response=a|", "response=|", "=x,"] {
        let found = error(text);
        assert!(matches!(found, Error::Form { .. } | Error::Unknown { .. }), "{text}: {found}");
    }
    for text in ["response=a,response=b", "response=a,reference=a"] {
        assert!(matches!(error(text), Error::ColumnsTwice { .. }), "{text}");
    }
    "instruction=prompt,prompt=prompt".parse::<Columns>().unwrap();
    for text in ["", "instruction=prompt,response=completion", "response=a|b,human="] {
        assert_eq!(text.parse::<Columns>().unwrap().to_string(), text);
    }
    assert_eq!("".parse::<Columns>().unwrap(), Columns::default());
}

#[test]
fn null_columns_are_absent() {
    let all =
        |values: &str| format!(r#"{{"id":"a",{values},"rubric":null,"reference":null,"human":null,"split":null}}"#);
    let records =
        read(&all(r#""prompt":null,"messages":[{"role":"user","content":"u"}],"instruction":null,"response":null"#));
    let Record::Prompt(record) = &records[0] else { panic!("{records:?}") };
    assert!(matches!(record.input, PromptInput::Messages(_)));
    let kept: Vec<_> = record.extra.iter().map(|(name, _)| name).collect();
    assert_eq!(kept, ["instruction", "response", "rubric", "reference", "split"], "of its own fields, no null is kept");

    let records = read(&all(r#""prompt":null,"messages":null,"instruction":"i","response":"r""#));
    assert_eq!(graded(&records[0]), ("i", "r", None));
    assert_eq!(records[0].field("rubric"), None);
    let both = error(r#"{"id":1,"prompt":"p","messages":[]}"#);
    assert!(matches!(both, Error::BothFields { .. }));
}

#[test]
fn raters_follow_one_rule_in_every_kind() {
    for (human, expected) in [
        ("3", vec![Some(3.0)]),
        ("[3,null,4]", vec![Some(3.0), None, Some(4.0)]),
        ("[null,3]", vec![None, Some(3.0)]),
        ("[null,null]", vec![]),
        ("[]", vec![]),
        ("null", vec![]),
    ] {
        for row in [
            format!(r#"{{"id":1,"prompt":"p","human":{human}}}"#),
            format!(r#"{{"id":1,"instruction":"i","response":"r","scores":{human}}}"#),
            format!(r#"{{"user_prompt":"p","score":{human}}}"#),
        ] {
            let records = read(&row);
            assert_eq!(*records[0].raters(), *expected, "{row}");
            let given: Vec<f64> = expected.iter().flatten().copied().collect();
            let mean = (!given.is_empty()).then(|| given.iter().sum::<f64>() / given.len() as f64);
            assert_eq!(records[0].human(), mean, "{row}");
        }
    }
    for (row, column) in [
        (r#"{"id":1,"prompt":"p","human":"tie"}"#, "human"),
        (r#"{"id":1,"instruction":"i","response":"r","scores":"tie"}"#, "scores"),
        (r#"{"user_prompt":"p","score":"tie"}"#, "score"),
    ] {
        let records = read(row);
        let expected =
            format!(r#"expected "{column}" to be a number, or a list of numbers and nulls, found string "tie""#);
        assert_eq!((records[0].human(), records[0].no_grade()), (None, Some(&*expected)), "{row}");
    }
}

#[test]
fn templates_show_numbers_and_booleans_as_they_are_written() {
    let records = read(
        r#"{"id":1,"question":2024,"answer":-1.50,"year":1e3,"seen":true,"who":"Ann","empty":"","gone":null,"list":[1],"map":{}}"#,
    );
    let record = &records[0];
    for (name, text) in [
        ("instruction", Some("2024")),
        ("question", Some("2024")),
        ("response", Some("-1.50")),
        ("year", Some("1e3")),
        ("seen", Some("true")),
        ("who", Some("Ann")),
        ("empty", Some("")),
        ("gone", None),
        ("list", None),
        ("map", None),
        ("absent", None),
    ] {
        assert_eq!(record.field(name).as_deref(), text, "{name}");
    }
    let names = ["instruction", "response", "question", "answer", "year", "seen", "who", "empty"];
    assert_eq!(record.names(), names, "what has no text is not offered");

    let template = PromptTemplate::new(Prompt::user("{question} -> {response} ({year})")).unwrap();
    assert_eq!(template.fill(record).unwrap(), Prompt::user("2024 -> -1.50 (1e3)"));
}

#[test]
fn rows_without_ids_are_numbered_if_wanted() {
    let text = "{\"prompt\":\"p\"}\n{\"id\":null,\"prompt\":\"p\"}\n{\"id\":\"c\",\"prompt\":\"p\"}\n";
    let missing = error(text).to_string();
    assert!(
        missing.contains(r#"line 1: no field for id (looked for id, idx), found the fields ["prompt"]"#),
        "{missing}"
    );
    let options = DatasetOptions { ids: Ids::RowNumber, ..DatasetOptions::default() };
    let ids: Vec<_> = dataset(text, &options).unwrap().iter().map(|r| r.id().clone()).collect();
    assert_eq!(ids, [ItemId::from(0_u64), ItemId::from(1_u64), ItemId::from("c")]);
    let ignored = dataset("{\"id\":1,\"prompt\":\"p\"}\n{\"id\":1,\"prompt\":\"p\"}\n", &with_columns("id=")).unwrap();
    assert_eq!(ignored.iter().map(|r| r.id().clone()).collect::<Vec<_>>(), [ItemId::from(0_u64), ItemId::from(1_u64)]);
    assert_eq!(ignored[0].extra().text("id"), None, "an output has an id of its own");
    let taken = dataset("{\"id\":1,\"prompt\":\"p\"}\n{\"prompt\":\"p\"}\n", &options).unwrap_err();
    assert!(matches!(taken, Error::DuplicateId { first_line: 1, .. }), "{taken}");
}

#[test]
fn fractional_ids_come_with_a_cure() {
    for id in ["1002.0", "-1.5", "1e3"] {
        let found = error(&format!("{{\"id\":{id},\"prompt\":\"p\"}}"));
        assert!(matches!(&found, Error::FractionalId { found, .. } if found == id), "{found}");
        assert!(found.to_string().contains("as integers or as strings"), "{found}");
    }
    // https://github.com/huggingface/datasets/issues/8365
    for id in ["18446744073709551616", "-9223372036854775809"] {
        let found = error(&format!("{{\"id\":{id},\"prompt\":\"p\"}}"));
        assert!(matches!(&found, Error::IdTooLarge { found, .. } if found == id), "{found}");
        assert!(
            found.to_string().ends_with("is too large for a whole number (64 bits); write it as a string"),
            "{found}"
        );
    }
}

#[test]
fn tables_by_columns_are_recognised() {
    for text in [
        r#"{"id":{"0":1,"1":2},"instruction":{"0":"i","1":"j"},"response":{"0":"r","1":"s"}}"#,
        r#"{"frage":{"0":1},"antwort":{"0":"i"}}"#,
        r#"{"columns":["id","prompt"],"index":[0],"data":[[1,"p"]]}"#,
    ] {
        let found = error(text);
        assert!(found.to_string().contains("orient=\"records\", lines=True"), "{found}");
    }
    let messages = error(r#"{"messages":{"role":"user","content":"u"}}"#);
    assert!(!messages.to_string().contains("by columns"), "{messages}");
}

/// A made-up row of the form of Prometheus' published MT-bench evaluation.
#[test]
fn published_evaluations_load() {
    let text = r#"[{"idx": 0, "response_source": "m", "category": "writing", "instruction": "Grade this. ### Response: hello", "gpt4_score": [4, 5, 4], "gpt4_feedback": ["f"]},
                   {"idx": 1, "response_source": "m", "category": "writing", "instruction": "Grade that. ### Response: bye", "gpt4_score": [2, 1, 2], "gpt4_feedback": ["f"]}]"#;
    let records = dataset(text, &with_columns("prompt=instruction,human=gpt4_score")).unwrap();
    let Record::Prompt(first) = &records[0] else { panic!("{records:?}") };
    assert_eq!(first.input, PromptInput::Text("Grade this. ### Response: hello".into()));
    assert_eq!((first.scores.as_slice(), first.id.clone()), (&[4.0, 5.0, 4.0].map(Some)[..], ItemId::from(0_u64)));
    assert_eq!(first.field("category").as_deref(), Some("writing"));
    assert_eq!(
        serde_json::to_string(&records[1].clone().into_extra()).unwrap(),
        r#"{"response_source":"m","category":"writing","gpt4_feedback":["f"]}"#
    );
}

#[test]
fn grades_in_columns_that_are_not_read_are_noticed() {
    let seen = |text: &str| {
        let mut humans = HumanScores::default();
        read(text).iter().for_each(|record| humans.see(record));
        humans
    };
    let rows = "{\"id\":1,\"prompt\":\"p\",\"Human_Score\":null,\"label\":\"good\",\"n\":3,\"rating\":[1,null]}\n\
                {\"id\":2,\"prompt\":\"p\",\"Human_Score\":4,\"label\":2,\"n\":3,\"grade\":null}\n";
    let humans = seen(rows);
    assert_eq!(humans.candidates().collect::<Vec<_>>(), ["Human_Score", "rating"]);
    assert_eq!((humans.rows(), humans.graded()), (2, 0));
    assert!(humans.note().unwrap().ends_with("\"Human_Score\" looks like one"));
    let humans = seen("{\"id\":1,\"prompt\":\"p\",\"human\":4,\"rating\":5}\n");
    assert_eq!((humans.note(), humans.to_string()), (None, "1 of the 1 rows have a human score".to_owned()));
    assert_eq!(seen("{\"id\":1,\"prompt\":\"p\"}\n").note(), None);
}

proptest! {
    #[test]
    fn any_values_give_records_or_errors(
        values in prop::collection::vec(prop::sample::select(vec!["null", "1", "-2.50", "true", "\"t\"", "\"\\ud800\"", "[]", "[null,3]", "[\"x\"]", "{}", "{\"0\":1}"]), 8),
        format in prop::option::of(prop::sample::select(DatasetFormat::ALL.to_vec())),
        numbered: bool,
    ) {
        let names = ["id", "prompt", "messages", "question", "response", "answer", "human", "score"];
        let fields: Vec<String> = names.iter().zip(&values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let ids = if numbered { Ids::RowNumber } else { Ids::Required };
        let options = DatasetOptions { format, ids, ..DatasetOptions::default() };
        match dataset(&format!("{{{}}}", fields.join(",")), &options) {
            // Whatever is not a field of the record is carried along unchanged.
            Ok(records) => for (name, json) in records[0].extra().iter() {
                let at = names.iter().position(|known| *known == name).unwrap();
                prop_assert_eq!(json, values[at]);
            },
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn what_an_instruction_is_about_is_part_of_what_is_asked() {
    let shown = |record: &Record, text: &str| {
        let template = PromptTemplate::new(Prompt::Raw(text.to_owned())).unwrap();
        match template.fill(record).unwrap() {
            Prompt::Raw(text) => text,
            other => panic!("{other:?}"),
        }
    };
    let answers = [
        r#""output":"12""#,
        r#""response_a":"12","response_b":"13""#,
        r#""responses":["12","13"]"#,
        r#""chosen":"12","rejected":"13""#,
    ];
    for answer in answers {
        let row = |input: &str| format!(r#"{{"id":1,"instruction":"Add.","input":{input},{answer}}}"#);
        let text = row(r#""7 + 5""#);
        let record = &read(&text)[0];
        assert_eq!(shown(record, "{instruction}"), "Add.\n\n7 + 5", "{text}");
        assert_eq!(shown(record, "{instruction} {input}"), "Add. 7 + 5", "{text}: shown once");
        assert_eq!(record.extra().text("input"), Some(r#""7 + 5""#), "{text}: it is carried as it is");
        for none in [r#""""#, "null", r#"["7 + 5"]"#] {
            assert_eq!(shown(&read(&row(none))[0], "{instruction}"), "Add.", "{none}");
        }
        // A column that is chosen, for the instruction or for something else, stands as it is.
        for columns in ["instruction=instruction", "rubric=input"] {
            let records = dataset(&text, &with_columns(columns)).unwrap();
            assert_eq!(shown(&records[0], "{instruction}"), "Add.", "{columns}");
        }
    }
    let other = &read(r#"{"id":1,"question":"Add.","input":"7 + 5","output":"12"}"#)[0];
    assert_eq!(shown(other, "{instruction}"), "Add.");
    let Record::Graded(graded) = &read(r#"{"id":1,"instruction":"Add.","input":"7 + 5","output":"12"}"#)[0] else {
        panic!("graded")
    };
    assert_eq!(
        (&*graded.instruction, &*graded.asked(), graded.input().as_deref()),
        ("Add.", "Add.\n\n7 + 5", Some("7 + 5"))
    );
}

#[test]
fn an_input_that_a_choice_of_columns_leaves_out_is_noted() {
    let (_folder, path) = place("in.jsonl");
    let rows = r#"{"id":1,"instruction":"Add.","input":"7 + 5","output":"12"}"#;
    fs::write(&path, rows).unwrap();
    for (columns, notes) in
        [("instruction=instruction", 1), ("response=output", 0), ("instruction=instruction,rubric=input", 0)]
    {
        let input = Input::open(&path).unwrap();
        Dataset::open(&input, &with_columns(columns)).unwrap();
        let found = input.notes();
        assert_eq!(found.len(), notes, "{columns}: {found:?}");
        assert!(found.iter().all(|note| note.contains("\"input\" is not shown with the instruction")), "{found:?}");
    }
}
