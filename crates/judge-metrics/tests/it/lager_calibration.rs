//! LAGER's published FLASK scores (Llama-3.1-8B) against the human means: errors, isotonic calibration, conformal
//! intervals, the prediction-powered mean. Expected numbers by scikit-learn 1.9.1 (`mean_absolute_error`,
//! `root_mean_squared_error`, `IsotonicRegression`,
//! `roc_auc_score`, `average_precision_score`), NumPy 2.4.6 and ppi-python 0.2.3 (`ppi_mean_ci`).

use judge_metrics::calibration::{IsotonicRegression, SplitConformal};
use judge_metrics::means::PredictionPoweredMean;
use judge_metrics::prediction::{auroc, average_precision, bias, mean_absolute_error, root_mean_squared_error};
use serde_json::Value;

use crate::fixtures::numbers;
use crate::published::json as published;

#[track_caller]
fn assert_close(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-10 * expected.abs(), "{ours}, expected {expected}");
}

fn every(values: &[f64], step: usize, start: usize) -> Vec<f64> {
    values.iter().skip(start).step_by(step).copied().collect()
}

#[test]
fn flask_scores_calibrate_as_the_references_say() {
    let Some(file) = published::<Value>("lager/flask_llama31_8b_scores.json") else { return };
    let column = |name: &str| numbers(&file[name]);
    let human = column("human");
    let (direct, lager) = (column("direct_score"), column("lager_w"));

    assert_close(mean_absolute_error(&human, &direct).unwrap().estimate, 0.936_102_769_436_102_8);
    assert_close(root_mean_squared_error(&human, &direct).unwrap().estimate, 1.337_809_470_224_765_4);
    assert_close(bias(&human, &direct).unwrap().estimate, 0.604_437_771_104_437_7);
    assert_close(root_mean_squared_error(&human, &lager).unwrap().estimate, 1.017_662_973_846_563_2);
    let good: Vec<bool> = human.iter().map(|&human| human >= 4.0).collect();
    assert_close(auroc(&good, &direct).unwrap().estimate, 0.640_562_116_720_776_7);
    assert_close(average_precision(&good, &direct).unwrap().estimate, 0.679_778_162_165_142_6);
    assert_close(auroc(&good, &lager).unwrap().estimate, 0.751_290_536_760_823_4);

    // Rows 0, 3, … fit the isotonic scale, rows 1, 4, … the radius, rows 2, 5, … are held out.
    for (judge, error, coverage) in [
        (&direct, 0.986_845_568_033_304_1, [(0.8, 557), (0.9, 614), (0.95, 631)]),
        (&lager, 0.947_419_968_667_695_2, [(0.8, 554), (0.9, 604), (0.95, 635)]),
    ] {
        let scale = IsotonicRegression::default().fit(&every(judge, 3, 0), &every(&human, 3, 0)).unwrap();
        let [radius_rows, held_out] = [1, 2].map(|start| scale.predict(&every(judge, 3, start)).unwrap());
        let truth = every(&human, 3, 2);
        assert_close(root_mean_squared_error(&truth, &held_out).unwrap().estimate, error);
        for (level, expected) in coverage {
            let fitted = SplitConformal { level }.fit(&every(&human, 3, 1), &radius_rows).unwrap();
            let covered = held_out.iter().zip(&truth).filter(|(predicted, human)| {
                let interval = fitted.interval(**predicted).unwrap();
                interval.low <= **human && **human <= interval.high
            });
            assert_eq!((covered.count(), truth.len()), (expected, 666), "{level}");
        }
    }

    // Every tenth row labelled.
    let labelled = |values: &[f64]| every(values, 10, 0);
    let expected = column("e_score");
    let unlabelled: Vec<f64> = (0..expected.len()).filter(|row| row % 10 != 0).map(|row| expected[row]).collect();
    let mean = PredictionPoweredMean::default().estimate(&labelled(&human), &labelled(&expected), &unlabelled).unwrap();
    assert_close(mean.lambda, 0.432_226_942_062_818_2);
    // The middle of ppi_py's interval, and its half widths, which have deviations by n.
    assert_close(mean.mean.estimate, (3.738_655_532_511_328_4 + 4.008_523_500_137_153) / 2.0);
    assert_close(mean.classical.estimate, (3.668_570_189_861_332 + 3.961_429_810_138_668) / 2.0);
    let z = 1.959_963_984_540_054;
    let by_n = (3.961_429_810_138_668 - 3.668_570_189_861_332) / 2.0 / z;
    assert_close(mean.classical.standard_error().unwrap(), by_n * (200.0_f64 / 199.0).sqrt());
    let ratio = mean.mean.standard_error().unwrap() * 2.0 * z / (4.008_523_500_137_153 - 3.738_655_532_511_328_4);
    assert!((1.0..(200.0_f64 / 199.0).sqrt()).contains(&ratio), "{ratio}");
    let size = mean.effective_sample_size.unwrap();
    assert!((230.0..245.0).contains(&size), "200 labels do the work of {size}");
}
