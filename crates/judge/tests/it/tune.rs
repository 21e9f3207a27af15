//! `judge tune`: what it learns from rows, what it writes, and that a run that was stopped ends with the same bytes.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tiny_judge::planted::{Split, generate};

use crate::program::{
    Desk, embedded_model, fails, finished, fixture, judge, ran, refused, rows, succeed, turn, words, write_rows,
};

const QUICK: [&str; 11] =
    ["--top-blocks", "1", "--rank", "2", "--epochs", "2", "--lr", "0.005", "--batch-size", "4", "--quiet"];

/// A folder with graded rows in `in.jsonl` and `held-out.jsonl`.
fn graded() -> Desk {
    let folder = Desk::new();
    let row = |(id, item): (usize, tiny_judge::planted::Item)| json!({"id": id, "instruction": item.instruction, "response": item.response, "rubric": item.rubric, "human": item.scores});
    let of = |split, n| generate(split, n, 0).into_iter().enumerate().map(row).collect::<Vec<_>>();
    folder.write("in.jsonl", &of(Split::Train, 24));
    folder.write("held-out.jsonl", &of(Split::Validation, 12));
    folder
}

fn tune(folder: &Path, args: &[&str]) -> String {
    succeed("tune", folder, &[&QUICK[..], args].concat())
}

/// The mean distance of the scores in `scores.jsonl` from people's means.
fn distance_from_people(folder: &Path) -> f64 {
    let distance = |row: &Value| {
        let human: Vec<f64> = row["human"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        (row["score"].as_f64().unwrap() - human.iter().sum::<f64>() / human.len() as f64).abs()
    };
    let scored = rows(folder.join("scores.jsonl"));
    scored.iter().map(distance).sum::<f64>() / scored.len() as f64
}

#[test]
fn marks_are_learned_measured_and_read_back() {
    let path = &graded();
    let args = ["--input", "in.jsonl", "--eval", "held-out.jsonl", "--output", "tuned", "--json", "a.json"];
    let said = tune(path, &args);
    assert!(said.contains("24 examples, 12 steps") && said.contains("use it with --adapter tuned"), "{said}");
    assert!(said.contains("held out, spearman:") && said.contains("held out, ece:"), "{said}");
    let report = path.json("a.json");
    let held_out = report["held_out"].as_array().unwrap();
    assert_eq!(held_out.iter().map(|at| at["step"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 6, 12]);
    let log = path.rows("tuned.log.jsonl");
    assert_eq!(log.iter().filter(|line| line["loss"].is_number()).count(), 12);
    assert_eq!(log.iter().filter(|line| line["held_out"].is_object()).count(), 3);
    assert!(!path.join("tuned.checkpoint.safetensors").exists() && !path.join("tuned.best.safetensors").exists());
    // The embedded model has no lasting place that could be named.
    assert!(path.json("tuned/adapter_config.json")["base_model_name_or_path"].is_null());
    // The judge with the adapter gives the marks that were measured: their mean distance from people's is the same.
    let kept = &report["kept_step"];
    let of_kept = held_out.iter().find(|at| at["step"] == *kept).unwrap();
    let score = ["--input", "held-out.jsonl", "--output", "scores.jsonl", "--adapter", "tuned", "--dtype", "f32"];
    succeed("score", path, &score);
    let mae = distance_from_people(path);
    assert!((mae - of_kept["figures"]["mae"].as_f64().unwrap()).abs() < 1e-4, "{mae} {of_kept}");
    refused("tune", path, &[&QUICK[..], &args].concat(), 2, &["tuned exists"]);
}

/// Weights of all layers are learned with an adapter, and the judge that reads with both gives the marks that were measured.
#[test]
fn layer_weights_are_learned_and_read_back() {
    let path = &graded();
    let args = ["--input", "in.jsonl", "--eval", "held-out.jsonl", "--output", "tuned", "--json", "a.json"];
    let said = tune(path, &[&args[..], &["--learn-weights"]].concat());
    let with = "use it with --adapter tuned --weights tuned.weights.json --dtype f32: judge score";
    assert!(said.contains(with), "{said}");
    let report = path.json("a.json");
    let held_out = report["held_out"].as_array().unwrap();
    let kept = held_out.iter().find(|at| at["step"] == report["kept_step"]).unwrap();
    let weights = path.json("tuned.weights.json");
    let weights: Vec<f64> =
        weights["content"]["weights"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    assert!(weights.len() == 7 && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{weights:?}");
    assert!(weights[6] > weights[0], "the last layer knows more than the first: {weights:?}");
    let score = ["--input", "held-out.jsonl", "--output", "scores.jsonl", "--dtype", "f32"];
    let read = ["--adapter", "tuned", "--weights", "tuned.weights.json"];
    succeed("score", path, &[&score[..], &read].concat());
    let mae = distance_from_people(path);
    assert!((mae - kept["figures"]["mae"].as_f64().unwrap()).abs() < 1e-4, "{mae} {kept}");
    // They belong to the tuned model.
    let line = [&score[..], &["--weights", "tuned.weights.json", "--overwrite"]].concat();
    refused("score", path, &line, 1, &["weights"]);
    // A file of weights is kept, as the log is.
    fs::remove_dir_all(path.join("tuned")).unwrap();
    fs::remove_file(path.join("tuned.log.jsonl")).unwrap();
    refused("tune", path, &[&QUICK[..], &args, &["--learn-weights"]].concat(), 2, &["tuned.weights.json exists"]);
    let args = ["--input", "in.jsonl", "--output", "other", "--weights", "tuned.weights.json"];
    refused("tune", path, &[&QUICK[..], &args].concat(), 2, &["--weights has no effect without --learn-weights"]);
}

/// States of lower blocks come from a file to the same bits, and the file is gone at the end.
#[test]
fn lower_blocks_run_once_or_in_every_epoch() {
    let path = &graded();
    for (output, more) in [("kept", &[][..]), ("anew", &["--recompute"])] {
        tune(path, &[&["--input", "in.jsonl", "--eval", "held-out.jsonl", "--output", output], more].concat());
        assert!(!path.join(output).with_extension("states").exists());
    }
    let adapter = |output| fs::read(path.join(output).join("adapter_model.safetensors")).unwrap();
    assert!(adapter("kept") == adapter("anew"));
    let log = |output: &str| fs::read(path.join(output).with_extension("log.jsonl")).unwrap();
    assert!(log("kept") == log("anew"));
    // A file of someone else's is not taken for one of states, and stays as it is.
    path.put("other.states", "some notes of mine");
    let args = ["--input", "in.jsonl", "--output", "other"];
    refused("tune", path, &[&QUICK[..], &args].concat(), 2, &["other.states: it is a file that no command"]);
    assert_eq!(path.read("other.states"), b"some notes of mine");
}

/// A run that a signal ends, and one that is killed, go on and end with the bytes of one that was never stopped.
#[test]
#[cfg(unix)]
fn a_stopped_run_ends_with_the_same_bytes() {
    let path = &graded();
    let args = |output: &'static str, report: &'static str| {
        let own =
            ["--input", "in.jsonl", "--eval", "held-out.jsonl", "--every", "2", "--output", output, "--json", report];
        [&QUICK[..], &own].concat()
    };
    succeed("tune", path, &args("whole", "whole.json"));
    stopped_again_and_again(path, 4, &args("stopped/", "stopped.json"));
    let [whole, stopped] = ["whole.json", "stopped.json"].map(|name| path.json(name));
    assert_eq!((&whole["held_out"], &whole["kept_step"]), (&stopped["held_out"], &stopped["kept_step"]));
    let weights = |name: &str| fs::read(path.join(name).join("adapter_model.safetensors")).unwrap();
    assert!(weights("whole") == weights("stopped"));
}

/// A run is the same by what its files hold, not by how they are called; others are told by what differs, and nothing throws it away.
#[test]
#[cfg(unix)]
fn a_checkpoint_is_resumed_by_content_and_kept_from_other_options() {
    let path = &graded();
    let checkpoint = path.join("tuned.checkpoint.safetensors");
    let args = |input: &'static str| [&QUICK[..], &["--input", input, "--output", "tuned", "--every", "1"]].concat();
    let mut child = judge("tune").args(args("in.jsonl")).current_dir(path).stdout(Stdio::null()).spawn().unwrap();
    while !checkpoint.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be stopped");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let other = [&args("in.jsonl")[..], &["--warmup", "0.5", "--overwrite"]].concat();
    let told = refused("tune", path, &other, 1, &["begun with other settings: warmup was 0.05, is 0.5; repeat with"]);
    assert!(!told.contains("blake3") && told.len() < 400, "{told}");
    let other = args("held-out.jsonl");
    refused("tune", path, &other, 1, &["the content of input has changed"]);
    assert!(checkpoint.exists());
    succeed("tune", path, &args("./in.jsonl"));
    assert!(!checkpoint.exists());
}

/// Runs a command that writes the folder `stopped` to its end. At most so often it is ended as soon as another checkpoint has appeared: by a
/// signal, then by force.
#[cfg(unix)]
fn stopped_again_and_again(path: &Path, most: usize, args: &[&str]) {
    let mut stops = 0;
    loop {
        let mut child = judge("tune").args(args).current_dir(path).stdout(Stdio::null()).spawn().unwrap();
        let checkpoint = path.join("stopped.checkpoint.safetensors");
        let before = fs::metadata(&checkpoint).and_then(|data| data.modified()).ok();
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            let now = fs::metadata(&checkpoint).and_then(|data| data.modified()).ok();
            if now.is_some() && now != before && stops < most {
                break None;
            }
            std::thread::yield_now();
        };
        if let Some(status) = ended {
            assert!(status.success());
            break;
        }
        stops += 1;
        if stops % 2 == 1 {
            let pid = child.id().to_string();
            assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        } else {
            child.kill().unwrap();
        }
        child.wait().unwrap();
    }
    assert!(stops > 0, "it was never stopped");
}

/// A run that ended between its folder and its report is finished by the same command: the folder is not written again.
#[test]
fn what_was_left_behind_the_folder_is_made_by_the_same_command() {
    let path = &graded();
    let own = ["--input", "in.jsonl", "--learn-weights", "--output", "tuned", "--json", "reports/a.json"];
    let args = [&QUICK[..], &own].concat();
    let [reports, checkpoint] = ["reports", "tuned.checkpoint.safetensors"].map(|name| path.join(name));
    fs::create_dir(&reports).unwrap();
    let mut child = judge("tune").args(&args).current_dir(path).stdout(Stdio::null()).spawn().unwrap();
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    fs::remove_dir(&reports).unwrap();
    assert!(!child.wait().unwrap().success() && checkpoint.exists());
    let adapter = || fs::metadata(path.join("tuned/adapter_model.safetensors")).unwrap().modified().unwrap();
    let before = adapter();
    fs::remove_file(path.join("tuned.weights.json")).unwrap();
    fs::create_dir(&reports).unwrap();
    // Another folder of that name is not taken for the run's.
    let [ours, other] = ["tuned", "ours"].map(|name| path.join(name));
    fs::rename(&ours, &other).unwrap();
    fs::create_dir(&ours).unwrap();
    fs::write(ours.join("notes"), "mine").unwrap();
    refused("tune", path, &args, 2, &["tuned exists"]);
    fs::remove_dir_all(&ours).unwrap();
    fs::rename(&other, &ours).unwrap();
    let said = succeed("tune", path, &args);
    assert!(said.contains("use it with --adapter tuned --weights tuned.weights.json"), "{said}");
    assert!(reports.join("a.json").exists() && path.join("tuned.weights.json").exists() && !checkpoint.exists());
    assert_eq!(adapter(), before);
}

/// What is said of a model is said of its folder, whose weights are rounded as those of its base. It has its template too.
#[test]
fn a_folder_is_measured_as_it_is_written() {
    let path = &graded();
    let rows = ["--input", "in.jsonl", "--eval", "held-out.jsonl", "--output", "tuned", "--json", "a.json"];
    let own = ["--method", "full", "--epochs", "1", "--lr", "1e-4", "--quiet"];
    let args = [&rows[..], &own].concat();
    let (said, told) = finished("tune", path, &args);
    assert!(
        told.contains("the folder is written in bf16") && said.contains("use it with --model tuned: "),
        "{said}{told}"
    );
    let written = path.json("a.json")["held_out_as_written"]["mae"].as_f64().unwrap();
    assert!(said.contains(&format!("-> {written:.4}")), "{said}");
    let score = ["--input", "held-out.jsonl", "--output", "scores.jsonl", "--model", "tuned", "--dtype", "f32"];
    succeed("score", path, &score);
    let mae = distance_from_people(path);
    assert!((mae - written).abs() < 1e-4, "{mae} {written}");
    let template = |folder: &Path| fs::read(folder.join("judge_template.json")).unwrap();
    assert_eq!(template(&path.join("tuned")), template(&embedded_model()));
}

/// A folder with pairs of generated responses in `pairs.jsonl` and `other-pairs.jsonl`; some of them with several raters.
fn compared() -> Desk {
    let folder = Desk::new();
    for (split, name) in [("train", "pairs.jsonl"), ("validation", "other-pairs.jsonl")] {
        let args = ["--pairs", "--split", split, "--rows", "12", "--output", name];
        succeed("rows", &folder, &args);
        let mut all = folder.rows(name);
        all[1]["human"] = json!(["A", "A", "B"]);
        all[2]["human"] = json!(["tie", "B", "tie"]);
        folder.write(name, &all);
    }
    folder
}

/// The figures that are measured in training are what the command says that reads verdicts, in both orders.
#[test]
fn verdicts_are_those_that_compare_reads() {
    let path = &compared();
    let args = ["--objective", "verdict", "--input", "pairs.jsonl", "--eval", "other-pairs.jsonl", "--json", "a.json"];
    let said = tune(path, &[&args[..], &["--output", "tuned"]].concat());
    assert!(said.contains("24 examples, 12 steps"), "{said}");
    assert!(said.contains("judge compare --verdict logits --template pair"), "{said}");
    let report = path.json("a.json");
    assert_eq!(report["settings"]["swap"], "both");
    let held_out = report["held_out"].as_array().unwrap();
    let figures = &held_out.iter().find(|at| at["step"] == report["kept_step"]).unwrap()["figures"];
    assert!(["loss", "accuracy", "ece", "brier"].iter().all(|name| figures[name].is_number()), "{figures}");
    let compare = ["--verdict", "logits", "--template", "pair", "--input", "other-pairs.jsonl", "--adapter", "tuned"];
    succeed("compare", path, &[&compare[..], &["--output", "verdicts.jsonl", "--dtype", "f32"]].concat());
    let mut right = Vec::new();
    let mut brier = 0.0;
    for row in path.rows("verdicts.jsonl") {
        let raters = row["human"].as_array().cloned().unwrap_or_else(|| vec![row["human"].clone()]);
        let says = |verdict: &str| 2 * raters.iter().filter(|said| *said == verdict).count() > raters.len();
        let human = json!(["A", "B"].into_iter().find(|verdict| says(verdict)).unwrap_or("tie"));
        for order in row["orders"].as_array().unwrap() {
            right.push(order["verdict"] == human);
            let square = |name: &str| {
                (order["probabilities"][name].as_f64().unwrap() - f64::from(u8::from(human == name))).powi(2)
            };
            brier += ["A", "B", "tie"].into_iter().map(square).sum::<f64>();
        }
    }
    assert_eq!(right.len(), 24);
    let accuracy = right.iter().filter(|right| **right).count() as f64 / 24.0;
    assert!((figures["accuracy"].as_f64().unwrap() - accuracy).abs() < 1e-9, "{accuracy} {figures}");
    assert!((figures["brier"].as_f64().unwrap() - brier / 24.0).abs() < 1e-4, "{brier} {figures}");

    // As given there is one example of each pair.
    let said = tune(path, &[&args[..], &["--output", "given", "--swap", "none", "--overwrite"]].concat());
    assert!(said.contains("12 examples, 6 steps"), "{said}");
}

/// The order that an epoch has of a pair is the same in a run that was stopped.
#[test]
#[cfg(unix)]
fn drawn_orders_of_a_stopped_run_are_those_of_a_whole_one() {
    let path = &compared();
    let args = |output: &'static str, swap: &'static str| {
        let own = ["--objective", "verdict", "--input", "pairs.jsonl", "--every", "1", "--swap", swap, "--output"];
        [&QUICK[..], &own, &[output]].concat()
    };
    let said = succeed("tune", path, &args("whole", "random"));
    assert!(said.contains("24 examples, 6 steps"), "{said}");
    stopped_again_and_again(path, 3, &args("stopped", "random"));
    let weights = |name: &str| fs::read(path.join(name).join("adapter_model.safetensors")).unwrap();
    assert!(weights("whole") == weights("stopped"));
    succeed("tune", path, &args("given", "none"));
    assert!(weights("whole") != weights("given"), "no order was drawn");
}

/// Answers to typed questions are learned where `judge decide` reads them, and measured as it measures them.
#[test]
fn decisions_are_those_that_decide_reads() {
    let path = &Desk::new();
    let model = crate::decide::model(path, None);
    crate::decide::questions(path);
    let state = |n: usize| {
        let angry = n.is_multiple_of(3);
        let tone = if angry { json!("angry") } else { json!({"calm": 3, "angry": 1}) };
        let text = if angry { format!("GIVE BACK {n}!") } else { format!("all is well {n}") };
        json!({"id": n, "state": text, "labels": {"refund": angry, "tone": tone, "hurry": n % 3, "other": true}})
    };
    path.write("states.jsonl", &(0..8).map(state).collect::<Vec<_>>());
    let args =
        ["--objective", "decision", "--input", "states.jsonl", "--questions", "questions.json", "--model", &model];
    let own = ["--eval", "states.jsonl", "--json", "a.json", "--output", "tuned"];
    let (said, told) = finished("tune", path, &[&QUICK[..], &args, &own].concat());
    assert!(said.contains("24 examples, 12 steps"), "{said}");
    let with =
        format!("use it with --model {model} --adapter tuned --dtype f32 --questions questions.json: judge decide");
    assert!(said.contains(&with), "{said}");
    // The model is stored in f16. It is trained in f32, and merged as it is read: in bf16.
    let rounded = "weights that are stored in f16 are rounded to bf16";
    assert!(!told.contains(rounded), "{told}");
    let left = "8 labels cannot be learned from and are left out; the first is 0, other: no question of this name";
    assert!(told.contains(left), "{told}");
    let (_, told) = finished("merge", path, &["--model", &model, "--adapter", "tuned", "--output", "merged"]);
    assert!(told.contains(rounded), "{told}");
    // An adapter's folder names its base.
    succeed("merge", path, &["--model", "tuned", "--output", "merged-alone"]);
    let merged = |name: &str| fs::read(path.join(name).join("model.safetensors")).unwrap();
    assert!(merged("merged") == merged("merged-alone"));
    // An adapter is no model to begin with.
    let line =
        ["--objective", "decision", "--input", "states.jsonl", "--questions", "questions.json", "--output", "again"];
    let adapter = ["an adapter in the place of a base model", "`judge merge`"];
    fails("tune", path, &[&line[..], &["--model", "tuned"]].concat(), &adapter);
    let report = path.json("a.json");
    let held_out = report["held_out"].as_array().unwrap();
    assert!(held_out[2]["figures"]["loss"].as_f64() < held_out[0]["figures"]["loss"].as_f64(), "{report}");
    let figures = &held_out.iter().find(|at| at["step"] == report["kept_step"]).unwrap()["figures"];
    let decide = ["--input", "states.jsonl", "--questions", "questions.json", "--model", &model, "--adapter", "tuned"];
    let own = ["--output", "answers.jsonl", "--json", "decided.json", "--dtype", "f32"];
    succeed("decide", path, &[&decide[..], &own].concat());
    let decided = path.json("decided.json");
    for name in ["accuracy", "ece", "brier"] {
        let (measured, read) = (figures[name].as_f64().unwrap(), decided["all"][name]["estimate"].as_f64().unwrap());
        assert!((measured - read).abs() < 1e-4, "{name}: {measured} {read}");
    }
}

/// Held-out rows in `against.jsonl` whose people say the opposite of what is learned.
fn write_against(path: &Path) {
    let mut against = rows(path.join("in.jsonl"));
    for row in &mut against {
        let human: Vec<f64> = row["human"].as_array().unwrap().iter().map(|x| 6.0 - x.as_f64().unwrap()).collect();
        row["human"] = json!(human);
    }
    write_rows(path.join("against.jsonl"), &against);
}

/// Where held-out rows never gain, the folder has the best state after a step and not the last, and a note says so.
#[test]
fn a_run_that_never_gains_keeps_its_best_state() {
    let path = &graded();
    write_against(path);
    let run = |output: &str, more: &[&str]| {
        let args = ["--objective", "class", "--input", "in.jsonl", "--eval", "against.jsonl", "--json", "a.json"];
        let own = ["--output", output, "--overwrite"];
        let (_, told) = finished("tune", path, &[&QUICK[..], &args, &own, more].concat());
        assert!(told.contains("smallest before the first step") && told.contains("after step 6"), "{told}");
        let report = path.json("a.json");
        assert_eq!(report["kept_step"], 6, "{report}");
        let of = |at: usize| report["held_out"][at]["figures"]["loss"].as_f64().unwrap();
        assert!(of(0) < of(1), "{report}");
        (report["steps_done"].clone(), fs::read(path.join(output).join("adapter_model.safetensors")).unwrap())
    };
    let [(whole, kept), (stopped, last)] = [run("whole", &[]), run("stopped", &["--patience", "1"])];
    assert_eq!((whole, stopped), (json!(12), json!(6)));
    assert!(kept == last);
}

/// A run stops where held-out rows no longer gain, says so, and keeps what was best.
#[test]
#[cfg(unix)]
fn patience_ends_a_run_that_no_longer_gains() {
    let path = &graded();
    write_against(path);
    let args = |output: &'static str, report: &'static str| {
        let own = ["--input", "in.jsonl", "--eval", "against.jsonl", "--every", "1", "--patience", "4", "--output"];
        [&QUICK[..], &own, &[output, "--json", report, "--plot", "run.svg"]].concat()
    };
    let said = succeed("tune", path, &args("whole", "a.json"));
    assert!(said.contains("stopped early, after step ") && said.contains(" of 12: 4 measurements"), "{said}");
    let whole = path.json("a.json");
    assert_eq!((&whole["stopped_early"], &whole["steps"]), (&json!(true), &json!(12)));
    let done = whole["steps_done"].as_u64().unwrap();
    assert!((4..12).contains(&done), "{whole}");
    let log = path.rows("whole.log.jsonl");
    assert_eq!(log.last().unwrap()["stopped_early"]["measurements_without_a_smaller_loss"], 4);
    let picture = path.text("run.svg");
    assert!(picture.starts_with("<svg") && picture.contains("judge tune, mark"), "{picture}");
    stopped_again_and_again(path, 2, &args("stopped", "stopped.json"));
    let stopped = path.json("stopped.json");
    for name in ["steps_done", "kept_step", "held_out", "stopped_early"] {
        assert_eq!(whole[name], stopped[name], "{name}");
    }
    let weights = |name: &str| fs::read(path.join(name).join("adapter_model.safetensors")).unwrap();
    assert!(weights("whole") == weights("stopped"));
}

/// A recipe sets what is not given, and no more.
#[test]
fn recipes_are_defaults_that_options_override() {
    let path = &graded();
    let args = ["--recipe", "inspector", "--input", "in.jsonl", "--json", "a.json", "--epochs", "1", "--quiet"];
    let own = ["--output", "recipe", "--limit", "8", "--eval", "held-out.jsonl"];
    let said = succeed("tune", path, &[&args[..], &own].concat());
    assert!(said.contains("8 examples, 1 step, "), "{said}");
    let found = path.json("a.json");
    // The limit is of the rows that are learned from.
    assert_eq!((&found["examples"], &found["held_out_examples"]), (&json!(8), &json!(12)));
    let settings = &found["settings"];
    assert_eq!((&found["recipe"], &found["objective"]), (&json!("inspector"), &json!("mark")));
    assert_eq!(settings["lora"], json!({"rank": 16, "alpha": 32.0, "targets": ["q_proj", "v_proj"]}));
    assert_eq!((&settings["lr"], &settings["schedule"]), (&json!(1e-4), &json!("linear")));
    assert_eq!((&settings["epochs"], &settings["batch_size"]), (&json!(1), &json!(32)));
    let adapter = path.json("recipe/adapter_config.json");
    assert_eq!((&adapter["r"], &adapter["lora_alpha"]), (&json!(16), &json!(32.0)));
    let own = ["--output", "own", "--overwrite", "--rank", "2", "--lr", "1e-3", "--targets", "down_proj"];
    let said = succeed("tune", path, &[&args[..], &own, &["--rubric", "Is it right?"]].concat());
    assert!(said.contains("use it with --adapter own --dtype f32 --rubric 'Is it right?': judge score"), "{said}");
    let settings = &path.json("a.json")["settings"];
    assert_eq!(settings["lora"], json!({"rank": 2, "alpha": 4.0, "targets": ["down_proj"]}));
    assert_eq!((&settings["lr"], &settings["weight_decay"]), (&json!(1e-3), &json!(0.01)));
    // Of a judge that writes: replies, all tensors.
    let args = ["--input", "in.jsonl", "--recipe", "judgelm", "--output", "o", "--quiet"];
    let said = succeed("tune", path, &[&args[..], &["--dry-run"]].concat());
    assert!(said.contains("24 examples, 3 steps of 3 epochs"), "{said}");
    refused("tune", path, &[&args[..], &["--rank", "4"]].concat(), 2, &["--rank has no effect", "recipe"]);
}

#[test]
fn every_objective_learns_and_is_read_back() {
    let path = &graded();
    let pair = |id: usize| {
        let (good, bad) = (format!("{id} and 1 is {}.", id + 1), format!("{id} and 1 is {}.", id + 3));
        // One as a cell of a table has it.
        let margin = if id == 0 { json!("0.5") } else { json!(0.5) };
        json!({"id": id, "prompt": format!("{id} + 1?"), "chosen": good, "rejected": bad, "margin": margin})
    };
    let mut all: Vec<Value> = (0..8).map(pair).collect();
    all.push(json!({"id": 8, "prompt": "?", "chosen": "a", "rejected": "b", "margin": 1e60}));
    path.write("pairs.jsonl", &all);
    let pairs = ["--input", "pairs.jsonl", "--eval", "pairs.jsonl", "--json", "a.json", "--overwrite"];
    let said = tune(path, &[&pairs[..], &["--objective", "bradley-terry", "--output", "preferred"]].concat());
    assert!(said.contains(": judge score, judge compare --apart --verdict logits"), "{said}");
    let figures = |at: usize| path.json("a.json")["held_out"][at]["figures"].clone();
    assert!(figures(2)["loss"].as_f64() < figures(0)["loss"].as_f64());
    assert!(figures(2)["accuracy"].is_number());
    assert_eq!(path.json("a.json")["examples"], 8);
    succeed("score", path, &["--input", "in.jsonl", "--output", "a.jsonl", "--adapter", "preferred"]);

    // Of pairs with references `judge compare` asks something else.
    all.iter_mut().for_each(|row| row["reference"] = json!("a number"));
    path.write("references.jsonl", &all);
    let said = tune(path, &words("--input references.jsonl --objective preference --output other"));
    assert!(said.contains(": judge score") && !said.contains("judge compare"), "{said}");

    tune(path, &[&pairs[..], &["--objective", "reward", "--output", "reward"]].concat());
    assert!(figures(2)["loss"].as_f64() < figures(0)["loss"].as_f64());
    assert!(figures(2)["accuracy"].is_number());
    succeed("reward", path, &["--input", "in.jsonl", "--output", "rewards.jsonl", "--adapter", "reward"]);
    assert_eq!(path.rows("rewards.jsonl")[0]["rewards"].as_array().unwrap().len(), 1);
    // The adapter's head scores documents too, and how is no progress.
    path.write("queries.jsonl", &[json!({"id": 0, "query": "1 + 1?", "documents": ["2", "3"]})]);
    let rerank = ["--input", "queries.jsonl", "--output", "ranked.jsonl", "--adapter", "reward", "--quiet"];
    let (_, told) = finished("rerank", path, &rerank);
    assert!(told.contains("note: the query is put as a request"), "{told}");
    assert_eq!(path.rows("ranked.jsonl")[0]["results"].as_array().unwrap().len(), 2);

    let class = ["--objective", "class", "--input", "in.jsonl", "--eval", "in.jsonl", "--output", "classes"];
    tune(path, &[&class[..], &["--json", "a.json", "--overwrite"]].concat());
    assert!(["accuracy", "ece", "brier"].iter().all(|name| figures(2)[name].is_number()), "{}", figures(2));
    succeed("reward", path, &["--input", "in.jsonl", "--output", "classes.jsonl", "--adapter", "classes"]);
    assert_eq!(path.rows("classes.jsonl")[0]["rewards"].as_array().unwrap().len(), 5);

    // Steps between grades: the expected grade that is measured is made of what `judge reward` reads.
    let ordinal = ["--objective", "ordinal", "--input", "in.jsonl", "--eval", "in.jsonl", "--output", "ordinal"];
    tune(path, &[&ordinal[..], &["--json", "a.json", "--overwrite"]].concat());
    assert!(figures(2)["loss"].as_f64() < figures(0)["loss"].as_f64());
    assert!(figures(2)["spearman"].is_number() && figures(2)["accuracy"].is_number(), "{}", figures(2));
    assert!((figures(0)["loss"].as_f64().unwrap() - 4.0 * 2f64.ln()).abs() < 1e-5, "{}", figures(0));
    succeed(
        "reward",
        path,
        &["--input", "in.jsonl", "--output", "steps.jsonl", "--adapter", "ordinal", "--dtype", "f32"],
    );
    let distance = |row: Value| {
        let human: Vec<f64> = row["human"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
        let above = |z: &Value| 1.0 / (1.0 + (-z.as_f64().unwrap()).exp());
        let steps = row["rewards"].as_array().unwrap();
        assert_eq!(steps.len(), 4);
        (1.0 + steps.iter().map(above).sum::<f64>() - human.iter().sum::<f64>() / human.len() as f64).abs()
    };
    let mae = path.rows("steps.jsonl").into_iter().map(distance).sum::<f64>() / 24.0;
    assert!((figures(2)["mae"].as_f64().unwrap() - mae).abs() < 1e-4, "{mae} {}", figures(2));

    let said = |id: usize| json!({"id": id, "messages": [turn("user", &format!("Say {id}")), turn("assistant", &format!("{id}"))]});
    path.write("said.jsonl", &(0..8).map(said).collect::<Vec<_>>());
    let written =
        "--objective completion --input said.jsonl --output written --eval said.jsonl --json a.json --overwrite";
    tune(path, &words(written));
    assert!(figures(2)["loss"].as_f64() < figures(0)["loss"].as_f64());
}

#[test]
fn odd_rows_cost_themselves_and_wrong_options_are_named() {
    let path = &graded();
    let mut all = path.rows("in.jsonl");
    all[1]["human"] = json!(9);
    all[2]["human"] = json!(null);
    all[3]["response"] = json!("long ".repeat(4000));
    all[4].as_object_mut().unwrap().remove("response");
    path.write("odd.jsonl", &all);
    let (said, told) =
        finished("tune", path, &[&QUICK[..], &["--input", "odd.jsonl", "--output", "o", "--dry-run"]].concat());
    assert!(said.contains("20 examples, 10 steps of 2 epochs") && said.contains("numbers are learned"), "{said}");
    assert!(told.contains("note: odd.jsonl: 1 row has no label\n"), "{told}");
    let left = "odd.jsonl: 3 rows cannot be learned from and are left out; the first is 1: a score of 9, off the scale";
    assert!(told.contains(left), "{told}");
    assert!(!path.join("o").exists() && !path.join("o.log.jsonl").exists(), "a dry run writes nothing");
    path.write("none.jsonl", &all[2..3]);
    path.write("high.jsonl", &all[1..2]);
    for (args, expected) in [
        (&["--input", "none.jsonl"][..], "no row can be learned from; 1 row has no label"),
        (&["--input", "high.jsonl"], "no row can be learned from; the first that cannot be used is 1: a score of 9"),
        (&["--input", "in.jsonl", "--method", "full", "--top-blocks", "1"], "--top-blocks has no effect"),
        (&["--input", "in.jsonl", "--top-blocks", "99"], "--top-blocks"),
        (&["--input", "in.jsonl", "--targets", "q_proj, nothing"], "is called nothing"),
        (&["--input", "in.jsonl", "--warmup", "2"], "--warmup"),
        (&["--input", "in.jsonl", "--rank", "0"], "rank"),
        (&["--input", "in.jsonl", "--dtype", "bf16"], "--dtype has no effect"),
        (&["--input", "in.jsonl", "--condition", "direct"], "--condition"),
        (&["--input", "in.jsonl", "--objective", "reward", "--rubric", "x"], "--rubric has no effect"),
        (&["--input", "in.jsonl", "--objective", "completion", "--points", "3"], "--points has no effect"),
        (&["--input", "in.jsonl", "--objective", "verdict", "--prefill", "x"], "--prefill has no effect"),
        (&["--input", "in.jsonl", "--objective", "verdict", "--template", "single"], "single responses"),
        (&["--input", "in.jsonl", "--objective", "decision", "--template", "x"], "--template has no effect"),
        (&["--input", "in.jsonl", "--swap", "none"], "--swap has no effect"),
        (&["--input", "in.jsonl", "--questions", "in.jsonl"], "--questions has no effect"),
        (&["--input", "in.jsonl", "--patience", "2"], "--eval"),
        (&["--input", "-", "--eval", "-"], "standard input can be read once"),
        (&["--input", "in.jsonl", "--learn-weights", "--states", "drop-last"], "--states drop-last"),
        (&["--input", "in.jsonl", "--dry-run", "--plot", "a.svg"], "--plot has no effect"),
        (&["--input", "in.jsonl", "--dry-run", "--json", "a.json"], "--json has no effect with --dry-run"),
        (&["--input", "in.jsonl", "--json", "o.log.jsonl"], "o.log.jsonl"),
    ] {
        let args = [&QUICK[4..], &["--output", "o"], args].concat();
        fails("tune", path, &args, &[expected]);
        assert!(!path.join("o").exists());
    }
    let endless = ["--input", "in.jsonl", "--output", "o", "--quiet", "--epochs", "4294967295"];
    refused("tune", path, &endless, 2, &["expected at most 100000000 in all epochs together"]);
    let ranked = ["--input", "in.jsonl", "--output", "o", "--quiet", "--rank", "100000000"];
    fails("tune", path, &ranked, &["--rank is 100000000, expected at most"]);
}

/// Encoders without a head learn the grades of pairs of texts, and `judge reward` gives the loss that was measured.
#[test]
fn encoders_learn_grades_that_rewards_read() {
    let path = &Desk::new();
    let words = ["ba", "de", "fi", "go", "ku", "la", "me"];
    let row = |id: usize| {
        let (a, b) = (words[id % 7], words[(3 * id + 1) % 7]);
        json!({"id": id, "instruction": format!("{a} fi"), "response": vec![b; 1 + id % 4].join(" "), "human": 1 + id % 5})
    };
    path.write("rows.jsonl", &(0..10).map(row).collect::<Vec<_>>());
    for (name, method) in
        [("encoders/roberta-off", "lora"), ("encoders/bert-off", "lora"), ("encoders/roberta-off", "full")]
    {
        let base = &fixture(name);
        let output = format!("{method}-{}", name.replace('/', "-"));
        let run =
            ["--objective", "class", "--method", method, "--model", base, "--output", &output, "--json", "a.json"];
        let more =
            ["--input", "rows.jsonl", "--eval", "rows.jsonl", "--epochs", "3", "--lr", "0.003", "--batch-size", "4"];
        let said = succeed("tune", path, &[&run[..], &more, &["--overwrite", "--quiet"]].concat());
        assert!(said.contains("10 examples, 9 steps"), "{said}");
        let report = path.json("a.json");
        let held_out = report["held_out"].as_array().unwrap();
        let loss = |at: &Value| at["figures"]["loss"].as_f64().unwrap();
        let kept = held_out.iter().find(|at| at["step"] == report["kept_step"]).unwrap();
        assert!(loss(kept) < loss(&held_out[0]), "{name}: {held_out:?}");
        let model =
            if method == "full" { vec!["--model", &output] } else { vec!["--model", base, "--adapter", &output] };
        let read = ["--input", "rows.jsonl", "--output", "rewards.jsonl", "--dtype", "f32", "--overwrite"];
        succeed("reward", path, &[&read[..], &model].concat());
        let of = |row: &Value| {
            let logits: Vec<f64> = row["rewards"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
            assert_eq!(logits.len(), 5);
            let class = row["human"][0].as_f64().or(row["human"].as_f64()).unwrap() as usize - 1;
            logits.iter().map(|x| x.exp()).sum::<f64>().ln() - logits[class]
        };
        let rewards = path.rows("rewards.jsonl");
        let mean = rewards.iter().map(of).sum::<f64>() / rewards.len() as f64;
        assert!((mean - loss(kept)).abs() < 1e-4, "{name}, {method}: {mean} {kept}");
    }
    let roberta = fixture("encoders/roberta-off");
    let marks = ["--input", "rows.jsonl", "--output", "m", "--model", &roberta, "--objective", "mark"];
    fails("tune", path, &marks, &["encoder", "--objective class"]);
}

// https://github.com/torognes/vsearch/issues/243, https://github.com/lh3/minimap2/issues/103
#[test]
fn what_a_full_disk_has_left_is_in_nobody_s_way() {
    let path = &graded();
    path.put("tuned.log.jsonl", "");
    path.put("tuned.states", "judge sta");
    // Nor is an empty folder.
    fs::create_dir(path.join("tuned")).unwrap();
    let said = tune(path, &["--input", "in.jsonl", "--output", "tuned"]);
    assert!(said.contains("12 steps") && path.join("tuned/adapter_config.json").exists(), "{said}");
    // A log with something in it is of a run that was finished.
    fs::remove_dir_all(path.join("tuned")).unwrap();
    let args = [&QUICK[..], &["--input", "in.jsonl", "--output", "tuned"]].concat();
    refused("tune", path, &args, 2, &["tuned.log.jsonl exists"]);
}

/// Two runs over one checkpoint would both take all steps, and one of them for nothing.
#[test]
fn a_second_run_with_one_output_ends_at_once() {
    let path = &graded();
    let log = fs::File::create(path.join("tuned.log.jsonl")).unwrap();
    log.lock().unwrap();
    // It does not come to look for a model.
    let args = [&QUICK[..], &["--input", "in.jsonl", "--output", "tuned", "--model", "nowhere"]].concat();
    refused("tune", path, &args, 1, &["another run of `judge tune` has this --output"]);
    assert!(path.join("tuned.log.jsonl").exists() && !path.join("tuned.checkpoint.safetensors").exists());
    log.unlock().unwrap();
    fails("tune", path, &args, &["nowhere"]);
    // One that did not begin leaves no log, but for one that was there.
    fs::remove_file(path.join("tuned.log.jsonl")).unwrap();
    ran("tune", path, &args);
    assert!(!path.join("tuned.log.jsonl").exists());
}

// https://github.com/huggingface/trl/issues/6668, https://github.com/getainode/ainode/issues/186
#[test]
fn training_that_teaches_nothing_says_so() {
    let path = &graded();
    let mut all = path.rows("in.jsonl");
    all.truncate(8);
    path.write("few.jsonl", &all);
    all.iter_mut().for_each(|row| row["human"] = json!(3));
    path.write("one.jsonl", &all);
    let of = |rows: &str, output: &str, more: &[&str]| {
        let args = ["--input", rows, "--output", output, "--epochs", "1", "--json", "a.json", "--overwrite"];
        let (said, told) = finished("tune", path, &[&args[..], more].concat());
        let loss = path.json("a.json")["loss_of_first_rows"].clone();
        assert!(
            said.contains(&format!("loss of the first step's rows: {:.4} -> ", loss[0].as_f64().unwrap())),
            "{said}"
        );
        (told, loss)
    };
    let [one, grown] = ["all 8 examples have the same label", "note: the loss has grown"];
    let (told, _) = of("one.jsonl", "a", &[]);
    assert!(told.contains(one), "{told}");
    let (told, loss) = of("few.jsonl", "b", &["--lr", "1e6"]);
    assert!(told.contains(grown) && !told.contains(one), "{told}");
    assert!(loss[1].as_f64() > loss[0].as_f64(), "{loss}");
    let line = ["--input", "few.jsonl", "--output", "d", "--epochs", "1", "--lr", "1e39"];
    fails("tune", path, &line, &["training diverges: give a lower --lr; it is 1e39", "infinite"]);
    // What the last step made is looked at before it is written, and by the same command again.
    for (rows, more) in [("the first step's rows", &[][..]), ("the held-out rows", &["--eval", "few.jsonl"])] {
        let output = format!("e{}", more.len());
        let line = ["--input", "few.jsonl", "--output", &output, "--epochs", "1", "--lr", "1e30"];
        let found = format!("after 1 step the loss of {rows} is NaN");
        for _ in 0..2 {
            let line = [&line[..], more].concat();
            fails("tune", path, &line, &["training diverges: give a lower --lr; it is 1e30", &found]);
            assert!(!path.join(&output).exists());
        }
    }
    // One text with many labels and, in the first step of the seed's order, another one: what held-out rows say counts more.
    let text = all[0].clone();
    let labelled = |odd: &[usize]| {
        let row = |id: usize| {
            let mut row = text.clone();
            (row["id"], row["human"]) = (json!(id), json!(if odd.contains(&id) { 1 } else { 5 }));
            row
        };
        (0..24).map(row).collect::<Vec<_>>()
    };
    path.write("odd.jsonl", &labelled(&[5, 7, 13, 14]));
    path.write("five.jsonl", &labelled(&[]));
    let more = ["--objective", "class", "--eval", "five.jsonl", "--lr", "0.005", "--batch-size", "4"];
    let (told, loss) = of("odd.jsonl", "f", &[&more[..], &["--top-blocks", "1", "--rank", "2"]].concat());
    assert!(loss[1].as_f64() > loss[0].as_f64(), "{loss}");
    assert!(told.contains("though not on held-out rows") && !told.contains("the judge is worse"), "{told}");

    let (told, loss) = of("few.jsonl", "c", &["--lr", "1e-3"]);
    assert!(!told.contains(grown) && loss[1].as_f64() < loss[0].as_f64(), "{told}{loss}");
}
