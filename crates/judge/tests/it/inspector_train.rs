//! What `inspector_train` reports besides its probes, checked against its inputs.

use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{Layer, PromptTemplate, Scale, lager::LagerSettings};
use judge_data::StatesFile;
use serde_json::{Value, json};
use tiny_judge::planted::{Split, generate, prompt};

use crate::program::{Desk, embedded_model, finished, ran, read_json, write_rows};

/// Runs the example on rows that it finds in `in.jsonl`: its table, or what it says where it fails.
fn train(folder: &Path, rows: &[Value], more: &[&str]) -> Result<String, String> {
    run_in(folder, rows, "2", more).map(|(_, table)| table)
}

/// The same with so many folds: what it says on stderr, and its table; `Err` with the former where it fails.
fn run_in(folder: &Path, rows: &[Value], folds: &str, more: &[&str]) -> Result<(String, String), String> {
    write_rows(folder.join("in.jsonl"), rows);
    let args = ["--input", "in.jsonl", "--output", "out", "--folds", folds, "--c", "0.01", "--top-k", "1", "--quiet"];
    let (code, table, said) = ran("inspector_train", folder, &[&args[..], more].concat());
    if code == Some(0) { Ok((said, table)) } else { Err(said) }
}

fn report(folder: &Path) -> Value {
    read_json(folder.join("out/report.json"))
}

fn fluency(folder: &Path) -> Value {
    report(folder)["aspects"]["fluency"].clone()
}

/// Only the first layer is read, which is done in a moment.
const QUICK: [&str; 4] = ["--layers", "0", "--pooling", "mean"];

fn pair(id: usize, split: &str, question: &str, response: &str, score: u8) -> Value {
    json!({"id": id, "aspect": "fluency", "split": split, "question": question, "response": response, "score": score})
}

#[test]
fn artefacts_are_reported() {
    let folder = &Desk::new();
    let mut rows = Vec::new();
    for id in 0..60 {
        let split = if id < 40 { "train" } else { "test" };
        let score = [1, 2, 2, 1, 2, 1, 1][id % 7];
        let mut row = pair(id, split, &format!("What is item {id}?"), &format!("It is number {}.", id % 9), score);
        row["from"] = json!(format!("file {score}"));
        rows.push(row);
    }
    rows[45]["question"] = json!("what is  ITEM 3?");
    let table = train(folder, &rows, &[&QUICK[..], &["--source", "from"]].concat()).unwrap();
    let same = u8::from(rows[45]["score"] == rows[3]["score"]);
    let said =
        format!("1 of 20 rows have a question that also occurs in the training rows, {same} with the same label");
    assert!(table.contains("artefacts of test") && table.contains(&said), "{table}");
    assert!(table.contains("20 of 20 rows have a response that also occurs in the training rows"), "{table}");
    assert!(table.contains("rows of each label from file 1: 1: "), "{table}");

    let found = &fluency(folder)["artefacts"]["test"];
    assert_eq!(found["questions"]["found"], json!([{"split": 0, "test": 45, "train": 3}]));
    assert_eq!((&found["responses"]["n_tested"], &found["scoring"]), (&json!(20), &json!("weighted_f1")));
    let baselines = found["baselines"].as_array().unwrap();
    assert_eq!(
        baselines.iter().map(|b| b["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["surface", "tfidf", "source"]
    );
    assert_eq!((&baselines[2]["score"]["estimate"], &baselines[2]["explains"]), (&json!(1.0), &json!(true)));
    assert!(
        train(folder, &rows, &[&QUICK[..], &["--source", "file"]].concat()).unwrap_err().contains("no field \"file\"")
    );
}

#[test]
fn rows_without_a_question_do_not_share_one() {
    let folder = &Desk::new();
    let rows: Vec<Value> = (0..40)
        .map(|id| {
            let split = if id < 30 { "train" } else { "test" };
            json!({"id": id, "aspect": "fluency", "split": split, "prompt": format!("Prompt {id}"), "score": 1 + id * id % 3})
        })
        .collect();
    train(folder, &rows, &QUICK).unwrap();
    let found = &fluency(folder)["artefacts"]["test"];
    assert_eq!((&found["questions"]["found"], &found["questions"]["n_tested"]), (&json!([]), &json!(10)));
    assert!(found["majority"]["low"].as_f64() < found["majority"]["high"].as_f64());
}

/// As scikit-learn's `f1_score(average="macro")` has it.
#[test]
fn classes_that_are_not_tested_have_no_part_in_macro_f1() {
    let folder = &Desk::new();
    let rows: Vec<Value> = (0..50)
        .map(|id| {
            // Of 40 rows to learn from, 20 are 1, 10 are 2 and 10 are 3; of 10 to test on, 5 are 1 and 5 are 2.
            let (split, score) = if id < 40 { ("train", [1, 2, 1, 3][id % 4]) } else { ("test", 1 + (id % 2) as u8) };
            pair(id, split, &format!("Question {id}?"), &format!("Answer {}", id % 7), score)
        })
        .collect();
    train(folder, &rows, &QUICK).unwrap();
    let majority = &fluency(folder)["splits"]["test"]["predictors"]["majority"];
    // Class 1 has precision 1/2 and recall 1, class 2 has neither, class 3 is not there.
    assert!((majority["macro_f1"]["estimate"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12, "{majority}");
    assert_eq!(majority["accuracy"]["estimate"], 0.5);
}

#[test]
fn the_models_own_score_is_of_grades_where_classes_are_two() {
    let folder = &Desk::new();
    let rows: Vec<Value> = generate(Split::Test, 70, 0)
        .into_iter()
        .enumerate()
        .map(|(id, item)| {
            let split = if id < 40 { "train" } else { "test" };
            let messages = json!([{"role": "user", "content": prompt(&item)}]);
            json!({"id": id, "aspect": "fluency", "split": split, "messages": messages, "score": item.human().round()})
        })
        .collect();
    let grades: std::collections::BTreeSet<i64> =
        rows.iter().map(|row| row["score"].as_f64().unwrap() as i64).collect();
    assert!(grades.len() > 3, "{grades:?}");
    let args = ["--binary", "--layers", "1,6", "--pooling", "last"];
    train(folder, &rows, &args).unwrap();
    let labels = StatesFile::open(folder.join("out/states/fluency.labels.safetensors")).unwrap();
    assert_eq!((labels.layers(), labels.d_model()), (&[Layer(6)][..], grades.len()));
    let right = (40..70).filter(|&row| {
        let logits = labels.row(row).unwrap().unwrap();
        let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
        let good: f64 = grades.iter().zip(&weights).filter(|&(&grade, _)| grade >= 4).map(|(_, weight)| weight).sum();
        let says_good = 2.0 * good > weights.iter().sum::<f64>();
        says_good == (rows[row]["score"].as_f64().unwrap() >= 4.0)
    });
    let expected = right.count() as f64 / 30.0;
    let found = &fluency(folder)["splits"]["test"]["predictors"]["prompted"]["accuracy"]["estimate"];
    assert!((found.as_f64().unwrap() - expected).abs() < 1e-12, "{found} {expected}");
    // The embedded model was made for this.
    assert!(expected > 0.6, "{expected}");
}

/// An adapter that learns the rows trained on is another baseline, on the same held-out rows, and leaves no file.
#[test]
fn the_tuned_model_is_a_baseline() {
    let folder = &Desk::new();
    // Long answers are bad here, which the embedded model does not think.
    let rows: Vec<Value> = (0..72)
        .map(|id| {
            let split = if id < 48 { "train" } else { "test" };
            let words = 1 + 5 * (id * 7 % 3);
            pair(id, split, &format!("What is {id} + 1?"), &vec!["so"; words].join(" "), 5 - 2 * (id * 7 % 3) as u8)
        })
        .collect();
    let args =
        ["--layers", "6", "--pooling", "last", "--tuned-baseline", "--tuned-top-blocks", "2", "--tuned-epochs", "6"];
    let table = train(folder, &rows, &args).unwrap();
    assert!(table.contains("probe minus the model with an adapter"), "{table}");
    let found = fluency(folder);
    let accuracy = |name: &str| found["splits"]["test"]["predictors"][name]["accuracy"]["estimate"].as_f64().unwrap();
    assert!(accuracy("tuned") > accuracy("prompted") && accuracy("tuned") > 0.5, "{table}");
    assert!(found["splits"]["test"]["gain_over"]["tuned"]["spearman"].is_object());
    let left = fs::read_dir(folder.join("out/states")).unwrap().map(|file| file.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("tuned")));
    let finished = train(folder, &rows, &args).unwrap();
    assert!(finished.contains("is complete"), "{finished}");
    let refused = train(folder, &rows, &[&args[..6], &["99", "--overwrite"]].concat()).unwrap_err();
    assert!(refused.contains("--tuned-top-blocks: the model has 6 blocks"), "{refused}");
    let alone = train(folder, &rows, &["--tuned-epochs", "2"]).unwrap_err();
    assert!(alone.contains("--tuned-baseline"), "{alone}");
    let still = train(folder, &rows, &["--tuned-baseline", "--tuned-lr", "0"]).unwrap_err();
    assert!(still.contains("--tuned-lr") && still.contains("expected a number above 0"), "{still}");
}

#[test]
fn stored_logits_of_other_grades_are_refused() {
    let folder = &Desk::new();
    let rows = |grades: [u8; 2]| -> Vec<Value> {
        (0..40)
            .map(|id| {
                let split = if id < 30 { "train" } else { "test" };
                pair(id, split, &format!("Question {id}?"), &format!("Answer {}", id % 7), grades[id * id % 3 % 2])
            })
            .collect()
    };
    let args = ["--layers", "6", "--pooling", "last"];
    train(folder, &rows([1, 2]), &args).unwrap();
    train(folder, &rows([1, 2]), &args).unwrap();
    let error = train(folder, &rows([4, 5]), &[&args[..], &["--overwrite"]].concat()).unwrap_err();
    assert!(error.contains("fluency.labels-00001-of-00001.safetensors") && error.contains("tokens was"), "{error}");
}

#[test]
fn aspects_must_be_names_of_files() {
    let folder = &Desk::new();
    let files = ["../x", "a/b", "", "/"].map(|aspect| (aspect, "cannot be a file's name"));
    for (aspect, said) in files.into_iter().chain([("total_score", "an aspect cannot be called \"total_score\"")]) {
        let mut rows = [json!({"id": 1, "prompt": "a", "score": 1}), json!({"id": 2, "prompt": "b", "score": 2})];
        rows.iter_mut().for_each(|row| row["aspect"] = json!(aspect));
        let error = train(folder, &rows, &[]).unwrap_err();
        assert!(error.contains(said), "{aspect:?}: {error}");
    }
}

/// Forty gradable rows with the fields that a user may have.
fn rows_with(of: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..40)
        .map(|id| {
            let mut row = of(id);
            row["split"] = json!(if id < 30 { "train" } else { "test" });
            row
        })
        .collect()
}

#[test]
fn grades_are_read_by_one_rule() {
    let folder = &Desk::new();
    let grade = |id: usize| 1 + id * id % 3;
    let mut rows =
        rows_with(|id| json!({"id": id, "prompt": format!("Prompt {id}"), "scores": [grade(id), null, grade(id)]}));
    rows[3]["scores"] = Value::Null;
    rows[4]["scores"] = json!([null]);
    rows[5]["scores"] = json!([1, 2]);
    let table = train(folder, &rows, &QUICK).unwrap();
    assert!(table.contains("2 rows have no grade and are skipped"), "{table}");
    assert!(table.contains("1 grade is no whole number and was rounded"), "{table}");
    let report = report(folder);
    assert_eq!((&report["ungraded"], &report["aspects"]["quality"]["n"]), (&json!(2), &json!(38)));
    assert_eq!(report["aspects"]["quality"]["rounded"], 1);

    for grade in [0, 9, 70] {
        rows[7]["scores"] = json!(grade);
        let error = train(folder, &rows, &QUICK).unwrap_err();
        assert!(error.contains(&format!("the grade of 7 is {grade}, expected one on the scale 1-5")), "{error}");
    }
    rows[7]["scores"] = json!(9);
    let error = train(folder, &rows, &[&QUICK[..], &["--scale", "1-9"]].concat()).unwrap_err();
    assert!(error.contains("is of another run") && error.contains("scale was"), "{error}");
    train(folder, &rows, &[&QUICK[..], &["--scale", "1-9", "--overwrite"]].concat()).unwrap();
}

#[test]
fn the_names_of_fields_are_those_of_every_example() {
    let folder = &Desk::new();
    let grade = |id: usize| 1 + id * id % 3;
    let of = |question: &str, response: &str, human: &str| {
        rows_with(
            |id| json!({"idx": id, "aspect": "fluency", question: format!("Q {id}"), response: format!("Answer {}", id % 7), human: grade(id)}),
        )
    };
    train(folder, &of("question", "response", "score"), &QUICK).unwrap();
    let expected = fluency(folder);
    for (question, response, human) in [("instruction", "output", "human"), ("prompt", "completion", "scores")] {
        train(folder, &of(question, response, human), &[&QUICK[..], &["--overwrite"]].concat()).unwrap();
        assert_eq!(fluency(folder), expected, "{question} {response} {human}");
    }
    let columns = ["--overwrite", "--columns", "instruction=ask,response=say,human=gpt4_score"];
    train(folder, &of("ask", "say", "gpt4_score"), &[&QUICK[..], &columns].concat()).unwrap();
    assert_eq!(fluency(folder), expected);
}

#[test]
fn a_prompt_is_a_chat_turn_unless_it_is_raw() {
    let folder = &Desk::new();
    let grade = |id: usize| 1 + id * id % 3;
    let prompts = rows_with(|id| json!({"id": id, "prompt": format!("Prompt {id}"), "score": grade(id)}));
    let messages = rows_with(
        |id| json!({"id": id, "messages": [{"role": "user", "content": format!("Prompt {id}")}], "score": grade(id)}),
    );
    train(folder, &prompts, &QUICK).unwrap();
    let states = || folder.read("out/states/quality.mean-00001-of-00001.safetensors");
    let (chat, report) = (states(), folder.read("out/report.json"));
    // The same prompts, and so the same states: they are not even read again.
    train(folder, &messages, &[&QUICK[..], &["--overwrite"]].concat()).unwrap();
    assert_eq!(states(), chat);
    fs::remove_dir_all(folder.join("out")).unwrap();
    train(folder, &prompts, &[&QUICK[..], &["--raw-prompt"]].concat()).unwrap();
    assert_ne!(states(), chat);
    assert_ne!(folder.read("out/report.json"), report);
}

#[test]
fn what_is_missing_in_a_row_is_said_with_the_way_out() {
    let folder = &Desk::new();
    let row = |aspect: Option<&str>| {
        let mut row = json!({"id": 1, "question": "q", "response": "r", "score": 3});
        aspect.into_iter().for_each(|aspect| row["aspect"] = json!(aspect));
        row
    };
    let error = train(folder, &[row(Some("charm"))], &[]).unwrap_err();
    let says = ["aspect \"charm\"", "semantic_consistency, logicality", "--template", "line 1"];
    says.into_iter().for_each(|says| assert!(error.contains(says), "{says}: {error}"));
    let error = train(folder, &[row(Some("fluency")), row(Some("fluency"))], &[]).unwrap_err();
    assert!(error.contains("the id 1 appears twice in the aspect \"fluency\"") && error.contains("line 2"), "{error}");
    let mut null = row(Some("fluency"));
    null["response"] = Value::Null;
    let error = train(folder, &[null], &[]).unwrap_err();
    assert!(error.contains("no field for response") && !error.contains("no field for prompt"), "{error}");
    let absent = json!({"id": 1, "instruction": "q", "rubric": "r", "score": 3});
    let error = train(folder, &[absent], &[]).unwrap_err();
    assert!(error.contains("no field for response") && !error.contains("no field for prompt"), "{error}");
    // One answer may be graded in several aspects.
    let error = train(folder, &[row(Some("fluency")), row(Some("factuality"))], &[]).unwrap_err();
    assert!(error.contains("nothing to learn"), "{error}");
    assert!(!folder.join("out").exists(), "nothing was read by the model");
}

/// As in every command.
#[test]
fn rows_of_a_table_without_ids_go_by_their_numbers() {
    let folder = &Desk::new();
    let split = |n: usize| if n < 30 { "train" } else { "test" };
    let row = |n: usize| format!("What is {n} + 1?,It is {n}.,{},{}\n", 1 + n * n % 3, split(n));
    let table = (0..40).map(row).collect::<String>();
    folder.put("in.csv", format!("question,response,human,split\n{table}"));
    let args = ["--input", "in.csv", "--output", "out", "--folds", "2", "--c", "0.01", "--top-k", "1", "--quiet"];
    let (_, said) = finished("inspector_train", folder, &[&args[..], &QUICK].concat());
    assert!(said.contains("in.csv: no row has an id: rows are numbered from 0"), "{said}");
    assert_eq!(report(folder)["aspects"]["quality"]["n"], 40);
}

#[test]
fn rows_that_name_no_aspect_are_asked_what_judge_score_asks() {
    let folder = &Desk::new();
    let graded = |id: usize| json!({"id": id, "question": format!("What is {id} + 1?"), "response": format!("It is {id}."), "human": 1 + id * id % 3});
    let read = |path: PathBuf| -> PromptTemplate { serde_json::from_value(read_json(path)).unwrap() };
    let template = || read(folder.join("out/quality.template.json"));
    // The column has another name than the field.
    let train = |more: &[&str]| {
        let args = [&QUICK[..], &["--group", "instruction"], more].concat();
        train(folder, &rows_with(graded), &args)
    };
    train(&[]).unwrap();
    assert_eq!(template(), read(embedded_model().join("judge_template.json")));
    // On another scale, and by a folder without a template, it is the built-in prompt. Neither is mixed with what is there.
    let built_in = |low, high| {
        let asked = LagerSettings::prompt_end(Scale::integers(low, high).unwrap());
        asked.template.with_prefill(&asked.opening)
    };
    let model = folder.join("plain");
    fs::create_dir(&model).unwrap();
    tiny_judge::write(&model).unwrap();
    fs::remove_file(model.join("judge_template.json")).unwrap();
    for (more, asked) in [(["--scale", "0-9"], built_in(0, 9)), (["--model", "plain"], built_in(1, 5))] {
        let error = train(&more).unwrap_err();
        assert!(error.contains("is of another run") && error.contains("templates was"), "{error}");
        fs::remove_dir_all(folder.join("out")).unwrap();
        train(&more).unwrap();
        assert_eq!(template(), asked, "{more:?}");
    }
    for scale in ["0.5-5", "0-1000"] {
        let error = train(&["--scale", scale]).unwrap_err();
        assert!(error.contains(&format!("--scale {scale}")) && error.contains("--template FILE"), "{error}");
    }
}

/// The levels of an aspect's own prompt are named.
#[test]
fn an_aspects_own_prompt_is_for_its_own_grades() {
    let folder = &Desk::new();
    let error = train(folder, &[pair(1, "train", "q", "r", 3)], &["--scale", "1-10"]).unwrap_err();
    let says = "fluency asks for grades from 1 to 5, and --scale is 1-10: give --template FILE";
    assert!(error.contains(says), "{error}");
}

#[test]
fn tfidf_is_named_by_what_it_is_and_findings_are_sentences() {
    let folder = &Desk::new();
    let rows = rows_with(|id| json!({"id": id, "prompt": format!("Prompt {id} of a kind"), "score": 1 + id * id % 3}));
    let table = train(folder, &rows, &QUICK).unwrap();
    for says in ["TF-IDF (tuned)", "TF-IDF (C = 1)", "tuned: C chosen in the probe's folds", "test: the probe "] {
        assert!(table.contains(says), "{says}: {table}");
    }
    let figure = folder.text("out/quality.svg");
    for says in ["macro F1, mean over 2 folds", "1 SD over folds", "chosen"] {
        assert!(figure.contains(says), "{says}");
    }
}

/// Answers to questions as whole prompts under other names, four to a question; the grade is the question's own.
fn answers(n: usize, of_row: impl Fn(usize) -> Value) -> Vec<Value> {
    let row = |i: usize| {
        let mut row = of_row(i);
        row["score"] = json!(1 + (i / 4) * (i / 4) % 7 % 2);
        row
    };
    (0..n).map(row).collect()
}

fn groups(folder: &Path) -> Value {
    report(folder)["groups"]["quality"].clone()
}

fn related(folder: &Path) -> (usize, u64) {
    let test = &report(folder)["aspects"]["quality"]["artefacts"]["test"]["related"];
    (test["found"].as_array().unwrap().len(), test["n_tested"].as_u64().unwrap())
}

/// Issue 59, kind 9: rows of `prompt` that share a question were on both sides of the split, without a word.
#[test]
fn answers_to_one_question_stay_on_one_side() {
    // A short question, which only the template's mark behind it tells apart.
    let short =
        |i: usize| json!({"prompt": format!("Question: How many steps has tower {}?\nAnswer: {}", i / 4, 13 * i % 97)});
    // A long one, between other texts.
    let words = |seed: usize, n: usize| {
        (0..n).map(|k| format!("w{} ", (seed * 7919 + k * k * 31) % 99_991)).collect::<String>()
    };
    let long = |i: usize| json!({"prompt": format!("Judge {} by this: {} Say a grade.", words(1000 + i, 30), words(i / 4, 25))});
    // No question at all, but its number.
    let number =
        |i: usize| json!({"prompt": format!("Grade {}", words(i, 8)), "idx": format!("q{}", i / 4), "length": i % 30});
    let cases: [(&dyn Fn(usize) -> Value, &str); 3] =
        [(&short, "nearly equal texts"), (&long, "nearly equal texts"), (&number, "\"idx\"")];
    for (of_row, by) in cases {
        let folder = &Desk::new();
        let rows = answers(80, |i| {
            let mut row = of_row(i);
            row["id"] = json!(i);
            row
        });
        let (said, output) = noted(folder, &rows, &[]);
        assert!(said.contains("80 of 80 rows belong together in 20 groups") && said.contains(by), "{said}");
        assert_eq!(said.matches("note: aspect").count(), 1, "{said}");
        assert_eq!(groups(folder)["n_groups"], 20, "{output}");
        assert_eq!(related(folder).0, 0);

        // Parted on purpose, the shared texts are counted.
        let folder = &Desk::new();
        let (said, output) = noted(folder, &rows, &["--ungrouped"]);
        assert!(!said.contains("belong together"), "{said}");
        assert_eq!(groups(folder), Value::Null);
        let (found, tested) = related(folder);
        let expected = if by.contains("texts") { 10 * found > 9 * tested as usize } else { found == 0 };
        assert!(expected, "{found} of {tested}");
        assert_eq!(output.contains("equal or nearly equal question or prompt"), found > 0, "{output}");
    }
}

fn noted(folder: &Path, rows: &[Value], more: &[&str]) -> (String, String) {
    run_in(folder, rows, "3", &[&QUICK[..], more].concat()).unwrap()
}

#[test]
fn rows_that_share_nothing_are_split_as_ever() {
    let folder = &Desk::new();
    let rows = answers(
        60,
        |i| json!({"id": i, "prompt": format!("Question: What is {i} plus {}?\nAnswer: {}", i * i, i % 5), "model": format!("m{}", i % 3)}),
    );
    let (said, _) = noted(folder, &rows, &[]);
    assert!(!said.contains("belong together"), "{said}");
    assert_eq!((groups(folder), related(folder).0), (Value::Null, 0));
}

#[test]
fn what_belongs_together_is_asked_where_it_cannot_be_told() {
    let word = |i: usize| format!("Grade w{} w{} w{}", i * 31 % 9973, i * i % 9973, i * 7 % 9973);
    // Two fields that cross.
    let folder = &Desk::new();
    let rows = answers(
        80,
        |i| json!({"id": i, "prompt": word(i), "asked": format!("q{}", i / 8), "model": format!("m{}", i % 8)}),
    );
    let error = train(folder, &rows, &QUICK).unwrap_err();
    assert!(error.contains("\"asked\" (10 values)") && error.contains("\"model\" (8 values)"), "{error}");
    assert!(error.contains("--group FIELD") && error.contains("--ungrouped"), "{error}");
    train(folder, &rows, &[&QUICK[..], &["--group", "asked"]].concat()).unwrap();
    // Fewer questions than folds.
    let folder = &Desk::new();
    let rows = answers(
        40,
        |i| json!({"id": i, "prompt": format!("Question: Which of the towers is {}?\nAnswer: {i}", i / 10)}),
    );
    let error = run_in(folder, &rows, "4", &QUICK).unwrap_err();
    assert!(error.contains("in 4 groups") && error.contains("too few for 4 folds"), "{error}");
}

/// `judge score` reads an evaluation of prometheus-eval as it is; so does this.
#[test]
fn an_evaluation_of_prometheus_eval_is_read_as_it_is() {
    let folder = &Desk::new();
    let rows: Vec<Value> = (0..60)
        .map(|i| {
            let prompt = format!(
                "###Task Description:\nGrade it.\n\n###The instruction to evaluate:\nWhat is the sum of {} and 5, in words, please?\n\n\
                 ###Response to evaluate:\nIt is {}.\n\n###Reference Answer (Score 5):\nThe sum is {}.\n\n\
                 ###Score Rubrics:\n[Is it right?]\nScore 1: no\nScore 5: yes\n\n###Feedback: ",
                i / 3, 11 * i % 89, i / 3 + 5
            );
            json!({"idx": (i / 3).to_string(), "instruction": prompt, "gpt4_score": [1 + i / 3 % 2, 1 + i / 3 % 2, 1 + i / 3 % 2]})
        })
        .collect();
    let (said, _) = noted(folder, &rows, &[]);
    assert!(said.contains("60 of 60 rows belong together in 20 groups"), "{said}");
}
