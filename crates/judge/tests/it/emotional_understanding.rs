//! The emotion experiment: every item scored or listed, and the statistics those of the other programs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, finished, ran, rows, succeed};

fn dialogues() -> Vec<Value> {
    rows(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/emotion/dialogues.jsonl"))
}

#[test]
fn dialogues_are_scored_and_compared_with_people() {
    let folder = &Desk::new();
    let mut items = dialogues();
    assert!(items.len() >= 48);
    items[5]["dialogue"] = json!("Mara: word ".repeat(2_000));
    items[6]["scene"] = json!("kept");
    folder.write("in.jsonl", &items);
    let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--json", "out.json", "--quiet"];
    let said = succeed("emotional_understanding", folder, &args);
    assert!(said.contains("47 of 48 items scored") && said.contains("unscored, too_long: 1"), "{said}");

    let scored = folder.rows("out.jsonl");
    for (item, row) in items.iter().zip(&scored) {
        assert_eq!((&row["emotion"], row["human"].as_f64()), (&item["emotion"], item["emotion_score"].as_f64()));
    }
    assert_eq!((&scored[5]["unscored"]["reason"], &scored[6]["scene"]), (&json!("too_long"), &json!("kept")));
    assert!(scored[0]["labels"].as_array().is_some_and(|labels| labels.len() == 9));

    // The same figures as of the programs that know nothing of emotions.
    let found = folder.json("out.json");
    assert_eq!(
        (&found["n"], &found["unscored"], &found["written"]),
        (&json!(47), &json!({"too_long": 1}), &json!("e_score"))
    );
    succeed(
        "agreement",
        folder,
        &["--input", "out.jsonl", "--group", "emotion", "--json", "agreement.json", "--quiet"],
    );
    let agreement = folder.json("agreement.json");
    for (name, of) in [("spearman", "spearman"), ("pearson", "pearson")] {
        assert_eq!(found["variants"]["e_score"][name]["estimate"], agreement["statistics"][of]["estimate"], "{name}");
    }
    let groups = agreement["groups"].as_object().expect("groups");
    assert_eq!(groups.len(), found["emotions"].as_object().expect("emotions").len());
    for (emotion, group) in groups {
        let of_emotion = &found["emotions"][emotion];
        assert_eq!(of_emotion["n"], group["n"], "{emotion}");
        assert_eq!(
            of_emotion["spearman"].get("estimate"),
            group["statistics"]["spearman"].get("estimate"),
            "{emotion}"
        );
    }
    succeed(
        "lager_evaluate",
        folder,
        &["--input", "out.jsonl", "--variants", "direct_score,e_score,lager_wo", "--json", "lager.json"],
    );
    let lager = folder.json("lager.json");
    for variant in ["direct_score", "e_score", "lager_wo"] {
        assert_eq!(found["variants"][variant]["pearson"], lager["variants"][variant]["pearson"], "{variant}");
        assert_eq!(found["variants"][variant]["bias"], lager["variants"][variant]["bias"], "{variant}");
    }
    // All is there: it is compared again, and nothing is scored.
    let before = fs::metadata(folder.join("out.jsonl")).expect("scores").modified().expect("a time");
    let after_first = |said: &str| said.split_once('\n').map(|(_, rest)| rest.to_owned());
    let again = succeed("emotional_understanding", folder, &args);
    assert!(again.starts_with("out.jsonl is complete") && after_first(&again) == after_first(&said), "{again}");
    assert_eq!(fs::metadata(folder.join("out.jsonl")).expect("scores").modified().expect("a time"), before);
}

#[test]
fn weights_of_the_model_are_used_again_on_another_scale() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--output", "rows.jsonl", "--rows", "120"]);
    succeed("lager_pointwise", folder, &["--input", "rows.jsonl", "--output", "valid.jsonl", "--quiet"]);
    succeed("lager_evaluate", folder, &["--valid", "valid.jsonl", "--weights-out", "weights.json"]);
    folder.write("in.jsonl", &dialogues());
    let args =
        ["--input", "in.jsonl", "--output", "out.jsonl", "--json", "out.json", "--weights", "weights.json", "--quiet"];
    let (code, _, stderr) = ran("emotional_understanding", folder, &args);
    // Fitted on 1 to 5, used on 1 to 9: allowed, and said.
    assert!(code == Some(0) && stderr.contains("scale"), "{stderr}");
    let found = folder.json("out.json");
    assert_eq!(found["written"], "lager_w");
    let written: Vec<Value> = folder.rows("out.jsonl").iter().map(|row| row["score"].clone()).collect();
    assert!(written.iter().all(|score| score.as_f64().is_some_and(|score| (1.0..=9.0).contains(&score))));
    succeed("agreement", folder, &["--input", "out.jsonl", "--json", "agreement.json", "--quiet"]);
    let agreement = folder.json("agreement.json");
    assert_eq!(found["variants"]["lager_w"]["spearman"]["estimate"], agreement["statistics"]["spearman"]["estimate"]);
}

#[test]
fn what_is_wrong_with_an_item_costs_it_alone_and_is_said() {
    let folder = &Desk::new();
    let good = dialogues().swap_remove(0);
    let costs = |change: fn(&mut Value), said: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        folder.write("in.jsonl", &[good.clone(), bad]);
        let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--quiet", "--overwrite"];
        let (_, stderr) = finished("emotional_understanding", folder, &args);
        assert!(stderr.contains("1 of 2 rows lack") && stderr.contains(said), "{stderr}");
        let written = folder.rows("out.jsonl");
        assert!(written[0]["score"].is_number(), "{written:?}");
        assert_eq!(written[1]["unscored"]["reason"], "missing");
        assert!(written[1]["unscored"]["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{written:?}");
    };
    costs(|item| _ = item.as_object_mut().expect("an object").remove("emotion"), "emotion");
    costs(|item| item["dialogue"] = json!(["a", "b"]), "dialogue");
}

/// What people gave is not judged: an odd grade, or none, costs the comparison alone.
#[test]
fn an_item_without_a_grade_is_scored_and_not_compared() {
    let folder = &Desk::new();
    let mut items = dialogues();
    items.truncate(12);
    items[2]["emotion_score"] = json!("N/A");
    items[3]["emotion_score"] = Value::Null;
    items[4]["emotion_score"] = json!([4, 5, null]);
    items[5]["emotion_score"] = json!(6.5);
    folder.write("in.jsonl", &items);
    let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--json", "out.json", "--quiet"];
    let (said, told) = finished("emotional_understanding", folder, &args);
    assert!(said.contains("12 of 12 items scored (e_score), 10 with a human score"), "{said}{told}");
    assert!(told.contains("in 1 of 12 rows what people gave is no grade and is left out; the first is 2: "), "{told}");
    let scored = folder.rows("out.jsonl");
    assert!(scored.iter().all(|row| row["score"].is_f64() && row["emotion"].is_string()), "{scored:?}");
    let human = [2, 3, 4, 5].map(|row: usize| scored[row]["human"].clone());
    assert_eq!(human, [Value::Null, Value::Null, json!([4.0, 5.0, null]), json!(6.5)]);
    let found = folder.json("out.json");
    assert_eq!((&found["n"], &found["variants"]["e_score"]["n"]), (&json!(12), &json!(10)));

    // Nobody has graded new dialogues.
    items.iter_mut().for_each(|item| _ = item.as_object_mut().expect("an object").remove("emotion_score"));
    items[0]["id"] = json!("x0");
    folder.write("in.jsonl", &items);
    let (said, told) = finished("emotional_understanding", folder, &[&args[..], &["--overwrite"]].concat());
    assert!(said.contains("12 of 12 items scored"), "{said}{told}");
    assert!(said.contains("no item has both a score and a human score"), "{said}");
    let scored = folder.rows("out.jsonl");
    assert_eq!((&scored[0]["id"], &scored[1]["id"]), (&json!("x0"), &json!(1)));
    let found = folder.json("out.json");
    assert_eq!((&found["n"], &found["variants"]), (&json!(12), &json!({})));
}
