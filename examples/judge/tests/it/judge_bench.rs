//! JudgeBench's released verdicts through `judge bench`: the figures that its repository reports.

use serde_json::Value;
use tempfile::TempDir;

use crate::program::succeed;
use crate::published::data;

#[test]
fn released_verdicts_give_the_released_figures() {
    let Some(data) = data() else { return };
    let folder = TempDir::new().unwrap();
    // Over all pairs, and the mean over the four subsets.
    for (file, pairs, subsets) in [
        ("verdicts-Skywork_Skywork-Reward-Gemma-2-27B.jsonl", 0.6429, 0.6500),
        ("verdicts-Ray2333_GRM-Gemma-2B-rewardmodel-ft.jsonl", 0.5943, 0.5877),
        ("verdicts-o1-mini-2024-09-12.jsonl", 0.6571, 0.7035),
    ] {
        let file = data.join("judgebench").join(file);
        let file = file.to_str().unwrap();
        let args = ["--benchmark", "judgebench", "--data", file, "--verdicts", file, "--json", "a.json", "--overwrite"];
        let said = succeed("bench", folder.path(), &args);
        assert!(said.contains("mean of groups") && said.contains("livecodebench"), "{said}");
        let report: Value = serde_json::from_slice(&std::fs::read(folder.path().join("a.json")).unwrap()).unwrap();
        let found = report["statistics"]["accuracy_net"]["estimate"].as_f64().unwrap();
        assert!((found - pairs).abs() < 5e-5, "{file}: {found}");
        let mean = report["groups_mean"]["accuracy_net"].as_f64().unwrap();
        assert!((mean - subsets).abs() < 5e-5, "{file}: {mean}");
    }
}
