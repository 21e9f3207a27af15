//! The correlations of `expected.json` from the scores that GPT-4 gave 320 MT-bench answers three times over.

use judge_metrics::correlation::{
    DependentCorrelations, KendallTest, fisher_interval, kendall_tau_b, kendall_tau_c, pearson, spearman,
};
use serde_json::Value;

use crate::published::json as published;

#[test]
fn repeated_gpt4_scores_correlate_as_expected() {
    let Some(answers) = published::<Value>("prometheus_eval/mt_bench_eval.json") else { return };
    let expected = &published::<Value>("expected.json").unwrap()["prometheus_mt_bench_eval"];
    let [first, second, third] = [0, 1, 2].map(|run| -> Vec<f64> {
        answers.as_array().unwrap().iter().map(|answer| answer["gpt4_score"][run].as_f64().unwrap()).collect()
    });

    let check = |name: &str, ours: f64, expected: &Value| {
        let expected = expected.as_f64().unwrap();
        assert!((ours - expected).abs() <= 1e-10 * expected.abs(), "{name} is {ours}, not {expected}");
    };
    check("pearson", pearson(&first, &second).unwrap().estimate, &expected["pearson12"]);
    check("spearman", spearman(&first, &second).unwrap().estimate, &expected["spearman12"]);
    check("tau-b", kendall_tau_b(&first, &second, KendallTest::Auto).unwrap().estimate, &expected["tau_b12"]);
    check("tau-c", kendall_tau_c(&first, &second, KendallTest::Auto).unwrap().estimate, &expected["tau_c12"]);

    let expected = &expected["dependent_corr"];
    let judges = DependentCorrelations::of_columns(&first, &second, &third).unwrap();
    let williams = judges.williams().unwrap();
    check("Williams' t", williams.statistic, &expected["williams_t"]);
    check("its p-value", williams.p_value, &expected["p"]);
    assert_eq!(williams.dof.map(|dof| dof as u64), expected["df"].as_u64());
    check("Steiger's Z", judges.steiger().unwrap().statistic, &expected["steiger_z_pooled"]);
    check("Dunn and Clark's z", judges.dunn_clark().unwrap().statistic, &expected["dunn_clark_z"]);
    let r12 = pearson(&first, &second).unwrap();
    let interval = fisher_interval(r12.estimate, r12.n, 0.95).unwrap();
    check("Fisher's low", interval.low, &expected["fisher_ci95_r12"][0]);
    check("Fisher's high", interval.high, &expected["fisher_ci95_r12"][1]);
}
