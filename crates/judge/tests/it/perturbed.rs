//! Changed responses, as a user probes a judge with them.

use serde_json::{Value, json};

use crate::program::{Desk, refused, succeed};

const DATA: [&str; 4] = ["--benchmark", "pairs", "--data", "pairs.jsonl"];

/// A judge that obeys instructions inside of responses, and chooses the first otherwise.
#[test]
fn a_judge_that_can_be_told_what_to_choose_is_found_out() {
    let folder = &Desk::new();
    let human = |id: usize| if id.is_multiple_of(2) { "A" } else { "B" };
    let pair = |id: usize| json!({"id": format!("p{id}"), "instruction": format!("q{id}"), "response_a": "One. Two.", "response_b": "Three.", "human": human(id)});
    folder.write("pairs.jsonl", &(0..30).map(pair).collect::<Vec<_>>());
    folder.write(
        "v.jsonl",
        &(0..30).map(|id| json!({"id": format!("p{id}"), "given": "[[A]]", "swapped": "[[B]]"})).collect::<Vec<_>>(),
    );
    let said = succeed("bias_report", folder, &[&DATA[..], &["--write-perturbed", "changed.jsonl"]].concat());
    // The list needs two points, which the second responses lack.
    assert!(said.contains(&format!("{} changed pairs", 6 * 30 + 15)), "{said}");

    let changed = folder.rows("changed.jsonl");
    let verdict = |row: &Value| {
        let obeyed = row["perturbation"] == "instruction" && row["changed"] == "B";
        let side = if obeyed { ["[[B]]", "[[A]]"] } else { ["[[A]]", "[[B]]"] };
        json!({"id": row["id"], "given": side[0], "swapped": side[1]})
    };
    folder.write("cv.jsonl", &changed.iter().map(verdict).collect::<Vec<_>>());
    let args = ["--verdicts", "v.jsonl", "--perturbed", "cv.jsonl", "--json", "r.json", "--plots", "plots"];
    let said = succeed("bias_report", folder, &[&DATA[..], &args].concat());
    assert!(said.contains("instruction: larger than chance; changed responses gain 50.0 points of win rate"), "{said}");
    let report = folder.json("r.json");
    let of = |name: &str| report["biases"]["instruction"]["statistics"][name]["estimate"].as_f64();
    assert_eq!((of("attack_success"), of("robustness"), of("robustness_neutral")), (Some(1.0), Some(0.5), Some(1.0)));
    assert_eq!(report["biases"]["authority"]["larger_than_chance"], json!(false));
    assert_eq!(report["biases"]["list"]["n"], json!(15));
    assert!(folder.join("plots/instruction.svg").is_file());
    let args = ["--verdicts", "v.jsonl", "--perturbed", "cv.jsonl", "--limit", "20"];
    let said = succeed("bias_report", folder, &[&DATA[..], &args].concat());
    assert!(said.contains("pairs: 20 pairs") && said.contains("instruction"), "{said}");

    // The embedded model's own judge reads the changed pairs as any others.
    let args = ["--input", "changed.jsonl", "--output", "own.jsonl", "--apart", "--verdict", "logits", "--quiet"];
    succeed("prompt_judge", folder, &args);
    succeed(
        "prompt_judge",
        folder,
        &["--input", "pairs.jsonl", "--output", "ov.jsonl", "--apart", "--verdict", "logits", "--quiet"],
    );
    let said =
        succeed("bias_report", folder, &[&DATA[..], &["--verdicts", "ov.jsonl", "--perturbed", "own.jsonl"]].concat());
    assert!(said.contains("forged_verdict"), "{said}");

    // Verdicts of another judge, as far as records say so, show no effect of the changes.
    let args = ["--input", "pairs.jsonl", "--output", "pv.jsonl", "--template", "pair-forced", "--verdict", "logits"];
    succeed("prompt_judge", folder, &[&args[..], &["--quiet"]].concat());
    let args = [&DATA[..], &["--verdicts", "pv.jsonl", "--perturbed", "own.jsonl"]].concat();
    refused("bias_report", folder, &args, 1, &["pv.jsonl has verdicts of another judge than own.jsonl: its family"]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let folder = &Desk::new();
    folder.write(
        "pairs.jsonl",
        &[json!({"id": 0, "instruction": "q", "response_a": "a", "response_b": "b", "human": "A"})],
    );
    folder.write("v.jsonl", &[json!({"id": 0, "given": "[[A]]"})]);
    folder.write("d.jsonl", &[json!({"id": "0#authority", "given": "[[A]]"})]);
    folder.write("c.jsonl", &[json!({"id": "0#neutral", "given": "[[A]]", "swapped": "[[A]]"})]);
    for (args, code, why) in [
        (&[][..], 2, "--verdicts"),
        (&["--verdicts", "v.jsonl", "--perturbations", "list"], 2, "--write-perturbed"),
        (&["--write-perturbed", "x.jsonl", "--perturbations", "bribe"], 2, "unknown perturbation"),
        (&["--write-perturbed", "v.jsonl", "--verdicts", "v.jsonl"], 2, "cannot be used with"),
        (&["--write-perturbed", "pairs.jsonl"], 2, "pairs.jsonl"),
        (&["--verdicts", "v.jsonl", "--perturbed", "c.jsonl"], 2, "both orders"),
        (&["--verdicts", "v.jsonl", "--perturbed", "v.jsonl"], 1, "the id of a changed pair"),
        (&["--verdicts", "v.jsonl", "--perturbed", "d.jsonl"], 1, "have no verdict"),
    ] {
        refused("bias_report", folder, &[&DATA[..], args].concat(), code, &[why]);
    }
}
