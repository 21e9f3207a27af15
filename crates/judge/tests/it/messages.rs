//! What is said of a command line or a file that is not what it should be: what was expected, what was found, and what to do.

use std::fs;

use serde_json::{Value, json};

use crate::decide::model;
use crate::program::{Desk, embedded_model, judge, words};
use crate::serve::model_with_yes_and_no;

/// A folder with graded responses in `in.jsonl`.
fn desk() -> Desk {
    let desk = Desk::new();
    let row = |id: u32| json!({"id": id, "instruction": "2 + 2?", "response": "4", "rubric": "Is it right?", "topic": "sums"});
    desk.write("in.jsonl", &(0..6).map(row).collect::<Vec<_>>());
    desk
}

#[test]
fn a_path_that_is_not_there_is_no_model_of_the_hub() {
    let desk = desk();
    fs::create_dir(desk.join("models")).expect("a folder");
    let mut command = judge("score");
    command.args(["--input", "in.jsonl", "--output", "o.jsonl", "--model", "models/none"]);
    let output = command.env("HF_HUB_OFFLINE", "1").current_dir(&desk).output().expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let here = "note: there is no models/none in that folder here, so it is taken as the id of a model on the hub";
    assert!(stderr.starts_with(here) && stderr.contains("no folder or file models/none here"), "{stderr}");
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_build_without_gpus_says_how_to_get_one() {
    let desk = desk();
    let model = embedded_model();
    let line = format!("score --input in.jsonl --output o.jsonl --device cuda:0 --model {}", model.display());
    desk.refused(&line, 1, &["this build cannot use it", "its Cargo feature `cuda`: docs/gpu.md"]);
}

#[test]
fn a_misspelt_field_of_a_template_is_asked_about() {
    let desk = desk();
    let template = json!({"chat": {"messages": [{"role": "user", "content": "Grade {respons}"}]}});
    desk.put("t.json", template.to_string());
    let line =
        format!("score --input in.jsonl --output o.jsonl --template t.json --model {}", embedded_model().display());
    desk.refused(&line, 1, &[r#"the field "respons""#, r#"Did you mean "response"?"#]);
}

#[test]
fn a_plan_of_json_lines_names_its_command() {
    let desk = desk();
    desk.refused("shards plan --input in.jsonl --output plan.json", 2, &["in.jsonl is not Parquet", "-- score"]);
    assert!(!desk.join("plan.json").exists());
}

/// `judge shards plan` takes both.
#[test]
fn a_folder_and_a_pattern_are_no_file_of_rows() {
    let desk = desk();
    fs::create_dir(desk.join("data")).expect("a folder");
    for command in ["score", "select", "agree"] {
        let line = |input: &str| match command {
            "agree" => format!("agree --input {input}"),
            _ => format!("{command} --input {input} --output o.jsonl"),
        };
        let advice = "`judge shards plan`";
        let found = "error: data: the input: expected a file of rows, found a folder";
        let stderr = desk.refused(&line("data"), 1, &[advice]).stderr;
        assert!(stderr.starts_with(found), "nothing is said before of a model: {stderr}");
        desk.refused(&line("data/*.parquet"), 1, &["cannot open data/*.parquet", advice]);
    }
}

/// A reply in which no label was found: more tokens, or another condition.
#[test]
fn a_label_that_was_not_written_has_a_remedy() {
    let desk = desk();
    let model = model(&desk, None);
    let template = json!({"chat": {"messages": [{"role": "user", "content": "Grade {response}"}]}});
    desk.put("t.json", template.to_string());
    let short = "--condition reasoning --max-new-tokens 2 --template t.json";
    let line = format!("score --input in.jsonl --output o.jsonl {short} --model {model}");
    let stderr = desk.refused(&line, 1, &["no row was scored: 6 no_"]).stderr;
    for advice in ["note: no_", "in at most 2 tokens", "--max-new-tokens", "--condition prompt-end"] {
        assert!(stderr.contains(advice), "{advice}: {stderr}");
    }
}

#[test]
fn a_field_to_carry_that_no_row_has_is_named_before_any_work() {
    let desk = desk();
    let pair = |id: u32| json!({"id": id, "instruction": "?", "response_a": "a", "response_b": "b", "topic": "x"});
    desk.write("pairs.jsonl", &[pair(1), pair(2)]);
    let state = |id: u32| json!({"id": id, "state": "x", "topic": "x"});
    desk.write("states.jsonl", &[state(1), state(2)]);
    desk.put("q.json", r#"{"q": {"type": "noul", "instructions": "Is it x?"}}"#);
    let prompt = |id: u32| json!({"id": id, "prompt": "x", "topic": "x"});
    desk.write("prompts.jsonl", &[prompt(1), prompt(2)]);
    for line in [
        "score --input in.jsonl",
        "compare --input pairs.jsonl",
        "reward --input in.jsonl",
        "decide --input states.jsonl --questions q.json",
        "logits --input prompts.jsonl",
        "sft-evaluate --input in.jsonl",
    ] {
        // Checked before the model is looked at.
        let line = format!("{line} --output o.jsonl --carry topik --model {}", embedded_model().display());
        desk.refused_at_once(&line, 1, &[r#"the field "topik" that is to be carried"#, r#"Did you mean "topic"?"#]);
        assert!(!desk.join("o.jsonl").exists(), "{line}");
    }
}

#[test]
fn options_without_effect_are_refused() {
    let desk = desk();
    desk.write("states.jsonl", &[json!({"id": 1, "state": "x", "labels": {"q": true}})]);
    desk.put("q.json", r#"{"q": {"type": "noul", "instructions": "Is it x?"}}"#);
    let pair = |id: u32| json!({"id": id, "instruction": "?", "response_a": "a", "response_b": "b b", "human": "A"});
    desk.write("pairs.jsonl", &[pair(1), pair(2), pair(3)]);
    let verdict = |id: u32| json!({"id": id, "given": "[[A]]", "swapped": "[[A]]"});
    desk.write("v.jsonl", &[verdict(1), verdict(2), verdict(3)]);
    let decide = "decide --input states.jsonl --questions q.json --output o.jsonl";
    let [score, logits] = ["score", "logits"].map(|name| format!("{name} --input in.jsonl --output o.jsonl"));
    for (line, expected) in [
        (format!("{decide} --lens normed"), "--lens has no effect on the last layer"),
        (format!("{decide} --base-url http://127.0.0.1:9 --api-model m --raw-prompt"), "cannot be used with"),
        (format!("{decide} --temperature noul=2,noul=3"), "expected one number for each kind, found two for noul"),
        ("checklist --input in.jsonl --output o.jsonl --lens normed".to_owned(), "--lens has no effect"),
        (format!("{score} --states drop-last"), "--states has no effect on e_score"),
        (format!("{score} --variant e_score --weights w.json"), "--weights has no effect on e_score"),
        (format!("{score} --layers last --lens normed"), "--lens has no effect"),
        ("rag --input in.jsonl --output o.jsonl --layers all --by-context".to_owned(), "--layers all has no effect"),
        ("rerank --input in.jsonl --output o.jsonl --top 0".to_owned(), "expected a whole number of at least 1"),
        ("compare --input in.jsonl --output o.jsonl --orders given".to_owned(), "--orders is of pairs"),
        (format!("{score} --rule last-label"), "--rule needs --condition"),
        (format!("{score} --marker Foo"), "--marker needs --condition"),
        (format!("{score} --max-new-tokens 5"), "--max-new-tokens needs --condition"),
        (format!("{score} --condition direct --marker Foo"), "--marker needs --rule"),
        (format!("{logits} --marker Foo"), "--marker needs --position after-marker"),
        (format!("{logits} --max-new-tokens 5"), "--max-new-tokens needs --position"),
        (format!("{logits} --seed 3"), "--seed"),
        ("fit --input in.jsonl --weights w.json --epochs 3".to_owned(), "--epochs"),
        ("fit --input in.jsonl --weights-out w.json".to_owned(), "--valid"),
    ] {
        desk.refused_at_once(&line, 2, &[expected]);
    }
    // A label of two tokens has a way out.
    let line = format!("{logits} --columns prompt=instruction,rubric= --points 10");
    desk.refused(&line, 1, &["\"10\"", "--points", "--labels"]);
    let bench = "bench --benchmark pairs --data pairs.jsonl --verdicts v.jsonl";
    for option in [
        "--reward helpful",
        "--device cuda:0",
        "--dtype f32",
        "--adapter nowhere",
        "--raw-prompt",
        "--max-batch-tokens 3",
    ] {
        desk.refused(&format!("{bench} {option}"), 2, &["cannot be used with"]);
    }
    desk.ok(&format!("{bench} --quiet --convention letters"));
}

#[test]
fn numbers_are_refused_with_what_was_expected_before_any_work() {
    let desk = desk();
    let whole = "expected a whole number of at least ";
    for (line, expected) in [
        ("tune --input in.jsonl --output o --lr 0", "'0' for '--lr <RATE>': expected a number above 0"),
        ("tune --input in.jsonl --output o --rank 0", whole),
        ("tune --input in.jsonl --output o --alpha nan", "expected a number above 0"),
        ("tune --input in.jsonl --output o --clip 0", "expected a number above 0"),
        ("tune --input in.jsonl --output o --weight-decay nan", "expected a number of at least 0"),
        ("tune --input in.jsonl --output o --targets=", "--targets"),
        ("fit --input in.jsonl --valid in.jsonl --alpha 1.5", "expected a share from 0 to 1, or `learned`"),
        ("fit --input in.jsonl --valid in.jsonl --epochs 0", whole),
        ("fit --input in.jsonl --valid in.jsonl --batch x", whole),
        ("score --input in.jsonl --output o.jsonl --variant lager_w", "--variant lager_w needs --weights"),
        ("score --input in.jsonl --output o.jsonl --max-batch-tokens 0", whole),
        ("speed --input in.jsonl --repeat 0", whole),
        ("speed --input in.jsonl --temperature 0.5", "--max-new-tokens"),
        ("agree --input in.jsonl --seed x", whole),
        ("agree --input in.jsonl --human=", "--human"),
        ("agree --input in.jsonl --plot=", "expected FILE.svg"),
        ("try --input in.jsonl --output o --resamples 100", "expected a whole number of at least 1000"),
        (
            "label --input in.jsonl --output o.jsonl --base-url u --api-model m --timeout 1e300",
            "expected a number of seconds",
        ),
    ] {
        desk.refused(line, 2, &[expected]);
    }
}

#[test]
fn a_field_that_no_row_has_is_named_with_its_option() {
    let desk = desk();
    let row = |id: u32| json!({"id": id, "score": 1 + id % 4, "human": 1 + id % 5});
    desk.write("s.jsonl", &(0..8).map(row).collect::<Vec<_>>());
    for (line, expected) in [
        ("report --input s.jsonl --output r.html --human humann", "no row has the field \"humann\" that --human names"),
        (
            "agree --input s.jsonl --sampling-probability chance",
            "--sampling-probability: no row has the field \"chance\"",
        ),
    ] {
        desk.refused(line, 1, &[expected]);
    }
    let none = [json!({"id": 1, "instruction": "2 + 2?", "response": "4"})];
    desk.write("bare.jsonl", &none);
    let line =
        format!("score --input bare.jsonl --output o.jsonl --carry rubrik --model {}", embedded_model().display());
    desk.refused(&line, 1, &["1 were read, and the first has no field besides what is read of it"]);
}

/// Standard input is read once, by whichever option names it, and copied to where there is room.
#[test]
fn standard_input_is_any_one_of_the_files() {
    let desk = desk();
    let row = |id: u32| json!({"id": id, "score": f64::from(id % 7), "human": f64::from(id % 5)});
    desk.write("graded.jsonl", &(0..60).map(row).collect::<Vec<_>>());
    let run = |line: &str, tmp: Option<&str>| {
        let words = words(line);
        let mut command = judge(words[0]);
        command.args(&words[1..]).envs(tmp.map(|folder| ("TMPDIR", folder))).current_dir(&desk);
        let rows = fs::File::open(desk.join("graded.jsonl")).expect("rows");
        let output = command.stdin(rows).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = run("calibrate --graded - --input graded.jsonl --output o.jsonl", None);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = run("calibrate --graded - --input - --output p.jsonl", None);
    assert!(code == Some(2) && told.contains("standard input can be read once"), "{told}");
    let (code, told) = run("agree --input -", Some("nowhere"));
    assert!(code == Some(1) && told.contains("cannot write a temporary copy of the input in nowhere"), "{told}");
}

// https://github.com/linzhiqiu/t2v_metrics/issues/41
#[test]
fn answers_that_the_model_hardly_considered_are_noted() {
    let desk = desk();
    let path = model_with_yes_and_no(&desk);
    let template = "{%- for message in messages -%}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{%- endfor -%}\
                    {%- if add_generation_prompt -%}<|assistant|><think>\n{%- endif -%}";
    fs::write(path.join("chat_template.jinja"), template).expect("a template");
    let row = |id: u32| json!({"id": id, "state": format!("5 + 3 = {}", 7 + id)});
    desk.write("states.jsonl", &[row(1), row(2)]);
    let question =
        json!({"ok": {"type": "choice", "instructions": "Is it right?", "criteria": {"yes": null, "no": null}}});
    desk.put("q.json", question.to_string());
    let lines = ["decide --input states.jsonl --questions q.json", "checklist --input in.jsonl --checklist list.json"];
    desk.put("list.json", r#"["Is it right?", "Is it short?"]"#);
    for (line, output) in lines.into_iter().zip(["a.jsonl", "b.jsonl"]) {
        let line = format!("{line} --output {output} --model yes-and-no");
        let told = desk.ok(&line).stderr;
        assert!(
            told.contains("of the model's probability lies on the labels of")
                && told.contains("(see --decision-prompt"),
            "{told}"
        );
    }
    let mass = |row: &Value| row["label_mass"]["ok"].as_f64().expect("a share");
    let all = desk.rows("a.jsonl");
    assert!(all.iter().all(|row| mass(row) < 0.5), "{all:?}");
}
