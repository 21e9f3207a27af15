//! Shares corrected for a judge's errors.

use judge_metrics::Error;
use judge_metrics::means::corrected_proportion;

use crate::draw::Draw;

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a}, not {b}");
}

#[test]
fn corrected_shares_refuse_judges_that_know_nothing() {
    let labels = [true, true, false, false];
    let share = |verdicts: [bool; 4]| corrected_proportion(&labels, &verdicts, &[true, false, true]);
    assert!(share([true, false, true, false]).unwrap_err().is_undefined(), "a coin");
    assert!(share([false, false, true, true]).unwrap_err().is_undefined(), "the wrong way round");
    assert!(corrected_proportion(&[true], &[true], &[true]).unwrap_err().is_undefined(), "no label is no");
    assert_eq!(corrected_proportion(&labels, &labels, &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert!(matches!(corrected_proportion(&labels, &[true], &[true]), Err(Error::LengthMismatch { .. })));
    let perfect = share(labels).unwrap().share;
    near(perfect.estimate, 2.0 / 3.0);
    let interval = perfect.interval(0.95).unwrap();
    assert!(
        0.0 <= interval.low
            && interval.low <= perfect.estimate
            && perfect.estimate <= interval.high
            && interval.high <= 1.0
    );
    assert!(perfect.standard_error().unwrap_err().is_undefined() && perfect.p_value().unwrap_err().is_undefined());
}

/// Of 4,000 samples 95 % are covered to within two points (four standard errors are 1.4): true share .3, sensitivity .9, specificity .8.
#[test]
fn intervals_cover() {
    const RUNS: u64 = 4_000;
    let of_share = |n: usize| {
        (0..RUNS)
            .filter(|&run| {
                let mut draw = Draw::new(run);
                let labels: Vec<bool> = (0..n).map(|row| row % 2 == 0).collect();
                let verdicts: Vec<bool> = labels.iter().map(|&yes| draw.chance(if yes { 0.9 } else { 0.2 })).collect();
                let unlabelled: Vec<bool> =
                    (0..1_000).map(|_| if draw.chance(0.3) { draw.chance(0.9) } else { draw.chance(0.2) }).collect();
                let found = corrected_proportion(&labels, &verdicts, &unlabelled).unwrap();
                let interval = found.share.interval(0.95).unwrap();
                interval.low <= 0.3 && 0.3 <= interval.high
            })
            .count()
    };
    for (name, covered) in [("share, 100", of_share(100)), ("share, 1000", of_share(1_000))] {
        let share = covered as f64 / RUNS as f64;
        assert!((share - 0.95).abs() < 0.02, "{name}: {share}");
    }
}
