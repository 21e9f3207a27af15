//! One odd field costs what it should: a grade that is none costs the grade, a column that is not used nothing, a name that no row has is said
//! before any work.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::decide::model;
use crate::newcomer::gzip;
use crate::program::{Desk, Said, embedded_model, fed, judge, ran, rows, write_rows};

const FILES: [&str; 4] = ["--input", "in.jsonl", "--output", "out.jsonl"];

/// Options that every run of a command has.
fn options(name: &str, args: &[&str]) -> Vec<String> {
    let model = (name == "score").then(|| ["--model".to_owned(), embedded_model().to_string_lossy().into_owned()]);
    FILES.iter().chain(args).map(|arg| (*arg).to_owned()).chain(model.into_iter().flatten()).collect()
}

/// Runs a command on `in.jsonl`: exit code, stdout and stderr.
fn ran_on_rows(folder: &Path, name: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let args = options(name, args);
    ran(name, folder, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A row of the embedded model's kind.
fn graded(id: usize, more: Value) -> Value {
    let mut row = json!({"id": id, "question": "de", "answer": "fi", "rubric": "Is it in order?"});
    row.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    row
}

/// Runs a command on rows: its output and what it says.
fn judged(folder: &Path, name: &str, input: &[Value], args: &[&str]) -> (Vec<Value>, String) {
    write_rows(folder.join("in.jsonl"), input);
    let (code, stdout, stderr) = ran_on_rows(folder, name, &[&["--overwrite"], args].concat());
    assert_eq!(code, Some(0), "{name} {args:?}: {stdout}{stderr}");
    (rows(folder.join("out.jsonl")), stdout + &stderr)
}

/// What a command says that fails before any work.
fn refused(folder: &Path, name: &str, input: &[Value], args: &[&str]) -> String {
    write_rows(folder.join("in.jsonl"), input);
    let (code, stdout, stderr) = ran_on_rows(folder, name, args);
    assert!(code.is_some_and(|code| code != 0), "{name} {args:?}: {stdout}{stderr}");
    assert!(!folder.join("out.jsonl").exists() && !folder.join("out.jsonl.partial").exists(), "{name}: {stderr}");
    stderr
}

// https://github.com/comet-ml/opik/issues/8398, https://github.com/comet-ml/opik/pull/7758
#[test]
fn a_human_grade_of_another_form_costs_the_grade() {
    let folder = &Desk::new();
    let humans = [json!("4"), json!("N/A"), json!(true), json!([3, "x"]), json!(2)];
    let input: Vec<Value> = humans.iter().enumerate().map(|(id, human)| graded(id, json!({"human": human}))).collect();
    let (found, said) = judged(folder, "score", &input, &[]);
    assert!(found.iter().all(|row| row["score"].is_number()), "{found:?}");
    let read: Vec<&Value> = found.iter().map(|row| &row["human"]).collect();
    assert_eq!(read, [&json!(4.0), &Value::Null, &json!(1.0), &json!([3.0, null]), &json!(2.0)]);
    let note = "note: in 2 of 5 rows what people gave is no grade and is left out; the first is 1: expected \"human\" to be a number, \
                or a list of numbers and nulls, found string \"N/A\"";
    assert_eq!(said.matches("is no grade").count(), 1, "{said}");
    assert!(said.contains(note), "{said}");
    // All of them, and none is wanted.
    let texts: Vec<Value> = (0..3).map(|id| graded(id, json!({"human": "good"}))).collect();
    let (found, said) = judged(folder, "score", &texts, &["--columns", "human="]);
    assert!(found.iter().all(|row| row["score"].is_number() && row["human"].is_null()), "{found:?}");
    assert!(!said.contains("no grade"), "{said}");
}

// https://github.com/comet-ml/opik/issues/8398, https://github.com/comet-ml/opik/pull/7758
#[test]
fn grades_are_read_alike_where_they_are_compared() {
    let folder = &Desk::new();
    let agree = |rows: &[Value]| {
        folder.write("in.jsonl", rows);
        ran("agree", folder, &["--input", "in.jsonl"])
    };
    let plain: Vec<Value> = (0..8).map(|i| json!({"id": i, "predicted": i % 5, "human": (i + 1) % 5})).collect();
    let texts: Vec<Value> =
        (0..8).map(|i| json!({"id": i, "predicted": i % 5, "human": ((i + 1) % 5).to_string()})).collect();
    let (code, expected, stderr) = agree(&plain);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(agree(&texts), (Some(0), expected, String::new()));
    let mut odd = texts.clone();
    odd.push(json!({"id": 8, "predicted": 1, "human": "N/A"}));
    odd.push(json!({"id": 9, "predicted": 1, "human": ["2", "?"]}));
    let (code, stdout, stderr) = agree(&odd);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("9 rows, 1 left out (1 no_grade)"), "{stdout}");
    assert!(stderr.contains("human is \"N/A\", expected a number or a list of numbers"), "{stderr}");
    assert!(stderr.contains("1 of 9 rows have a rater whose grade is none and is left out"), "{stderr}");
    // Labels stay labels, and a number among them is no grade.
    let mut labels: Vec<Value> = (0..4).map(|i| json!({"id": i, "predicted": "A", "human": "1"})).collect();
    assert_eq!(agree(&labels).0, Some(0));
    labels.push(json!({"id": 4, "predicted": "A", "human": 1}));
    let (code, stdout, stderr) = agree(&labels);
    assert!(code == Some(0) && stdout.contains("4 rows, 1 left out (1 no_grade)"), "{stdout}{stderr}");
    assert!(stderr.contains("line 5: human is 1, expected a label"), "{stderr}");
}

// https://github.com/pandas-dev/pandas/issues/57224, https://github.com/pandas-dev/pandas/issues/58306
#[test]
fn rows_are_numbered_though_they_have_ids() {
    let folder = &Desk::new();
    for id in [json!(7), json!(1.0)] {
        let input: Vec<Value> = (0..2).map(|_| graded(0, json!({"id": id, "topic": "t"}))).collect();
        let said = refused(folder, "score", &input, &[]);
        assert!(said.contains("--columns id="), "{said}");
        let (found, _) = judged(folder, "score", &input, &["--columns", "id="]);
        let ids: Vec<&Value> = found.iter().map(|row| &row["id"]).collect();
        assert_eq!(ids, [&json!(0), &json!(1)]);
        assert!(found.iter().all(|row| row["topic"] == "t" && row["score"].is_number()), "{found:?}");
        fs::remove_file(folder.join("out.jsonl")).expect("removed");
    }
}

#[test]
fn names_that_no_row_has_are_said_before_any_work() {
    let folder = &Desk::new();
    let input = [graded(0, json!({"topic": "t"})), graded(1, json!({}))];
    let said = refused(folder, "score", &input, &["--columns", "instruction=frage"]);
    assert!(said.contains("no row has the column \"frage\" that is named for the instruction"), "{said}");
    let said = refused(folder, "score", &input, &["--carry", "topik,topic"]);
    assert!(said.contains("the first has the fields [\"topic\"]"), "{said}");
    let (found, _) = judged(folder, "score", &input, &["--carry", "topic,question", "--layers", "last"]);
    assert_eq!((&found[0]["topic"], &found[0]["question"], found.len()), (&json!("t"), &input[0]["question"], 2));
    assert!(input[0]["question"].is_string() && found[0]["logits"].as_array().map(Vec::len) == Some(1), "{found:?}");
}

#[test]
fn decide_reads_named_columns_and_checks_before_any_work() {
    let folder = &Desk::new();
    let model = model(folder, None);
    let questions = json!({"q": {"type": "noul", "instructions": "Is it x?"}});
    // With the mark that Windows editors write: https://github.com/patniko/github-copilot-office/pull/7
    folder.put("q.json", format!("\u{feff}{questions}"));
    let args = ["--questions", "q.json", "--dtype", "f32", "--model", &model];
    let mails =
        [json!({"mail": 7, "text": ["a", "b"], "said": {"q": 1}}), json!({"mail": 9, "text": "c", "said": "yes"})];
    let said = refused(folder, "decide", &mails, &args);
    assert!(said.contains("no row can be asked about; the first is 0: no state (state)"), "{said}");
    assert!(said.contains("--columns state=NAME"), "{said}");
    let columns = ["--columns", "id=mail,state=text,labels=said"];
    let (found, said) = judged(folder, "decide", &mails, &[&args[..], &columns].concat());
    let ids: Vec<&Value> = found.iter().map(|row| &row["id"]).collect();
    assert_eq!(ids, [&json!(7), &json!(9)]);
    assert!(found.iter().all(|row| row["answers"]["q"].is_object()), "{found:?}");
    assert_eq!((&found[0]["labels"]["q"], &found[1]["labels"]), (&json!(1), &Value::Null));
    assert!(said.contains("1 of 2 rows have labels that cannot be read and are left out; the first is 9"), "{said}");
    let said = said + &ran_on_rows(folder, "decide", &[&args[..], &["--columns", "state=mial"]].concat()).2;
    assert!(said.contains("no row has the column \"mial\" that is named for the state"), "{said}");
}

// https://github.com/patniko/github-copilot-office/pull/7
#[test]
fn a_byte_order_mark_in_files_of_options_is_passed_over() {
    let folder = &Desk::new();
    let write = |name: &str, json: Value| fs::write(folder.join(name), format!("\u{feff}{json}")).expect(name);
    write("t.json", json!({"raw": "de {answer}"}));
    let input = [graded(0, json!({}))];
    let (found, _) = judged(folder, "score", &input, &["--template", "t.json"]);
    assert!(found[0]["logits"].is_array(), "{found:?}");
    write("aspects.json", json!({"a": "is it a?"}));
    write("family.json", json!({}));
    for (name, args) in [
        (
            "label",
            &[
                "--aspects",
                "aspects.json",
                "--base-url",
                "http://127.0.0.1:9/v1",
                "--api-model",
                "m",
                "--no-key",
                "--max-attempts",
                "1",
            ][..],
        ),
        ("compare", &["--task", "single", "--template", "family.json"]),
    ] {
        let (_, stdout, stderr) = ran(name, folder, &[&FILES[..], &["--overwrite"], args].concat());
        assert!(!stderr.contains("expected value at line 1 column 1"), "{name}: {stdout}{stderr}");
    }
}

// https://github.com/sile/libflate/issues/75
#[test]
fn what_is_behind_compressed_rows_is_said() {
    let folder = &Desk::new();
    let bytes = [gzip(graded(0, json!({})).to_string().as_bytes()), b"junk".to_vec()].concat();
    folder.put("in.jsonl", bytes);
    let (code, _, stderr) = ran_on_rows(folder, "score", &[]);
    assert_eq!(code, Some(0), "{stderr}");
    let note = "note: in.jsonl: 4 bytes behind the gzip data are not read; they begin with \"junk\"";
    assert_eq!(stderr.matches(note).count(), 1, "{stderr}");
}

// https://github.com/Point72/csp/issues/398
#[test]
fn a_stream_of_something_else_is_named() {
    for (bytes, found) in [
        (&b"{\"id\": 1, \"instruction\": \"q\"}\n"[..], "it is JSON"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "the file form of Arrow (Feather)"),
        (b"PAR1", "it is Parquet"),
        (b"", "it is empty"),
    ] {
        let said = Said::from(fed(&mut judge("stream"), bytes));
        assert!(said.code != Some(0) && said.stderr.contains(found), "{}", said.stderr);
    }
}

#[test]
fn what_an_instruction_is_about_is_shown_to_every_judge_and_once() {
    let folder = &Desk::new();
    let rows = |asked: &dyn Fn(usize) -> Value| -> Vec<Value> {
        let row = |id: usize| {
            let mut row = json!({"id": id, "response": "It is 12.", "rubric": "Is it right?"});
            row.as_object_mut().expect("an object").extend(asked(id).as_object().expect("an object").clone());
            row
        };
        (0..3).map(row).collect()
    };
    let apart = rows(&|id| json!({"instruction": "Add the numbers.", "input": format!("7 + {id}")}));
    let joined = rows(&|id| json!({"instruction": format!("Add the numbers.\n\n7 + {id}")}));
    let alone = rows(&|_| json!({"instruction": "Add the numbers."}));
    let scores = |found: &[Value]| found.iter().map(|row| row["score"].clone()).collect::<Vec<_>>();
    for (name, args) in [("score", &[][..]), ("compare", &["--verdict", "logits"])] {
        let of = |input: &[Value], more: &[&str]| judged(folder, name, input, &[args, more].concat()).0;
        let found = of(&apart, &[]);
        assert_eq!(scores(&found), scores(&of(&joined, &[])), "{name}");
        assert_ne!(scores(&found), scores(&of(&alone, &[])), "{name}");
        assert_eq!(found[1]["input"], "7 + 1", "{name}: it is carried");
        assert_eq!(scores(&of(&apart, &["--columns", "instruction=instruction"])), scores(&of(&alone, &[])), "{name}");
    }
    // A template that names it shows it in its own place alone.
    let templates =
        [("named.json", "{input} {instruction} {response}"), ("plain.json", "{about} {instruction} {response}")];
    for (name, text) in templates {
        folder.put(name, json!({"raw": text}).to_string());
    }
    let about = rows(&|id| json!({"instruction": "Add the numbers.", "about": format!("7 + {id}")}));
    let (named, _) = judged(folder, "score", &apart, &["--template", "named.json"]);
    let (plain, _) = judged(folder, "score", &about, &["--template", "plain.json"]);
    assert_eq!(scores(&named), scores(&plain));
}
