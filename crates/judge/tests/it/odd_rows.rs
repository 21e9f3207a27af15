//! One odd row costs itself, in every program that judges rows: it is unscored, counted and said, wherever it stands, and the others have
//! what they have without it. What no row has is an error before any work.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, finished, fixture, refused, rows, succeed, write_rows};
use crate::server::{Reply, Server};

/// Runs a program on a good row with `odd` before and behind it: the odd rows are unscored, the good one is as it is alone.
fn costs_itself(name: &str, folder: &Path, args: &[&str], good: &Value, odd: [&Value; 2], detail: &str) {
    let (input, output) = (folder.join("in.jsonl"), folder.join("out.jsonl"));
    let run = |all: &[Value]| {
        write_rows(&input, all);
        let args = [&["--input", "in.jsonl", "--output", "out.jsonl"], args].concat();
        let (stdout, stderr) = finished(name, folder, &args);
        let found = rows(&output);
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("out.jsonl")) {
                fs::remove_file(path).expect("removed");
            }
        }
        (found, format!("{stdout}{stderr}"))
    };
    let (alone, said) = run(std::slice::from_ref(good));
    assert!(!said.contains("missing"), "{name}: {said}");
    let (found, said) = run(&[odd[0].clone(), good.clone(), odd[1].clone()]);
    let times = alone.len();
    assert_eq!((found.len(), &found[times..2 * times]), (3 * times, &alone[..]), "{name}");
    for row in found[..times].iter().chain(&found[2 * times..]) {
        let unscored = &row["unscored"];
        // Of several aspects or probes each has its own.
        let unscored = if unscored["reason"].is_null() {
            unscored.as_object().and_then(|all| all.values().next()).unwrap_or_else(|| panic!("{name}: {row}"))
        } else {
            unscored
        };
        assert_eq!(unscored["reason"], "missing", "{name}: {row}");
        assert!(unscored["detail"].as_str().is_some_and(|said| said.contains(detail)), "{name}: {row}");
        assert_eq!(row["topic"], "t", "{name}: {row}");
    }
    assert!(said.contains("missing") || said.contains("lack"), "{name}: {said}");
}

#[test]
fn a_row_without_a_response() {
    let folder = &Desk::new();
    let good = json!({"id": "g", "instruction": "de", "response": "fi go", "topic": "t"});
    let null = json!({"id": "n", "instruction": "de", "response": null, "topic": "t"});
    let absent = json!({"id": "a", "instruction": "de", "topic": "t"});
    let model = fixture("heads/llama");
    let logits = &["--verdict", "logits"][..];
    for (name, args) in
        [("lager_pointwise", &[][..]), ("prompt_judge", logits), ("reward_scores", &["--model", &model])]
    {
        costs_itself(name, folder, args, &good, [&null, &absent], "no response");
    }
    let server = Server::start(|_, _| Reply::text("{\"reason\": \"so\", \"score\": 4}"));
    let args = ["--base-url", &server.base_url, "--api-model", "m", "--no-key", "--aspects", "fluency,logicality"];
    costs_itself("label_with_api", folder, &args, &good, [&null, &absent], "no response");
    assert_eq!(server.requests(), 4, "nothing is sent for rows without a response");
}

#[test]
fn a_pair_without_one_of_its_responses() {
    let folder = &Desk::new();
    let pair =
        |id: &str, b: Value| json!({"id": id, "instruction": "de", "response_a": "fi", "response_b": b, "topic": "t"});
    let (good, null) = (pair("g", json!("go")), pair("n", Value::Null));
    let mut absent = pair("a", Value::Null);
    absent.as_object_mut().expect("a row").remove("response_b");
    let args = ["--verdict", "logits"];
    costs_itself("prompt_judge", folder, &args, &good, [&null, &absent], "no response_b");
    let answers = |id: &str, all: Value| json!({"id": id, "instruction": "de", "responses": all, "topic": "t"});
    let (good, null) = (answers("g", json!(["fi", "go"])), answers("n", Value::Null));
    let odd = answers("o", json!(["fi", 3]));
    costs_itself("rank_answers", folder, &args, &good, [&null, &null_named(&null, "m")], "no responses");
    costs_itself("rank_answers", folder, &args, &good, [&odd, &null_named(&odd, "m")], "a list of texts");
}

fn null_named(row: &Value, id: &str) -> Value {
    let mut row = row.clone();
    row["id"] = json!(id);
    row
}

#[test]
fn odd_conversations() {
    let folder = &Desk::new();
    let turn = |content: Value| json!({"role": "user", "content": content});
    let row = |id: &str, messages: Value| json!({"id": id, "messages": messages, "topic": "t"});
    let good = row("g", json!([turn(json!("de"))]));
    let null = row("n", json!([turn(json!("de")), {"role": "assistant", "content": null, "tool_calls": [{}]}]));
    let picture = row("p", json!([turn(json!([{"type": "image_url", "image_url": {"url": "x"}}]))]));
    let detail = "of \"messages\": expected content to be text";
    costs_itself("layer_logits", folder, &[], &good, [&null, &picture], detail);
    // Parts of text, and the same list as JSON text, are the conversation itself.
    let parts = row("g", json!([turn(json!([{"type": "text", "text": "d"}, {"type": "text", "text": "e"}]))]));
    let text = row("g", json!(good["messages"].to_string()));
    let mut found = Vec::new();
    for (name, row) in [("good", good), ("parts", parts), ("text", text)] {
        folder.write(name, &[row]);
        let output = format!("{name}.jsonl");
        succeed("layer_logits", folder, &["--input", name, "--output", &output]);
        found.push(folder.rows(output));
    }
    assert!(found[0][0]["logits"].is_array() && found[1..].iter().all(|rows| *rows == found[0]), "{found:?}");
    // States keep a place for what has none.
    folder.write("in.jsonl", &[null, row("h", json!([turn(json!("de"))]))]);
    succeed("hidden_states", folder, &["--input", "in.jsonl", "--output", "s.safetensors", "--layers", "1"]);
    let ids = folder.rows("s.ids.jsonl");
    assert_eq!((&ids[0]["unscored"]["reason"], ids[1].get("unscored")), (&json!("missing"), None));
}

/// JSON can write half of a character.
#[test]
fn a_text_with_a_lone_surrogate() {
    let folder = &Desk::new();
    let rows_in = "{\"id\":1,\"instruction\":\"2 + 2?\",\"response\":\"12 \\ud83d ok\",\"note\":\"\\ud83d\"}\n\
                   {\"id\":2,\"instruction\":\"2 + 2?\",\"response\":\"4\",\"note\":\"\\ud83d\"}\n";
    folder.put("in.jsonl", rows_in);
    let (stdout, stderr) = finished("lager_pointwise", folder, &["--input", "in.jsonl", "--output", "out.jsonl"]);
    assert!(stdout.contains("unscored, missing: 1") && stderr.contains("a lone surrogate"), "{stdout}{stderr}");
    let text = folder.text("out.jsonl");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.contains("\"note\":\"\\ud83d\"")), "{text}");
    assert!(lines[0].contains("a lone surrogate in string") && lines[1].contains("\"score\":"), "{text}");
}

/// A chat template may refuse a row, the first as well as any other.
#[test]
fn a_first_row_that_the_template_refuses() {
    let folder = &Desk::new();
    let model = folder.join("model");
    fs::create_dir(&model).expect("folder");
    tiny_judge::write(&model).expect("the embedded model");
    let template = "{% for m in messages %}{% if 'not for me' in m.content %}{{ raise_exception('no') }}{% endif %}{{ m.content }}{% endfor %}";
    fs::write(model.join("chat_template.jinja"), template).expect("a template");
    fs::remove_file(model.join("judge_template.json")).expect("removed");
    let prompts: Vec<Value> =
        ["not for me", "1 + 1?"].iter().enumerate().map(|(id, text)| json!({"id": id, "prompt": text})).collect();
    let graded = |(id, text): (usize, &&str)| json!({"id": id, "instruction": text, "response": "2"});
    let graded: Vec<Value> = ["not for me", "1 + 1?"].iter().enumerate().map(graded).collect();
    for (name, rows_in) in [("layer_logits", prompts), ("lager_pointwise", graded)] {
        for order in [[0, 1], [1, 0]] {
            folder.write("in.jsonl", &order.map(|at: usize| rows_in[at].clone()));
            let output = format!("{name}-{}.jsonl", order[0]);
            succeed(name, folder, &["--model", "model", "--input", "in.jsonl", "--output", &output]);
            let found = folder.rows(output);
            let refused = order.iter().position(|&at| at == 0).expect("it is there");
            assert_eq!(found[refused]["unscored"]["reason"], "template", "{name}");
            assert!(found[1 - refused]["logits"].is_array(), "{name}");
        }
    }
}

#[test]
fn what_no_row_has_is_said_before_any_work() {
    let folder = &Desk::new();
    let odd = |id: usize| json!({"id": id, "question": "de", "note": "x"});
    let rows_in: Vec<Value> = (0..3).map(odd).collect();
    folder.write("in.jsonl", &rows_in);
    for (name, args, code) in [
        ("lager_pointwise", &["--format", "graded"][..], 1),
        ("prompt_judge", &["--task", "pair"], 1),
        ("rank_answers", &[], 1),
        ("layer_logits", &[], 1),
        ("label_with_api", &["--base-url", "http://127.0.0.1:9/v1", "--api-model", "m", "--no-key"], 1),
    ] {
        let args = [&["--input", "in.jsonl", "--output", "out.jsonl"], args].concat();
        let stderr = refused(name, folder, &args, code, &["none of the first 3 rows can be read"]);
        assert!(stderr.contains("\"question\", \"note\"") && !stderr.contains("fingerprint"), "{name}: {stderr}");
        assert!(!folder.join("out.jsonl").exists());
    }
    // A template's own field.
    let graded: Vec<Value> = (0..3).map(|id| json!({"id": id, "instruction": "de", "response": "fi"})).collect();
    folder.write("graded.jsonl", &graded);
    folder.put("t.json", r#"{"raw": "{instruction} {rubrik}"}"#);
    let args = ["--input", "graded.jsonl", "--output", "out.jsonl", "--template", "t.json"];
    let stderr = refused("lager_pointwise", folder, &args, 1, &["none of the first 3 rows has the field \"rubrik\""]);
    assert!(stderr.contains("[\"instruction\", \"response\"]") && !stderr.contains("fingerprint"), "{stderr}");
}

/// Values that no number or list of numbers is read from.
const NO_NUMBERS: [&str; 4] = [r#""good""#, r#"{"a":1}"#, r#""\ud83d""#, "1e999"];

#[test]
fn odd_scores_and_grades_are_not_calibrated() {
    let folder = &Desk::new();
    let graded: Vec<String> = (0..60)
        .map(|i| format!("{}\n", json!({"id": i, "score": f64::from(i % 12) / 6.0, "human": 1 + i % 12 / 3})))
        .collect();
    let new = ["{\"id\":\"g\",\"score\":0.1,\"topic\":\"t\"}\n".to_owned()];
    let run = |graded: &[String], new: &[String]| {
        folder.put("graded.jsonl", graded.concat());
        folder.put("in.jsonl", new.concat());
        let args = ["--graded", "graded.jsonl", "--input", "in.jsonl", "--output", "out.jsonl", "--overwrite"];
        let (stdout, stderr) = finished("calibrate", folder, &args);
        let text = folder.text("out.jsonl");
        // Lines, since no parser of JSON takes all of the values.
        (text.lines().map(str::to_owned).collect::<Vec<_>>(), stdout, stderr)
    };
    let (alone, said, _) = run(&graded, &new);
    assert!(said.contains("fitted on 60 graded rows"), "{said}");
    for value in NO_NUMBERS {
        let odd = |field: &str, other: &str| [format!("{{\"id\":\"o\",\"{field}\":{value}{other},\"topic\":\"t\"}}\n")];
        let no_score = odd("score", "");
        let odd_graded = [&odd("score", ",\"human\":3")[..], &graded, &odd("human", ",\"score\":1")].concat();
        let (found, said, noted) = run(&odd_graded, &[&no_score[..], &new, &no_score].concat());
        assert_eq!((found.len(), &found[1]), (3, &alone[0]), "{value}");
        for row in [&found[0], &found[2]] {
            assert!(row.contains(&format!("\"score\":{value},\"topic\":\"t\",\"calibrated\":null")), "{row}");
        }
        assert!(said.contains("fitted on 60 graded rows") && said.contains("1 of 3 rows calibrated"), "{said}");
        for says in
            ["2 of 62 rows cannot be read and are not fitted on", "2 of 3 rows have a score that cannot be read"]
        {
            assert!(noted.contains(says) && noted.contains("in.jsonl, line 1: score is "), "{value}: {noted}");
        }
    }
}

#[test]
fn odd_grades_do_not_end_a_fit() {
    let folder = &Desk::new();
    let human = |id: usize| match id {
        3 => json!("N/A"),
        4 => json!([{}, "2"]),
        5 => json!("3"),
        _ => json!(1 + id % 3),
    };
    let row = |id: usize| {
        let logits = [[id % 5, id % 3, id % 4], [3 - id % 3, 1, id % 3]];
        json!({"id": id, "human": human(id), "score": if id == 6 { json!("N/A") } else { json!(2) }, "layers": [0, 1],
            "labels": ["1", "2", "3"], "logits": logits, "step": 0, "completion": ""})
    };
    folder.write("s.jsonl", &(0..30).map(row).collect::<Vec<_>>());
    let args = ["--input", "s.jsonl", "--variants", "e_score,direct_score", "--json", "fit.json"];
    let (_, said) = finished("fit", folder, &args);
    let note = "note: s.jsonl: in 2 of 30 rows what people gave is no grade and is left out; the first is 3: expected \"human\" to be a \
                number, or a list of numbers and nulls, found string \"N/A\"";
    assert!(said.contains(note), "{said}");
    let found = folder.json("fit.json");
    assert_eq!((&found["n"], &found["without_human"], &found["unscored"]), (&json!(29), &json!(1), &json!(0)));
}

#[test]
fn odd_rows_are_not_learnt_from() {
    let folder = &Desk::new();
    let good: Vec<Value> = (0..40)
        .map(|id| {
            let split = if id < 30 { "train" } else { "test" };
            json!({"id": id, "aspect": "fluency", "split": split, "question": format!("Question {id}?"),
                   "response": format!("Answer {}", id % 7), "score": 1 + id * id % 3, "from": "f", "topic": id})
        })
        .collect();
    let run = |all: &[Value]| {
        folder.write("in.jsonl", all);
        let args =
            ["--input", "in.jsonl", "--output", "out", "--folds", "2", "--c", "0.01", "--top-k", "1", "--layers"];
        let more = ["0", "--pooling", "mean", "--source", "from", "--group", "topic", "--overwrite"];
        let (_, stderr) = finished("inspector_train", folder, &[&args[..], &more].concat());
        let report = folder.json("out/report.json");
        (report["aspects"].clone(), report["unread"].clone(), stderr)
    };
    let (alone, none, _) = run(&good);
    assert_eq!(none, 0);
    let odd: Vec<Value> = [
        ("aspect", json!(3)),
        ("aspect", Value::Null),
        ("split", json!(["train"])),
        ("question", json!({"text": "q"})),
        ("response", json!(["r"])),
        ("response", Value::Null),
        ("score", json!("good")),
        ("from", Value::Null),
        ("topic", Value::Null),
    ]
    .into_iter()
    .enumerate()
    .map(|(place, (field, value))| {
        let mut row = good[0].clone();
        (row["id"], row[field]) = (json!(100 + place), value);
        row
    })
    .collect();
    let (found, unread, said) = run(&[&odd[..5], &good, &odd[5..]].concat());
    assert_eq!((&found, &unread), (&alone, &json!(9)), "{said}");
    let note = "9 of 49 rows cannot be read and are skipped; the first is in.jsonl, line 1: expected aspect to be text";
    assert!(said.contains(note), "{said}");
    // What no row has is said as by the others, with the way out.
    folder.write("in.jsonl", &[json!({"id": 1, "ask": "q", "score": 3})]);
    let other = ["--input", "in.jsonl", "--output", "none"];
    refused("inspector_train", folder, &other, 1, &["no row of in.jsonl can be read", "--columns"]);
    // The published form: one object of lists.
    let file = |rows: Value| [json!({"fluency": rows})];
    let probing: Vec<Value> = good
        .iter()
        .map(|row| json!({"id": row["id"], "eval_prompt": format!("Grade {}", row["id"]), "score": row["score"]}))
        .collect();
    let run = |rows_in: Vec<Value>| {
        folder.write("p.json", &file(json!(rows_in)));
        let args = ["--input", "p.json", "--output", "probing", "--folds", "2", "--c", "0.01", "--top-k", "1"];
        let more = ["--layers", "0", "--pooling", "mean", "--overwrite"];
        let (_, stderr) = finished("inspector_train", folder, &[&args[..], &more].concat());
        let report = folder.json("probing/report.json");
        (report["aspects"].clone(), stderr)
    };
    let (alone, _) = run(probing.clone());
    let odd =
        [json!({"id": "o", "eval_prompt": null, "score": 1}), json!({"id": "p", "eval_prompt": "x", "score": "good"})];
    let (found, said) = run([&odd[..1], &probing, &odd[1..]].concat());
    assert_eq!(found, alone);
    assert!(said.contains("2 of 42 rows cannot be read and are skipped"), "{said}");
}
