//! The example `agreement` on small files: its numbers, what it excludes, what it refuses.

use judge_data::{Input, ScoredFile};
use judge_metrics::comparison::{ComparedItem, Rating};
use judge_metrics::multiplicity::Adjustment;
use judge_metrics::planning::items_for_correlation;
use serde_json::{Value, json};

use crate::program::{Desk, finished, ran, read_json, refused, succeed};

/// The results and what is said.
#[track_caller]
fn reported(rows: &str, args: &[&str]) -> (Value, String) {
    let folder = &Desk::new();
    folder.put("rows.jsonl", rows);
    let all = [&["--input", "rows.jsonl", "--quiet", "--resamples", "200", "--json", "found.json"], args].concat();
    let said = succeed("agreement", folder, &all);
    (folder.json("found.json"), said)
}

/// The results of a run on these lines.
#[track_caller]
fn results(text: &str, args: &[&str]) -> Value {
    reported(text, args).0
}

/// A run on these lines must end with this code and say all of this.
#[track_caller]
fn refuses(text: &str, args: &[&str], code: i32, said: &[&str]) {
    let folder = &Desk::new();
    folder.put("pairs.jsonl", text);
    refused("agreement", folder, &[&["--input", "pairs.jsonl", "--quiet"], args].concat(), code, said);
}

#[track_caller]
fn near(found: &Value, name: &str, expected: f64) {
    let estimate = found["statistics"][name]["estimate"].as_f64();
    let estimate = estimate.unwrap_or_else(|| panic!("{name}: {}", found["statistics"][name]));
    assert!((estimate - expected).abs() < 1e-9, "{name}: {estimate}, not {expected}");
}

#[track_caller]
fn undefined(found: &Value, name: &str, expected: &str) {
    let statistic = &found["statistics"][name];
    assert!(statistic["undefined"].as_str().is_some_and(|reason| reason.contains(expected)), "{name}: {statistic}");
}

const GRADES: &str = "\u{feff}{\"id\": 1, \"predicted\": 3, \"human\": 2, \"set\": \"a\"}\r\n\
    {\"id\": 2, \"predicted\": 5, \"human\": 5, \"set\": \"a\"}\n\n\
    {\"id\": 3, \"predicted\": 1, \"human\": 1, \"set\": \"b\"}\n\
    {\"id\": 4, \"predicted\": 4, \"human\": 4, \"set\": \"b\"}\n\
    {\"id\": 5, \"predicted\": 2, \"human\": 4, \"set\": \"b\"}\n\
    {\"id\": 6, \"predicted\": 4, \"human\": 3, \"set\": \"b\"}\n\
    {\"id\": 7, \"predicted\": null, \"human\": 3, \"set\": \"b\"}\n\
    {\"id\": 8, \"human\": 3, \"set\": \"b\", \"unscored\": {\"reason\": \"too_long\", \"detail\": \"\"}}\n";

#[test]
fn grades_bring_every_statistic() {
    let found = results(GRADES, &["--group", "set", "--labels", "1,2,3,4,5"]);
    assert_eq!((&found["n"], &found["excluded"]), (&json!(6), &json!(2)));
    assert_eq!(found["excluded_by_reason"], json!({"no_prediction": 1, "too_long": 1}));
    // scipy.stats 1.17.1 pearsonr, spearmanr, kendalltau; numpy; sklearn 1.9.1 cohen_kappa_score, f1_score(average="macro").
    near(&found, "pearson", 0.723_076_923_076_923);
    near(&found, "spearman", 0.720_588_235_294_117_6);
    near(&found, "kendall_tau_b", 0.642_857_142_857_142_9);
    near(&found, "mae", 4.0 / 6.0);
    near(&found, "rmse", 1.0);
    near(&found, "bias", 0.0);
    near(&found, "accuracy", 0.5);
    near(&found, "cohen_kappa", 0.357_142_857_142_857_1);
    near(&found, "cohen_kappa_quadratic", 0.723_076_923_076_923);
    near(&found, "f1_macro", 0.5);
    let pearson = &found["statistics"]["pearson"];
    assert!(pearson["low"].as_f64() < pearson["estimate"].as_f64() && pearson["method"] == "Fisher");
    assert_eq!(found["groups"]["a"]["n"], 2);
    assert_eq!(found["groups"]["b"]["n"], 4);
    // Whole numbers are no probabilities.
    undefined(&found, "brier", "not all 0 or 1");
}

#[test]
fn what_the_data_do_not_define_is_said() {
    let found = results("{\"predicted\": 2, \"human\": 1}\n{\"predicted\": 2, \"human\": 3}\n", &[]);
    let reason = found["statistics"]["pearson"]["undefined"].as_str().unwrap();
    assert!(reason.contains("every value of \"predicted\" is 2"), "{reason}");
    near(&found, "mae", 1.0);
}

#[test]
fn labels_raters_probabilities_and_a_second_judge() {
    let text = "{\"predicted\": \"A\", \"human\": [\"A\", \"A\", \"B\"]}\n{\"predicted\": \"B\", \"human\": [\"B\", \"B\", \"B\"]}\n\
        {\"predicted\": \"A\", \"human\": [\"B\", \"B\", \"A\"]}\n";
    let found = results(text, &[]);
    near(&found, "accuracy", 2.0 / 3.0);
    // statsmodels 0.15.0 fleiss_kappa([[2, 1], [0, 3], [1, 2]])
    near(&found, "human_fleiss_kappa", 0.0);
    undefined(&found, "pearson", "texts");
    undefined(&found, "cohen_kappa_linear", "not numbers");

    let mut rows = String::new();
    for i in 0..60 {
        let (p, human) = (f64::from(i) / 60.0, u8::from(i % 7 > 0 && i > 20));
        rows += &format!("{{\"predicted\": {p}, \"human\": {human}, \"other\": {}, \"q\": {}}}\n", 1.0 - p, i / 3);
    }
    let found = results(&rows, &["--second", "other", "--cluster", "q"]);
    for name in [
        "brier",
        "log_loss",
        "auroc",
        "average_precision",
        "ece",
        "ece_adaptive",
        "difference_spearman",
        "difference_mae",
    ] {
        assert!(found["statistics"][name]["estimate"].is_f64(), "{name}: {}", found["statistics"][name]);
    }
    assert_eq!(found["statistics"]["auroc"]["method"], "bootstrap of clusters");
    assert!(found["statistics"]["difference_spearman"]["low"].as_f64().unwrap() > 0.0);
    // What takes rows as independent is not said of clusters.
    assert!(found["statistics"]["difference_pearson_williams"]["undefined"].is_string());
    assert!(found["statistics"]["difference_mae"]["p"].is_f64() && found["statistics"]["spearman"]["p"].is_null());

    // One prediction outside the scale leaves no label statistic, and says so of each.
    let found = results("{\"predicted\": 9, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n", &["--labels", "1,2,3"]);
    for name in ["accuracy", "cohen_kappa", "f1_macro"] {
        let reason = found["statistics"][name]["undefined"].as_str().unwrap();
        assert!(reason.contains("is 9, not one of the labels 1, 2, 3"), "{reason}");
    }
    let found =
        results("{\"predicted\": 1, \"human\": [1, 2]}\n{\"predicted\": 2, \"human\": [2, 2]}\n", &["--labels", "1,2"]);
    near(&found, "rows_with_a_majority", 0.5);
    near(&found, "human_krippendorff_alpha_nominal", 0.0);
}

#[test]
fn labels_are_those_of_the_file() {
    // Group b lacks label 3, and has the same labels all the same: the average runs over three classes.
    let rows = "{\"predicted\": 3, \"human\": 3, \"set\": \"a\"}\n{\"predicted\": 1, \"human\": 1, \"set\": \"b\"}\n\
        {\"predicted\": -0.0, \"human\": 0, \"set\": \"b\"}\n{\"predicted\": 1, \"human\": 0, \"set\": \"b\"}\n";
    let found = results(rows, &["--group", "set"]);
    let group = &found["groups"]["b"];
    near(group, "accuracy", 2.0 / 3.0);
    near(group, "f1_macro", (2.0 / 3.0 + 2.0 / 3.0) / 3.0);
    // The same labels by name, however they are written.
    assert_eq!(results(rows, &["--group", "set", "--labels", "0,1.0,3"])["groups"]["b"], *group);

    let fractions = results("{\"predicted\": 1.5, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n", &[]);
    undefined(&fractions, "accuracy", "1.5 is not a whole number");
    // Words that a number parser takes are labels like others.
    let words = "{\"predicted\": \"nan\", \"human\": \"nan\"}\n{\"predicted\": \"inf\", \"human\": \"1.5\"}\n";
    let words = results(words, &[]);
    near(&words, "accuracy", 0.5);
    undefined(&words, "cohen_kappa_quadratic", "not numbers");
    let many: String = (0..21).map(|i| format!("{{\"predicted\": \"l{i}\", \"human\": \"l0\"}}\n")).collect();
    undefined(&results(&many, &[]), "accuracy", "more than 20 different scores");

    // Rows whose raters disagree have no label, but the judge's use of the scale is seen on all.
    let votes = "{\"predicted\": 1, \"human\": [1, 1]}\n{\"predicted\": 2, \"human\": [1, 2]}\n\
        {\"predicted\": 2, \"human\": [2, 2]}\n";
    let found = results(votes, &[]);
    near(&found, "accuracy", 1.0);
    near(&found, "predicted_ceiling", 2.0 / 3.0);

    let good = "{\"predicted\": 1, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n";
    for (labels, expected) in
        [("1,1", "named before"), ("1,1.0", "named before"), ("1,b", "not a number"), ("1", "2 items or more")]
    {
        refuses(good, &["--labels", labels], 2, &[expected]);
    }
}

#[test]
fn resamples_that_define_nothing_leave_no_interval() {
    // One row in eleven tells the judge's scores apart, and a third of resamples do not draw it.
    let rows: String = (0..11)
        .map(|i| format!("{{\"predicted\": {}, \"human\": {}}}\n", if i == 10 { 5 } else { 3 }, i % 5))
        .collect();
    let found = results(&rows, &[]);
    let spearman = &found["statistics"]["spearman"];
    let method = spearman["method"].as_str().unwrap();
    assert!(spearman["low"].is_null() && method.contains("of 200 resamples"), "{spearman}");
    assert!(spearman["p"].as_f64().unwrap() > 0.05 && method.contains("p: permutation"), "{spearman}");
}

/// A column of ones is thirty passes of thirty where 0 and 1 are the labels, and says nothing of grades, which may all be 1.
#[test]
fn people_who_all_say_one_are_a_share_where_one_is_the_most_that_can_be_said() {
    let rows =
        |judge: f64| -> String { (0..30).map(|_| format!("{{\"predicted\": {judge}, \"human\": 1}}\n")).collect() };
    // statsmodels 0.15.0 proportion_confint(30, 30, method="wilson")
    let share = results(&rows(1.0), &["--labels", "0,1"]);
    let mean = &share["statistics"]["human_mean"];
    assert!((mean["low"].as_f64().unwrap() - 0.886_486_606_826_031_1).abs() < 1e-12 && mean["high"] == 1.0, "{mean}");
    assert!(share["statistics"]["mae"]["method"] == "Wilson", "{}", share["statistics"]["mae"]);
    for (judge, labels) in [(3.0, &[][..]), (1.0, &[]), (1.0, &["--labels", "1,2,3,4,5"])] {
        let grades = results(&rows(judge), labels);
        for name in ["human_mean", "mae"] {
            let mean = &grades["statistics"][name];
            assert!(mean["low"].is_null() && mean["method"] == "no variation", "{judge}, {name}: {mean}");
        }
    }
}

/// A judge that is off by the same amount on every row is off.
#[test]
fn a_constant_bias_is_shown() {
    for by in [1.0, 0.3, -0.7] {
        let row = |i: i32| format!("{{\"predicted\": {}, \"human\": {}}}\n", f64::from(i % 5) + by, i % 5);
        let (found, text) = reported(&(0..60).map(row).collect::<String>(), &[]);
        let bias = &found["statistics"]["bias"];
        assert!(bias["low"].is_null() && bias["method"] == "no variation; p: signs", "{bias}");
        assert_eq!(bias["p"].as_f64(), Some(2f64.powi(-59)), "{bias}");
        assert!(text.contains("Its scores are on average") && text.contains("(no variation)"), "{text}");
    }
}

#[test]
fn noise_takes_nobodys_place() {
    // Judge and raters say anything: they agree by chance alone, and the judge does as well as they do.
    let draw = |i: u64, of: u64| (i * 2_654_435_761 + of * 40_503 + (i * i * (of + 3)) % 97) % 65_521 % 5 + 1;
    let rows: String = (0..300)
        .map(|i| {
            let [judge, a, b, c] = [0, 1, 2, 3].map(|of| draw(i, of));
            format!("{{\"predicted\": {judge}, \"human\": [{a}, {b}, {c}]}}\n")
        })
        .collect();
    let (found, said) = reported(&rows, &[]);
    let low = found["statistics"]["human_krippendorff_alpha_interval"]["low"].as_f64().unwrap();
    assert!(low < 0.0 && said.contains("People are not shown to agree with each other"), "{low} {said}");
    assert!(!said.contains("may take a rater's place"), "{said}");
}

/// Ninety rows of three raters, one of whom left some out, with a second judge, probabilities of labels, and twenty rows that nobody
/// graded.
fn raters() -> String {
    let mut rows = String::new();
    for i in 0..110 {
        let truth = 1 + i * 7 % 5;
        let off = |every: i32| if i % every == 0 { truth % 5 + 1 } else { truth };
        let (judge, second) = (off(11), off(2));
        let sure = if i % 11 == 0 { 0.4 } else { 0.6 + 0.01 * f64::from(i % 30) };
        let second_rater = if i % 9 == 4 { Value::Null } else { json!(off(4)) };
        let human = if i < 90 { json!([off(3), second_rater, off(5)]) } else { json!([null, null, null]) };
        let row = json!({
            "id": i, "predicted": judge, "human": human, "other": second, "question": i / 5,
            "probabilities": {"1": sure, "2": 1.0 - sure},
        });
        rows += &format!("{row}\n");
    }
    rows
}

#[test]
fn raters_confidence_and_ungraded_rows_are_used() {
    let found = results(&raters(), &["--second", "other"]);
    assert_eq!((&found["n"], &found["excluded_by_reason"]), (&json!(90), &json!({"no_human_score": 20})));
    let of = |name: &str| found["statistics"][name].clone();
    assert_eq!(of("alternative_winning_rate")["estimate"], 1.0);
    assert!(
        of("alternative_winning_rate")["method"].as_str().unwrap().contains("3 raters, 3 by Student t at epsilon 0.2")
    );
    assert!(of("alternative_advantage")["low"].as_f64().unwrap() > 0.5);
    // The mean of all 110 rows rests on the judge's 20 too, and is surer for it.
    let (graded, all) = (of("human_mean"), of("human_mean_prediction_powered"));
    let width = |of: &Value| of["high"].as_f64().unwrap() - of["low"].as_f64().unwrap();
    assert!(width(&all) < width(&graded), "{graded} {all}");
    let calibrated = of("human_mean_calibrated");
    assert!((calibrated["estimate"].as_f64().unwrap() - all["estimate"].as_f64().unwrap()).abs() < 0.2, "{calibrated}");
    assert!(calibrated["low"].is_f64() && calibrated["p"].is_null());
    // What the judge is unsure of is what it gets wrong.
    let curve = found["risk_coverage"].as_array().unwrap();
    assert_eq!(curve.last().unwrap()["coverage"], 1.0);
    let area = of("area_under_risk_coverage")["estimate"].as_f64().unwrap();
    assert!(area < 0.85 * curve.last().unwrap()["risk"].as_f64().unwrap(), "{area} {curve:?}");
    near(&found, "mae", curve.last().unwrap()["risk"].as_f64().unwrap());
    // A row that does not say how sure the judge is leaves no curve.
    let partly = raters() + "{\"id\": 110, \"predicted\": 1, \"human\": [1, 2, 1]}\n";
    assert!(results(&partly, &[])["risk_coverage"].is_null());
    // A harder test is not passed, and what a person costs is named.
    let harder = results(&raters(), &["--epsilon", "0", "--statistics", "alternative_winning_rate"]);
    assert!(harder["statistics"]["alternative_winning_rate"]["estimate"].as_f64().unwrap() <= 1.0);
    assert!(harder["statistics"]["alternative_winning_rate"]["method"].as_str().unwrap().ends_with("epsilon 0"));

    // Within questions there are ranks and pairs; the test of raters takes rows as independent.
    let found = results(&raters(), &["--cluster", "question"]);
    for name in
        ["spearman_within_clusters", "pairwise_accuracy", "human_mean_prediction_powered", "human_mean_calibrated"]
    {
        assert!(found["statistics"][name]["low"].is_f64(), "{name}: {}", found["statistics"][name]);
    }
    undefined(&found, "alternative_winning_rate", "clusters");
    let chosen = results(&raters(), &["--statistics", "human_mean"]);
    assert_eq!(chosen["statistics"].as_object().unwrap().keys().collect::<Vec<_>>(), ["human_mean"]);
}

#[test]
fn plots_are_drawn() {
    let folder = &Desk::new();
    folder.put("pairs.jsonl", raters());
    let args = ["--input", "pairs.jsonl", "--quiet", "--resamples", "20", "--second", "other", "--group", "question"];
    let plots = ["--risk-plot", "risk.svg", "--comparison-plot", "comparison.svg", "--scores-plot", "scores.svg"];
    succeed("agreement", folder, &[&args[..], &plots, &["--plot", "plot.svg"]].concat());
    let (plot, risk, comparison) = (folder.text("plot.svg"), folder.text("risk.svg"), folder.text("comparison.svg"));
    assert!(
        plot.starts_with("<svg") && plot.contains("human by predicted, n = 90") && plot.contains("<circle"),
        "{plot}"
    );
    assert!(risk.contains("risk by coverage, predicted, n = 90") && risk.contains("mean absolute error"), "{risk}");
    assert!(comparison.contains("predicted (blue)") && comparison.contains("other (vermillion)"), "{comparison}");
    let scores = folder.text("scores.svg");
    assert!(scores.contains("human against predicted, n = 90") && scores.matches("<circle").count() == 90, "{scores}");
    assert!(comparison.contains("kendall_tau_b") && comparison.contains("spearman, 17"), "{comparison}");

    let grades = |args: &[&str], code: i32, said: &[&str]| refuses(GRADES, args, code, said);
    grades(&["--risk-plot", "risk.svg"], 1, &["name a field with --confidence"]);
    grades(&["--comparison-plot", "c.svg"], 2, &["name --second or --group"]);
    let others: Vec<String> = (1..=6).flat_map(|other| ["--second".to_owned(), format!("judge-{other}")]).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    grades(&[&["--comparison-plot", "c.svg"], &others[..]].concat(), 2, &["at most 5 judges beside the first"]);
    grades(&["--confidence", "nowhere"], 1, &["the row has no \"nowhere\"", "pairs.jsonl"]);
    grades(&["--confidence", "set"], 1, &["not a number or a set of probabilities"]);
    grades(&["--epsilon", "1"], 2, &[]);
    grades(&["--group", "sett"], 1, &["--group: no row has the field \"sett\"; the fields are"]);
}

#[test]
fn bad_rows_are_named_by_their_line() {
    let good = "{\"id\": 1, \"predicted\": 1, \"human\": 1}\n";
    for (row, expected) in [
        ("{\"id\": 2, \"predicted\": 1, \"human\": ", "2"),
        ("{\"id\": 1, \"predicted\": 1, \"human\": 1}", "the id 1 appears twice"),
    ] {
        refuses(&format!("{good}{row}\n"), &[], 1, &[expected, "pairs.jsonl"]);
    }
    let escaped = "{\"id\": \"a\", \"predicted\": 1, \"human\": 1}\n\
        {\"id\": \"\\u0061\", \"predicted\": 1, \"human\": 1}\n";
    refuses(escaped, &[], 1, &["appears twice"]);
    // A value that is no grade costs its row, and is said; where no row is left, it is why.
    for (row, reason, why) in [
        (
            "{\"id\": 2, \"predicted\": {}, \"human\": 1}",
            "unreadable",
            "predicted is {}, not a finite number or a label",
        ),
        ("{\"id\": 2, \"predicted\": [\"a\"], \"human\": 1}", "unreadable", "predicted is \"a\", expected a number"),
        ("{\"id\": 2, \"predicted\": 1e400, \"human\": 1}", "unreadable", "predicted is 1e400, not a finite number"),
        ("{\"id\": 2, \"predicted\": 1, \"human\": [{}]}", "no_grade", "human is {}, not a finite number or a label"),
    ] {
        let folder = &Desk::new();
        folder.put("pairs.jsonl", format!("{good}{row}\n"));
        let args = ["--input", "pairs.jsonl", "--json", "a.json", "--quiet"];
        let (_, said) = finished("agreement", folder, &args);
        assert!(said.contains("1 of 2 rows") && said.contains(why), "{row}: {said}");
        let found = folder.json("a.json");
        assert_eq!((&found["n"], &found["excluded_by_reason"]), (&json!(1), &json!({reason: 1})));
        refuses(&format!("{row}\n"), &[], 1, &[why, "line 1"]);
    }
    // So does a label among numbers; where every prediction is one, a number is no grade.
    let label = "{\"id\": 2, \"predicted\": \"NaN\", \"human\": 1}\n";
    let folder = &Desk::new();
    folder.put("pairs.jsonl", format!("{good}{label}"));
    let (_, said) = finished("agreement", folder, &["--input", "pairs.jsonl", "--quiet"]);
    assert!(said.contains("predicted is \"NaN\", expected a number"), "{said}");
    refuses(label, &[], 1, &["no row can be read", "predicted is \"NaN\", expected a number"]);
    refuses(&label.replace("NaN", "good"), &[], 1, &["no row can be read", "human is 1, expected a label"]);
    let other = ["--plot", "p.svg"];
    refuses("{\"predicted\": \"a\", \"human\": \"b\"}\n", &other, 1, &["--plot needs scores that are numbers"]);
    let text = "{\"predicted\": null, \"human\": 1}\n";
    refuses(text, &[], 1, &["no row has a prediction: looked for predicted, score, verdict"]);
    let apart = "{\"predicted\": null, \"human\": 1}\n{\"predicted\": 1, \"human\": null}\n";
    refuses(apart, &[], 1, &["no row has both"]);
    for args in [["--level", "95"], ["--resamples", "0"], ["--no-such", "flag"]] {
        refuses(good, &args, 2, &[]);
    }
}

/// Score files of lager_pointwise have the prediction in `score`; ungraded rows have no key `human` at all.
#[test]
fn a_number_within_an_object_is_a_prediction() {
    let folder = &Desk::new();
    let row =
        |n: usize| json!({"id": n, "faithfulness": {"mean": n % 7, "share": 1}, "human": n % 7, "team": {"name": "a"}});
    folder.write("in.jsonl", &(0..30).map(row).collect::<Vec<_>>());
    let args = ["--input", "in.jsonl", "--predicted", "faithfulness.mean"];
    assert!(succeed("agree", folder, &args).contains("faithfulness.mean against human: 30 rows"));
    let args = ["--input", "in.jsonl", "--predicted", "faithfulness.men"];
    refused("agree", folder, &args, 1, &["no row has the field"]);
}

/// docs/files.md: an odd grade costs the grade, and an odd score its row.
#[test]
fn one_odd_row_costs_itself_among_labels() {
    let folder = &Desk::new();
    let label = |n: usize| ["A", "B"][n % 2];
    let row = |n: usize| json!({"id": n, "verdict": label(n), "human": label(n + n / 7)});
    let good: Vec<Value> = (0..60).map(row).collect();
    let args = ["--input", "in.jsonl", "--json", "a.json", "--require", "coverage>=1", "--quiet"];
    let accuracy = |rows: &[Value]| {
        folder.write("in.jsonl", rows);
        let (code, said, told) = ran("agree", folder, &args);
        let report = folder.json("a.json");
        (code, report["statistics"]["accuracy"].clone(), report["excluded_by_reason"].clone(), said + &told)
    };
    let (code, expected, _, said) = accuracy(&good);
    assert!(code == Some(0) && expected["estimate"].is_f64(), "{said}");
    for (odd, code, reason) in [
        (json!({"id": 60, "verdict": "A", "human": 1}), 0, "no_grade"),
        (json!({"id": 60, "verdict": "A", "human": {}}), 0, "no_grade"),
        (json!({"id": 60, "verdict": 1, "human": "A"}), 3, "unreadable"),
        (json!({"id": 60, "verdict": 1, "human": 1}), 3, "unreadable"),
    ] {
        for first in [true, false] {
            let alone = std::slice::from_ref(&odd);
            let rows = if first { [alone, &good[..]] } else { [&good[..], alone] };
            let (found, estimated, excluded, said) = accuracy(&rows.concat());
            assert_eq!((found, &estimated, &excluded), (Some(code), &expected, &json!({reason: 1})), "{odd}: {said}");
            assert!(said.contains("1 of 61 rows have a value that is no grade and are left out"), "{odd}: {said}");
        }
    }
}

/// Raters who say the same in another order gave the same grade, and ranks of equal grades are ties, in whichever program.
#[test]
fn the_order_of_raters_does_not_matter() {
    let folder = &Desk::new();
    let agree = |turn: usize| {
        let row = |n: usize| {
            let mut human =
                [[0.1, 0.2, 0.3], [0.2, 0.2, 0.2], [0.1, 0.1, 0.4], [0.7, 0.2, 0.3], [0.4, 0.5, 0.3]][n % 5];
            human.rotate_left((n + turn) % 3);
            json!({"id": n, "score": (n * 7 % 11) as f64 / 10.0, "human": human})
        };
        folder.write("in.jsonl", &(0..40).map(row).collect::<Vec<_>>());
        let names = "spearman,kendall_tau_b,somers_d,pearson,mae,bias";
        succeed("agree", folder, &["--input", "in.jsonl", "--json", "a.json", "--statistics", names]);
        folder.json("a.json")["statistics"].clone()
    };
    let found = agree(0);
    assert!(found["spearman"]["estimate"].is_f64() && found == agree(1) && found == agree(2), "{found}");
    // The two crates that take such means have one rule.
    for human in [&[0.1, 0.2, 0.3][..], &[3.0, 4.0, 4.0], &[1e-9, 2.0], &[80.1, 80.2], &[1.0 / 3.0], &[-0.5, 0.5]] {
        let text = format!("{}\n", json!({"score": 1, "human": human}));
        let file = ScoredFile::open(Input::from_reader(text.as_bytes(), "rows").unwrap(), None).unwrap();
        let row = file.rows(&file.fields(None, None)).unwrap().next().unwrap().unwrap();
        let item = ComparedItem::new(Rating::Number(1.0), human.iter().map(|&grade| Rating::Number(grade)));
        assert_eq!(row.human_mean(), Ok(item.mean_human()), "{human:?}");
    }
}

/// Two files of `judge grade`, joined, may list their raters in other orders.
#[test]
fn raters_are_told_apart_by_their_names() {
    let rows = |are_turned: bool| -> String {
        let row = |i: usize| {
            let said = |more: usize| 1 + (i * 7 + i / 3 * more) % 5 + more;
            let mut given = [("ann", said(0)), ("bob", said(1)), ("eve", said(2))];
            given.rotate_left(usize::from(are_turned) * (i % 2));
            let (raters, human): (Vec<&str>, Vec<usize>) = given.into_iter().unzip();
            format!("{}\n", json!({"id": i, "predicted": 1 + i % 5, "human": human, "raters": raters}))
        };
        (0..40).map(row).collect()
    };
    let straight = results(&rows(false), &[]);
    assert_eq!(results(&rows(true), &[])["statistics"], straight["statistics"]);
    // A table's cell holds either list as a text.
    let of_table = |line: &str| {
        let mut row: Value = serde_json::from_str(line).unwrap();
        ["human", "raters"].into_iter().for_each(|name| row[name] = json!(row[name].to_string()));
        format!("{row}\n")
    };
    let of_tables: String = rows(true).lines().map(of_table).collect();
    assert_eq!(results(&of_tables, &[])["statistics"], straight["statistics"]);
    // Nobody's names tell nothing.
    let nameless = results(&rows(true).replace("raters", "whoever"), &[]);
    assert_ne!(nameless["statistics"], straight["statistics"]);
    let half = rows(true).replacen("raters", "whoever", 1);
    let folder = &Desk::new();
    folder.put("rows.jsonl", half);
    let (_, told) = finished("agreement", folder, &["--input", "rows.jsonl", "--resamples", "200"]);
    assert!(told.contains("rows differ in their \"raters\", and some rows list none"), "{told}");
    for (odd, why) in
        [("[\"ann\",\"bob\"]", "has 2 names for 3 grades"), ("[\"bob\",\"ann\",\"ann\"]", "names \"ann\" twice")]
    {
        folder.put("rows.jsonl", rows(false).replacen("[\"ann\",\"bob\",\"eve\"]", odd, 1));
        let (_, told) = finished("agreement", folder, &["--input", "rows.jsonl", "--resamples", "200"]);
        assert!(told.contains(&format!("rows.jsonl, line 1: raters {why}")), "{told}");
    }
}

/// Hundreds of digits say nothing.
#[test]
fn large_numbers_have_an_exponent() {
    let row = |(n, human): (usize, &f64)| format!("{}\n", json!({"id": n, "score": n, "human": human}));
    let rows: String = [1e300, 1e299, 5e299, 2e299].iter().enumerate().map(row).collect();
    let (_, said) = reported(&rows, &[]);
    assert!(said.contains("4.5e299") && said.lines().all(|line| line.len() < 300), "{said}");
}

/// Dividing an axis longer than the largest number never ended.
#[test]
fn scores_too_far_apart_are_not_drawn() {
    let folder = &Desk::new();
    let score = |n: usize| [1e308, -1e308].get(n).copied().unwrap_or((n % 5) as f64);
    let row = |n: usize| json!({"id": n, "score": score(n), "human": n % 4, "sure": n});
    folder.write("in.jsonl", &(0..20).map(row).collect::<Vec<_>>());
    for plot in ["--plot", "--scores-plot"] {
        let args = ["--input", "in.jsonl", plot, "p.svg", "--statistics", "mae", "--json", "drawn.json", "--overwrite"];
        let (code, said, told) = ran("agree", folder, &args);
        assert!(code == Some(1) && told.contains("no axis is long enough for numbers from -1e308 to 1e308"), "{told}");
        // The figures are there.
        assert!(said.contains("20 rows") && folder.json("drawn.json")["n"] == 20, "{said}");
    }
    // Nor are losses that overflow added up, which costs nothing else.
    let confidence = ["--input", "in.jsonl", "--confidence", "sure", "--json", "a.json"];
    succeed("agree", folder, &confidence);
    let found = folder.json("a.json");
    assert!(found["risk_coverage"].is_null() && found["statistics"]["spearman"]["estimate"].is_f64(), "{found}");
    undefined(&found, "area_under_risk_coverage", "exceeds the largest finite number");
    let picture = [&confidence[..], &["--risk-plot", "r.svg"]].concat();
    refused("agree", folder, &picture, 1, &["exceeds the largest finite number"]);
}

#[test]
fn rows_of_one_question_are_noticed() {
    let folder = &Desk::new();
    let row = |n: usize| json!({"id": n, "question_id": n / 5, "score": n % 7, "human": (n + n / 5) % 7});
    folder.write("in.jsonl", &(0..60).map(row).collect::<Vec<_>>());
    let (_, _, told) = ran("agree", folder, &["--input", "in.jsonl"]);
    assert!(
        told.contains("60 rows have 12 values of \"question_id\"") && told.contains("--cluster question_id"),
        "{told}"
    );
    let (_, _, told) = ran("agree", folder, &["--input", "in.jsonl", "--cluster", "question_id"]);
    assert!(!told.contains("note"), "{told}");
}

#[test]
fn score_files_are_read_as_they_are() {
    let rows = "{\"id\": 1, \"score\": 2.5, \"human\": 2, \"topic\": \"a\"}\n{\"id\": 2, \"score\": 4.5, \"human\": [5, null, 4]}\n\
        {\"id\": 3, \"score\": 1.5, \"human\": 1, \"topic\": null}\n{\"id\": 4, \"score\": 3.5, \"topic\": \"a\"}\n\
        {\"id\": 5, \"unscored\": {\"reason\": \"too_long\", \"detail\": \"\"}}\n{\"id\": 6, \"score\": 3, \"human\": [null]}\n";
    let found = results(rows, &["--group", "topic"]);
    assert_eq!((&found["predicted"], &found["human"], &found["n"]), (&json!("score"), &json!("human"), &json!(3)));
    assert_eq!(found["excluded_by_reason"], json!({"no_human_score": 2, "too_long": 1}));
    near(&found, "mae", (0.5 + 0.0 + 0.5) / 3.0);
    // Rows without a topic, absent or null, are a group.
    assert_eq!((&found["groups"]["a"]["n"], &found["groups"]["(no topic)"]["n"]), (&json!(1), &json!(2)));

    // Raters in `scores`; the prediction is never its own human score.
    let found = results("{\"score\": 1, \"scores\": [1, 2]}\n{\"score\": 2, \"scores\": [2, 2]}\n", &[]);
    assert_eq!((&found["predicted"], &found["human"]), (&json!("score"), &json!("scores")));
    let found = results("{\"predicted\": 1, \"score\": 2}\n{\"predicted\": 2, \"score\": 2}\n", &[]);
    assert_eq!((&found["predicted"], &found["human"]), (&json!("predicted"), &json!("score")));

    // Without any, fields that could be meant are named.
    let text = "{\"score\": 1, \"people\": [3, 4], \"note\": \"x\", \"length\": 7}\n";
    refuses(text, &[], 1, &["fields that look like one: \"length\", \"people\"; name it with --human"]);
}

/// Continuous scores have no nominal agreement, and every interval holds its estimate.
#[test]
fn every_interval_holds_its_estimate() {
    let continuous: String = (0..41)
        .map(|i| {
            let (score, human) =
                (1.0 + f64::from(i * 37 % 41) / 10.3, f64::from(1 + i * 37 % 41 / 9) + f64::from(i % 3) / 3.0);
            format!("{{\"score\": {score}, \"human\": {human}}}\n")
        })
        .collect();
    let whole: String =
        (0..41).map(|i| format!("{{\"score\": {}, \"human\": {}}}\n", i % 5, (i * 3 + i / 7) % 5)).collect();
    for rows in [&continuous, &whole] {
        let found = results(rows, &[]);
        for (name, statistic) in found["statistics"].as_object().unwrap() {
            let [estimate, low, high] = ["estimate", "low", "high"].map(|key| statistic[key].as_f64());
            if let (Some(estimate), Some(low), Some(high)) = (estimate, low, high) {
                assert!(low <= estimate && estimate <= high, "{name}: {statistic}");
            }
        }
        for kind in ["ordinal", "interval"] {
            assert!(found["statistics"][format!("krippendorff_alpha_{kind}")]["low"].is_f64(), "{kind}");
        }
    }
    undefined(&results(&continuous, &[]), "krippendorff_alpha_nominal", "is not a whole number");
    assert!(results(&whole, &[])["statistics"]["krippendorff_alpha_nominal"]["low"].is_f64());
}

#[test]
fn people_read_first_whether_to_trust_the_judge() {
    let said = |rows: &str, args: &[&str]| reported(rows, args).1;
    let rows: String = (0..120)
        .map(|i| {
            let human = f64::from(i % 7) / 2.0 + 1.0;
            format!("{{\"score\": {}, \"human\": {human}, \"q\": {i}}}\n", human - 0.4 - f64::from(i % 5) / 300.0)
        })
        .collect();
    let text = said(&rows, &[]);
    let (trust, table) = text.split_once("estimate").unwrap();
    assert!(trust.contains("The judge orders rows as people do with a rank correlation of"), "{text}");
    assert!(trust.contains("Its scores are on average 0.41 lower than people's"), "{text}");
    assert!(table.contains("kendall_tau_b") && !table.contains("bootstrap"), "{text}");
    assert!(said(&rows, &["--methods"]).contains("bootstrap"));
    // What is undefined is said once, in few characters a line and with few digits.
    assert!(text.matches("is not a whole number").count() == 1, "{text}");
    assert!(text.lines().all(|line| line.len() < 160) && !text.contains("33333333"), "{text}");

    // What each part of the table asks is said above it, once.
    let heads = ["do rows rise with people's scores?", "how far off are scores?", "people's mean score"];
    assert!(heads.iter().all(|head| text.matches(head).count() == 1), "{text}");
    let raters = said(&raters(), &["--second", "other"]);
    for sentence in [
        "The judge may take a rater's place: it does as well as 100 % of them",
        "from the mean of the other raters on average; a rater is",
        "rows that it is surest of, the mean absolute error is",
        "People would give all rows, those without a human score included,",
    ] {
        assert!(raters.contains(sentence), "{raters}");
    }

    // A line for each of many groups, and for few with chosen statistics.
    let many = said(&rows, &["--group", "q"]);
    assert!(many.lines().count() < 180 && many.lines().any(|line| line.starts_with("119  ")), "{many}");
    let chosen = said(GRADES, &["--group", "set", "--statistics", "spearman,mae"]);
    assert!(
        chosen
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>()[..] == ["set", "rows", "spearman", "mae"]),
        "{chosen}"
    );
    assert!(!chosen.contains("pearson"), "{chosen}");
    let found = results(GRADES, &["--statistics", "mae"]);
    assert_eq!(found["statistics"].as_object().unwrap().keys().collect::<Vec<_>>(), ["mae"]);
    refuses(GRADES, &["--statistics", "rho"], 2, &[]);
}

/// All rows of one question: there is an estimate, but nothing says how sure it is.
#[test]
fn one_cluster_has_no_interval() {
    let rows =
        GRADES.replace('}', ", \"q\": \"only\"}").replace("\"detail\": \"\", \"q\": \"only\"}", "\"detail\": \"\"}");
    let found = results(&rows, &["--cluster", "q"]);
    near(&found, "mae", 4.0 / 6.0);
    for name in ["mae", "human_mean"] {
        let mean = &found["statistics"][name];
        let method = mean["method"].as_str().unwrap_or_default();
        assert!(mean["low"].is_null() && method.contains("one cluster"), "{name}: {mean}");
    }
}

/// Two runs of GPT-4 over MT-bench answers: the figures computed with SciPy and scikit-learn.
#[test]
fn published_grades_bring_the_published_figures() {
    let Some(data) = crate::published::data() else { return };
    let rows = read_json(data.join("prometheus_eval/mt_bench_eval.json"));
    let mut text = String::new();
    for row in rows.as_array().unwrap() {
        text += &json!({"predicted": row["gpt4_score"][0], "human": row["gpt4_score"][1]}).to_string();
        text.push('\n');
    }
    let found = results(&text, &["--labels", "1,2,3,4,5"]);
    let expected = &read_json(data.join("expected.json"))["prometheus_mt_bench_eval"];
    for (ours, theirs) in [
        ("pearson", "pearson12"),
        ("spearman", "spearman12"),
        ("kendall_tau_b", "tau_b12"),
        ("kendall_tau_c", "tau_c12"),
        ("cohen_kappa", "kappa12"),
        ("cohen_kappa_linear", "kappa_lin12"),
        ("cohen_kappa_quadratic", "kappa_quad12"),
    ] {
        near(&found, ours, expected[theirs].as_f64().unwrap());
    }
}

/// What a sentence says of two judges, or of one, is what its p-value and its interval say.
#[test]
fn sentences_agree_with_their_p() {
    // The first judge keeps the order and is one off; the second one keeps it as well and is right.
    let row = |i: u32| {
        let human = f64::from(i % 5) + 1.0;
        let noise = f64::from(i * 7 % 11) / 10.0 - 0.5;
        json!({"id": i, "human": human, "score": human + 1.0 + noise, "other": human + noise, "level": 3.0 + noise})
    };
    let rows: String = (0..60).map(|i| format!("{}\n", row(i))).collect();
    let (found, text) = reported(&rows, &["--second", "other"]);
    let p = |name: &str| found["statistics"][name]["p"].as_f64().unwrap();
    assert!(p("difference_spearman") > 0.05 && p("difference_mae") < 0.01, "{}", found["statistics"]);
    assert!(text.contains("In rank correlation no difference between the two judges can be shown"), "{text}");
    assert!(
        text.contains("In mean absolute error the first judge is worse than the second: the first less the second is"),
        "{text}"
    );
    assert!(text.contains("Its scores are on average"), "{text}");

    // A judge whose scores have nothing to do with people's: neither order nor, with 0 in its interval, a bias is claimed.
    let (found, text) = reported(&rows, &["--predicted", "level"]);
    assert!(found["statistics"]["spearman"]["p"].as_f64().unwrap() > 0.05, "{}", found["statistics"]["spearman"]);
    assert!(text.contains("That the judge orders rows as people do cannot be shown on these rows"), "{text}");
    assert!(text.contains("No bias can be shown: its scores are on average"), "{text}");
}

/// Yes and no beside scores from 1 to 5 have an order alone.
#[test]
fn distances_of_two_scales_are_no_sentence() {
    let rows = |human: fn(u32) -> u32| -> String {
        let row = |i: u32| {
            let score = f64::from(i % 5) + 1.0 - f64::from(i % 3) / 10.0;
            json!({"id": i, "human": human(i), "score": score, "other": 3.0, "labels": ["1", "2", "3", "4", "5"]})
        };
        (0..60).map(|i| format!("{}\n", row(i))).collect()
    };
    let (found, text) = reported(&rows(|i| u32::from(i % 5 > 2)), &["--second", "other"]);
    let said = "People's grades are from 0 to 1 and the judge's scale is from 1 to 5";
    assert!(text.contains(said) && text.contains("The judge orders rows as people do"), "{text}");
    assert!(!text.contains("Its scores are") && !text.contains("In mean absolute error"), "{text}");
    assert!(found["statistics"]["bias"]["estimate"].is_f64(), "{found}");
    let (_, text) = reported(&rows(|i| i % 5 + 1), &["--second", "other"]);
    assert!(!text.contains(said) && text.contains("In mean absolute error"), "{text}");
}

/// A judge and three others: as good, far off, and of noise.
fn judges() -> String {
    let row = |i: u32| {
        let human = f64::from(i % 5) + 1.0;
        let noise = |of: u32| f64::from((i * 7 + of * i * i) % 11) / 10.0 - 0.5;
        json!({
            "id": i, "human": human, "score": human + noise(1), "near": human + noise(2), "off": human + 1.5 + noise(3),
            "noise": 3.0 + noise(4), "drawn": if i % 5 < 2 { 0.9 } else { 0.3 }, "question": i / 3,
        })
    };
    (0..60).map(|i| format!("{}\n", row(i))).collect()
}

#[test]
fn several_judges_are_compared_with_adjusted_p_values() {
    const OTHERS: [&str; 3] = ["near", "off", "noise"];
    let named = OTHERS.map(|name| ["--second", name]).concat();
    let (found, text) = reported(&judges(), &named);
    assert_eq!(found["adjustment"], json!({"method": "holm", "judges": 3}));
    for statistic in ["difference_spearman", "difference_mae", "difference_krippendorff_alpha_interval"] {
        assert!(found["statistics"].get(statistic).is_none(), "{found}");
        let of = |judge: &str, what: &str| found["statistics"][format!("{statistic}:{judge}")][what].as_f64();
        let p = OTHERS.map(|judge| of(judge, "p").unwrap());
        let adjusted = OTHERS.map(|judge| of(judge, "p_adjusted").unwrap());
        assert_eq!(adjusted.to_vec(), Adjustment::Holm.adjust(&p).unwrap(), "{statistic}");
        for judge in OTHERS {
            // What it is with this judge alone, with nothing to adjust for.
            let (alone, _) = reported(&judges(), &["--second", judge, "--statistics", statistic]);
            let alone = &alone["statistics"][statistic];
            assert_eq!((alone["estimate"].as_f64(), alone["p"].as_f64()), (of(judge, "estimate"), of(judge, "p")));
            assert!(alone.get("p_adjusted").is_none() && alone["low"].as_f64() == of(judge, "low"), "{alone}");
        }
    }
    assert!(text.contains("adjusted p") && text.contains("difference_mae:off"), "{text}");
    assert!(
        text.contains("In mean absolute error the first judge is better than off: the first less off is -"),
        "{text}"
    );
    assert!(text.contains("no difference between the first judge and near can be shown"), "{text}");
    assert!(text.matches("the first judge less the second").count() == 1, "{text}");

    let (found, _) = reported(&judges(), &[&named[..], &["--adjust", "fdr_bh", "--group", "question"]].concat());
    let group = &found["groups"]["0"]["statistics"];
    assert!(found["adjustment"]["method"] == "fdr_bh" && group["difference_mae:off"]["estimate"].is_f64(), "{group}");
    let with_bar = |bar| [&named[..], &["--statistics", "mae", "--require", bar]].concat();
    let (found, text) = reported(&judges(), &with_bar("difference_mae:off.high<=0"));
    assert!(text.contains("reached: difference_mae:off.high<=0") && found["statistics"]["mae"].is_object(), "{text}");
    refuses(&judges(), &with_bar("difference_mae<=0"), 2, &["there is no such statistic, only difference_mae:near"]);
    refuses(&judges(), &with_bar("difference_mae:typo<=0"), 2, &["there is no such statistic"]);
    refuses(&judges(), &["--second", "near", "--adjust", "fdr_bh"], 2, &["--adjust needs --second twice"]);
    refuses(&judges(), &["--second", "near", "--second", "near"], 2, &["\"near\" is named twice"]);
    refuses(&judges(), &["--second", "near", "--second", "far"], 1, &["--second: no row has the field \"far\""]);
    for own in ["human", "score"] {
        refuses(&judges(), &["--second", own], 2, &["is compared already"]);
    }
}

/// Each group has the differences from each judge, of all of them or of one that is named.
#[test]
fn groups_have_the_differences_from_several_judges() {
    let folder = &Desk::new();
    folder.put("rows.jsonl", judges());
    let lines = |statistics: &str| {
        let args = ["--input", "rows.jsonl", "--second", "near", "--second", "off", "--group", "question", "--quiet"];
        let tables = ["--resamples", "20", "--tables", "csv", "--statistics", statistics];
        let said = succeed("agree", folder, &[&args[..], &tables].concat());
        let is_wanted = |line: &&str| line.starts_with("question,") || line.starts_with("7,");
        said.lines().filter(is_wanted).map(str::to_owned).collect::<Vec<_>>()
    };
    let both = lines("spearman,difference_mae");
    // Groups of three rows have no intervals.
    assert_eq!(both[0], "question,rows,spearman,difference_mae:near,difference_mae:off");
    assert!(both[1].split(',').skip(2).all(|cell| cell.parse::<f64>().is_ok()), "{both:?}");
    let one = lines("difference_mae:off");
    assert!(one[0].starts_with("question,rows,difference_mae:off") && !one[0].contains("near"), "{one:?}");
    refuses(&judges(), &["--second", "near", "--statistics", "difference_mae:near"], 2, &["is not one of"]);
}

/// Above fifty groups, each has what its rows define.
#[test]
fn many_groups_of_labels_have_figures_of_labels() {
    let verdict = |n: usize| ["A", "B", "tie"][n % 3];
    let row = |n: usize| json!({"id": n, "q": n % 60, "verdict": verdict(n), "human": verdict(n + n / 7)});
    let rows: String = (0..240).map(|n| format!("{}\n", row(n))).collect();
    let (_, said) = reported(&rows, &["--group", "q"]);
    let line = said.lines().find(|line| line.starts_with("59 ")).unwrap();
    assert!(said.contains("accuracy") && line.chars().any(|c| c == '.'), "{line}");
}

/// One cell of a table that cannot be read costs its row, as it does in JSON lines.
#[test]
fn a_table_is_read_as_its_json_lines_are() {
    let folder = &Desk::new();
    let row = |n: usize| (n, (n % 5 + 1) as f64, (n % 5) as f64 + ((n * 7) % 11) as f64 / 10.0);
    let rows: Vec<_> = (0..60).map(row).collect();
    let lines = rows.iter().map(|(n, human, score)| json!({"id": n, "human": human, "score": score}));
    let mut lines: Vec<Value> = lines.collect();
    lines[30]["score"] = json!("NaN");
    folder.write("in.jsonl", &lines);
    let cells = rows.iter().map(|(n, human, score)| match n {
        30 => format!("{n},{human},NaN\n"),
        _ => format!("{n},{human},{score}\n"),
    });
    folder.put("in.csv", format!("id,human,score\n{}", cells.collect::<String>()));
    let agree = |input: &str| {
        let args = ["--input", input, "--json", "found.json", "--quiet", "--resamples", "100"];
        let (_, told) = finished("agree", folder, &args);
        assert!(told.contains("1 of 60 rows have a value that is no grade") && told.contains("line 3"), "{told}");
        let found = folder.json("found.json");
        (found["statistics"].clone(), found["excluded_by_reason"].clone())
    };
    let found = agree("in.csv");
    assert!(found.0["spearman"]["estimate"].is_f64() && found == agree("in.jsonl"), "{found:?}");
    // Commas before decimals are named.
    folder.put("in.csv", "id;human;score\n1;3,5;3,2\n2;1,5;2,5\n");
    refused("agree", folder, &["--input", "in.csv"], 1, &["score is \"3,2\"", "with a point before the decimals"]);
}

/// What is no verdict is no grade where pairs are compared, whichever command reads them; other labels are compared as they are written.
#[test]
fn what_is_no_verdict_is_left_out_by_every_command() {
    let folder = &Desk::new();
    let human = [json!("A"), json!("A "), json!("b"), json!("Tie"), json!("NA"), json!(""), json!(["A", "NA", "A"])];
    let human = human.into_iter().chain([json!(["A", "", null]), json!("B")]);
    let rows: Vec<Value> = human
        .zip(0..)
        .map(|(human, n): (Value, usize)| {
            let verdict = if n == 8 { "B" } else { "A" };
            json!({"id": n, "verdict": verdict, "human": human, "instruction": "q", "response_a": "a", "response_b": "b"})
        })
        .collect();
    folder.write("in.jsonl", &rows);
    let (_, told) = finished("agree", folder, &["--input", "in.jsonl", "--json", "agree.json", "--quiet"]);
    let note = "expected \"A\", \"B\" or \"tie\", or a list of them and nulls";
    assert!(told.contains("5 of 9 rows") && told.contains("2 of 4 rows have a rater") && told.contains(note), "{told}");
    let found = folder.json("agree.json");
    assert_eq!((&found["n"], &found["excluded_by_reason"]), (&json!(4), &json!({"no_grade": 5})));
    assert_eq!(found["statistics"]["accuracy"]["estimate"], 1.0);
    let args = ["--input", "in.jsonl", "--output", "page.html", "--json", "page.json", "--quiet"];
    finished("report", folder, &args);
    let page = folder.json("page.json");
    assert_eq!((&page["graded"], &page["agreement"]["accuracy"]["estimate"]), (&json!(4), &json!(1.0)));
    let exchanged = |row: &Value| if row["verdict"] == "A" { "B" } else { "A" };
    let verdicts = rows.iter().map(|row| json!({"id": row["id"], "given": row["verdict"], "swapped": exchanged(row)}));
    folder.write("verdicts.jsonl", &verdicts.collect::<Vec<_>>());
    let bench = ["--benchmark", "pairs", "--data", "in.jsonl", "--verdicts", "verdicts.jsonl", "--convention", "bare"];
    finished("bench", folder, &[&bench[..], &["--json", "bench.json"]].concat());
    assert_eq!(folder.json("bench.json")["n"], 4);
    // Tables for programs have their names, and differences, in themselves.
    let csv = succeed("bench", folder, &[&bench[..], &["--against", "verdicts.jsonl", "--tables", "csv"]].concat());
    assert!(csv.starts_with("pairs,estimate") && csv.contains("\ndifference_accuracy,0.000"), "{csv}");
    let csv = succeed("bias", folder, &[&bench[..], &["--tables", "csv"]].concat());
    assert!(csv.lines().any(|line| line.starts_with("position,estimate")), "{csv}");
    // Labels that differ in case or spaces alone are two, which is said.
    let row = |n: usize| json!({"id": n, "predicted": "good", "human": (["good", "Good", "bad"][n % 3])});
    folder.write("in.jsonl", &(0..9).map(row).collect::<Vec<_>>());
    let (_, told) = finished("agree", folder, &["--input", "in.jsonl", "--quiet"]);
    assert!(told.contains("\"good\" and \"Good\" differ in case or spaces alone"), "{told}");
}

/// What is said of the same rows is the same wherever it is said.
#[test]
fn the_same_rows_have_the_same_intervals_everywhere() {
    let folder = &Desk::new();
    succeed("rows", folder, &["--rows", "40", "--split", "test", "--output", "rows.jsonl"]);
    succeed("score", folder, &["--input", "rows.jsonl", "--output", "scores.jsonl", "--quiet"]);
    let mut rows = folder.rows("scores.jsonl");
    rows.iter_mut().zip(0..).for_each(|(row, n)| row["question_id"] = json!(format!("q{}", n / 4)));
    folder.write("shared.jsonl", &rows);
    let input = ["--input", "shared.jsonl"];
    let (_, of_fit) = finished("fit", folder, &[&input[..], &["--variants", "e_score", "--json", "fit.json"]].concat());
    let (_, of_agree) = finished("agree", folder, &[&input[..], &["--quiet", "--json", "agree.json"]].concat());
    let args = ["--output", "page.html", "--quiet", "--json", "page.json"];
    let (_, of_report) = finished("report", folder, &[&input[..], &args].concat());
    let [fit, agree, page] = ["fit.json", "agree.json", "page.json"].map(|name| folder.json(name));
    for name in ["spearman", "pearson"] {
        assert!(agree["statistics"][name]["low"].is_f64() && agree["statistics"][name]["method"].is_string());
        for other in [&fit["variants"]["e_score"][name], &page["agreement"][name]] {
            let known = &agree["statistics"][name];
            let is_near = |end: &str| (other[end].as_f64().unwrap() - known[end].as_f64().unwrap()).abs() < 1e-9;
            assert!(["estimate", "low", "high"].into_iter().all(is_near), "{other}, {known}");
            assert_eq!(other["method"], known["method"]);
        }
    }
    let note = "40 rows have 10 values of \"question_id\"";
    assert!([&of_fit, &of_agree, &of_report].iter().all(|told| told.contains(note)), "{of_fit}{of_agree}{of_report}");
    assert!(
        page["repeated"].as_str().is_some_and(|said| said.contains(note))
            && folder.text("page.html").contains("40 rows have 10")
    );
}

#[test]
fn rows_drawn_with_unequal_probabilities_are_weighted_or_refused() {
    let rows = judges() + "{\"id\": 60, \"score\": 2.0}\n{\"id\": 61, \"score\": 3.0}\n{\"id\": 62, \"score\": 1.5}\n";
    let (found, text) = reported(&rows, &["--sampling-probability", "drawn", "--second", "near"]);
    // Grades 1 and 2 are drawn three times as often as they occur: numpy.average([1, 2, 3, 4, 5], weights=[1, 1, 3, 3, 3]).
    near(&found, "human_mean", 39.0 / 11.0);
    for name in ["mae", "bias", "difference_mae", "human_mean_prediction_powered", "spearman", "pearson"] {
        assert!(found["statistics"][name]["low"].is_f64(), "{name}: {}", found["statistics"][name]);
    }
    for name in ["krippendorff_alpha_interval", "difference_spearman", "icc_1", "rmse"] {
        undefined(&found, name, "drawn with unequal probabilities");
    }
    undefined(&found, "human_mean_calibrated", "with equal probabilities");
    assert!(found["risk_coverage"].is_null() && (text.contains("Its scores") || text.contains("No bias")), "{text}");
    // The field of `judge grade` needs no naming.
    let (same, _) = reported(&rows.replace("\"drawn\"", "\"sampling_probability\""), &["--second", "near"]);
    assert_eq!(same["statistics"], found["statistics"]);
    let (clustered, _) = reported(&judges(), &["--sampling-probability", "drawn", "--cluster", "question"]);
    near(&clustered, "human_mean", 39.0 / 11.0);
    let ungraded = |id: u32| format!("{{\"id\": {id}, \"score\": {}, \"question\": {id}}}\n", id % 3);
    let of_all = results(&(judges() + &ungraded(60) + &ungraded(61)), &["--cluster", "question"]);
    for name in ["human_mean", "human_mean_prediction_powered"] {
        assert_eq!(of_all["statistics"][name]["method"], "Student t of clusters", "{name}");
    }
    assert!(clustered["statistics"]["mae"]["method"].as_str().unwrap().contains("weighted, Student t of clusters"));

    for (field, expected) in [
        ("id", "--sampling-probability: id is 0, expected a number above 0"),
        ("none", "no row has the field \"none\""),
    ] {
        refuses(&judges(), &["--sampling-probability", field], 1, &[expected]);
    }
    // Where nobody named the field, the message names no option.
    let named = judges().replace("\"drawn\"", "\"sampling_probability\"");
    let said = ["line 1", "sampling_probability is nothing, expected a number above 0", "give every graded row one"];
    refuses(&named.replacen("\"sampling_probability\"", "\"other\"", 1), &[], 1, &said);
    refuses(&judges(), &["--sampling-probability", "drawn", "--plot", "p.svg"], 2, &["take rows as drawn alike"]);
}

#[test]
fn what_rows_could_show_is_said() {
    let (found, text) = reported(&judges(), &["--second", "near"]);
    let planned = &found["planning"]["statistics"];
    let of = |name: &str| planned[name]["detectable"].as_f64().unwrap();
    // 0.71 of the width of the interval at 95 %.
    let mae = &found["statistics"]["difference_mae"];
    let width = mae["high"].as_f64().unwrap() - mae["low"].as_f64().unwrap();
    assert!((of("difference_mae") / width - 0.714_7).abs() < 1e-4, "{planned}");
    assert!(text.contains("With 60 rows like these a difference is found with power 0.8 from"), "{text}");
    assert!(planned["mae"]["rows"].is_null() && planned.get("rmse").is_none(), "{planned}");
    assert!(text.contains("furthest from people") && !text.contains("The interval of"), "narrow enough: {text}");
    let row = |i: u32| format!("{{\"id\": {i}, \"score\": {}, \"human\": {}}}\n", i % 5, i * i % 7);
    let (found, text) = reported(&(0..30).map(row).collect::<String>(), &[]);
    let rho = &found["statistics"]["spearman"];
    let width = rho["high"].as_f64().unwrap() - rho["low"].as_f64().unwrap();
    let said = format!("The interval of the rank correlation is {width:.2} wide; one 0.1 wide takes about ");
    assert!(text.contains(&said) && text.contains(" more."), "{text}");

    let (found, text) = reported(&judges(), &["--width", "0.05"]);
    let rows = |name: &str| found["planning"]["statistics"][name]["rows"].as_u64().unwrap();
    let r = found["statistics"]["pearson"]["estimate"].as_f64().unwrap();
    assert_eq!(rows("pearson"), items_for_correlation(r, 0.05, 0.95).unwrap() as u64);
    assert!(
        rows("bias") > 60 && text.contains("rows for a width of 0.05") && text.contains("found at power 0.8"),
        "{text}"
    );
    refuses(&judges(), &["--width", "0"], 2, &[]);
}
