//! Rewards of a sequence classifier: of conversations, of pairs and of many answers, by the programs that a user runs.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::program::{Desk, fixture, read_json, refused, rows, succeed, turn, write_rows};

/// A small random classifier: `gemma2` has three labels, `llama` one.
fn model(family: &str) -> String {
    fixture(&format!("heads/{family}"))
}

const ANSWERS: [&str; 4] = ["fi go", "la me ni", "zo", "ku ku ku ku"];

/// The rewards of the answers to one question, by `reward_scores`.
fn rewards(folder: &std::path::Path, family: &str) -> Vec<Vec<f64>> {
    let graded = |(id, answer): (usize, &&str)| json!({"id": id, "instruction": "de", "response": answer, "human": 3});
    write_rows(folder.join("rows.jsonl"), &ANSWERS.iter().enumerate().map(graded).collect::<Vec<_>>());
    let output = format!("{family}.jsonl");
    succeed("reward_scores", folder, &["--model", &model(family), "--input", "rows.jsonl", "--output", &output]);
    rows(folder.join(output))
        .iter()
        .map(|row| {
            assert_eq!(row["human"], 3.0);
            row["rewards"].as_array().unwrap().iter().map(|reward| reward.as_f64().unwrap()).collect()
        })
        .collect()
}

#[test]
fn conversations_get_a_reward_for_each_label() {
    let folder = &Desk::new();
    let expected = rewards(folder, "gemma2");
    assert!(expected.iter().all(|rewards| rewards.len() == 3));
    assert!((0..4).all(|i| !expected[..i].contains(&expected[i])));
    // The same as messages, beside a conversation that is too long and one without text.
    let mut conversations: Vec<Value> = ANSWERS
        .iter()
        .enumerate()
        .map(|(id, answer)| json!({"id": id, "messages": [turn("user", "de"), turn("assistant", answer)], "kept": id}))
        .collect();
    let long = "ba ".repeat(99);
    conversations.insert(2, json!({"id": "long", "messages": [turn("user", "de"), turn("assistant", &long)]}));
    folder.write("chat.jsonl", &conversations);
    let gemma = model("gemma2");
    let args = ["--model", gemma.as_str(), "--input", "chat.jsonl", "--output", "chat.out.jsonl"];
    let said = succeed("reward_scores", folder, &args);
    assert!(said.contains("4 of 5 rows scored (helpful, safe, brief)") && said.contains("too_long: 1"), "{said}");
    let mut found = folder.rows("chat.out.jsonl");
    assert_eq!(found.remove(2)["unscored"]["reason"], "too_long");
    for (place, (row, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(row["rewards"], json!(expected));
        assert_eq!(row["kept"], place);
    }
    assert!(succeed("reward_scores", folder, &args).contains("complete"));
}

#[test]
fn preferences_and_the_best_answer_follow_from_rewards() {
    let folder = &Desk::new();
    let rewards: Vec<f64> = rewards(folder, "llama").into_iter().map(|all| all[0]).collect();
    let llama = model("llama");
    let pair =
        |id: usize| json!({"id": id, "instruction": "de", "response_a": ANSWERS[0], "response_b": ANSWERS[id + 1]});
    folder.write("pairs.jsonl", &(0..3).map(pair).collect::<Vec<_>>());
    let args = ["--model", llama.as_str(), "--reward", "--input", "pairs.jsonl", "--output", "verdicts.jsonl"];
    succeed("prompt_judge", folder, &args);
    for (id, row) in folder.rows("verdicts.jsonl").iter().enumerate() {
        let expected = 1.0 / (1.0 + (rewards[id + 1] - rewards[0]).exp());
        assert!((row["preference"].as_f64().unwrap() - expected).abs() < 1e-12, "{row}");
        assert_eq!(row["verdict"], if expected > 0.5 { "A" } else { "B" });
        assert_eq!(row["orders"].as_array().unwrap().len(), 2);
    }
    folder.write("answers.jsonl", &[json!({"id": 1, "instruction": "de", "responses": ANSWERS})]);
    let args = ["--model", llama.as_str(), "--reward", "--input", "answers.jsonl", "--output", "ranked.jsonl"];
    succeed("rank_answers", folder, &args);
    let ranked = &folder.rows("ranked.jsonl")[0];
    assert_eq!(ranked["scores"], json!(rewards));
    let best = (0..4).max_by(|&a, &b| rewards[a].total_cmp(&rewards[b])).unwrap();
    assert_eq!(ranked["best"], best);
}

/// What judges a file of pairs.
const JUDGE: &[&str] = &["--input", "pairs.jsonl", "--output", "out.jsonl"];

/// A cross-encoder, and the folder of an adapter alone.
#[test]
fn folders_as_people_make_them_give_rewards() {
    let folder = &Desk::new();
    let row = |id: u32, response: &str| json!({"id": id, "instruction": "ba de fi go ku", "response": response});
    folder.write("rows.jsonl", &[row(1, "la me 3, ni"), row(2, "la me 3, no")]);
    let rewards = |options: &[&str], output: &str| {
        let args = ["--input", "rows.jsonl", "--quiet", "--output", output];
        succeed("reward_scores", folder, &[&args, options].concat());
        folder.rows(output).iter().map(|row| row["rewards"][0].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let crossed = rewards(&["--model", &fixture("encoder_heads/bert")], "crossed.jsonl");
    let expected = read_json(fixture("encoder_heads/bert/expected.json"));
    for (found, case) in crossed.iter().zip([1, 3]) {
        assert!((found - expected[case]["logits"][0].as_f64().unwrap()).abs() < 1e-4, "{crossed:?}");
    }
    let base = model("qwen3");
    let plain = rewards(&["--model", &base], "plain.jsonl");
    let alone = folder.join("alone");
    std::fs::create_dir(&alone).unwrap();
    let adapter = PathBuf::from(fixture("adapters/labels"));
    std::fs::copy(adapter.join("adapter_model.safetensors"), alone.join("adapter_model.safetensors")).unwrap();
    let mut config = read_json(adapter.join("adapter_config.json"));
    config["base_model_name_or_path"] = json!(base);
    std::fs::write(alone.join("adapter_config.json"), config.to_string()).unwrap();
    let by_adapter = rewards(&["--model", alone.to_str().unwrap()], "alone.jsonl");
    let named = rewards(&["--model", &base, "--adapter", adapter.to_str().unwrap()], "named.jsonl");
    assert!(by_adapter == named && by_adapter != plain, "{by_adapter:?} {named:?} {plain:?}");
    // It tells one run from another.
    let args = ["--input", "rows.jsonl", "--output", "plain.jsonl", "--model", &base, "--adapter"];
    let args = [&args[..], &[adapter.to_str().unwrap()]].concat();
    refused("reward_scores", folder, &args, 2, &["model.fingerprint was "]);
}

#[test]
fn what_has_no_reward_is_said() {
    let folder = &Desk::new();
    let pair = json!({"id": 1, "instruction": "de", "response_a": "fi", "response_b": "go"});
    folder.write("pairs.jsonl", &[pair]);
    folder.write("prompts.jsonl", &[json!({"id": 1, "prompt": "de"})]);
    let fails = |program: &str, args: &[&str], code: i32, says: &str| {
        refused(program, folder, args, code, &[says]);
    };
    let gemma = model("gemma2");
    fails("prompt_judge", &[JUDGE, &["--model", &gemma, "--reward"]].concat(), 1, "name one of them");
    fails("prompt_judge", &[JUDGE, &["--model", &gemma, "--reward", "kind"]].concat(), 1, "\"kind\" is none of them");
    fails("prompt_judge", &[JUDGE, &["--model", &gemma, "--reward", "--apart"]].concat(), 2, "cannot be used with");
    fails("prompt_judge", &[JUDGE, &["--reward"]].concat(), 1, "is no reward model");
    fails(
        "prompt_judge",
        &[JUDGE, &["--model", &gemma, "--verdict", "logits"]].concat(),
        1,
        "a head of labels in the place of",
    );
    succeed("prompt_judge", folder, &[JUDGE, &["--model", &gemma, "--reward", "safe"]].concat());
    let scores = ["--model", gemma.as_str(), "--input", "prompts.jsonl", "--output", "scores.jsonl"];
    fails("reward_scores", &scores, 2, "row 1 is no conversation");
    let pairs = ["--model", gemma.as_str(), "--input", "pairs.jsonl", "--output", "scores.jsonl"];
    fails("reward_scores", &pairs, 2, "row 1 is no conversation");
}
