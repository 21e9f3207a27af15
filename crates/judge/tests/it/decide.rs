//! `judge decide`: answers in the standard's form, resumed and measured; weights fitted on labels.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::program::{
    Desk, Said, copy_files, ended, fails, finished, fixture, ran, read_json, refused, succeed, write_rows,
};
use crate::service::Service;

/// A small random model with a tokenizer of characters, and what a decision model has beside it.
pub fn model(folder: &Path, beside: Option<&str>) -> String {
    let path = folder.join("model");
    std::fs::create_dir_all(&path).unwrap();
    let parts = [Some("families/llama-on"), Some("decisions/tokenizer"), beside];
    for part in parts.into_iter().flatten() {
        copy_files(fixture(part), &path);
    }
    let config = path.join("config.json");
    let mut json = read_json(&config);
    json["max_position_embeddings"] = 2048.into();
    std::fs::write(config, json.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Three typed questions in `questions.json`.
pub fn questions(folder: &Path) {
    let questions = json!({
        "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
        "tone": {"type": "choice", "instructions": "What is the tone?", "criteria": {"calm": null, "angry": "shouts"}},
        "hurry": {"type": "score", "instructions": "How urgent?", "criteria": ["can wait", "soon", "today"]},
    });
    std::fs::write(folder.join("questions.json"), questions.to_string()).unwrap();
}

/// Labelled states, and rows of every odd kind between them.
fn states(folder: &Path) {
    let mut all: Vec<Value> = (0..24)
        .map(|n| {
            let angry = n % 3 == 0;
            let state = if angry { format!("GIVE BACK {n}!!") } else { format!("all is well {n}") };
            let tone = if angry { json!("angry") } else { json!({"calm": 3, "angry": 1}) };
            json!({"id": n, "state": {"text": state}, "labels": {"refund": angry, "tone": tone, "hurry": n % 3}, "from": n})
        })
        .collect();
    all.insert(2, json!({"id": "none", "text": "a row without a state"}));
    all.insert(5, json!({"id": "bad", "state": "x", "questions": {"q": {"type": "yesno"}}, "labels": {"q": "true"}}));
    all.insert(
        9,
        json!({"id": "own", "state": "x", "questions": {"q": {"type": "noul", "instructions": "Is it x?"}},
               "labels": {"q": "true", "tone": "calm"}}),
    );
    all.push(json!({"id": "long", "state": "y".repeat(3000)}));
    write_rows(folder.join("states.jsonl"), &all);
}

/// A folder with the questions, the states and a model; and the path of that.
fn desk(beside: Option<&str>) -> (Desk, String) {
    let folder = Desk::new();
    let model = model(&folder, beside);
    questions(&folder);
    states(&folder);
    (folder, model)
}

const ARGS: [&str; 7] = ["--input", "states.jsonl", "--questions", "questions.json", "--dtype", "f32", "--model"];

#[test]
fn states_are_answered_measured_and_resumed() {
    let (path, model) = &desk(None);
    let args = [&ARGS[..], &[model, "--output", "answers.jsonl", "--json", "figures.json"]].concat();
    let said = succeed("decide", path, &args);
    assert!(said.contains("25 of 28 rows answered"), "{said}");
    assert!(said.contains("missing: 2") && said.contains("too_long: 1"), "{said}");
    assert!(said.contains("73 labelled decisions"), "{said}");
    let found = path.rows("answers.jsonl");
    assert_eq!(found.len(), 28);
    let first = &found[0];
    let keys: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "answers", "label_mass", "input_tokens", "labels", "from"]);
    assert_eq!(first["answers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["refund", "tone", "hurry"]);
    assert!(first["answers"]["refund"]["noul"].as_f64().is_some_and(|p| p > 0.0 && p < 1.0));
    assert_eq!(first["answers"]["hurry"]["legend"], json!({"0": "can wait", "1": "soon", "2": "today"}));
    assert_eq!(first["from"], 0);
    assert_eq!(found[2]["unscored"]["reason"], "missing");
    let bad = found[5]["unscored"]["detail"].as_str().unwrap();
    assert!(bad.contains("question \"q\": expected `type` to be noul, choice or score"), "{bad}");
    assert_eq!(found[9]["answers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["q"]);
    assert_eq!(found[27]["unscored"]["reason"], "too_long");
    let figures = path.json("figures.json");
    assert_eq!((&figures["n"], &figures["labels_not_read"]), (&json!(73), &json!(1)));
    for name in ["accuracy", "kl", "brier", "ece"] {
        assert!(figures["all"][name]["estimate"].is_number(), "{figures}");
        assert!(figures["questions"]["tone"][name]["estimate"].is_number(), "{figures}");
    }
    // The same command again does nothing and says the same; a row's answers do not depend on the others.
    let again = succeed("decide", path, &args);
    assert!(again.contains("answers.jsonl is complete: 25 of 28 rows answered"), "{again}");
    path.put("one.jsonl", json!({"id": 7, "state": {"text": "all is well 7"}}).to_string());
    let alone = ["--input", "one.jsonl", "--questions", "questions.json", "--dtype", "f32", "--model", model];
    succeed("decide", path, &[&alone[..], &["--output", "one.out.jsonl"]].concat());
    let same = found.iter().find(|row| row["id"] == 7).unwrap();
    assert_eq!(path.rows("one.out.jsonl")[0]["answers"], same["answers"]);
    // Temperatures flatten; another prompt is another judge, and no output is taken for its.
    let hot = [&ARGS[..], &[model, "--output", "hot.jsonl", "--temperature", "noul=1e9,choice=2"]].concat();
    succeed("decide", path, &hot);
    let hot = path.rows("hot.jsonl");
    assert!((hot[0]["answers"]["refund"]["noul"].as_f64().unwrap() - 0.5).abs() < 1e-6);
    assert_eq!(hot[0]["answers"]["hurry"], first["answers"]["hurry"]);
    path.put("turn.jinja", "{{ state }} {{ question.instructions }} {{ question.labels }}");
    let other = [&args[..], &["--decision-prompt", "turn.jinja"]].concat();
    fails("decide", path, &other, &["answers.jsonl"]);
}

/// A labelled question that was never answered vanished: the coverage was 1, and its bar was for no statistic.
#[test]
fn a_question_without_answers_is_told_and_misses_its_bar() {
    let path = &Desk::new();
    let model = model(path, None);
    // One option more than there are labels.
    let topics: Map<String, Value> = (0..27).map(|n| (format!("o{n}"), Value::Null)).collect();
    let questions = json!({
        "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
        "topic": {"type": "choice", "instructions": "What is it about?", "criteria": topics},
    });
    path.put("questions.json", questions.to_string());
    let row = |n: usize| {
        let topic = if n < 4 { json!("o1") } else { Value::Null };
        json!({"id": n, "state": format!("all is well {n}"), "labels": {"refund": (n % 2).to_string(), "topic": topic}})
    };
    path.write("states.jsonl", &(0..6).map(row).collect::<Vec<_>>());
    let args = [&ARGS[..], &[&model, "--output", "answers.jsonl", "--json", "figures.json"]].concat();
    let bars = [&args[..], &["--require", "accuracy:topic>=0.5", "--junit", "bars.xml"]].concat();
    for _ in 0..2 {
        let (said, told) = ended("decide", path, &bars, 3);
        for words in [
            "6 of 6 rows answered",
            "topic: no answer in 6 rows; the first is row 0: a choice question with 27 options",
            "MISSED:  accuracy:topic>=0.5: undefined: no row has an answer to it",
            "MISSED:  coverage>=0.98 (--min-coverage): found 0.3333 (counted: 2 of 6 rows)",
        ] {
            assert!(said.contains(words), "{words}: {said}{told}");
        }
        let xml = path.text("bars.xml");
        assert!(xml.contains(">not counted: 0, 1, 2, 3</failure>"), "{xml}");
    }
    // A label that is null is none, and a text that writes 1 is a yes.
    let figures = path.json("figures.json");
    assert_eq!((&figures["n"], &figures["labels_not_read"]), (&json!(6), &json!(0)));
    assert_eq!((&figures["unanswered"]["topic"]["rows"], &figures["questions"]["refund"]["n"]), (&json!(6), &json!(6)));
    assert!(figures["statistics"]["brier:topic"]["undefined"].is_string(), "{figures}");
    // Without labels it is told as well.
    path.put("states.jsonl", json!({"id": 0, "state": "all is well"}).to_string());
    let said = succeed("decide", path, &[&args[..], &["--overwrite"]].concat());
    assert!(said.contains("topic: no answer in 1 row;"), "{said}");
    // A question that is not asked is refused before any work.
    let other = [&ARGS[..], &[&model, "--output", "other.jsonl", "--require", "accuracy:topics>=0.5"]].concat();
    refused("decide", path, &other, 2, &["no row is asked the question \"topics\"; --questions has refund, topic"]);
    assert!(!path.join("other.jsonl").exists());
}

/// A table has objects as texts, and all fields of a struct. Of a name that an object has twice the last counted.
#[test]
fn objects_are_read_from_cells_and_a_name_that_appears_twice_costs_its_row() {
    let path = &Desk::new();
    let model = model(path, None);
    let cell = |json: &str| format!("\"{}\"", json.replace('"', "\"\""));
    let asked = cell(r#"{"refund": {"type": "noul", "instructions": "Is a refund asked for?"}, "tone": null}"#);
    let labels = cell(r#"{"refund": "0", "tone": null}"#);
    path.put("table.csv", format!("state,questions,labels\nall is well,{asked},{labels}\n"));
    let args = ["--dtype", "f32", "--model", &model, "--json", "figures.json"];
    let table = ["--input", "table.csv", "--output", "table.jsonl"];
    succeed("decide", path, &[&args[..], &table].concat());
    let found = &path.rows("table.jsonl")[0];
    assert_eq!(found["answers"].as_object().unwrap().keys().collect::<Vec<_>>(), ["refund"]);
    assert_eq!((&found["labels"], &path.json("figures.json")["n"]), (&json!({"refund": "0"}), &json!(1)));

    questions(path);
    let twice = r#"{"id": 1, "state": {"a": 1, "a": 2}}
{"id": 2, "state": "x", "questions": {"q": {"type": "choice", "criteria": {"x": null, "y": null, "x": "z"}}}}
{"id": 3, "state": "x", "labels": {"refund": true, "refund": false}}
"#;
    path.put("states.jsonl", twice);
    let of_rows = [&ARGS[..], &[&model, "--output", "twice.jsonl"]].concat();
    assert!(succeed("decide", path, &of_rows).contains("1 of 3 rows answered"));
    let found = path.rows("twice.jsonl");
    for (row, said) in [(0, r#"found "a" twice"#), (1, r#"found "x" twice in q.criteria"#)] {
        let detail = found[row]["unscored"]["detail"].as_str().unwrap();
        assert!(detail.contains(said), "{detail}");
    }
    assert_eq!(found[2].get("labels"), None);
    // Where no row can be asked about, states in another column are spoken of only if there is none.
    path.put("states.jsonl", twice.lines().nth(1).unwrap());
    let said = fails("decide", path, &[&ARGS[..], &[&model, "--output", "none.jsonl"]].concat(), &["q.criteria"]);
    assert!(!said.contains("--columns"), "{said}");
    for (option, json) in [
        (
            "--questions",
            r#"{"q": {"type": "noul", "instructions": "a?"}, "q": {"type": "noul", "instructions": "b?"}}"#,
        ),
        ("--decision-config", r#"{"temperature": {"noul": 1}, "temperature": {"noul": 2}}"#),
    ] {
        path.put("twice.json", json);
        let args = [&args[..], &["--input", "table.csv", "--output", "o.jsonl", option, "twice.json"]].concat();
        fails("decide", path, &args, &["twice.json", "expected each name of an object once"]);
    }
}

/// All rows that are answered count for the coverage, and the statistics rest on those with labels.
#[test]
fn bars_count_the_rows_that_statistics_rest_on() {
    let path = &Desk::new();
    let model = model(path, None);
    questions(path);
    let row = |n: usize| {
        let labels = if n < 2 { json!({"refund": n == 0}) } else { json!({}) };
        json!({"id": n, "state": format!("all is well {n}"), "labels": labels})
    };
    path.write("states.jsonl", &(0..6).map(row).collect::<Vec<_>>());
    let args = [&ARGS[..], &[&model, "--output", "answers.jsonl"]].concat();
    for (bars, code, said) in [
        (&["--require", "n>=3"][..], 3, "MISSED:  n>=3: found 2 (counted: 2 of 6 rows)"),
        (&["--require", "n>=2"], 0, "reached: coverage>=0.98 (--min-coverage): found 1.0000 (counted: 6 of 6 rows)"),
        (&["--require", "n>=1", "--require", "accuracy:tone>=0"], 3, "MISSED:  n>=1: found 0 (counted"),
        (&["--require", "brier:refund<=2"], 0, "reached: brier:refund<=2"),
        (&["--require", "accuracy:refund>=1.1"], 3, "MISSED:  accuracy:refund>=1.1"),
    ] {
        let (found, stdout, stderr) = ran("decide", path, &[&args[..], bars].concat());
        assert!(found == Some(code) && stdout.contains(said), "{bars:?}: {stdout}{stderr}");
    }
}

/// A list of numbers and texts ended the process: in a run, which then died at the same row each time, and in the service.
#[test]
fn a_template_that_cannot_sort_a_state_costs_its_row_or_request_alone() {
    let path = &Desk::new();
    let model = model(path, None);
    questions(path);
    path.put("sort.jinja", r#"{{ state | sort | join(" ") }} {{ question.instructions }}"#);
    let mixed: Vec<Value> =
        (0..21).map(|n| if n * 7 % 3 == 0 { json!((n * 37 % 101).to_string()) } else { json!(n * 37 % 101) }).collect();
    let states = [json!([3, 1, 2]), json!(mixed), json!(["b", "a"])];
    let states: Vec<Value> = states.iter().enumerate().map(|(id, state)| json!({"id": id, "state": state})).collect();
    path.write("states.jsonl", &states);
    let prompt = ["--decision-prompt", "sort.jinja", "--output", "answers.jsonl"];
    let said = succeed("decide", path, &[&ARGS[..], &[&model], &prompt].concat());
    assert!(said.contains("2 of 3 rows answered"), "{said}");
    let found = path.rows("answers.jsonl");
    assert_eq!(found[1]["unscored"]["reason"], "template");
    let detail = found[1]["unscored"]["detail"].as_str().unwrap();
    assert!(detail.contains("cannot order"), "{detail}");

    let template = path.join("sort.jinja");
    let service = Service::start(&["--quiet", "--model", &model, "--decision-prompt", template.to_str().unwrap()]);
    let ask = |state: &Value| {
        let question = json!({"type": "noul", "instructions": "Is it?"});
        service.post("/v1/systemone", &json!({"state": state, "questions": {"q": question}}))
    };
    assert_eq!(ask(&states[0]["state"]).status, 200);
    let refused = ask(&states[1]["state"]);
    assert!((400..500).contains(&refused.status), "{}", refused.status);
    assert_eq!(ask(&states[2]["state"]).status, 200);
}

/// <https://github.com/rhysd/fixjson/issues/19>, <https://github.com/huggingface/datasets/issues/8365>: the number was rounded in the
/// prompt.
#[test]
fn a_whole_number_of_any_size_stands_in_the_prompt_as_it_is() {
    let path = &Desk::new();
    let model = model(path, None);
    questions(path);
    let state = r#"{"a":12345678901234567890123}"#;
    let text = json!({"id": 2, "state": state});
    path.put("states.jsonl", format!("{{\"id\":1,\"state\":{state}}}\n{text}\n"));
    succeed("decide", path, &[&ARGS[..], &[&model, "--output", "answers.jsonl"]].concat());
    let found = path.rows("answers.jsonl");
    assert_eq!(found[0]["answers"], found[1]["answers"]);
    assert_eq!(found[0]["input_tokens"], found[1]["input_tokens"]);
}

#[test]
fn weights_are_fitted_on_labels_and_belong_to_model_and_prompt() {
    let (path, model) = &desk(None);
    let fit = [&ARGS[..], &[model, "--output", "fit.jsonl", "--fit", "weights.json", "--json", "plain.json"]].concat();
    let said = succeed("decide", path, &fit);
    assert!(said.contains("noul: cross-entropy") && said.contains("weights -> weights.json"), "{said}");
    let rows_of_fit = path.rows("fit.jsonl");
    let table = &rows_of_fit[0]["tables"]["tone"];
    assert_eq!(table["options"], json!(["calm", "angry"]));
    assert_eq!(table["layers"].as_array().unwrap().len(), table["logits"].as_array().unwrap().len());
    let weights = path.json("weights.json");
    assert_eq!(weights["format"], "judge-decision-weights");
    for kind in ["noul", "choice", "score"] {
        let loss: Vec<f64> = serde_json::from_value(weights["content"]["kinds"][kind]["loss"].clone()).unwrap();
        assert!(loss[1] < loss[0], "{kind}: {loss:?}");
    }
    // A second start reads the rows back and learns the same.
    assert!(succeed("decide", path, &fit).contains("weights -> weights.json"));
    let used =
        [&ARGS[..], &[model, "--output", "used.jsonl", "--weights", "weights.json", "--json", "fitted.json"]].concat();
    succeed("decide", path, &used);
    let kl = |file: &str| -> f64 { path.json(file)["all"]["kl"]["estimate"].as_f64().unwrap() };
    assert!(kl("fitted.json") < kl("plain.json"));
    fails("decide", path, &[&used[..], &["--lens", "normed", "--overwrite"]].concat(), &["with the lens"]);
    path.put("turn.jinja", "{{ state }} {{ question.instructions }} {{ question.labels }}");
    let args = [&used[..], &["--decision-prompt", "turn.jinja", "--overwrite"]].concat();
    fails("decide", path, &args, &["these decision weights were fitted with the prompt"]);
}

/// A temperature alone was learned by steps that ended long before its best, and a kind of question without weights was read as if there
/// were none, without a word.
#[test]
fn what_a_fit_did_not_find_is_said() {
    let (path, model) = &desk(None);
    let mut labelled = path.rows("states.jsonl");
    labelled.retain(|row| row["labels"]["tone"].is_object() || row["labels"]["tone"] == "angry");
    labelled.iter_mut().for_each(|row| row["labels"] = json!({"tone": row["labels"]["tone"]}));
    path.write("tone.jsonl", &labelled);
    let args = ["--input", "tone.jsonl", "--questions", "questions.json", "--dtype", "f32", "--model", model];
    let fit = [&args[..], &["--output", "fit.jsonl", "--fit", "w.json"]].concat();
    let (said, notes) = finished("decide", path, &[&fit[..], &["--fit-steps", "5"]].concat());
    assert!(said.contains("choice: cross-entropy") && !said.contains("noul: "), "{said}");
    assert!(
        notes.contains("note: choice: the cross-entropy still fell, by ") && notes.contains("--fit-steps 50"),
        "{notes}"
    );
    let unsettled = &path.json("w.json")["content"]["kinds"]["choice"]["unsettled"];
    assert!(unsettled["still_falling"]["fell"].as_f64().is_some_and(|fell| fell > 1e-3), "{unsettled}");
    // No temperature is worse than the same probability for both options, and no step has a part in it.
    let alone = [&args[..], &["--output", "fit.jsonl", "--fit", "cold.json", "--fit-temperature"]].concat();
    succeed("decide", path, &alone);
    let found = path.json("cold.json")["content"]["kinds"]["choice"].clone();
    assert!(found["loss"][1].as_f64().is_some_and(|loss| loss <= 2f64.ln() + 1e-12), "{found}");
    fails("decide", path, &[&alone[..], &["--fit-steps", "9"]].concat(), &["--fit-steps", "cannot be used with"]);

    // Of what weights have none for, the command says so, or refuses where nothing else is asked.
    let used = [&ARGS[..], &[model, "--output", "used.jsonl", "--weights", "w.json"]].concat();
    let (_, notes) = finished("decide", path, &used);
    assert!(
        notes.contains("the weights have none for noul and score questions, which are read at the last layer"),
        "{notes}"
    );
    let choice = json!({"tone": {"type": "choice", "criteria": {"calm": null, "angry": null}}});
    path.put("choice.json", choice.to_string());
    let of_choice = ["--input", "tone.jsonl", "--questions", "choice.json", "--dtype", "f32", "--model", model];
    let (_, notes) =
        finished("decide", path, &[&of_choice[..], &["--output", "choice.jsonl", "--weights", "w.json"]].concat());
    assert!(!notes.contains("the weights have none"), "{notes}");
    path.put("list.json", r#"["is short"]"#);
    path.write("in.jsonl", &[json!({"id": 1, "instruction": "?", "response": "It is."})]);
    let checklist = ["--input", "in.jsonl", "--checklist", "list.json", "--output", "o", "--weights", "w.json"];
    let of_model = ["--dtype", "f32", "--model", model];
    fails("checklist", path, &[&checklist[..], &of_model].concat(), &["have none for noul questions"]);
    path.write("rag.jsonl", &[json!({"id": 1, "contexts": ["In Paris."], "response": "It is."})]);
    let rag = ["--input", "rag.jsonl", "--output", "r", "--measures", "faithfulness", "--weights", "w.json"];
    fails("rag", path, &[&rag[..], &of_model].concat(), &["have none for noul questions"]);
}

/// The first option of the question passed for what most people chose where they were divided, so a judge that always says it was right.
#[test]
fn where_people_are_divided_no_answer_is_right() {
    let path = &Desk::new();
    let model = model(path, None);
    let tied = |n: usize| json!({"id": n, "state": format!("mail {n}"), "labels": {"tone": {"calm": 1, "angry": 1}}});
    path.write("tied.jsonl", &(0..4).map(tied).collect::<Vec<_>>());
    for (first, second) in [("calm", "angry"), ("angry", "calm")] {
        let question = json!({"tone": {"type": "choice", "criteria": {first: null, second: null}}});
        path.put("q.json", question.to_string());
        let args = ["--input", "tied.jsonl", "--questions", "q.json", "--dtype", "f32", "--model", &model];
        let more = ["--output", "out.jsonl", "--json", "figures.json", "--overwrite"];
        let said = succeed("decide", path, &[&args[..], &more].concat());
        assert!(said.contains("people are divided evenly on 4 decisions, counted in KL and Brier alone"), "{said}");
        let all = &path.json("figures.json")["all"];
        assert_eq!((&all["n"], &all["divided"]), (&json!(4), &json!(4)));
        for name in ["accuracy", "majority_share", "ece"] {
            assert!(all[name]["undefined"].is_string(), "{name}: {all}");
        }
        assert!(all["kl"]["estimate"].is_number() && all["brier"]["estimate"].is_number(), "{all}");
    }
}

#[test]
fn a_head_and_wrong_options_are_named() {
    let (path, model) = &desk(Some("decisions/jev_merged"));
    let args = [&ARGS[..], &[model, "--output", "answers.jsonl"]].concat();
    fails("decide", path, &args, &["decision_template.jinja"]);
    path.put("whole.jinja", "<s>{{ state }} {{ question.instructions }}:<|mark|>");
    let whole = [&args[..], &["--decision-template", "whole.jinja"]].concat();
    assert!(succeed("decide", path, &whole).contains("25 of 28 rows answered"));
    assert!(path.rows("answers.jsonl")[0].get("label_mass").is_none());
    for of_layers in [["--layers", "1"], ["--fit", "weights.json"]] {
        fails("decide", path, &[&whole[..], &of_layers, &["--overwrite"]].concat(), &["a head of its own"]);
    }
    path.put("broken.jinja", "{% if %}");
    for (extra, expected) in [
        (&["--layers", "most"][..], "expected last, all or a layer's number"),
        (&["--temperature", "noul=0"][..], "expected a number above 0"),
        (&["--temperature", "yesno=1"][..], "expected noul, choice or score"),
        (&["--decision-template", "broken.jinja"][..], "broken.jinja"),
        (&["--decision-config", "nowhere"][..], "there is no nowhere"),
        (&["--fit-temperature"][..], "--fit"),
    ] {
        fails("decide", path, &[&args[..], extra, &["--overwrite"]].concat(), &[expected]);
    }
    let without = ["--input", "states.jsonl", "--model", model, "--output", "x.jsonl"];
    fails("decide", path, &without, &["rows have no `questions`"]);
}

/// A service is asked as a model on this machine is read, in both forms, and its rows are resumed and measured alike.
#[test]
fn a_service_is_asked_as_a_model_is_read() {
    let (path, model) = &desk(None);
    let here = [&ARGS[..], &[model, "--output", "here.jsonl", "--json", "here.json"]].concat();
    succeed("decide", path, &here);
    let expected = path.rows("here.jsonl");
    let key = path.join("key");
    std::fs::write(&key, "secret-of-the-test").unwrap();
    let args = ["--quiet", "--model", model, "--dtype", "f32", "--name", "ours", "--label-mass", "--key-file"];
    let service = Service::start(&[&args[..], &[key.to_str().unwrap()]].concat());
    let base = format!("http://{}/v1", service.address);
    let ask = ["--input", "states.jsonl", "--questions", "questions.json", "--base-url", &base, "--api-model", "ours"];
    for (route, output) in [("systemone", "one.jsonl"), ("decisions", "two.jsonl")] {
        let args =
            [&ask[..], &["--route", route, "--output", output, "--json", "figures.json", "--overwrite"]].concat();
        let (code, said, told) = ran_with_key(path, &args, "secret-of-the-test");
        assert_eq!(code, Some(0), "{said}{told}");
        assert!(said.contains("25 of 28 rows answered") && said.contains("73 labelled decisions"), "{said}");
        assert!(said.contains("the service says that it answered with ours"), "{said}");
        let found = path.rows(output);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(near(&found["answers"], &expected["answers"]), "{found}\n{expected}");
            assert!(near(&found["label_mass"], &expected["label_mass"]), "{found}\n{expected}");
            assert_eq!(found["labels"], expected["labels"]);
        }
        // What does not fit the model is that row's fault, with the service's words.
        let unscored = &found[27]["unscored"];
        assert_eq!(unscored["reason"], "too_long");
        assert!(unscored["detail"].as_str().unwrap().contains("question \"refund\""), "{unscored}");
        let [here, there] = ["here.json", "figures.json"].map(|file| path.json(file));
        assert!(near(&there["all"], &here["all"]));
        let again = ran_with_key(path, &args[..args.len() - 1], "").1;
        assert!(again.contains("is complete: 25 of 28 rows answered"), "{again}");
    }
    let other = [&ask[..], &["--output", "no.jsonl"]].concat();
    let (code, _, told) = ran_with_key(path, &other, "wrong");
    assert!(code == Some(1) && told.contains("401") && !told.contains("secret"), "{told}");
    for extra in [&["--model", model][..], &["--layers", "1"], &["--fit", "w.json"], &["--price-in", "1"]] {
        fails("decide", path, &[&other[..], extra].concat(), &[extra[0]]);
    }
    fails("decide", path, &[&here[..], &["--no-key"]].concat(), &["--base-url"]);
}

/// Runs `judge decide` with a key in the environment.
fn ran_with_key(folder: &Path, args: &[&str], key: &str) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_judge"));
    let output = command.arg("decide").args(args).current_dir(folder).env("OPENAI_API_KEY", key).output().unwrap();
    let Said { code, stdout, stderr } = output.into();
    (code, stdout, stderr)
}

/// Whether two JSON values are equal but for the rounding of numbers.
fn near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-12,
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| near(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b)),
        _ => a == b,
    }
}
