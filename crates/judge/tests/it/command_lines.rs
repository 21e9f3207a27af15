//! The examples as a user runs them: command lines, files, exit codes. Cargo builds examples before it runs these tests.

use std::fs;
use std::path::Path;

use judge_core::Layer;
use judge_data::StatesFile;
use serde_json::json;
use tiny_judge::planted::{Item, Split, generate};

use crate::program::{Desk, finished, refused, succeed, write_rows};

fn write_prompts(folder: &Path, text: &[u8]) {
    fs::write(folder.join("in.jsonl"), text).expect("input");
}

/// Generated items as generic graded records.
fn write_graded(path: &Path, items: &[Item]) {
    let row = |item: &Item| json!({"id": item.id, "instruction": item.instruction, "response": item.response, "rubric": item.rubric, "scores": item.scores});
    write_rows(path, &items.iter().map(row).collect::<Vec<_>>());
}

const THREE: &[u8] = b"\xef\xbb\xbf{\"id\": \"b\", \"prompt\": \"Question: What is 1 + 1?\"}\r\n\r\n{\"id\": 7, \"prompt\": \"\", \"more\": 1}\r\n{\"id\": \"a\", \"messages\": [{\"role\": \"user\", \"content\": \"Is it?\"}]}";

#[test]
fn layer_logits_writes_one_row_per_prompt_in_input_order() {
    let folder = &Desk::new();
    write_prompts(folder, THREE);
    succeed(
        "layer_logits",
        folder,
        &["--input", "in.jsonl", "--output", "out.jsonl", "--layers", "0,2-3", "--points", "4"],
    );
    let rows = folder.rows("out.jsonl");
    assert_eq!(rows.iter().map(|row| &row["id"]).collect::<Vec<_>>(), [&json!("b"), &json!(7), &json!("a")]);
    assert_eq!(rows[0]["layers"], json!([0, 2, 3]));
    assert_eq!(rows[0]["labels"], json!(["1", "2", "3", "4"]));
    assert_eq!((&rows[0]["step"], &rows[0]["completion"]), (&json!(0), &json!("")));
    let logits = rows[0]["logits"].as_array().expect("logits");
    assert_eq!(logits.iter().map(|row| row.as_array().map(Vec::len)).collect::<Vec<_>>(), [Some(4); 3]);
    assert_eq!(rows[1]["unscored"]["reason"], "empty_prompt");
    assert!(!folder.join("out.jsonl.partial").exists());
}

#[test]
fn generated_labels_are_found_by_both_rules() {
    let folder = &Desk::new();
    let items = generate(Split::Test, 3, 0);
    let prompts: String = items
        .iter()
        .map(|item| json!({"id": item.id, "prompt": tiny_judge::planted::prompt(item)}).to_string() + "\n")
        .collect();
    write_prompts(folder, prompts.as_bytes());
    let common = ["--input", "in.jsonl", "--output", "out.jsonl", "--max-new-tokens", "3"];
    succeed("layer_logits", folder, &[&common[..], &["--position", "last-label"]].concat());
    for row in folder.rows("out.jsonl") {
        let step = row["step"].as_u64().expect("the embedded model writes a mark");
        assert!(step < 3 && !row["completion"].as_str().expect("text").is_empty());
    }
    let marker = [&common[..], &["--position", "after-marker", "--marker", "never written"]].concat();
    // A finished output of other settings is not replaced unless that is asked for.
    let differs = "condition.rule.rule was \"last_label\", is \"after_marker\"";
    refused("layer_logits", folder, &marker, 2, &[differs]);
    let args = [&marker[..], &["--overwrite"]].concat();
    refused("layer_logits", folder, &args, 1, &["no row was scored: 3 no_marker"]);
    assert!(folder.rows("out.jsonl").iter().all(|row| row["unscored"]["reason"] == "no_marker"));
}

#[test]
fn bad_input_is_said_with_its_line_before_any_model_work() {
    let cases: [(&[u8], &str); 4] = [
        (b"{\"id\": 1, \"prompt\": \"a\"}\n{\"id\": 2, \"prompt\": }\n", "2"),
        (
            b"{\"id\": 1, \"prompt\": \"a\"}\n\n{\"id\": 1, \"prompt\": \"b\"}\n",
            "3: the id 1 appears twice, first on line 1",
        ),
        (b"{\"id\": 1, \"prompt\": \"\xff\"}\n", "1"),
        (b"[1]\n", "1"),
    ];
    for (text, line) in cases {
        let folder = &Desk::new();
        write_prompts(folder, text);
        let args = ["--input", "in.jsonl", "--output", "out.jsonl"];
        let stderr = refused("layer_logits", folder, &args, 1, &[&format!("in.jsonl, line {line}")]);
        assert!(!stderr.contains("fingerprint"), "the model was loaded: {stderr}");
        assert!(!folder.join("out.jsonl").exists());
    }
}

#[test]
fn wrong_usage_is_2_and_a_failed_run_is_1() {
    let folder = &Desk::new();
    write_prompts(folder, THREE);
    let with = |more: &[&'static str]| [&["--input", "in.jsonl", "--output", "out.jsonl"], more].concat();
    refused("layer_logits", folder, &["--input", "in.jsonl"], 2, &[]);
    refused("layer_logits", folder, &with(&["--position", "after-marker"]), 2, &[]);
    for wrong in
        [["--device", "tpu"], ["--layers", "x"], ["--points", "0"], ["--max-new-tokens", "0"], ["--labels", "1,1"]]
    {
        refused("layer_logits", folder, &with(&wrong), 2, &[]);
    }
    for (device, named) in [("cuda:0", "cuda:0"), ("cuda:0,cuda:0", "more than once"), ("cpu,cpu", "only cards")] {
        refused("layer_logits", folder, &with(&["--device", device]), 1, &[named]);
    }
    refused("layer_logits", folder, &with(&["--layers", "99"]), 1, &["99"]);
    refused("layer_logits", folder, &with(&["--labels", "1,not a single token"]), 1, &["not a single token"]);
    refused("layer_logits", folder, &with(&["--model", "no/such@place/.."]), 1, &["no/such"]);
}

#[test]
fn a_prefill_makes_no_prompt_of_an_empty_one() {
    let folder = &Desk::new();
    write_prompts(folder, b"{\"id\": 1, \"prompt\": \"\"}");
    for raw in [&["--raw-prompt"][..], &[]] {
        let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--prefill", "score: ", "--overwrite"];
        refused("layer_logits", folder, &[&args[..], raw].concat(), 1, &["no row was scored: 1 empty_prompt"]);
        assert_eq!(folder.rows("out.jsonl")[0]["unscored"]["reason"], "empty_prompt");
    }
}

#[test]
fn hidden_states_keeps_rows_in_place() {
    let folder = &Desk::new();
    write_prompts(folder, THREE);
    let args = ["--input", "in.jsonl", "--output", "states.safetensors", "--layers", "1,3", "--pooling", "mean"];
    succeed("hidden_states", folder, &args);
    let states = StatesFile::open(folder.join("states.safetensors")).expect("states");
    assert_eq!((states.rows(), states.layers()), (3, &[Layer(1), Layer(3)][..]));
    let rows: Vec<Option<Vec<f32>>> = states.iter().map(|row| row.expect("finite states")).collect();
    assert!(rows[1].is_none() && rows[2].is_some());
    assert_eq!(rows[0].as_ref().map(Vec::len), Some(2 * states.d_model()));
    let ids = folder.rows("states.ids.jsonl");
    assert_eq!(
        ids[1],
        json!({"id": 7, "unscored": {"reason": "empty_prompt", "detail": ids[1]["unscored"]["detail"]}})
    );
}

#[test]
fn hidden_states_in_shards_are_the_same_table() {
    let folder = &Desk::new();
    write_prompts(folder, THREE);
    let args = |output: &'static str| ["--input", "in.jsonl", "--output", output, "--layers", "1,3"];
    succeed("hidden_states", folder, &args("whole.safetensors"));
    let cut = [&args("cut.safetensors")[..], &["--rows-per-shard", "2"]].concat();
    let said = succeed("hidden_states", folder, &cut);
    assert!(
        said.contains("3 rows, 0 of them done before: 2 read, 1 unscored") && said.contains("in 2 shards"),
        "{said}"
    );
    let open = |name| StatesFile::open(folder.join(name)).expect("states");
    let (whole, shards) = (open("whole.safetensors"), open("cut.safetensors"));
    assert_eq!(shards.files().len(), 2);
    let rows = |table: &StatesFile| table.iter().map(|row| row.expect("finite states")).collect::<Vec<_>>();
    assert_eq!(rows(&whole), rows(&shards));
    let ids = |table: &StatesFile| table.ids().map(|line| line.expect("ids")).collect::<Vec<_>>();
    assert_eq!(ids(&whole), ids(&shards));
    assert_eq!(shards.metadata()["model_fingerprint"], whole.metadata()["model_fingerprint"]);

    // What is there is kept, and not mixed with what is read otherwise.
    let said = succeed("hidden_states", folder, &cut);
    assert!(said.contains("cut.safetensors is complete: 3 rows; nothing to do"), "{said}");
    let other = [&cut[..], &["--pooling", "mean"]].concat();
    refused("hidden_states", folder, &other, 2, &["pooling was \"last\", is \"mean\""]);
    refused("hidden_states", folder, &[&cut[..6], &["--rows-per-shard", "0"]].concat(), 2, &[]);
}

#[test]
fn scores_are_evaluated_alike_from_both_file_formats() {
    let folder = &Desk::new();
    for (name, split) in [("valid", Split::Validation), ("test", Split::Test)] {
        write_graded(&folder.join(format!("{name}.jsonl")), &generate(split, 120, 0));
        let (data, output, lager) =
            (format!("{name}.jsonl"), format!("{name}.scores.jsonl"), format!("{name}.lager.json"));
        succeed("lager_pointwise", folder, &["--data", &data, "--output", &output, "--lager-json", &lager]);
    }
    let evaluate = |valid: &str, data: &str, more: &[&str]| {
        succeed("lager_evaluate", folder, &[&["--valid", valid, "--data", data, "--json", "out.json"], more].concat());
        folder.json("out.json")
    };
    let ours = evaluate("valid.scores.jsonl", "test.scores.jsonl", &["--weights-out", "weights.json"]);
    let theirs = evaluate("valid.lager.json", "test.lager.json", &[]);
    assert_eq!(ours["variants"], theirs["variants"]);
    assert_eq!((&ours["n"], &ours["unscored"]), (&json!(120), &json!(0)));
    assert_eq!(ours["variants"].as_object().map(serde_json::Map::len), Some(11));
    for name in ["direct_score", "e_score", "lager_w", "lager_wo", "prob_mean_e_score"] {
        assert!(ours["variants"][name]["spearman"]["estimate"].is_f64(), "{name}: {}", ours["variants"][name]);
    }

    // Items of LAGER's form are numbered: a number alone makes none the same.
    for (data, is_same) in [("test.lager.json", false), ("valid.lager.json", true)] {
        let args = ["--valid", "valid.lager.json", "--data", data];
        let (_, told) = finished("lager_evaluate", folder, &args);
        assert_eq!(told.contains("are in both files"), is_same, "{data}: {told}");
    }

    // Steps so long that the weights end on one layer are no fit.
    let long = ["--valid", "valid.scores.jsonl", "--weights-out", "long.json", "--lr"];
    for (rate, has_diverged) in [("1e30", true), ("0.01", false)] {
        let (said, told) = finished("lager_evaluate", folder, &[&long[..], &[rate, "--overwrite"]].concat());
        assert!(said.contains("fitted on 120 items"), "{said}");
        assert_eq!(told.contains("the fit diverged") && told.contains("lower --lr"), has_diverged, "{told}");
    }

    // Grades have no layer that chooses best, and no questions that pairs are about.
    let fit = ["--valid", "valid.scores.jsonl", "--weights-out", "none.json"];
    for (more, why) in
        [(["--layer", "best"], "--layer best is for pairs"), (["--cluster", "id"], "--cluster is for pairs")]
    {
        refused("lager_evaluate", folder, &[&fit[..], &more].concat(), 2, &[why]);
        assert!(!folder.join("none.json").exists());
    }

    // Saved weights score new items, and are refused where they do not belong.
    let scored = ["--data", "test.jsonl", "--output", "tuned.jsonl", "--weights", "weights.json"];
    succeed("lager_pointwise", folder, &scored);
    let row = &folder.rows("tuned.jsonl")[0];
    assert!((1.0..=5.0).contains(&row["score"].as_f64().expect("score")));
    let args = [&scored[..2], &["--output", "x.jsonl"], &scored[4..], &["--normed"]].concat();
    refused("lager_pointwise", folder, &args, 1, &["lens"]);
}

#[test]
fn a_command_and_its_former_name_are_one() {
    let folder = &Desk::new();
    for (command, former) in crate::program::COMMANDS {
        // All but the line that shows how it is called.
        let options = |name: &str| {
            let help = succeed(name, folder, &["--help"]);
            help.lines().filter(|line| !line.starts_with("Usage: judge ")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(options(command), options(former), "{command}");
    }
    // Former names are hidden.
    let help = succeed("--help", folder, &[]);
    assert!(
        help.contains("\n  score ") && !help.contains("lager_pointwise") && !help.contains("inspector_train"),
        "{help}"
    );
}

#[test]
fn completions_and_the_manual_page_name_the_commands() {
    let folder = &Desk::new();
    for args in [&["completions", "bash"][..], &["completions", "zsh"], &["completions", "fish"], &["man"]] {
        let text = succeed(args[0], folder, &args[1..]);
        assert!(text.contains("score") && text.contains("calibrate"), "{args:?}: {text}");
    }
    // The page has the options of every command.
    let page = succeed("man", folder, &[]).replace("\\-", "-");
    let (_, train) = page.split_once(".SH \"judge probe train\"\n").expect("a section of the command");
    assert!(page.contains("--min-coverage") && train.contains(".SS TRAINING\n"), "{train}");
    assert!(train.contains("--tuned-baseline"), "{train}");
}
