//! Data sets of every kind.

use std::fs;
use std::path::Path;

use judge_core::{Fields, ItemId, Message, Prompt, PromptTemplate, Scale};
use judge_data::{Dataset, DatasetFormat, DatasetOptions, Error, LagerDataset, PromptInput, Record};

fn dataset(text: &str, options: &DatasetOptions) -> Result<(DatasetFormat, Vec<Record>), Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.json");
    fs::write(&path, text).unwrap();
    let dataset = Dataset::open(&path, options)?;
    Ok((dataset.format(), dataset.collect::<Result<_, _>>()?))
}

fn detected(text: &str) -> (DatasetFormat, Vec<Record>) {
    dataset(text, &DatasetOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn error(text: &str) -> Error {
    dataset(text, &DatasetOptions::default()).unwrap_err()
}

#[test]
fn prompts() {
    let (format, records) = detected(
        "{\"id\": 18446744073709551615, \"prompt\": \"p\", \"k\": 1.50}\n\
         {\"id\": \"1\", \"messages\": [{\"role\": \"system\", \"content\": \"s\", \"name\": \"n\"}, {\"role\": \"user\", \"content\": \"u\"}]}\n\
         {\"id\": 1, \"messages\": []}\n",
    );
    assert_eq!(format, DatasetFormat::Prompts);
    let prompts: Vec<_> = records
        .iter()
        .map(|record| match record {
            Record::Prompt(prompt) => prompt,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(serde_json::to_string(&prompts[0].id).unwrap(), "18446744073709551615");
    assert_eq!(prompts[0].extra.text("k"), Some("1.50"));
    assert_eq!(prompts[0].input.to_chat(), Prompt::user("p"));
    assert_eq!(prompts[0].input.to_raw(), Prompt::Raw("p".into()));
    assert_eq!(prompts[1].id, ItemId::from("1"));
    assert_eq!(prompts[1].input.to_chat(), Prompt::chat(vec![Message::new("system", "s"), Message::user("u")]));
    assert_eq!(prompts[1].input.to_raw(), Prompt::Raw("s\n\nu".into()));
    assert_eq!(prompts[2].input, PromptInput::Messages(vec![]));
    assert!(prompts[2].input.to_chat().is_empty());
}

#[test]
fn bad_prompts_are_located() {
    let id = error("{\"id\":\"a\",\"prompt\":\"\"}\n{\"id\":1,\"prompt\":\"\"}\n\n{\"id\":\"a\",\"prompt\":\"\"}\n");
    assert!(matches!(&id, Error::DuplicateId { place, first_line: 1, .. } if place.line == 4), "{id}");
    assert!(id.to_string().contains("the id \"a\" is already that of line 1"), "{id}");
    let both = error("{\"id\":1,\"prompt\":\"\",\"messages\":[]}");
    assert!(matches!(both, Error::BothFields { first: "prompt", second: "messages", .. }));
    let no_id = error("{\"prompt\":\"\"}");
    assert!(matches!(no_id, Error::MissingField { field: "id", .. }));
    let later = error("{\"id\":1,\"prompt\":\"\"}\n{\"id\":2}\n");
    assert!(matches!(later, Error::MissingField { field: "prompt", ref place, .. } if place.line == 2));
    for (text, wrong) in [
        ("{\"id\":1.0,\"prompt\":\"\"}", "id"),
        ("{\"id\":null,\"prompt\":\"\"}", "id"),
        ("{\"id\":1,\"prompt\":5}", "prompt"),
        ("{\"id\":1,\"messages\":{}}", "messages"),
        ("{\"id\":1,\"messages\":[{\"role\":\"user\"}]}", "messages"),
    ] {
        let found = error(text);
        assert!(matches!(found, Error::WrongType { field, .. } if field == wrong), "{text}: {found}");
    }
}

#[test]
fn graded_records() {
    let (format, records) = detected(
        r#"[{"id":1,"instruction":"i","response":"r","rubric":"c","scores":[3,4,4],"source":"web","n":7},
            {"id":2,"instruction":"i","response":"r","reference":null,"scores":4.5},
            {"id":3,"instruction":"i","response":"r"}]"#,
    );
    assert_eq!(format, DatasetFormat::Graded);
    assert_eq!(records.iter().map(Record::human).collect::<Vec<_>>(), [Some(11.0 / 3.0), Some(4.5), None]);
    let Record::Graded(first) = &records[0] else { panic!("{:?}", records[0]) };
    assert_eq!(first.names(), ["instruction", "response", "rubric", "source", "n"]);
    assert_eq!((first.field("source").as_deref(), first.field("reference")), (Some("web"), None));
    PromptTemplate::pointwise_direct(&Scale::integers(1, 5).unwrap()).fill(first).unwrap();
    for scores in ["[]", "\"4\"", "[4,\"4\"]", "{}", "1e999"] {
        let found = error(&format!(r#"{{"id":1,"instruction":"i","response":"r","scores":{scores}}}"#));
        assert!(matches!(found, Error::WrongType { field: "scores", .. }), "{scores}: {found}");
    }
}

#[test]
fn lager_records_are_numbered_from_0() {
    let (format, records) = detected(
        "{\"user_prompt\":\"d\",\"user_prompt_feedback\":\"f\",\"score\":[1,2],\"id\":\"own\"}\n{\"user_prompt\":\"e\",\"score\":3}\n",
    );
    assert_eq!(format, DatasetFormat::Lager);
    assert_eq!(
        records.iter().map(|r| (r.id().clone(), r.human())).collect::<Vec<_>>(),
        [(ItemId::from(0_u64), Some(1.5)), (ItemId::from(1_u64), Some(3.0))]
    );
    let Record::Lager(first) = &records[0] else { panic!("{:?}", records[0]) };
    assert_eq!((first.direct.as_str(), first.reasoning.as_deref()), ("d", Some("f")));
    assert_eq!(first.extra.text("id"), Some("\"own\""));
    assert!(matches!(error("{\"user_prompt\":\"d\"}"), Error::MissingField { field: "score", .. }));
}

#[test]
fn emotion_scores_are_numbers_or_text() {
    let item = |score: &str| format!(r#"[{{"dialogue":"d","human":"Ann","emotion":"Joy","emotion_score":{score}}}]"#);
    for (score, expected) in [("\"6\"", 6), ("6", 6), ("\" 7 \"", 7)] {
        let (format, records) = detected(&item(score));
        assert_eq!((format, records[0].human()), (DatasetFormat::Emotion, Some(f64::from(expected))));
    }
    for score in ["\"six\"", "\"\"", "6.5", "null", "[6]", "9223372036854775808"] {
        let found = error(&item(score));
        assert!(matches!(found, Error::WrongType { field: "emotion_score", .. }), "{score}: {found}");
    }
}

#[test]
fn the_kind_is_told_or_given_never_guessed() {
    let text = "{\"id\":1,\"prompt\":\"p\",\"instruction\":\"i\",\"response\":\"r\"}";
    let several = error(text);
    assert!(
        matches!(&several, Error::UnknownFormat { candidates, .. } if *candidates == ["prompts", "graded"]),
        "{several}"
    );
    for format in [DatasetFormat::Prompts, DatasetFormat::Graded] {
        let options = DatasetOptions { format: Some(format), ..DatasetOptions::default() };
        assert_eq!(dataset(text, &options).unwrap().0, format);
    }
    assert!(matches!(error("{\"id\":1}"), Error::UnknownFormat { ref candidates, .. } if candidates.is_empty()));
    assert!(matches!(error(" \n"), Error::NoRows { .. }));
    for format in DatasetFormat::ALL {
        assert_eq!(DatasetFormat::from_name(format.as_str()), Some(format));
    }
}

#[test]
fn rows_beyond_the_limit_are_not_looked_at() {
    let options = DatasetOptions { max_rows: Some(1), ..DatasetOptions::default() };
    let (_, records) = dataset("{\"id\":1,\"prompt\":\"p\"}\nnonsense\n", &options).unwrap();
    assert_eq!(records.len(), 1);
}

#[test]
fn lager_names_a_data_set_by_its_whole_path() {
    for (path, name, cap) in [
        ("data/main/flask.json", "flask", None),
        ("/home/x/valid_runs/helpsteer.json", "valid", None),
        ("data/main/HelpSteer.json", "helpsteer", Some(2001)),
        ("data/BiGGen-Bench-human-eval.json", "biggen", None),
        ("data/my.set.json", "my", None),
    ] {
        let dataset = LagerDataset::from_path(Path::new(path));
        assert_eq!((dataset.name(), dataset.row_cap()), (name, cap), "{path}");
    }
    let path = LagerDataset::Flask.result_path(Path::new("out"), Path::new("/models/Llama-8B"), true);
    assert_eq!(path, Path::new("out/flask/Llama-8B_with_feedback_logits.json"));
}
