//! Published values on published scores: LAGER (arXiv 2508.03550) with Llama-3.1-8B on FLASK, from its repository's history.

use judge_metrics::correlation::{pearson, spearman};
use serde_json::Value;

use crate::fixtures::numbers;
use crate::published::json as published;

#[test]
fn flask_correlations_are_the_published_ones() {
    let Some(file) = published::<Value>("lager/flask_llama31_8b_scores.json") else { return };
    let column = |name: &str| numbers(&file[name]);
    let human = column("human");
    for (variant, published) in
        [("direct_score", ["0.3341", "0.3927"]), ("e_score", ["0.3858", "0.4229"]), ("lager_w", ["0.4772", "0.4967"])]
    {
        let scores = column(variant);
        let ours = [spearman, pearson].map(|correlation| correlation(&scores, &human).unwrap().estimate);
        assert_eq!(ours.map(|estimate| format!("{estimate:.4}")), published, "{variant}: {ours:?}");
    }
}
