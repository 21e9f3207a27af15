//! MT-bench's tables of agreement, and Prometheus' grades of MT-bench's answers, as a user gets them.

use std::path::Path;

use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::agreement::{IntraclassCorrelations, Measurement, krippendorff_alpha};
use judge_metrics::correlation::{KendallTest, kendall_tau_b, pearson, spearman};
use serde_json::{Value, json};

use crate::program::{Desk, ran, read_json, refused};

fn benchmark(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    ran("pairwise_benchmark", folder, &[&["--benchmark", "mtbench"], args].concat())
}

fn vote(judge: &str, question: usize, turn: usize, winner: &str) -> Value {
    json!({"question_id": question, "model_a": "x", "model_b": "y", "turn": turn, "winner": winner, "judge": judge})
}

/// Two experts and an author on two questions of two turns.
fn people() -> Vec<Value> {
    let questions = [(1, 1), (1, 2), (2, 1)];
    let votes = questions.iter().flat_map(|&(question, turn)| {
        [("expert_1", "model_a"), ("expert_2", "tie"), ("author_1", "model_b")]
            .map(|(judge, winner)| vote(judge, question, turn, winner))
    });
    votes.collect()
}

#[test]
fn judges_are_compared_with_people_vote_by_vote() {
    let folder = &Desk::new();
    folder.write("human.jsonl", &people());
    let judge = [
        vote("gpt4_pair", 1, 1, "model_a"),
        vote("gpt4_pair", 1, 2, "tie (inconsistent)"),
        vote("gpt4_pair", 2, 1, "model_b"),
    ];
    folder.write("judge.jsonl", &judge);
    // Verdicts on the rows of the votes: the same three pairs, each asked three times.
    let verdicts: Vec<Value> = ["[[A]]", "?", "[[B]]"]
        .iter()
        .flat_map(|text| [text; 3])
        .enumerate()
        .map(|(id, text)| json!({"id": id, "given": text}))
        .collect();
    folder.write("mine.jsonl", &verdicts);
    let args = ["--data", "human.jsonl", "--votes", "judge.jsonl", "--votes", "mine.jsonl", "--json", "r.json"];
    let (code, said, error) = benchmark(folder, &args);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("9 votes of people, 5 of judges; votes without a verdict: 1"), "{said}");
    let line = |setup: &str, turn: &str, judges: &str| {
        let row = said.lines().find(|line| {
            line.starts_with(setup) && line.contains(judges) && line.split_whitespace().nth(1) == Some(turn)
        });
        row.unwrap_or_else(|| panic!("{setup} {turn} {judges}: {said}")).to_owned()
    };
    assert!(
        line("S1", "1", "gpt4_pair, human").contains("0.250")
            && line("S1", "1", "gpt4_pair, human").ends_with("GPT-4 0.66")
    );
    assert!(line("S2", "2", "human, author").contains("0.000"));

    let found = folder.json("r.json");
    assert_eq!(
        (&found["benchmark"], &found["n"], &found["unparsed"], &found["policy"]),
        (&json!("mtbench"), &json!(9), &json!(1), &json!("drop"))
    );
    let of = |group: Option<&str>, name: &str| {
        let statistics = group.map_or(&found["statistics"], |group| &found["groups"][group]);
        (statistics[name]["estimate"].as_f64(), statistics[name]["n"].as_u64())
    };
    assert_eq!(of(Some("1"), "agreement_s1:gpt4_pair:human"), (Some(0.25), Some(4)));
    assert_eq!(of(Some("1"), "agreement_s2:gpt4_pair:human"), (Some(0.5), Some(2)));
    assert_eq!(of(Some("2"), "agreement_s1:gpt4_pair:human"), (Some(0.5), Some(2)));
    assert_eq!(of(Some("2"), "agreement_s2:gpt4_pair:human"), (None, Some(0)));
    assert_eq!(of(None, "agreement_s1:human:human"), (Some(0.0), Some(3)));
    assert_eq!(of(None, "agreement_s1:gpt4_pair:mine"), (Some(1.0), Some(2)));
    assert_eq!(of(Some("2"), "agreement_s1:gpt4_pair:mine"), (None, None));
    // A text without a verdict as a tie.
    assert_eq!(benchmark(folder, &[&args[..], &["--unparsed", "tie"]].concat()).0, Some(0));
    let with_tie = folder.json("r.json");
    assert_eq!(with_tie["statistics"]["agreement_s1:gpt4_pair:mine"]["n"], 3);
}

#[test]
fn votes_that_cannot_be_meant_are_refused() {
    let folder = &Desk::new();
    folder.write("human.jsonl", &people());
    folder.write("judge.jsonl", &[vote("judge", 1, 1, "model_a")]);
    folder.write("twice.jsonl", &[vote("judge", 1, 1, "model_a"), vote("judge", 1, 1, "tie")]);
    folder.write("again.jsonl", &[vote("judge", 1, 2, "model_a")]);
    folder.write("mine.jsonl", &[json!({"id": 0, "given": "[[A]]"})]);
    for (args, expected_code, expected) in [
        (&["--data", "human.jsonl", "--votes", "human.jsonl"][..], 2, "expected a judge's own votes"),
        (&["--data", "judge.jsonl", "--votes", "judge.jsonl"], 2, "expected people's"),
        (&["--data", "human.jsonl", "--votes", "judge.jsonl", "--votes", "again.jsonl"], 2, "two files of --votes"),
        (&["--data", "human.jsonl", "--votes", "twice.jsonl"], 1, "line 2: expected one vote of judge"),
        (&["--data", "human.jsonl", "--votes", "mine.jsonl"], 1, "8 of 9 pairs have no verdict"),
        (&["--data", "human.jsonl", "--votes", "mine.jsonl", "--unparsed", "wrong"], 2, "give tie or drop"),
        (&["--data", "human.jsonl", "--votes", "judge.jsonl", "--verdicts", "mine.jsonl"], 2, "cannot be used with"),
        (&["--data", "human.jsonl", "--votes", "judge.jsonl", "--json", "judge.jsonl"], 2, "judge.jsonl"),
    ] {
        let (code, _, error) = benchmark(folder, args);
        assert!(code == Some(expected_code) && error.contains(expected), "{args:?}: {code:?} {error}");
    }
    let args = ["--benchmark", "pairs", "--data", "x", "--votes", "judge.jsonl"];
    refused("pairwise_benchmark", folder, &args, 2, &[]);
}

/// Zheng et al. (2023), table 5: GPT-4 in pairs with the experts, and the experts among themselves.
/// Numbers of comparisons as counted from the released labels.
#[test]
fn mt_benchs_published_agreement_comes_back() {
    let Some(data) = crate::published::data() else { return };
    let folder = &Desk::new();
    let path = |name: &str| data.join("mtbench").join(name).display().to_string();
    let (code, said, error) =
        benchmark(folder, &["--data", &path("human.jsonl"), "--votes", &path("gpt4_pair.jsonl"), "--json", "r.json"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("3355 votes of people, 2400 of judges"), "{said}");
    let found = folder.json("r.json");
    for (turn, setup, judges, percent, n) in [
        ("1", "s1", "gpt4_pair:human", 66.0, 1343),
        ("1", "s2", "gpt4_pair:human", 85.0, 859),
        ("2", "s1", "gpt4_pair:human", 66.0, 1325),
        ("2", "s2", "gpt4_pair:human", 85.0, 864),
        ("1", "s1", "human:human", 63.0, 721),
        ("1", "s2", "human:human", 81.0, 479),
        ("2", "s1", "human:human", 67.0, 707),
        ("2", "s2", "human:human", 82.0, 474),
    ] {
        let name = format!("agreement_{setup}:{judges}");
        let known = &found["groups"][turn][&name];
        let number = |field: &str| known[field].as_f64().unwrap_or_else(|| panic!("{turn} {name}: {known}"));
        assert_eq!((100.0 * number("estimate")).round(), percent, "{turn} {name}: {known}");
        assert_eq!(known["n"], n, "{turn} {name}");
        assert!(number("low") < percent / 100.0 && percent / 100.0 < number("high"), "{known}");
        // The published figure is reported beside ours.
        let rows = found["published"].as_array().unwrap();
        let shown = rows.iter().filter(|row| row["group"] == turn).find_map(|row| row["statistics"][&name].as_f64());
        assert_eq!(shown.map(|value| (100.0 * value).round()), Some(percent), "{turn} {name}");
    }
}

/// The figures that `expected.json` has from krippendorff, pingouin and SciPy, by way of the loader.
#[test]
fn gpt_4s_three_grades_are_as_reliable_as_published() {
    let Some(data) = crate::published::data() else { return };
    let expected = read_json(data.join("expected.json"));
    let expected = &expected["prometheus_mt_bench_eval"];
    let dataset = Dataset::open(data.join("prometheus_eval/mt_bench_eval.json"), &DatasetOptions::default()).unwrap();
    let (mut grades, mut models) = (Vec::new(), Vec::new());
    for record in dataset {
        let Record::Graded(record) = record.unwrap() else { panic!("another kind") };
        models.push(record.extra.string("response_source").unwrap());
        grades.push(record.scores);
    }
    let runs = grades;
    let grades: Vec<Vec<f64>> = runs.iter().map(|row| row.iter().map(|grade| grade.unwrap()).collect()).collect();
    let close = |name: &str, ours: f64, theirs: &Value| {
        let theirs = theirs.as_f64().unwrap();
        assert!((ours - theirs).abs() < 1e-10, "{name}: {ours}, not {theirs}");
    };
    for (name, measurement) in [
        ("alpha_nominal", Measurement::Nominal),
        ("alpha_ordinal", Measurement::Ordinal),
        ("alpha_interval", Measurement::Interval),
    ] {
        close(name, krippendorff_alpha(&runs, measurement).unwrap().estimate, &expected[name]);
    }
    let icc = IntraclassCorrelations::new(&grades).unwrap();
    for (name, single, mean) in [
        ("1", icc.one_way(), icc.mean_one_way()),
        ("A", icc.agreement(), icc.mean_agreement()),
        ("C", icc.consistency(), icc.mean_consistency()),
    ] {
        close(name, single.unwrap().estimate, &expected["icc"][format!("ICC({name},1)")]);
        close(name, mean.unwrap().estimate, &expected["icc"][format!("ICC({name},k)")]);
    }
    let run = |run: usize| grades.iter().map(|row| row[run]).collect::<Vec<_>>();
    let (one, two) = (run(0), run(1));
    close("pearson", pearson(&one, &two).unwrap().estimate, &expected["pearson12"]);
    close("spearman", spearman(&one, &two).unwrap().estimate, &expected["spearman12"]);
    close("tau-b", kendall_tau_b(&one, &two, KendallTest::Auto).unwrap().estimate, &expected["tau_b12"]);
    for (model, mean) in expected["mean_by_model"].as_object().unwrap() {
        let of = grades.iter().zip(&models).filter(|(_, known)| *known == model).flat_map(|(grades, _)| grades);
        let of: Vec<f64> = of.copied().collect();
        close(model, of.iter().sum::<f64>() / of.len() as f64, mean);
    }
}
