//! `judge serve --judges`: judges of our own behind the routes of decisions.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, ran, succeed, write_rows};
use crate::serve::model_with_yes_and_no;
use crate::service::Service;

const VALIDATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/rows/validation.jsonl");

/// The model, and beside it scored rows, a probe, a checklist and the file that names them.
fn judges(path: &Path) -> String {
    let model = model_with_yes_and_no(path).to_str().unwrap().to_owned();
    let score = ["--model", &model, "--limit", "40", "--input", VALIDATION, "--output", "graded.jsonl"];
    succeed("score", path, &score);
    let labelled: Vec<Value> = (0..40)
        .map(|id| {
            let response = ["Six.", "I do not know.", "It is 6, since 2 + 4 = 6."][id % 3];
            let split = if id < 30 { "train" } else { "test" };
            json!({"id": id, "aspect": "fluency", "split": split, "question": format!("2 + 4? ({id})"), "response": response, "score": 1 + id % 3})
        })
        .collect();
    write_rows(path.join("labelled.jsonl"), &labelled);
    let train =
        ["--model", &model, "--input", "labelled.jsonl", "--output", "probes", "--layers", "1", "--pooling", "mean"];
    succeed("probe train", path, &[&train[..], &["--folds", "2", "--c", "1", "--top-k", "1", "--quiet"]].concat());
    let list = json!(["names the number", {"criterion": "is rude", "weight": -1.0, "name": "rude"}]);
    fs::write(path.join("list.json"), list.to_string()).unwrap();
    let named = json!({
        "quality": {"score": [], "graded": "graded.jsonl"},
        "fluency": {"probe": "probes/fluency.safetensors"},
        "notes": {"checklist": "list.json"},
    });
    fs::write(path.join("judges.json"), named.to_string()).unwrap();
    model
}

/// A probability for each level, as a System One answer has them.
fn probabilities(answer: &Value) -> Vec<f64> {
    answer["probabilities"].as_object().unwrap().values().map(|p| p.as_f64().unwrap()).collect()
}

#[test]
fn judges_of_our_own_answer_under_their_names() {
    let path = &Desk::new();
    let model = judges(path);
    let file = path.join("judges.json");
    let args = ["--quiet", "--model", &model, "--name", "plain", "--judges", file.to_str().unwrap()];
    let service = Service::start(&[&args[..], &["--max-prompt-bytes", "60000"]].concat());
    let listed = service.get("/v1/models").json();
    let names: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["plain", "fluency", "notes", "quality"]);
    assert_eq!(
        listed["data"][3]["judge"]["question"],
        json!({"type": "score", "levels": 5, "labels": ["1", "2", "3", "4", "5"]})
    );
    assert_eq!(listed["data"][1]["judge"]["fields"], json!(["question", "response"]));

    // What `judge score` wrote for the same row, and what people would say.
    let scored = &path.rows("graded.jsonl")[7];
    let state: Value = serde_json::from_str(fs::read_to_string(VALIDATION).unwrap().lines().nth(7).unwrap()).unwrap();
    let question =
        json!({"type": "score", "instructions": "How good?", "criteria": ["bad", "poor", "fair", "good", "best"]});
    let ask = |model: &str, state: &Value, question: &Value| {
        service.post("/v1/systemone", &json!({"model": model, "state": state, "questions": {"q": question}}))
    };
    let reply = ask("quality", &state, &question).json();
    assert_eq!(reply["model"], "quality");
    let answer = &reply["answers"]["q"];
    let score = answer["score"].as_f64().unwrap();
    assert!((score + 1.0 - scored["score"].as_f64().unwrap()).abs() < 1e-9, "{reply} {scored}");
    assert_eq!(answer["legend"], json!({"0": "bad", "1": "poor", "2": "fair", "3": "good", "4": "best"}));
    let calibrated = &reply["calibrated"]["q"];
    let [low, value, high] = ["low", "value", "high"].map(|end| calibrated[end].as_f64().unwrap());
    assert!(1.0 <= low && low <= value && value <= high && high <= 5.0, "{reply}");
    let levels: Vec<Value> = ["bad", "poor", "fair", "good", "best"].map(|label| json!({"label": label})).into();
    let openai = json!({"model": "quality", "input": state.to_string(), "questions": [
        {"type": "score", "instructions": "How good?", "levels": levels}]});
    // OpenAI's form has texts and messages alone: a text that is a JSON object has fields.
    let same = service.post("/v1/decisions", &openai).json();
    assert_eq!((&same["answers"][0]["score"], &same["answers"][0]["calibrated"]), (&answer["score"], calibrated));

    // A state is read as a row of a file: what an instruction is about stands below it, under any name.
    let [apart, joined] = [
        json!({"instruction": "Add.", "input": "7 + 5", "response": "12"}),
        json!({"question": "Add.\n\n7 + 5", "output": "12"}),
    ]
    .map(|state| ask("quality", &state, &question).json()["answers"].take());
    assert!(apart["q"]["score"].is_f64() && apart == joined, "{apart} {joined}");

    let fluency = json!({"question": "2 + 4?", "response": "Six."});
    let three = json!({"type": "score", "criteria": ["1", "2", "3"]});
    let reply = ask("fluency", &fluency, &three).json();
    let found = probabilities(&reply["answers"]["q"]);
    assert!(found.len() == 3 && (found.iter().sum::<f64>() - 1.0).abs() < 1e-9 && found[0] > found[1], "{reply}");

    let yes = json!({"type": "noul", "instructions": "Is it fine?"});
    let item = json!({"instruction": "2 + 4?", "response": "Six."});
    let reply = ask("notes", &item, &yes).json();
    let met = &reply["criteria"]["q"];
    let [number, rude] = ["1", "rude"].map(|name| met[name].as_f64().unwrap());
    let expected = (number - rude).clamp(0.0, 1.0);
    assert!((reply["answers"]["q"]["noul"].as_f64().unwrap() - expected).abs() < 1e-12, "{reply}");
    // A list in the state takes the place of the file's.
    let own = json!({"instruction": "2 + 4?", "response": "Six.", "checklist": ["is short"]});
    let reply = ask("notes", &own, &yes).json();
    assert_eq!(reply["criteria"]["q"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1"]);
    // A number is its digits, however many, in a state and in a text that is one.
    let asked = |number: &str| json!({"instruction": number, "response": "Six."});
    let digits = "12345678901234567890123";
    let as_text = ask("notes", &asked(digits), &yes).json()["answers"].take();
    let bare = asked("HERE").to_string().replace("\"HERE\"", digits);
    for state in [bare.clone(), json!(bare).to_string()] {
        let body = format!(r#"{{"model": "notes", "state": {state}, "questions": {{"q": {yes}}}}}"#);
        let reply = service.send(&Service::request("POST", "/v1/systemone", "", body.as_bytes()));
        assert_eq!(reply.json()["answers"], as_text, "{reply:?}");
    }
    // The state is read for each criterion of the file, or of its own list.
    let long = "x ".repeat(20_000);
    let of_two = json!({"instruction": "2 + 4?", "response": long});
    let of_one = json!({"instruction": "2 + 4?", "response": long, "checklist": ["is short"]});
    for (state, status) in [(&of_two, 413), (&of_one, 400)] {
        let reply = ask("notes", state, &yes);
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(status == 400 || reply.body.contains("is read 2 times"), "{reply:?}");
    }
    // The plain model answers any question beside them, with or without its name.
    assert_eq!(ask("plain", &item, &yes).status, 200);

    let long = json!({"instruction": "?", "response": "!", "checklist": vec!["is short"; 65]});
    for (name, state, question, status, said) in [
        ("notes", &long, &yes, 422, "at most 64 criteria"),
        ("quality", &state, &three, 422, "a score of 5 levels"),
        ("quality", &state, &yes, 422, "a score of 5 levels"),
        ("notes", &item, &three, 422, "yes or no"),
        ("quality", &json!({"response": "Six."}), &question, 400, "instruction"),
        ("quality", &json!("a text"), &question, 400, "instruction"),
        ("nobody", &item, &yes, 404, "\\\"plain\\\", \\\"fluency\\\", \\\"notes\\\", \\\"quality\\\""),
    ] {
        let reply = ask(name, state, question);
        assert!(reply.status == status && reply.body.contains(said), "{name}: {reply:?}");
    }
}

/// Every fault of the file is found before anything is answered.
#[test]
fn a_file_of_judges_that_is_none_is_refused_at_the_start() {
    let path = &Desk::new();
    let model = judges(path);
    let refused = |judges: Value, said: &str| {
        path.put("wrong.json", judges.to_string());
        let (code, _, told) = ran("serve", path, &["--port", "0", "--model", &model, "--judges", "wrong.json"]);
        assert!(code != Some(0) && told.contains(said) && !told.contains("listening"), "{judges}: {told}");
    };
    refused(
        json!({"a": {"score": ["--lens", "normed"], "graded": "graded.jsonl"}}),
        "other options than those of `score`",
    );
    refused(json!({"a": {"score": [], "graded": "list.json"}}), "list.json.run.json");
    refused(json!({"a": {"probe": "list.json"}}), "is no probe");
    refused(json!({"a": {"checklist": "judges.json"}}), "a list of criteria");
    refused(json!({"a": {"score": ["--poynts", "4"]}}), "--poynts");
    refused(json!({"a": {"score": [], "probe": "probes/fluency.safetensors"}}), "expected one of");
    refused(json!({"a": {}}), "expected one of");
    refused(json!({"a": {"score": ["--variant", "direct_score"]}}), "gives no probabilities");
    refused(json!({"a": {"weights": "w.json"}}), "weights");
    refused(json!({"yes-and-no": {"checklist": "list.json"}}), "has the name of the plain model");
    let (_, _, told) = ran("serve", path, &["--port", "0", "--judges", "judges.json"]);
    assert!(told.contains("fluency") && !told.contains("listening"), "a probe of another model: {told}");
}
