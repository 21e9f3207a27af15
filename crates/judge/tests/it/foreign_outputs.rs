//! A file that a program did not write, in the place of each file that it would write: untouched, exit code 2, and no work done.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::program::{Desk, ended, judge, refused, succeed, words};

const MINE: &[u8] = b"a file of mine\n";

/// What a command has of rows that go to `o.jsonl`.
const ROWS: [&str; 4] = ["o.jsonl", "o.jsonl.partial", "o.jsonl.partial.sorted", "o.jsonl.run.json"];

/// Command lines that write rows to `o.jsonl`, and the other names in the place of which a foreign file is refused. `nowhere` is no model:
/// whoever looks for it fails otherwise.
const OF_ROWS: [(&str, &[&str]); 17] = [
    ("calibrate --graded in.jsonl --input in.jsonl --json a.json", &["a.json"]),
    (
        "data_selection --input in.jsonl --selected s.jsonl --json a.json --model nowhere",
        &[
            "s.jsonl",
            "s.jsonl.partial.sorted",
            "s.jsonl.run.json",
            "a.json",
            "o.jsonl.aspects.jsonl",
            "o.jsonl.likelihood.jsonl",
            "o.jsonl.probe.jsonl",
            "o.jsonl.states.safetensors",
            "o.jsonl.states.ids.jsonl",
            "o.jsonl.states.safetensors.partial",
        ],
    ),
    ("checklist --input in.jsonl --model nowhere", &[]),
    ("decide --input in.jsonl --json a.json --fit w.json --model nowhere", &["a.json", "w.json"]),
    ("rerank --input in.jsonl --json a.json --fit w.json --model nowhere", &["a.json", "w.json"]),
    ("emotional_understanding --input in.jsonl --json a.json --model nowhere", &["a.json"]),
    ("inspector_evaluate --input in.jsonl --probes probes --model nowhere", &[]),
    ("label_with_api --input in.jsonl --json a.json --base-url http://127.0.0.1:9 --api-model m --no-key", &["a.json"]),
    ("lager_pointwise --input in.jsonl --lager-json l.json --model nowhere", &["l.json"]),
    ("layer_logits --input in.jsonl --model nowhere", &[]),
    ("pairwise_benchmark --benchmark pairs --data pairs.jsonl --json a.json --model nowhere", &["a.json"]),
    ("probe_apply --probe nowhere --input nowhere.safetensors", &[]),
    ("prompt_judge --input in.jsonl --model nowhere", &[]),
    ("rank_answers --input in.jsonl --json a.json --model nowhere", &["a.json"]),
    ("reward_scores --input in.jsonl --model nowhere", &[]),
    ("self_knowledge --input in.jsonl --json a.json --model nowhere", &["a.json"]),
    ("sft-evaluate --input in.jsonl --json a.json --model nowhere", &["a.json"]),
];

/// Other command lines, and all names in the place of which a foreign file is refused.
const OTHERS: [(&str, &[&str]); 24] = [
    ("drift --input in.jsonl --against in.jsonl --json a.json", &["a.json"]),
    (
        "agreement --input in.jsonl --json a.json --plot a.svg --risk-plot r.svg --scores-plot s.svg",
        &["a.json", "a.svg", "r.svg", "s.svg"],
    ),
    ("agreement --input in.jsonl --group g --comparison-plot c.svg", &["c.svg"]),
    ("bias_report --benchmark pairs --data pairs.jsonl --verdicts given.jsonl --json a.json", &["a.json"]),
    ("bias_report --benchmark pairs --data pairs.jsonl --verdicts given.jsonl --plots plots", &["plots/position.svg"]),
    ("bias_report --benchmark pairs --data pairs.jsonl --write-perturbed changed.jsonl", &["changed.jsonl"]),
    ("generate_rows --output o.jsonl", &["o.jsonl"]),
    (
        "hidden_states --input in.jsonl --output o.safetensors --model nowhere",
        &[
            "o.safetensors",
            "o.ids.jsonl",
            "o.safetensors.partial",
            "o.ids.jsonl.partial",
            "o.ids.jsonl.partial.sorted",
            "o.safetensors.run.json",
        ],
    ),
    (
        "hidden_states --input in.jsonl --output o.safetensors --rows-per-shard 1 --model nowhere",
        &["o-00001-of-00002.safetensors", "o-00002-of-00002.ids.jsonl", "o-00002-of-00002.safetensors.partial"],
    ),
    (
        "inspector_evaluate --input in.jsonl --probes probes --output o.jsonl --top-share 0.5 --model nowhere",
        &["o.jsonl", "o.jsonl.run.json", "o.jsonl.judged.jsonl", "o.jsonl.judged.jsonl.partial"],
    ),
    (
        "inspector_filter --input in.jsonl --probes probes --output o.jsonl --top-share 0.5 --json a.json --model nowhere",
        &["o.jsonl", "o.jsonl.run.json", "o.jsonl.judged.jsonl", "o.jsonl.judged.jsonl.partial.sorted", "a.json"],
    ),
    (
        "inspector_train --input graded.jsonl --output out --model nowhere",
        &[
            "out/fluency.safetensors",
            "out/fluency.svg",
            "out/fluency.template.json",
            "out/report.json",
            "out/states/fluency.mean-00001-of-00001.safetensors",
            "out/states/fluency.mean-00001-of-00001.ids.jsonl",
            "out/states/fluency.labels-00001-of-00001.ids.jsonl",
        ],
    ),
    ("lager_evaluate --valid in.jsonl --input in.jsonl --weights-out w.json --json a.json", &["w.json", "a.json"]),
    ("lager_evaluate --valid in.jsonl --input in.jsonl --plot a.svg --learning-plot l.svg", &["a.svg", "l.svg"]),
    (
        "merge_adapter --model nowhere --adapter nowhere --output merged --json a.json",
        &["merged", "merged/f", "a.json"],
    ),
    (
        "pairwise_benchmark --benchmark pairs --data pairs.jsonl --verdicts given.jsonl --json a.json --plot a.svg",
        &["a.json", "a.svg"],
    ),
    ("report --input in.jsonl --output o.html", &["o.html"]),
    ("report --input in.jsonl --output o.html --json a.json", &["o.html", "a.json"]),
    ("score_stream --run r.json --model nowhere", &["r.json"]),
    (
        "finetune --input in.jsonl --output o --json a.json --plot a.svg --model nowhere",
        &[
            "o.log.jsonl",
            "o.checkpoint.safetensors",
            "o.checkpoint.safetensors.partial",
            "o.best.safetensors",
            "o.best.safetensors.partial",
            "o.states",
            "a.json",
            "a.svg",
        ],
    ),
    ("finetune --input in.jsonl --output o --learn-weights --model nowhere", &["o.weights.json"]),
    ("throughput --input in.jsonl --json a.json --model nowhere", &["a.json"]),
    ("doctor --json a.json", &["a.json"]),
    (
        "try --input in.jsonl --output o --json a.json --plot a.svg --model nowhere",
        &[
            "a.json",
            "a.svg",
            "o/layer.json",
            "o/weights.json",
            "o/checklist.json",
            "o/score.safetensors",
            "o/score.states.safetensors",
            "o/yes.safetensors",
            "o/probe/quality.safetensors",
            "o/probe/quality.template.json",
            "o/conversation.states.safetensors",
            "o/probe-after/quality.safetensors",
            "o/probe-after/quality.template.json",
        ],
    ),
];

/// Command lines, each with the names in the place of which a foreign file is refused.
fn cases() -> impl Iterator<Item = (String, Vec<&'static str>)> {
    let of_rows = OF_ROWS.iter().map(|(line, more)| (format!("{line} --output o.jsonl"), [&ROWS[..], *more].concat()));
    of_rows.chain(OTHERS.iter().map(|(line, names)| ((*line).to_owned(), names.to_vec())))
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            found.insert(name, fs::read(path).unwrap());
        }
    }
    found
}

/// A folder with inputs that every program takes as far as it looks before its outputs.
fn desk() -> Desk {
    let desk = Desk::new();
    let row = |id: u32| json!({"id": id, "question": "2 + 2?", "answer": "4", "score": 3 + id % 2, "human": 3 + id % 2, "g": "a"});
    desk.write("in.jsonl", &[row(1), row(2)]);
    let graded = |id: u32| {
        let score = 1 + id % 2;
        json!({"id": id, "aspect": "fluency", "question": format!("{id} + 2?"), "response": format!("{id}"), "score": score})
    };
    desk.write("graded.jsonl", &(0..40).map(graded).collect::<Vec<_>>());
    let pair = |id: u32| json!({"id": id, "instruction": "?", "response_a": "a", "response_b": "b b", "human": "A"});
    desk.write("pairs.jsonl", &[pair(1), pair(2), pair(3)]);
    let verdict = |id: u32| json!({"id": id, "given": "[[A]]", "swapped": "[[A]]"});
    desk.write("given.jsonl", &[verdict(1), verdict(2), verdict(3)]);
    fs::create_dir(desk.join("probes")).unwrap();
    desk
}

/// Nobody's file is replaced, whatever was allowed.
#[test]
fn a_foreign_file_in_the_place_of_any_output_stays_and_nothing_is_done() {
    for (line, outputs) in cases() {
        for (output, overwrite) in outputs.into_iter().flat_map(|output| [(output, false), (output, true)]) {
            let desk = &desk();
            let path = desk.join(output);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, MINE).unwrap();
            let before = files(desk);
            let words: Vec<&str> = line.split(' ').chain(overwrite.then_some("--overwrite")).collect();
            let (_, stderr) = ended(words[0], desk, &words[1..], 2);
            assert!(!stderr.contains("to replace it"), "{line}, {output}: {stderr}");
            let name = Path::new(output).file_name().unwrap().to_str().unwrap();
            let folder = Path::new(output).parent().and_then(Path::to_str).filter(|folder| !folder.is_empty());
            assert!(
                stderr.contains(name) || folder.is_some_and(|folder| stderr.contains(folder)),
                "{line}, {output}: {stderr}"
            );
            assert_eq!(files(desk), before, "{line}, {output}: {stderr}");
        }
    }
}

/// A page is one file. The figures go where --json says, and never beside the page.
#[test]
fn a_page_leaves_the_data_of_its_name_alone() {
    let desk = &desk();
    let row = |id: u32| json!({"id": id, "score": id % 3, "human": id % 4});
    desk.put("data.json", json!((0..9).map(row).collect::<Vec<_>>()).to_string());
    let before = files(desk);
    let page = ["--input", "data.json", "--output", "data.html", "--overwrite", "--quiet"];
    succeed("report", desk, &page);
    let mut after = files(desk);
    assert!(after.remove("data.html").is_some());
    assert_eq!(after, before);
    let args = [&page[..], &["--json", "in.jsonl"]].concat();
    refused("report", desk, &args, 2, &["in.jsonl: it is a file that no command"]);
}

#[test]
fn the_table_has_every_program() {
    // score_files has a test of its own; probe_import needs a pickle and has one in `probes.rs`; serve writes no file, and
    // grade waits for people.
    let elsewhere = ["score_files", "probe_import", "serve", "grade"];
    for (_, program) in crate::program::COMMANDS {
        let is_there = cases().any(|(line, _)| line.split(' ').next() == Some(program));
        assert!(is_there || elsewhere.contains(&program), "{program}");
    }
}

#[test]
fn reports_are_made_anew_and_those_of_others_only_with_overwrite() {
    let desk = &desk();
    let args = ["--input", "in.jsonl", "--json", "a.json", "--plot", "a.svg", "--quiet"];
    succeed("agreement", desk, &args);
    let first = files(desk);
    succeed("agreement", desk, &args);
    assert_eq!(files(desk), first);
    // Figures of another program are not this one's.
    let page = ["--input", "in.jsonl", "--output", "p.html", "--json", "a.json", "--quiet"];
    refused("report", desk, &page, 2, &["a.json exists"]);
    assert_eq!(files(desk), first);
    succeed("report", desk, &[&page[..], &["--overwrite"]].concat());
    succeed("report", desk, &page);
    // Rows are kept: the same again, others never.
    let rows = ["--output", "g.jsonl", "--rows", "3"];
    succeed("generate_rows", desk, &rows);
    succeed("generate_rows", desk, &rows);
    let before = files(desk);
    let others = ["--output", "g.jsonl", "--rows", "4"];
    refused("generate_rows", desk, &others, 2, &["g.jsonl exists"]);
    assert_eq!(files(desk), before);
    succeed("generate_rows", desk, &[&others[..], &["--overwrite"]].concat());
}

#[cfg(target_os = "linux")] // other systems do not take such a name
#[test]
fn a_name_that_is_not_utf_8_is_refused_before_any_work() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let desk = &desk();
    let odd = OsStr::from_bytes(b"o\xff.jsonl");
    fs::copy(desk.join("in.jsonl"), desk.join(odd)).unwrap();
    fs::create_dir(desk.join("parquet")).unwrap();
    for (line, option) in [
        ("lager_pointwise --input in.jsonl --model nowhere", "--output"),
        ("lager_pointwise --output out.jsonl --model nowhere", "--input"),
        ("hidden_states --input in.jsonl --model nowhere", "--output"),
        ("agreement --input in.jsonl", "--json"),
        ("score_stream --model nowhere", "--run"),
        ("score_stream --model nowhere", "--device"),
        ("lager_pointwise --input in.jsonl --output out.jsonl --model nowhere", "--rubric"),
        ("merge_adapter --model nowhere --adapter nowhere", "--output"),
    ] {
        let words = words(line);
        let mut command = judge(words[0]);
        let output = command.args(&words[1..]).arg(option).arg(odd).current_dir(desk).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line} {option}: {stderr}");
        assert!(stderr.contains("UTF-8"), "{line} {option}: {stderr}");
    }
}
