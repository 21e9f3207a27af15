//! `judge try`: every reading of a model on graded rows, and what is kept of it.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, fails, finished, refused, succeed};
use crate::serve::model_with_yes_and_no;

fn reading<'f>(figures: &'f Value, name: &str) -> &'f Value {
    let all = figures["readings"].as_array().unwrap();
    all.iter().find(|reading| reading["name"] == name).unwrap_or_else(|| panic!("{name}: {figures}"))
}

/// Runs the command that a reading is used by.
fn used(folder: &Path, figures: &Value, name: &str, output: &str) {
    let command = reading(figures, name)["use"]["command"].as_array().unwrap();
    let words: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
    let words: Vec<&str> = words
        .into_iter()
        .map(|word| match word {
            "ROWS" => "graded.jsonl",
            "JUDGED" => output,
            word => word,
        })
        .collect();
    let [program, command @ ..] = words.as_slice() else { panic!("{words:?}") };
    assert_eq!(*program, "judge");
    let (verb, rest) =
        if command[0] == "probe" { ("probe evaluate", &command[2..]) } else { (command[0], &command[1..]) };
    succeed(verb, folder, rest);
}

const FAST: [&str; 6] = ["--resamples", "1000", "--folds", "3", "--json", "tried.json"];

#[test]
fn rows_that_are_all_too_long_are_an_error_with_the_first() {
    let path = &Desk::new();
    succeed("rows", path, &["--output", "graded.jsonl", "--rows", "30"]);
    let mut graded = path.rows("graded.jsonl");
    graded.iter_mut().for_each(|row| row["response"] = json!("word ".repeat(5_000)));
    path.write("graded.jsonl", &graded);
    let args = [&["--input", "graded.jsonl"], FAST.as_slice()].concat();
    refused("try", path, &args, 1, &["none of 30 graded rows; the first is ", "too_long"]);
}

#[test]
fn every_reading_is_tried_and_can_be_judged_by() {
    let path = &Desk::new();
    succeed("rows", path, &["--output", "graded.jsonl", "--rows", "90"]);
    let args = [&["--input", "graded.jsonl", "--plot", "tried.svg", "--quiet"], FAST.as_slice()].concat();
    let (said, stderr) = finished("try", path, &args);
    let found = path.json("tried.json");
    // What is left out is no progress.
    let why = "its tokenizer has no labels for yes and no";
    assert!(stderr.contains(&format!("note: P(yes) is not tried: {why}")), "{stderr}");
    let left_out = ["last", "best"].map(|layer| json!({"name": format!("P(yes), {layer} layer"), "reason": why}));
    assert_eq!(found["not_tried"], json!(left_out));
    assert_eq!((&found["n"], &found["measure"]), (&json!(90), &json!("spearman")));
    assert!(said.contains("Use: ") && said.contains("judge ") && said.contains("graded.jsonl.try"), "{said}");
    let recommended = found["recommended"].as_str().unwrap();
    assert!(said.contains(&format!("Use: {recommended}.")), "{said}");

    let picture = path.text("tried.svg");
    assert!(picture.contains("probe where the score is read") && picture.contains("graded.jsonl, n = 90"), "{picture}");

    // The score is that of `judge score`, and its agreement that of `judge fit`.
    succeed("score", path, &["--input", "graded.jsonl", "--output", "scores.jsonl"]);
    succeed("fit", path, &["--input", "scores.jsonl", "--variants", "e_score,lager_wo", "--json", "fit.json"]);
    let fit = path.json("fit.json");
    for (name, variant) in [("score, last layer", "e_score"), ("score, mean of layers", "lager_wo")] {
        let [ours, theirs] = [&reading(&found, name)["agreement"], &fit["variants"][variant]["spearman"]]
            .map(|statistic| statistic["estimate"].as_f64().unwrap());
        assert!((ours - theirs).abs() < 1e-6, "{name}: {ours}, {theirs}");
    }
    // What is learnt is kept, and judges.
    for (name, output) in [
        ("score, mean of layers", "mean.jsonl"),
        ("score, best layer", "layer.jsonl"),
        ("score, weights of layers", "weights.jsonl"),
        ("probe where the score is read", "probe.jsonl"),
        ("probe after the response", "after.jsonl"),
    ] {
        used(path, &found, name, output);
        assert_eq!(path.rows(output).len(), 90, "{name}");
    }
    // That is the conversation, which asks nothing.
    let conversation = path.json("graded.jsonl.try/probe-after/quality.template.json");
    let turns = json!([{"role": "user", "content": "{instruction}"}, {"role": "assistant", "content": "{response}"}]);
    assert_eq!(conversation["chat"]["messages"], turns, "{conversation}");
    let of_rows = path.rows("graded.jsonl").into_iter().map(|row| {
        let turns = ["instruction", "response"].map(|field| row[field].clone());
        json!({"id": row["id"], "messages": [{"role": "user", "content": turns[0]}, {"role": "assistant", "content": turns[1]}]})
    });
    path.write("conversations.jsonl", &of_rows.collect::<Vec<_>>());
    succeed("states", path, &["--input", "conversations.jsonl", "--output", "states.safetensors"]);
    let after = path.read("graded.jsonl.try/conversation.states-00001-of-00001.safetensors");
    let expected = path.read("states.safetensors");
    let data = |file: &[u8]| file[8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize..].to_vec();
    assert!(data(&after) == data(&expected), "the states are not those of the conversations");
    // The number that was measured, and not the class beside it.
    let predicted = path.rows("probe.jsonl");
    let between = predicted.iter().filter(|row| row["quality"].as_f64().unwrap().fract() != 0.0).count();
    assert!(between > 80, "{between}");
    assert_eq!(predicted[0]["quality"], predicted[0]["total_score"]);
    assert!(reading(&found, "length of the response")["use"].is_null());
    let layer = reading(&found, "score, best layer")["use"]["layer"].as_u64().unwrap();
    let weights = path.json("graded.jsonl.try/layer.json");
    assert_eq!(weights["content"]["weights"][layer as usize], json!(1.0), "{weights}");

    // Read once: the same again is made of what is kept, and other rows are not taken for these.
    succeed("try", path, &args);
    assert_eq!(path.json("tried.json")["readings"], found["readings"]);
    let mut changed = path.rows("graded.jsonl");
    // Nor are other grades, of which something else is learnt; that is said before anything is compared.
    changed.iter_mut().enumerate().for_each(|(n, row)| row["other"] = json!(1 + n * 7 % 5));
    path.write("graded.jsonl", &changed);
    let regraded = [&args[..], &["--columns", "human=other"]].concat();
    refused("try", path, &regraded, 2, &["quality.safetensors was learnt of other grades", "--overwrite"]);
    changed[3]["response"] = json!("Another one.");
    path.write("graded.jsonl", &changed);
    fails("try", path, &args, &["made with other settings", "choose another output"]);
}

/// A chat template may refuse what ends with an answer.
#[test]
fn conversations_that_are_refused_cost_no_rows() {
    let path = &Desk::new();
    succeed("rows", path, &["--output", "graded.jsonl", "--rows", "60"]);
    let model = model_with_yes_and_no(path);
    let template = "{% if messages[-1].role == 'assistant' %}{{ raise_exception('no answers here') }}{% endif %}\
                    {% for m in messages %}{{ m.content + '\\n' }}{% endfor %}";
    std::fs::write(model.join("chat_template.jinja"), template).unwrap();
    let args = [&["--input", "graded.jsonl", "--model", model.to_str().unwrap()], FAST.as_slice()].concat();
    let (_, stderr) = finished("try", path, &args);
    let found = path.json("tried.json");
    let name = "probe after the response";
    let not_tried = found["not_tried"].as_array().unwrap().iter().find(|of| of["name"] == name).unwrap();
    assert!(not_tried["reason"].as_str().unwrap().contains("no answers here"), "{not_tried}");
    assert_eq!(found["n"], json!(60));
    assert!(stderr.contains("note: the probe after the response is not tried: "), "{stderr}");
    assert!(found["readings"].as_array().unwrap().iter().all(|reading| reading["name"] != name));
}

#[test]
fn a_model_that_can_say_yes_is_asked_so() {
    let path = &Desk::new();
    let model = model_with_yes_and_no(path).to_str().unwrap().to_owned();
    let graded = |id: usize| {
        let grade = if id % 7 == 3 { Value::Null } else { json!(id % 5 % 2) };
        json!({"id": id, "instruction": format!("{id} + 4?"), "response": format!("It is {id}."), "human": grade})
    };
    path.write("graded.jsonl", &(0..70).map(graded).collect::<Vec<_>>());
    let args = [&["--input", "graded.jsonl", "--model", &model], FAST.as_slice()].concat();
    let said = succeed("try", path, &args);
    let found = path.json("tried.json");
    // Of two grades it is how well they are told apart.
    assert_eq!((&found["n"], &found["ungraded"], &found["measure"]), (&json!(60), &json!(10), &json!("auroc")));
    assert!(said.contains("AUROC") && found["not_tried"].is_null(), "{said} {found}");
    used(path, &found, "P(yes), last layer", "yes.jsonl");
    used(path, &found, "P(yes), best layer", "yes.layer.jsonl");
    // What was read of a row is its probability of yes: the same order of rows.
    let judged = path.rows("yes.jsonl");
    let pairs: Vec<(f64, bool)> =
        judged.iter().filter_map(|row| Some((row["score"].as_f64()?, row["human"].as_f64()? == 1.0))).collect();
    let (mut above, mut all) = (0.0, 0.0);
    for (yes, _) in pairs.iter().filter(|(_, good)| *good) {
        for (no, _) in pairs.iter().filter(|(_, good)| !good) {
            all += 1.0;
            above += if yes > no {
                1.0
            } else if yes == no {
                0.5
            } else {
                0.0
            };
        }
    }
    let ours = reading(&found, "P(yes), last layer")["agreement"]["estimate"].as_f64().unwrap();
    assert!((ours - above / all).abs() < 1e-6, "{ours}, {}", above / all);

    // By the other lens inner layers give other logits, and the command says so.
    let args =
        [&["--input", "graded.jsonl", "--model", &model, "--lens", "normed", "--output", "normed"], FAST.as_slice()];
    succeed("try", path, &[args.concat(), vec!["--overwrite"]].concat());
    let found = path.json("tried.json");
    let command = &reading(&found, "P(yes), best layer")["use"]["command"];
    assert!(command.as_array().unwrap().contains(&json!("normed")), "{command}");
    used(path, &found, "P(yes), best layer", "yes.normed.jsonl");
    let tables = |of: &str| std::fs::read(path.join(of).join("yes-00001-of-00001.safetensors")).unwrap();
    assert!(tables("graded.jsonl.try") != tables("normed"));
}

#[test]
fn of_several_answers_to_a_question_each_reading_chooses_one() {
    let path = &Desk::new();
    succeed("rows", path, &["--output", "graded.jsonl", "--rows", "60"]);
    let mut graded = path.rows("graded.jsonl");
    let rubric = graded[0]["rubric"].clone();
    // Three answers to each question; nobody prefers one of the first question's.
    for (place, row) in graded.iter_mut().enumerate() {
        row["instruction"] = json!(format!("Question {}?", place / 3));
        row["rubric"] = rubric.clone();
        row["human"] = json!(if place < 3 { 2 } else { 1 + place % 3 });
    }
    path.write("graded.jsonl", &graded);
    let said = succeed("try", path, &[&["--input", "graded.jsonl", "--embedded"], FAST.as_slice()].concat());
    let found = path.json("tried.json");
    let of = &found["best_of"];
    assert_eq!(of["questions"], json!(19));
    assert!((of["at_random"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{of}");
    assert!(said.contains("best of the answers to 19 questions") && said.contains("drawn at random"), "{said}");
    // The length's choice, counted here.
    let length = |row: &Value| row["response"].as_str().unwrap().chars().count();
    let chosen = graded[3..].chunks(3).map(|answers| {
        let most = answers.iter().map(length).max().unwrap();
        let longest = answers.iter().filter(|row| length(row) == most);
        longest.clone().filter(|row| row["human"] == json!(3)).count() as f64 / longest.count() as f64
    });
    let expected = chosen.sum::<f64>() / 19.0;
    let chosen = reading(&found, "length of the response")["best_chosen"]["estimate"].as_f64().unwrap();
    assert!((chosen - expected).abs() < 1e-9, "{chosen}, {expected}");
}

#[test]
fn what_cannot_be_tried_is_refused_with_what_to_do() {
    let path = &Desk::new();
    let fails_with = |rows: &[Value], more: &[&str], said: &str| {
        path.write("in.jsonl", rows);
        fails("try", path, &[&["--input", "in.jsonl"], more].concat(), &[said]);
    };
    let row = |id: usize, human: Value| json!({"id": id, "instruction": "What?", "response": format!("{id}"), "human": human});
    let pair = json!({"id": 1, "instruction": "What?", "response_a": "a", "response_b": "b", "human": "A"});
    fails_with(&[pair], &[], "judge fit --valid");
    fails_with(&[row(1, Value::Null)], &[], "no row has a grade");
    let alike: Vec<Value> = (0..20).map(|id| row(id, json!(3))).collect();
    fails_with(&alike, &["--output", "alike"], "the grade 3");
    let few: Vec<Value> = (0..20).map(|id| row(id, json!(id % 5))).collect();
    // All rows have one question.
    fails_with(&few, &["--output", "few"], "two for each fold");
    fails_with(&few, &["--group", "nothing"], "--group");
}
