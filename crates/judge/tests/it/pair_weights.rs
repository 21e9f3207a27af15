//! Layer weights that are fitted on pairs, as a user fits them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, finished, ran, read_json, refused, rows, succeed, words, write_rows};

/// Judges pairs at all layers, with the responses exchanged or not; `more` are further options.
fn judged(folder: &Path, exchanged: bool, output: &str, more: &[&str]) -> Vec<Value> {
    let row = |(id, raters): (usize, &[&str])| {
        let (good, bad) = (format!("It is {id}, and {id} alone."), "I do not know.".to_owned());
        let (a, b) = if (raters[0] == "B") == exchanged { (good, bad) } else { (bad, good) };
        let turned = |rater: &&str| {
            match (exchanged, *rater) {
                (true, "A") => "B",
                (true, "B") => "A",
                (_, same) => same,
            }
            .to_owned()
        };
        let human: Vec<String> = raters.iter().map(turned).collect();
        json!({"id": id, "instruction": "Which number?", "response_a": a, "response_b": b, "human": human})
    };
    // Ties and raters who disagree are between the points of a scale, and must not count for one side.
    let raters: [&[&str]; 6] = [&["A"], &["B"], &["tie"], &["A", "tie"], &["B", "tie"], &["A", "B"]];
    let input = format!("in-{output}");
    write_rows(folder.join(&input), &raters.into_iter().enumerate().map(row).collect::<Vec<_>>());
    let args = ["--input", &input, "--output", output, "--verdict", "layers", "--quiet"];
    succeed("prompt_judge", folder, &[&args[..], more].concat());
    rows(folder.join(output))
}

fn exchanged_pairs_teach_the_same(folder: &Path, family: &str, letters: &[(&str, &str)]) {
    let (one_file, other_file) = (format!("one-{family}.jsonl"), format!("other-{family}.jsonl"));
    let rows = judged(folder, false, &one_file, &["--template", family]);
    let other = judged(folder, true, &other_file, &["--template", family]);
    // The letters are those of the given order: what was read of one order is found in the other file, exchanged.
    for (one, other) in rows.iter().zip(&other) {
        for (mine, theirs) in [(0, 1), (1, 0)] {
            let (mine, theirs) = (&one["orders"][mine], &other["orders"][theirs]);
            for (letter, turned) in letters {
                assert_eq!(mine["logits"][letter], theirs["logits"][turned]);
                assert_eq!(mine["logits"][letter].as_array().map(Vec::len), mine["layers"].as_array().map(Vec::len));
            }
        }
    }
    // So either file teaches the same: the exchanged one has the same items, turned round, in another order.
    let fitted = |verdicts: &str| -> Value {
        let weights = format!("weights-{verdicts}");
        let more = ["--epochs", "3", "--batch", "12"];
        succeed("lager_evaluate", folder, &[&["--valid", verdicts, "--weights-out", &weights][..], &more].concat());
        read_json(folder.join(&weights))
    };
    let (one, other) = (fitted(&one_file), fitted(&other_file));
    let weights = |document: &Value| -> Vec<f64> {
        let text = document.to_string();
        let start = text.find("\"theta\":").expect("theta") + "\"theta\":".len();
        let end = start + text[start..].find(']').expect("a list") + 1;
        serde_json::from_str(&text[start..end]).expect("numbers")
    };
    let (one, other) = (weights(&one), weights(&other));
    assert!(one.iter().any(|theta| theta.abs() > 1e-6), "{one:?}");
    for (a, b) in one.iter().zip(&other) {
        assert!((a - b).abs() < 1e-9, "{one:?} {other:?}");
    }
}

#[test]
fn weights_are_fitted_on_pairs_and_used_on_others() {
    let folder = &Desk::new();
    // Where a judge cannot say that both are equal, a tie is no choice either.
    for (family, letters) in
        [("pair", &[("A", "B"), ("B", "A"), ("tie", "tie")][..]), ("pair-forced", &[("A", "B"), ("B", "A")])]
    {
        exchanged_pairs_teach_the_same(folder, family, letters);
    }
    let rows = judged(folder, false, "a.jsonl", &[]);
    let fit = ["--valid", "a.jsonl", "--weights-out", "a.json"];
    succeed("lager_evaluate", folder, &fit);
    let weighted = judged(folder, false, "c.jsonl", &["--weights", "a.json"]);
    let preference = |rows: &[Value]| rows.iter().map(|row| row["preference"].as_f64()).collect::<Vec<_>>();
    assert!(preference(&weighted).iter().all(Option::is_some));
    assert_ne!(preference(&weighted), preference(&rows), "the weights count");
    // In one order alone the place does not cancel: that is said.
    judged(folder, false, "given.jsonl", &["--orders", "given"]);
    let given = ["--valid", "given.jsonl", "--weights-out", "given.json", "--json", "given-fit.json"];
    assert!(
        succeed("lager_evaluate", folder, &given).contains("in the given order alone, in which what the place adds")
    );
    assert_eq!(folder.json("given-fit.json")["orders"], "given");

    // They were fitted on another question: that is said.
    let forced = ["--verdict", "layers", "--template", "pair-forced", "--weights", "a.json", "--output", "d.jsonl"];
    let (code, stdout, stderr) = ran("prompt_judge", folder, &[&["--input", "in-a.jsonl"][..], &forced].concat());
    let said = stdout + &stderr;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("fitted with the template") && said.contains("fitted on the scale"), "{said}");
}

#[test]
fn a_layer_is_chosen_and_measured_on_questions_that_did_not_choose_it() {
    let folder = &Desk::new();
    let generate = ["--pairs", "--split", "test", "--rows", "40", "--output", "pairs.jsonl"];
    succeed("generate_rows", folder, &generate);
    let judge = ["--input", "pairs.jsonl", "--template", "pair-forced", "--verdict", "layers", "--quiet"];
    let compare = |output: &str, more: &[&str]| {
        succeed("prompt_judge", folder, &[&judge[..], &["--output", output], more].concat());
        folder.rows(output)
    };
    let plain = compare("a.jsonl", &[]);
    let fit = ["--valid", "a.jsonl", "--layer", "best", "--weights-out", "best.json", "--json", "fit.json"];
    let said = succeed("lager_evaluate", folder, &fit);
    assert!(said.contains("best layer of other questions"), "{said}");
    let found = folder.json("fit.json");
    let readings = &found["readings"];
    let chosen = readings["chosen_layer"]["layer"].as_u64().expect("a layer") as usize;
    for name in ["last_layer", "mean_of_layers", "chosen_layer", "weights"] {
        // The raters of one pair are split.
        assert!(readings[name]["estimate"].is_f64() && readings[name]["n"] == 39, "{name}: {readings}");
    }

    // The log-odds of each order are those of the chosen layer alone, and its verdict is their mean's.
    let weighted = compare("best.jsonl", &["--weights", "best.json"]);
    for (plain, weighted) in plain.iter().zip(&weighted) {
        let mut sum = 0.0;
        for order in 0..2 {
            let logit = |letter: &str| plain["orders"][order]["logits"][letter][chosen].as_f64().expect("a logit");
            let p = |letter: &str| weighted["orders"][order]["probabilities"][letter].as_f64().expect("a probability");
            let odds = logit("A") - logit("B");
            assert!((p("A").ln() - p("B").ln() - odds).abs() < 1e-6 * odds.abs().max(1.0), "{odds}");
            sum += odds;
        }
        let verdict = if sum.abs() <= 2e-12 {
            "tie"
        } else if sum > 0.0 {
            "A"
        } else {
            "B"
        };
        assert_eq!(weighted["verdict"], verdict);
    }
    // As `judge bench` says of the same pairs.
    let bench = ["--benchmark", "pairs", "--data", "pairs.jsonl", "--verdicts", "a.jsonl", "--json", "bench.json"];
    succeed("pairwise_benchmark", folder, &bench);
    let bench = folder.json("bench.json");
    let last = bench["layers"].as_array().expect("layers").last().expect("a layer");
    assert_eq!(last["accuracy_mean_log_odds"]["estimate"], readings["last_layer"]["estimate"]);

    // Any layer may be named. All pairs about one question measure nothing that is chosen on them.
    let third = words("--valid b.jsonl --layer 3 --cluster split --weights-out third.json --json third-fit.json");
    let with_field: Vec<Value> = plain
        .iter()
        .map(|row| {
            let mut row = row.clone();
            row["split"] = "test".into();
            row
        })
        .collect();
    folder.write("b.jsonl", &with_field);
    fs::copy(folder.join("a.jsonl.run.json"), folder.join("b.jsonl.run.json")).expect("copied");
    let (said, told) = finished("lager_evaluate", folder, &third);
    assert!(said.contains("put on one layer): ") && said.contains("3: 1.000") && said.contains("undefined"), "{said}");
    assert!(!told.contains("are few"), "nothing is fitted: {told}");
    for (more, why) in [
        (&["--layer", "9"][..], "layer 9"),
        (&["--layer", "last"], "neither `best`"),
        (&["--cluster", "topic"], "topic"),
    ] {
        let args = [&["--valid", "a.jsonl", "--weights-out", "none.json"][..], more].concat();
        let (code, stdout, stderr) = ran("lager_evaluate", folder, &args);
        assert!(code != Some(0) && (stdout + &stderr).to_lowercase().contains(why), "{why}");
    }
}

#[test]
fn what_weights_cannot_be_fitted_on_is_refused() {
    let folder = &Desk::new();
    judged(folder, false, "a.jsonl", &[]);
    for (args, why) in
        [(&["--input", "a.jsonl", "--valid", "a.jsonl"][..], "judge bench"), (&["--valid", "a.jsonl"], "--weights-out")]
    {
        refused("lager_evaluate", folder, args, 2, &[why]);
    }
    // Grades of each response by itself have no logits of a choice.
    let apart = ["--input", "in-a.jsonl", "--output", "apart.jsonl", "--verdict", "layers", "--apart", "--quiet"];
    succeed("prompt_judge", folder, &apart);
    let fit = ["--valid", "apart.jsonl", "--weights-out", "w.json"];
    refused("lager_evaluate", folder, &fit, 1, &["orders", "--verdict layers"]);
}
