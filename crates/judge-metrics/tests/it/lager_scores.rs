//! Published values on published scores: LAGER (arXiv 2508.03550) with Llama-3.1-8B on FLASK, from its repository's history.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::PathBuf;

use judge_metrics::correlation::{pearson, spearman};
use serde_json::Value;

#[test]
fn flask_correlations_are_the_published_ones() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let path = PathBuf::from(data).join("lager/flask_llama31_8b_scores.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_str(&text).unwrap();
    let column = |name: &str| -> Vec<f64> {
        file[name].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect()
    };
    let human = column("human");
    for (variant, published) in
        [("direct_score", ["0.3341", "0.3927"]), ("e_score", ["0.3858", "0.4229"]), ("lager_w", ["0.4772", "0.4967"])]
    {
        let scores = column(variant);
        let ours = [spearman, pearson].map(|correlation| correlation(&scores, &human).unwrap().estimate);
        assert_eq!(ours.map(|estimate| format!("{estimate:.4}")), published, "{variant}: {ours:?}");
    }
}
