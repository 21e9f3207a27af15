//! Data sets of every kind.

use std::fs;

use judge_core::{Fields, ItemId, Message, Prompt, PromptTemplate, Reason, Scale};
use judge_data::{Dataset, DatasetFormat, DatasetOptions, Error, Field, PromptInput, Record, check_templates};

use crate::columns::with_columns;
use crate::files::place;

fn dataset(text: &str, options: &DatasetOptions) -> Result<(DatasetFormat, Vec<Record>), Error> {
    let (_folder, path) = place("in.json");
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
fn conversations_of_sharegpt_are_messages() {
    let (_folder, path) = place("rows.jsonl");
    let rows = concat!(
        r#"{"id": 1, "conversations": [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}"#,
        "\n",
        r#"{"id": 2, "conversations": [{"role": "user", "content": "q"}, {"from": "tool", "value": "t", "weight": 0}]}"#,
        "\n",
        r#"{"id": 3, "conversations": [{"from": "human"}]}"#,
        "\n"
    );
    std::fs::write(&path, rows).unwrap();
    let mut records = Dataset::open(&path, &DatasetOptions::default()).unwrap();
    let mut next = || match records.next().unwrap() {
        Ok(Record::Prompt(record)) => Ok(record),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    };
    let first = next().unwrap();
    let names = ["instruction", "response", "conversation"].map(|name| first.field(name).unwrap().into_owned());
    assert_eq!(names, ["q", "a", "system: s"]);
    let PromptInput::Messages(messages) = next().unwrap().input else { panic!("messages") };
    assert_eq!(messages.iter().map(|m| m.role.as_str()).collect::<Vec<_>>(), ["user", "tool"]);
    let Record::Unread(odd) = records.next().unwrap().unwrap() else { panic!("a turn without a text") };
    assert_eq!(odd.why.detail, "turn 1 of \"conversations\": expected value to be text, found none");
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
    assert!(id.to_string().ends_with("line 4: the id \"a\" appears twice, first on line 1"), "{id}");
    let both = error("{\"id\":1,\"prompt\":\"\",\"messages\":[]}");
    assert!(matches!(both, Error::BothFields { first: "prompt", second: "messages", .. }));
    let no_id = error("{\"prompt\":\"\"}");
    assert!(matches!(no_id, Error::MissingField { field: Some(Field::Id), .. }));
    for (text, wrong) in [
        ("{\"id\":true,\"prompt\":\"\"}", Field::Id),
        ("{\"id\":1,\"prompt\":[5]}", Field::Prompt),
        ("{\"id\":1,\"messages\":{}}", Field::Messages),
    ] {
        let found = error(text);
        assert!(matches!(found, Error::WrongType { field, .. } if field == Some(wrong)), "{text}: {found}");
    }
    let turn = error("{\"id\":1,\"messages\":[{\"role\":\"user\"}]}");
    assert!(matches!(turn, Error::Turn { turn: 1, ref place, .. } if place.line == 1), "{turn}");
    assert!(matches!(error("{\"id\":null,\"prompt\":\"\"}"), Error::MissingField { field: Some(Field::Id), .. }));
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
}

#[test]
fn lager_records_keep_their_id_or_are_numbered_from_0() {
    let (format, records) = detected(
        "{\"user_prompt\":\"d\",\"user_prompt_feedback\":\"f\",\"score\":[1,2],\"id\":\"own\"}\n{\"user_prompt\":\"e\",\"score\":3}\n",
    );
    assert_eq!(format, DatasetFormat::Lager);
    assert_eq!(
        records.iter().map(|r| (r.id().clone(), r.human())).collect::<Vec<_>>(),
        [(ItemId::from("own"), Some(1.5)), (ItemId::from(1_u64), Some(3.0))]
    );
    let Record::Lager(first) = &records[0] else { panic!("{:?}", records[0]) };
    assert_eq!((first.direct.as_str(), first.reasoning.as_deref()), ("d", Some("f")));
    assert!(first.extra.is_empty());
    let names = ["user_prompt", "user_prompt_feedback", "prompt"];
    assert_eq!((first.names(), first.field("prompt").as_deref()), (names.map(str::to_owned).to_vec(), Some("d")));
    for ungraded in ["{\"user_prompt\":\"d\"}", "{\"user_prompt\":\"d\",\"score\":[null]}"] {
        assert_eq!(detected(ungraded).1[0].human(), None, "{ungraded}");
    }
    let options = with_columns("human=second");
    let (_, records) = dataset("{\"user_prompt\":\"d\",\"score\":1,\"second\":[null,5]}", &options).unwrap();
    assert_eq!((records[0].human(), records[0].extra().text("score")), (Some(5.0), Some("1")));
}

#[test]
fn emotion_scores_are_grades_as_elsewhere() {
    let item = |score: &str| format!(r#"[{{"dialogue":"d","human":"Ann","emotion":"Joy","emotion_score":{score}}}]"#);
    for (score, expected) in [("\"6\"", 6.0), ("6", 6.0), ("\" 7 \"", 7.0), ("6.5", 6.5), ("[4,5,null]", 4.5)] {
        let (format, records) = detected(&item(score));
        assert_eq!((format, records[0].human()), (DatasetFormat::Emotion, Some(expected)));
        assert_eq!((records[0].no_grade(), records[0].extra().len()), (None, 0), "{score}");
    }
    // An odd grade costs the grade, and is said; none is none. The character stays who it is.
    for score in ["\"six\"", "\"\"", "{}"] {
        let (_, records) = detected(&item(score));
        assert_eq!((records[0].human(), records[0].unread()), (None, None), "{score}");
        assert!(records[0].no_grade().is_some_and(|why| why.contains("emotion_score")), "{score}: {records:?}");
        assert_eq!(records[0].field("human").as_deref(), Some("Ann"));
    }
    assert!(matches!(error(&item("null")), Error::UnknownFormat { .. }));
    let options = DatasetOptions { format: Some(DatasetFormat::Emotion), ..DatasetOptions::default() };
    let (_, records) = dataset(&item("null"), &options).unwrap();
    assert_eq!((records[0].human(), records[0].no_grade(), records[0].extra().len()), (None, None, 0));
}

/// Rows of LAGER's files have no ids and go by their numbers. Those that somebody gave ids keep them.
#[test]
fn rows_of_fixed_names_may_have_ids() {
    let item = r#"{"id":"x0","n":7,"dialogue":"d","human":"Ann","emotion":"Joy","emotion_score":3}"#;
    let prompt = r#"{"id":"x0","n":7,"user_prompt":"d","score":3}"#;
    for row in [item, prompt] {
        for (columns, id, kept) in [("", "\"x0\"", 1), ("id=n", "7", 1), ("id=", "0", 1)] {
            let (_, records) = dataset(row, &with_columns(columns)).unwrap();
            assert_eq!((records[0].id().to_string().as_str(), records[0].extra().len()), (id, kept), "{row} {columns}");
            assert_eq!(records[0].human(), Some(3.0));
        }
    }
}

/// The kinds that the fields of a row fit: `a,b` where several do.
fn kind(row: &str) -> String {
    match dataset(row, &DatasetOptions::default()) {
        Ok((format, _)) => format.to_string(),
        Err(Error::UnknownFormat { candidates, .. }) => candidates.join(","),
        Err(other) => panic!("{row}: {other}"),
    }
}

#[test]
fn the_kind_is_told_or_given_never_guessed() {
    for (row, expected) in [
        (r#"{"id":1,"prompt":"p"}"#, "prompts"),
        (r#"{"id":1,"prompt":"p","answer":null,"messages":null}"#, "prompts"),
        (r#"{"id":1,"prompt":null,"messages":[]}"#, "prompts"),
        (r#"{"id":1,"prompt":"p","completion":"r"}"#, "graded"),
        (r#"{"id":1,"instruction":"i","response":"r","prompt":"p"}"#, "graded"),
        (r#"{"id":1,"instruction":"i","response":"r","prompt":null}"#, "graded"),
        (r#"{"idx":1,"question":"i","prediction":7}"#, "graded"),
        (r#"{"id":1,"instruction":"i","response":"r","messages":[]}"#, "graded,prompts"),
        (r#"{"id":1,"user_prompt":"u","score":1,"question":"q","answer":"a"}"#, "lager"),
        (r#"{"id":1,"user_prompt":"u","prompt":"p"}"#, "lager,prompts"),
        (r#"{"id":1,"user_prompt":"u","instruction":"i","response":"r"}"#, "lager,graded"),
        (r#"{"id":1,"question":"i"}"#, ""),
    ] {
        assert_eq!(kind(row), expected, "{row}");
    }
    let text = r#"{"id":1,"instruction":"i","response":"r","prompt":"p"}"#;
    for format in [DatasetFormat::Prompts, DatasetFormat::Graded] {
        let options = DatasetOptions { format: Some(format), ..DatasetOptions::default() };
        assert_eq!(dataset(text, &options).unwrap().0, format);
    }
    let unmapped = error(r#"{"id":1,"frage":"q","antwort":"a","note":null}"#).to_string();
    assert!(unmapped.contains(r#"["id", "frage", "antwort", "note (null)"] fit no known kind"#), "{unmapped}");
    assert!(matches!(error(" \n"), Error::NoRows { .. }));
    for format in DatasetFormat::ALL {
        assert_eq!(DatasetFormat::from_name(format.as_str()), Some(format));
    }
}

#[test]
fn a_file_does_not_change_its_kind() {
    let prompts = |rows: usize| (0..rows).map(|id| format!("{{\"id\":{id},\"prompt\":\"p\"}}\n")).collect::<String>();
    let graded = "{\"id\":\"g\",\"prompt\":\"p\",\"output\":\"r\"}\n";
    let why = |record: &Record| record.unread().map(|why| why.detail.clone());
    // A row that begins a file may lack its response.
    let (format, records) = detected(&format!("{}{graded}", prompts(1)));
    assert_eq!(format, DatasetFormat::Graded);
    assert!(why(&records[0]).unwrap().starts_with("no response") && why(&records[1]).is_none());
    // Behind its head it is a file of prompts, and a row with a response is none of them.
    let text = format!("{}{graded}", prompts(Dataset::HEAD));
    let (format, records) = detected(&text);
    assert_eq!(
        (format, records.iter().filter(|record| record.unread().is_none()).count()),
        (DatasetFormat::Prompts, 100)
    );
    assert_eq!(
        why(&records[100]).unwrap(),
        "expected one of the prompts that the file began with, found the fields of the kind graded"
    );
    let options = DatasetOptions { format: Some(DatasetFormat::Prompts), ..DatasetOptions::default() };
    assert!(dataset(&text, &options).unwrap().1.iter().all(|record| record.unread().is_none()));
}

/// One odd row of each kind costs itself alone, wherever it stands; what is wrong with the file, or with all of its rows, is an error.
#[test]
fn a_row_that_cannot_be_read_costs_itself() {
    let good = r#"{"id":"g","instruction":"i","response":"r","human":3,"topic":"t"}"#;
    for (odd, detail) in [
        (r#""instruction":"i","response":null"#, "no response (response,"),
        (r#""instruction":"i""#, "no response (response,"),
        (r#""response":"r""#, "no instruction (instruction,"),
        (
            r#""instruction":"i","response":["r"]"#,
            "expected \"response\" to be text, a number or a boolean, found list [\"r\"]",
        ),
        (r#""instruction":"i","response":"\ud83d""#, "found a lone surrogate in string \"\\ud83d\""),
    ] {
        let odd = format!(r#"{{"id":"o",{odd},"topic":"t"}}"#);
        for (at, text) in [format!("{odd}\n{good}\n"), format!("{good}\n{odd}\n")].iter().enumerate() {
            let (format, records) = detected(text);
            assert_eq!((format, records.len()), (DatasetFormat::Graded, 2), "{text}");
            let Record::Unread(unread) = &records[at] else { panic!("{text}: {:?}", records[at]) };
            assert_eq!((&unread.id, unread.why.reason), (&ItemId::from("o"), Reason::Missing));
            assert!(unread.why.detail.contains(detail), "{}", unread.why.detail);
            assert_eq!(records[at].extra().text("topic"), Some("\"t\""));
            assert!(records[1 - at].unread().is_none());
        }
        let alone = error(&format!("{odd}\n{}\n", odd.replace("\"o\"", "\"p\"")));
        assert!(
            matches!(&alone, Error::NoRowFits { rows: 2, .. } | Error::UnknownFormat { .. })
                && alone.to_string().contains("line 1"),
            "{alone}"
        );
    }
    // People's scores stay where they can be read.
    let (_, records) = detected(&format!("{{\"id\":1,\"instruction\":\"i\",\"response\":null,\"human\":4}}\n{good}\n"));
    assert_eq!((records[0].human(), records[0].extra().is_empty()), (Some(4.0), true));
}

// https://github.com/comet-ml/opik/issues/8398, https://github.com/comet-ml/opik/pull/7758
#[test]
fn a_grade_of_another_form_costs_the_grade() {
    let rows = |humans: &[&str]| {
        let row =
            |(id, human): (usize, &&str)| format!(r#"{{"id":{id},"instruction":"i","response":"r","human":{human}}}"#);
        let (format, records) = detected(&humans.iter().enumerate().map(row).collect::<Vec<_>>().join("\n"));
        assert_eq!(format, DatasetFormat::Graded);
        assert!(records.iter().all(|record| record.unread().is_none() && record.extra().is_empty()), "{records:?}");
        records
    };
    let humans: Vec<Option<f64>> = rows(&["4", "\"4\"", "\" 3.5\"", "true", "false", "[\"1\", 3, null]"])
        .iter()
        .map(|record| record.no_grade().map_or(record.human(), |why| panic!("{why}")))
        .collect();
    assert_eq!(humans, [4.0, 4.0, 3.5, 1.0, 0.0, 2.0].map(Some));
    for (odd, found) in
        [("\"N/A\"", "string \"N/A\""), ("\"\"", "string \"\""), ("{}", "object {}"), ("1e999", "number 1e999")]
    {
        let records = rows(&[odd, odd]);
        assert_eq!(records[0].human(), None);
        let expected = format!("expected \"human\" to be a number, or a list of numbers and nulls, found {found}");
        assert_eq!(records[0].no_grade(), Some(&*expected));
    }
    let several = &rows(&["[4, \"N/A\", 3]"])[0];
    assert_eq!((several.raters().as_ref(), several.no_grade().is_some()), (&[Some(4.0), None, Some(3.0)][..], true));
    // Neither does a grade whose column cannot be told, and neither of the two is carried.
    let (_, records) = detected("{\"id\":1,\"instruction\":\"i\",\"response\":\"r\",\"scores\":1,\"score\":2,\"t\":3}");
    assert_eq!((records[0].human(), records[0].extra().len()), (None, 1));
    assert_eq!(records[0].no_grade(), Some("\"scores\" and \"score\" may both be the human"));
}

// https://github.com/pandas-dev/pandas/issues/57224, https://github.com/pandas-dev/pandas/issues/58306
#[test]
fn what_is_not_to_be_read_is_not_carried_where_an_output_has_a_field_of_its_name() {
    let rows = "{\"id\":1.0,\"instruction\":\"i\",\"response\":\"r\",\"idx\":7,\"t\":1}\n{\"id\":1.0,\"instruction\":\"i\",\"response\":\"r\",\"idx\":8,\"t\":1}";
    let (_, records) = dataset(rows, &with_columns("id=")).unwrap();
    assert_eq!(records.iter().map(|record| record.id().clone()).collect::<Vec<_>>(), [0_u64, 1].map(ItemId::from));
    let names: Vec<&str> = records[0].extra().iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["idx", "t"]);
    let graded = "{\"id\":1,\"instruction\":\"i\",\"response\":\"r\",\"human\":\"x\",\"score\":1}";
    let (_, records) = dataset(graded, &with_columns("human=")).unwrap();
    assert!(records[0].extra().is_empty() && records[0].human().is_none() && records[0].no_grade().is_none());
}

#[test]
fn a_template_s_field_that_no_row_has_is_said_of_the_file() {
    let (_folder, path) = place("in.jsonl");
    let rows = r#"{"id":1,"instruction":"i","response":"r"}
{"id":2,"instruction":"i","response":"r","topic":"t"}
"#;
    std::fs::write(&path, rows).unwrap();
    let check = |text: &str| {
        let template = PromptTemplate::new(Prompt::user(text)).unwrap();
        check_templates(Dataset::open(&path, &DatasetOptions::default()).unwrap(), [&template])
    };
    check("{instruction} {topic}").unwrap();
    let said = check("{instruction} {rubrik}").unwrap_err().to_string();
    assert!(
        said.ends_with(
            r#"none of the first 2 rows has the field "rubrik" that the template uses; they have ["instruction", "response", "topic"]"#
        ),
        "{said}"
    );
}

#[test]
fn a_list_in_a_template_s_field_is_said_to_be_one() {
    let (_folder, path) = place("in.jsonl");
    std::fs::write(&path, r#"{"id":1,"instruction":"i","response":"r","contexts":["a","b"]}"#).unwrap();
    let template = PromptTemplate::new(Prompt::user("{instruction} {contexts}")).unwrap();
    let records = Dataset::open(&path, &DatasetOptions::default()).unwrap();
    let said = check_templates(records, [&template]).unwrap_err().to_string();
    let expected = r#"the template uses the field "contexts", expected text, a number or a boolean, found list ["a","b"]; make one text of it, e.g. of a list: jq -c '.contexts |= join("\n\n")'"#;
    assert!(said.ends_with(expected), "{said}");
}

#[test]
fn a_column_that_no_row_has_is_named() {
    let row = |id: usize, more: &str| format!("{{\"id\":{id},\"instruction\":\"i\",\"response\":\"r\"{more}}}\n");
    let said = |text: &str, chosen: &str| match dataset(text, &with_columns(chosen)) {
        Ok((_, records)) => panic!("{records:?}"),
        Err(error) => error.to_string(),
    };
    let few = row(1, "") + &row(2, "");
    for chosen in ["instruction=frage", "reference=gold|golden", "human=grade"] {
        let said = said(&few, chosen);
        let named = chosen.split(['=', '|']).skip(1).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
        assert!(said.contains(&format!("no row has the column {named} that is named for the")), "{said}");
        assert!(
            said.ends_with("2 were read, and the first has the columns [\"id\", \"instruction\", \"response\"]"),
            "{said}"
        );
    }
    // Beyond the head as well, and a column that only a later row has is one.
    let many: String = (0..150).map(|id| row(id, "")).collect();
    assert!(said(&many, "human=grade").contains("150 were read"));
    let (_, records) = dataset(&(many + &row(150, ",\"grade\":4")), &with_columns("human=grade")).unwrap();
    assert_eq!((records.len(), records[150].human()), (151, Some(4.0)));
}

#[test]
fn rows_beyond_the_limit_are_not_looked_at() {
    let options = DatasetOptions { max_rows: Some(1), ..DatasetOptions::default() };
    let (_, records) = dataset("{\"id\":1,\"prompt\":\"p\"}\nnonsense\n", &options).unwrap();
    assert_eq!(records.len(), 1);
}

#[test]
fn pairs_are_detected_and_keep_every_raters_choice() {
    let (format, records) = detected(
        "{\"id\": 1, \"question\": \"q\", \"response_a\": \"a\", \"response_b\": 2, \"human\": \"A\", \"more\": 3}\n\
         {\"id\": 2, \"question\": \"q\", \"response_a\": \"a\", \"response_b\": \"b\", \"human\": [\"B\", null, \"tie\"], \"reference\": \"r\"}\n\
         {\"id\": 3, \"question\": \"q\", \"response_a\": \"a\", \"response_b\": \"b\", \"human\": null}",
    );
    assert_eq!(format, DatasetFormat::Pairs);
    let texts = |record: &Record| {
        ["instruction", "response_a", "response_b"].map(|name| record.field(name).unwrap().into_owned())
    };
    assert_eq!(texts(&records[0]), ["q", "a", "2"]);
    assert_eq!((records[0].raters().as_ref(), records[0].field("more").as_deref()), (&[Some(1.0)][..], Some("3")));
    assert_eq!((records[1].raters().as_ref(), records[1].human()), (&[Some(0.0), None, Some(0.5)][..], Some(0.25)));
    assert_eq!((records[1].field("reference").as_deref(), records[2].human()), (Some("r"), None));
    let (_, odd) = detected(
        "{\"id\": 1, \"instruction\": \"q\", \"response_a\": \"a\", \"response_b\": \"b\", \"human\": [4, \"A\"]}",
    );
    assert_eq!((odd[0].raters().as_ref(), odd[0].unread()), (&[None, Some(1.0)][..], None));
    let why = odd[0].no_grade().unwrap();
    assert!(why.contains("\"A\", \"B\" or \"tie\"") && why.ends_with("found number 4"), "{why}");
}

#[test]
fn lists_of_answers_are_detected_with_a_grade_for_each() {
    let (format, records) = detected(
        "{\"id\": 1, \"question\": \"q\", \"responses\": [\"a\", \"b\"], \"human\": [3, null], \"more\": 3}\n\
         {\"id\": 2, \"question\": \"q\", \"responses\": [\"a\"], \"human\": null}",
    );
    assert_eq!(format, DatasetFormat::Answers);
    let text = |name: &str| records[0].field(name).map(std::borrow::Cow::into_owned);
    assert_eq!(
        ["response_1", "response_2", "instruction", "more"].map(|name| text(name).unwrap()),
        ["a", "b", "q", "3"]
    );
    assert_eq!((text("response_3"), records[0].human()), (None, None));
    assert!(matches!(&records[0], Record::Answers(record) if record.grades == [Some(3.0), None]));
    assert!(matches!(&records[1], Record::Answers(record) if record.grades.is_empty() && record.extra.is_empty()));
    let (_, extra) =
        detected("{\"id\": 1, \"question\": \"q\", \"responses\": [\"a\"], \"response_2\": \"not one of them\"}");
    assert_eq!(extra[0].field("response_2"), None, "a column of such a name is no response");
    assert!(!extra[0].names().contains(&"response_2".to_owned()) && extra[0].extra().text("response_2").is_some());
    let row = |responses: &str, human: &str| {
        let text = format!("{{\"id\": 1, \"instruction\": \"q\", \"responses\": {responses}, \"human\": {human}}}");
        error(&text).to_string()
    };
    for responses in ["[]", "[1]", "\"a\"", "\"[]\"", "\"[1]\""] {
        let said = row(responses, "null");
        assert!(said.contains("a list of texts, at least one") && said.contains("line 1"), "{said}");
    }
    // A list that is written as a text, as a cell of a table has it.
    let (_, written) = detected("{\"id\": 1, \"question\": \"q\", \"responses\": \"[\\\"a\\\", \\\"b\\\"]\"}");
    assert!(matches!(&written[0], Record::Answers(record) if record.responses == ["a", "b"]), "{written:?}");
    for (human, grades, found) in [
        ("[1]", vec![], "found 1 of 2 responses"),
        ("3", vec![], "found 1 of 2 responses"),
        ("[\"4\", \"N/A\"]", vec![Some(4.0), None], "found string \"N/A\""),
        ("[true, null]", vec![Some(1.0), None], ""),
    ] {
        let text = format!("{{\"id\": 1, \"instruction\": \"q\", \"responses\": [\"a\", \"b\"], \"human\": {human}}}");
        let (_, records) = detected(&text);
        assert!(matches!(&records[0], Record::Answers(record) if record.grades == grades), "{records:?}");
        assert!(records[0].no_grade().unwrap_or_default().ends_with(found), "{:?}", records[0].no_grade());
    }
    let both = error("{\"instruction\": \"q\", \"response\": \"r\", \"responses\": [\"a\"]}").to_string();
    assert!(both.contains("answers") && both.contains("graded"), "{both}");
}

#[test]
fn a_conversations_last_answer_is_a_response_in_its_context() {
    let turn = |role: &str, text: &str| format!("{{\"role\": \"{role}\", \"content\": \"{text}\"}}");
    let turns = [turn("user", "q1"), turn("assistant", "a1"), turn("user", "q2"), turn("assistant", "a2")];
    let row = |turns: &[String]| format!("{{\"id\": 1, \"messages\": [{}]}}", turns.join(", "));
    let (_, records) = detected(&row(&turns));
    let field = |name: &str| records[0].field(name).map(std::borrow::Cow::into_owned);
    assert_eq!(field("conversation").as_deref(), Some("User: q1\n\nAssistant: a1"));
    assert_eq!((field("instruction").as_deref(), field("response").as_deref()), (Some("q2"), Some("a2")));
    let (_, open) = detected(&row(&turns[..3]));
    assert_eq!((open[0].field("response"), open[0].names()), (None, vec![]));
}
