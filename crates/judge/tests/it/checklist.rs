//! `judge checklist`: criteria of the row or of a file, weighted and kept.

use serde_json::{Value, json};

use crate::program::{Desk, refused, succeed};
use crate::serve::model_with_yes_and_no;

#[test]
fn criteria_are_asked_apart_weighted_and_kept() {
    let path = &Desk::new();
    let model = model_with_yes_and_no(path).to_str().unwrap().to_owned();
    let row = |id: usize, more: Value| {
        let mut row = json!({"id": id, "instruction": "2 + 4?", "response": format!("It is {id}."), "human": id % 5, "from": "a"});
        row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        row
    };
    let mut all: Vec<Value> = (0..6).map(|id| row(id, json!({}))).collect();
    all.push(row(6, json!({"checklist": ["is short", {"criterion": "names 6", "fatal": true, "weight": 2}]})));
    all.push(row(7, json!({"checklist": "is short"})));
    all.push(row(8, json!({"checklist": [{"criterion": "is short", "wait": 2}]})));
    all.push(json!({"id": 9, "instruction": "no response"}));
    path.write("in.jsonl", &all);
    let list = json!([{"criterion": "names the number", "name": "number"}, {"criterion": "is rude", "weight": -1.0}]);
    path.put("list.json", list.to_string());
    let args = ["--model", &model, "--input", "in.jsonl", "--output", "out.jsonl", "--checklist", "list.json"];
    let said = succeed("checklist", path, &args);
    assert!(said.contains("7 of 10 rows scored") && said.contains("missing: 3"), "{said}");
    let found = path.rows("out.jsonl");
    assert_eq!(found.len(), 10);
    for row in &found[..6] {
        let [number, rude] = ["number", "2"].map(|name| row["criteria"][name].as_f64().unwrap());
        let expected = (number - rude).clamp(0.0, 1.0);
        assert!((row["score"].as_f64().unwrap() - expected).abs() < 1e-12, "{row}");
        assert_eq!((&row["from"], row["human"].is_number()), (&json!("a"), true));
    }
    let [short, six] = ["1", "2"].map(|name| found[6]["criteria"][name].as_f64().unwrap());
    let expected = if six < 0.5 { 0.0 } else { (short + 2.0 * six) / 3.0 };
    assert!((found[6]["score"].as_f64().unwrap() - expected).abs() < 1e-12, "{}", found[6]);
    for (row, said) in [(7, "a list of criteria"), (8, "no fields but"), (9, "response")] {
        let unscored = found[row]["unscored"]["detail"].as_str().unwrap();
        assert!(unscored.contains(said), "{unscored}");
    }
    assert!(succeed("checklist", path, &args).contains("is complete: 7 of 10 rows scored"));
    // What is decided about one row does not depend on the others.
    path.write("one.jsonl", &all[3..4]);
    let alone = ["--model", &model, "--input", "one.jsonl", "--output", "one.out.jsonl", "--checklist", "list.json"];
    succeed("checklist", path, &alone);
    assert_eq!(path.rows("one.out.jsonl")[0], found[3]);
    let without = ["--model", &model, "--input", "one.jsonl", "--output", "no.jsonl"];
    refused("checklist", path, &without, 2, &["--checklist"]);
    // Its rows have no place for the logits of layers.
    for command in [&[&without[..], &["--checklist", "list.json"]].concat()[..], &["--model", &model, "--port", "0"]] {
        let name = if command.contains(&"--port") { "serve" } else { "checklist" };
        refused(name, path, &[command, &["--layers", "all"]].concat(), 2, &["--layers all", "no label logits"]);
    }
    assert!(!path.join("no.jsonl").exists());
}
