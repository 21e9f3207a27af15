//! Choosing instruction data: every row graded or listed, choices by hand, forms of fine-tuning tools, and another choice without a model.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, QUICK_PROBES, finished, refused, rows, succeed, words};

const ASPECTS: [&str; 7] = [
    "answer_accuracy",
    "logical_consistency",
    "relevance",
    "fluency_and_clarity",
    "length_appropriateness",
    "diversity",
    "instruction_difficulty",
];

fn own(file: &str) -> Vec<Value> {
    rows(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data_selection").join(file))
}

fn chosen(rows: &[Value]) -> Vec<usize> {
    (0..rows.len()).filter(|&row| rows[row]["selected"] == true).collect()
}

#[test]
fn examples_are_graded_and_the_best_chosen() {
    let folder = &Desk::new();
    let mut input = own("examples.jsonl");
    assert!(input.len() >= 32);
    input[5]["output"] = json!("wow ".repeat(2_000));
    input[7].as_object_mut().expect("an object").remove("id");
    folder.write("in.jsonl", &input);
    let args =
        "--input in.jsonl --output out.jsonl --json out.json --selected chosen.jsonl --format sharegpt --top 0.25";
    let args = words(args);
    let said = succeed("data_selection", folder, &args);
    assert!(said.contains("8 of 32 rows chosen by score, 1 without a number"), "{said}");
    assert!(said.contains("no relevance: 1 too_long"), "{said}");
    let graded = folder.rows("out.jsonl");
    let record = folder.json("out.jsonl.aspects.jsonl.run.json");
    let settings = record["content"]["settings"].as_object().expect("settings");
    assert!(!settings.contains_key("carry"), "of instruction data no field is carried: {settings:?}");
    let mut scores = Vec::new();
    for (place, (item, row)) in input.iter().zip(&graded).enumerate() {
        for (field, value) in item.as_object().expect("an object") {
            assert_eq!(&row[field], value, "row {place}");
        }
        assert_eq!(row["id"], item.get("id").cloned().unwrap_or(json!(place)));
        if place == 5 {
            assert_eq!((&row["score"], &row["selected"], &row["aspects"]), (&Value::Null, &json!(false), &json!({})));
            assert_eq!(row["unscored"]["diversity"]["reason"], "too_long");
            continue;
        }
        let of = |variant: &str| -> Vec<f64> {
            ASPECTS.iter().map(|aspect| row["variants"][variant][aspect].as_f64().expect("a score")).collect()
        };
        assert!(of("direct_score").iter().all(|score| (1.0..=9.0).contains(score) && score.fract() == 0.0));
        assert!(of("lager_wo").iter().all(|score| (1.0..=9.0).contains(score)));
        assert_eq!(row["aspects"], row["variants"]["e_score"]);
        let mean = of("e_score").iter().sum::<f64>() / 7.0;
        let score = row["score"].as_f64().expect("a score");
        assert!((score - mean).abs() < 1e-12);
        scores.push((place, score));
    }
    scores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut best: Vec<usize> = scores[..8].iter().map(|(place, _)| *place).collect();
    best.sort_unstable();
    assert_eq!(chosen(&graded), best);
    let picked = folder.rows("chosen.jsonl");
    assert_eq!(picked.len(), 8);
    for (row, &place) in picked.iter().zip(&best) {
        let turns = &row["conversations"];
        assert_eq!((&turns[0]["from"], &turns[1]["value"]), (&json!("human"), &input[place]["output"]));
        let asked = turns[0]["value"].as_str().expect("text");
        assert!(asked.starts_with(input[place]["instruction"].as_str().expect("text")));
        assert!(asked.ends_with(input[place]["input"].as_str().expect("text")));
    }
    let report = folder.json("out.json");
    assert_eq!((&report["n"], &report["chosen"], &report["without"]), (&json!(32), &json!(8), &json!(1)));
    assert_eq!(report["missing"]["relevance"], json!({"too_long": 1}));
    assert_eq!(report["duplicates"]["rows"], 1);
    assert_eq!(report["duplicates"]["first"][0], json!({"row": 10, "like": 8, "similarity": 1.0}));
    assert_eq!(report["choices"][0]["overlap"]["share"], 1.0);
    let names: Vec<&str> = report["choices"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["criterion"].as_str().expect("text"))
        .collect();
    assert_eq!(names, ["score", "direct", "expected", "longest", "random"]);

    // The grade of one aspect is what the program that grades anything gives, asked with the same words.
    let plain: Vec<Value> = input
        .iter()
        .enumerate()
        .filter(|(place, item)| item["input"] == "" && *place != 5)
        .map(|(place, item)| json!({"id": place, "instruction": item["instruction"], "response": item["output"]}))
        .collect();
    folder.write("plain.jsonl", &plain);
    let rubric = "Give a number from 1 to 9: Does it answer what was asked?";
    succeed(
        "lager_pointwise",
        folder,
        &["--input", "plain.jsonl", "--output", "alone.jsonl", "--points", "9", "--rubric", rubric, "--quiet"],
    );
    for row in folder.rows("alone.jsonl") {
        let place = usize::try_from(row["id"].as_u64().expect("a place")).expect("small");
        assert_eq!(graded[place]["aspects"]["relevance"], row["score"], "row {place}");
    }

    // The same again does nothing; another choice of the same rows needs no model.
    let (said, stderr) = finished("data_selection", folder, &args);
    assert!(said.contains("out.jsonl is complete") && !stderr.contains("model tiny-judge"), "{stderr}");
    let other = ["--input", "in.jsonl", "--output", "out.jsonl", "--threshold", "3"];
    refused("data_selection", folder, &other, 2, &["threshold"]);
    let (_, stderr) = finished("data_selection", folder, &[&other[..], &["--overwrite"]].concat());
    assert!(!stderr.contains("model tiny-judge"), "{stderr}");
    let graded = folder.rows("out.jsonl");
    assert!(graded.iter().all(|row| row["selected"] == row["score"].as_f64().is_some_and(|score| score >= 3.0)));
}

#[test]
fn conversations_are_read_and_baselines_choose() {
    let folder = &Desk::new();
    let input = own("conversations.jsonl");
    folder.write("in.jsonl", &input);
    let choose = |name: &str, more: &[&str]| {
        let output = format!("{name}.jsonl");
        let args = [&["--input", "in.jsonl", "--output", &output, "--top", "0.4", "--baseline", name, "--quiet"], more]
            .concat();
        let said = succeed("data_selection", folder, &args);
        (folder.rows(output), said)
    };
    let (longest, _) = choose("longest", &["--selected", "alpaca.jsonl", "--format", "alpaca"]);
    assert_eq!(chosen(&longest), [0, 3]);
    assert!(longest.iter().all(|row| row.get("aspects").is_none()), "no aspect was asked");
    let alpaca = folder.rows("alpaca.jsonl");
    assert_eq!(alpaca[0]["history"], json!([["Name a river in Spain.", "The Ebro."]]));
    assert_eq!((&alpaca[1]["instruction"], &alpaca[1]["input"]), (&json!("Is a tomato a fruit?"), &json!("")));

    let (likely, said) = choose("perplexity", &["--compare", "difficulty,random"]);
    assert!(said.contains("no likelihood: 1 missing"), "{said}");
    let mut by: Vec<(f64, usize)> = Vec::new();
    for (place, row) in likely.iter().enumerate().take(4) {
        let found = &row["likelihood"];
        let (log_prob, perplexity) =
            (found["log_prob"].as_f64().expect("a number"), found["perplexity"].as_f64().expect("a number"));
        assert!((perplexity.ln() + log_prob).abs() < 1e-9 && found["difficulty"].as_f64().expect("a number") > 0.0);
        assert_eq!(row["score"], found["log_prob"]);
        by.push((perplexity, place));
    }
    by.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best = [by[0].1, by[1].1];
    best.sort_unstable();
    assert_eq!(chosen(&likely), best);
    assert_eq!(likely[4]["unscored"]["likelihood"]["reason"], "missing");

    let seeds: Vec<Vec<usize>> = ["1", "2", "3", "4", "5", "6"]
        .map(|seed| {
            let (drawn, _) = choose("random", &["--seed", seed, "--overwrite"]);
            let (again, _) = choose("random", &["--seed", seed, "--overwrite"]);
            assert_eq!(drawn, again);
            chosen(&drawn)
        })
        .into();
    assert!(seeds.iter().any(|rows| *rows != seeds[0]));
}

/// A row without an answer has no number, whatever rows are chosen by, so no form of it is written.
#[test]
fn a_row_that_cannot_be_read_is_never_chosen() {
    let folder = &Desk::new();
    let mut input = own("examples.jsonl");
    input.truncate(6);
    input[2]["output"] = Value::Null;
    folder.write("in.jsonl", &input);
    for by in ["random", "longest"] {
        let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--baseline", by, "--top", "1", "--overwrite"];
        let form = ["--selected", "chosen.jsonl", "--format", "alpaca", "--json", "out.json"];
        let said = succeed("data_selection", folder, &[&args[..], &form[..]].concat());
        assert!(said.contains("5 of 6 rows chosen") && said.contains("no score: 1 missing"), "{by}: {said}");
        let row = &folder.rows("out.jsonl")[2];
        assert_eq!((&row["score"], &row["selected"]), (&Value::Null, &json!(false)), "{by}");
        assert_eq!(row["unscored"]["score"]["reason"], "missing", "{by}: {row}");
        let chosen = folder.rows("chosen.jsonl");
        assert!(chosen.len() == 5 && chosen.iter().all(|row| row["output"].is_string()), "{by}: {chosen:?}");
        let report = folder.json("out.json");
        assert_eq!((&report["without"], &report["missing"]), (&json!(1), &json!({"score": {"missing": 1}})), "{by}");
    }
}

#[test]
fn of_an_empty_choice_nothing_is_a_number() {
    let folder = &Desk::new();
    folder.write("in.jsonl", &own("examples.jsonl"));
    let args = words("--input in.jsonl --output out.jsonl --baseline longest --threshold 1e9 --json out.json --quiet");
    let said = succeed("data_selection", folder, &args);
    let score: Vec<&str> =
        said.lines().find(|line| line.starts_with("score")).expect("a line").split_whitespace().collect();
    assert_eq!(score[score.len() - 2..], ["–", "–"], "{said}");
    let report = folder.json("out.json");
    for (name, found) in report["distributions"].as_array().expect("a list").iter().map(|one| (&one[0], &one[1])) {
        assert!(found["before"]["mean"].is_f64(), "{name}: {found}");
        let after = &found["after"];
        assert_eq!(
            (&after["n"], &after["mean"], &after["deviation"]),
            (&json!(0), &Value::Null, &Value::Null),
            "{name}"
        );
    }
}

#[test]
fn a_diverse_choice_passes_over_copies() {
    let folder = &Desk::new();
    let mut input = own("examples.jsonl");
    let mut copy = input[0].clone();
    copy["id"] = json!("copy");
    copy["output"] = json!(format!("{} ", input[0]["output"].as_str().expect("text")));
    input.push(copy);
    folder.write("in.jsonl", &input);
    let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--top", "0.6", "--quiet", "--json", "out.json"];
    succeed("data_selection", folder, &args);
    assert_eq!(folder.json("out.json")["near_duplicates"], Value::Null);
    let diverse = [&args[..], &["--diversity", "0.9", "--overwrite"]].concat();
    let said = succeed("data_selection", folder, &diverse);
    assert!(said.contains("passed over beside a chosen one"), "{said}");
    let graded = folder.rows("out.jsonl");
    let both = |a: usize, b: usize| graded[a]["selected"] == true && graded[b]["selected"] == true;
    assert!(!both(0, 32) && !both(8, 10), "a copy is chosen beside its original");
    assert_eq!(chosen(&graded).len(), 19);
    let near = &folder.json("out.json")["near_duplicates"];
    assert!(near["rows"].as_u64().expect("a count") >= 1);
    assert!(
        near["first"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|one| one["similarity"].as_f64().expect("a cosine") >= 0.95)
    );
}

#[test]
fn rubrics_of_your_own_people_and_groups() {
    let folder = &Desk::new();
    let planted = ["--split", "test", "--rows", "40", "--truth", "--output", "in.jsonl"];
    succeed("generate_rows", folder, &planted);
    let rubrics = json!([
        {"name": "right", "question": "Is it right?", "levels": ["no", "in part", "yes"]},
        {"name": "brief", "question": "Is it brief?", "levels": ["no", "in part", "yes"]},
    ]);
    folder.put("rubrics.json", rubrics.to_string());
    let files = words("--input in.jsonl --columns human=quality --output out.jsonl --json out.json --quiet");
    let args = words("--rubrics rubrics.json --top 0.2 --groups defects --aspects right");
    let said = succeed("data_selection", folder, &[files, args].concat());
    assert!(said.contains("among people's best") && said.contains("let through"), "{said}");
    let (graded, report) = (folder.rows("out.jsonl"), folder.json("out.json"));
    assert!(graded.iter().all(|row| row["aspects"].as_object().expect("an object").keys().eq(["right"])));
    // By hand: people's best, and a defect among the chosen.
    let quality = |row: &Value| row["quality"].as_f64().expect("a number");
    let mut all: Vec<f64> = graded.iter().map(quality).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    let picked = chosen(&graded);
    let good = picked.iter().filter(|&&row| quality(&graded[row]) >= all[picked.len() - 1]).count();
    let human = &report["choices"][0]["human"];
    assert_eq!((&human["precision"]["count"], &human["precision"]["n"]), (&json!(good), &json!(8)));
    let mean = picked.iter().map(|&row| quality(&graded[row])).sum::<f64>() / 8.0;
    assert!((human["mean"].as_f64().expect("a mean") - mean).abs() < 1e-12);
    for (defect, share) in report["choices"][0]["let_through"].as_object().expect("groups") {
        let with: Vec<&Value> =
            graded.iter().filter(|row| row["defects"].as_array().expect("a list").contains(&json!(defect))).collect();
        let through = with.iter().filter(|row| row["selected"] == true).count();
        assert_eq!((&share["count"], &share["n"]), (&json!(through), &json!(with.len())), "{defect}");
    }
}

/// A probe is asked what it was trained on, each row's rubric included, and an aspect of its name is another judge.
#[test]
fn a_probe_sees_what_a_row_has_besides() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--output", "graded.jsonl", "--rows", "40"]);
    succeed("inspector_train", folder, &words(QUICK_PROBES));
    let mut input = folder.rows("graded.jsonl");
    input.truncate(12);
    input[3]["response"] = json!("wow ".repeat(2_000));
    folder.write("in.jsonl", &input);
    let rubrics = json!([{"name": "quality", "question": "Is it right?", "levels": ["no", "in part", "yes"]}]);
    folder.put("rubrics.json", rubrics.to_string());
    succeed("inspector_evaluate", folder, &words("--input in.jsonl --probes probes --output judged.jsonl --quiet"));
    let args = words("--input in.jsonl --output out.jsonl --json out.json --baseline probe --probes probes --quiet");
    succeed("data_selection", folder, &[&args[..], &["--compare", "score", "--rubrics", "rubrics.json"]].concat());
    let graded = folder.rows("out.jsonl");
    for (row, judged) in graded.iter().zip(folder.rows("judged.jsonl")) {
        let [here, there] = [&row["score"], &judged["expected_total"]].map(Value::as_f64);
        let apart = here.zip(there).map(|(here, there)| (here - there).abs());
        assert!(here.is_some() == there.is_some() && apart.is_none_or(|apart| apart < 1e-9), "{here:?} {there:?}");
    }
    assert_eq!(graded.iter().filter(|row| row["score"].is_f64()).count(), 11);
    let missing = json!({"quality": {"too_long": 1}, "probe quality": {"too_long": 1}});
    assert_eq!(folder.json("out.json")["missing"], missing);
    assert_eq!(graded[3]["unscored"].as_object().expect("reasons").len(), 2, "{}", graded[3]);
}

/// A template shows other fields of the rows, and a rubric of a row's own is not the question of an aspect.
#[test]
fn a_template_may_name_any_field_of_the_rows() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--output", "in.jsonl", "--rows", "4", "--truth"]);
    let template = |content: &str| {
        let template = json!({"chat": {"messages": [{"role": "user", "content": content}]}});
        folder.put("t.json", template.to_string());
    };
    let args = words("--input in.jsonl --output out.jsonl --template t.json --aspects relevance --overwrite --quiet");
    let graded = || {
        succeed("data_selection", folder, &args);
        folder.rows("out.jsonl").iter().map(|row| row["score"].clone()).collect::<Vec<_>>()
    };
    template("{topic}: {instruction}\n{response}\n{rubric}\nscore: ");
    let with_rubrics = graded();
    assert!(with_rubrics.iter().all(Value::is_f64), "{with_rubrics:?}");
    let mut input = folder.rows("in.jsonl");
    input.iter_mut().for_each(|row| _ = row.as_object_mut().expect("an object").remove("rubric"));
    folder.write("in.jsonl", &input);
    assert_eq!(graded(), with_rubrics);
    template("{subject}: {response}\n{rubric}");
    let args = words("--input in.jsonl --output none.jsonl --template t.json --aspects relevance");
    refused("data_selection", folder, &args, 1, &["in.jsonl: none of the first 4 rows has the field \"subject\""]);
    assert!(!folder.join("none.jsonl.aspects.jsonl").exists());
}

/// Ids of the output are those of the files beside it, and what was to be no id or no grade is none.
#[test]
fn ids_are_those_of_the_rows_and_odd_grades_are_counted() {
    let folder = &Desk::new();
    let row =
        |id: &Value, human: Value| json!({"id": id, "key": "k", "instruction": "?", "output": "!", "human": human});
    let select = |input: &str, columns: &str| {
        let args = ["--input", input, "--output", "o.jsonl", "--baseline", "longest", "--top", "1", "--overwrite"];
        let columns: &[&str] = if columns.is_empty() { &[] } else { &["--columns", columns] };
        let (_, told) = finished("data_selection", folder, &[&args[..], columns].concat());
        (folder.rows("o.jsonl"), told)
    };
    let ids = |rows: &[Value]| rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    folder.put("in.csv", "id,instruction,output\n,a,b\n,c,d\n");
    assert_eq!(ids(&select("in.csv", "").0), [json!(0), json!(1)]);
    let twice = [row(&json!("x"), json!("N/A")), row(&json!("x"), json!([3, "x"])), row(&Value::Null, json!(2))];
    folder.write("in.jsonl", &twice);
    let (found, told) = select("in.jsonl", "id=");
    assert_eq!(ids(&found), [json!(0), json!(1), json!(2)]);
    assert!(told.contains("in 2 of 3 rows what people gave is no grade and is left out; the first is 0: "), "{told}");
    let mut scored = row(&json!("a"), json!(1));
    scored["score"] = json!(7);
    folder.write("in.jsonl", std::slice::from_ref(&scored));
    let (found, _) = select("in.jsonl", "human=");
    assert_eq!((&found[0]["id"], &found[0]["score"]), (&json!("a"), &json!(1.0)));
    // Of two ids one would be lost.
    let args = words("--input in.jsonl --output o.jsonl --baseline longest --overwrite --columns");
    let clash = ["the input has a field \"id\""];
    refused("data_selection", folder, &[&args[..], &["human=,id=key"]].concat(), 1, &clash);
}

#[test]
fn wrong_use_and_wrong_rows_are_said_before_any_model_work() {
    let folder = &Desk::new();
    let fails = |rows: &[Value], args: &[&str], code: i32, said: &str| {
        folder.write("in.jsonl", rows);
        let all = [&["--input", "in.jsonl", "--output", "out.jsonl", "--quiet"], args].concat();
        refused("data_selection", folder, &all, code, &[said]);
        assert!(!folder.join("out.jsonl").exists() && !folder.join("out.jsonl.aspects.jsonl").exists());
    };
    let good = json!({"id": 1, "instruction": "Is it?", "output": "It is."});
    let one = std::slice::from_ref(&good);
    fails(one, &["--top", "2"], 2, "--top 2 is not between 0 and 1");
    fails(one, &["--top", "0"], 2, "--top 0 would choose no row");
    fails(one, &["--top", "0.1", "--threshold", "3"], 2, "cannot be used with");
    fails(one, &["--diversity", "0.5", "--threshold", "3"], 2, "cannot be used with");
    fails(one, &["--format", "alpaca"], 2, "--selected");
    fails(one, &["--aspects", "beauty"], 2, "there is no aspect \"beauty\"");
    fails(one, &["--baseline", "probe"], 2, "needs --probes");
    fails(one, &["--condition", "reasoning"], 2, "--condition reasoning needs --template");
    fails(one, &["--rubric", "r"], 2, "asks about each aspect in its own words");
    fails(one, &["--groups", "source"], 2, "no row has this field");
    for ignored in ["--points 9", "--weights w.json", "--rubric r", "--condition direct", "--aspects relevance"] {
        let args = format!("--baseline longest {ignored}");
        fails(one, &words(&args), 2, "with --baseline longest no aspect is graded");
    }
    fails(&[good.clone(), good.clone()], &[], 1, "appears twice");
    fails(&[json!({"id": 1, "instruction": "Is it?"})], &[], 1, "response");
    fails(&[json!({"id": 1, "instruction": "Is it?", "output": ["It", "is"]})], &[], 1, "output");
    fails(&[json!({"id": 1, "instruction": "Is it?", "output": "It is.", "selected": true})], &[], 1, "\"selected\"");
    fails(&[], &[], 1, "in.jsonl");
}
