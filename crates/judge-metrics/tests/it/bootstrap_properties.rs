//! What holds of bootstrap intervals whatever the data.

use judge_metrics::Error;
use judge_metrics::resampling::{Bootstrap, BootstrapInterval, BootstrapMethod, RankedPair};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn bootstrap(seed: u64, method: BootstrapMethod) -> Bootstrap {
    Bootstrap { resamples: 150, level: 0.9, seed, method }
}

fn mean(bootstrap: Bootstrap, values: &[f64]) -> Result<BootstrapInterval, Error> {
    bootstrap.interval(values.len(), |rows| Ok(rows.iter().map(|&row| values[row]).sum::<f64>() / rows.len() as f64))
}

fn methods() -> impl Strategy<Value = BootstrapMethod> {
    prop_oneof![Just(BootstrapMethod::Percentile), Just(BootstrapMethod::BiasCorrectedAccelerated)]
}

/// Quarters, so that sums of them are exact and their means tie as they should.
fn quarters(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-20_i32..20).prop_map(|quarter| f64::from(quarter) / 4.0), length)
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn intervals_move_with_the_data(values in quarters(6..40), seed in any::<u64>(), method in methods()) {
        let Ok(ours) = mean(bootstrap(seed, method), &values) else { return Ok(()) };
        let moved: Vec<f64> = values.iter().map(|value| 8.0 - 4.0 * value).collect();
        let moved = mean(bootstrap(seed, method), &moved).unwrap();
        // Mirrored, so that the ends change places.
        let expected = [8.0 - 4.0 * ours.interval.high, 8.0 - 4.0 * ours.interval.low];
        prop_assert!((moved.interval.low - expected[0]).abs() < 1e-9, "{moved:?}, not {expected:?}");
        prop_assert!((moved.interval.high - expected[1]).abs() < 1e-9, "{moved:?}, not {expected:?}");
        prop_assert!((moved.estimate - (8.0 - 4.0 * ours.estimate)).abs() < 1e-12);
    }

    #[test]
    fn a_higher_level_widens(values in quarters(6..40), seed in any::<u64>(), method in methods()) {
        let narrow = bootstrap(seed, method);
        if let (Ok(narrow), Ok(wide)) = (mean(narrow, &values), mean(Bootstrap { level: 0.97, ..narrow }, &values)) {
            prop_assert!(wide.interval.low <= narrow.interval.low && narrow.interval.high <= wide.interval.high);
            prop_assert!(narrow.interval.low <= narrow.interval.high);
        }
    }

    #[test]
    fn ends_lie_among_the_resamples(values in quarters(6..40), seed in any::<u64>()) {
        let settings = bootstrap(seed, BootstrapMethod::Percentile);
        let Ok(ours) = mean(settings, &values) else {
            prop_assert!(values.iter().all(|value| *value == values[0]));
            return Ok(());
        };
        let ours = ours.interval;
        let means: Vec<f64> = (0..settings.resamples)
            .map(|resample| settings.rows(values.len(), resample))
            .map(|rows| rows.iter().map(|&row| values[row]).sum::<f64>() / rows.len() as f64)
            .collect();
        prop_assert!(means.iter().any(|&mean| mean <= ours.low) && means.iter().any(|&mean| ours.high <= mean));
        // A twentieth of the resamples lies beyond each end.
        let beyond = means.iter().filter(|&&mean| mean < ours.low).count();
        prop_assert!(beyond <= 8, "{beyond} of 150 below");
    }

    #[test]
    fn only_which_rows_share_a_cluster_matters(
        rows in prop::collection::vec((-20_i32..20, 0_usize..6), 2..40), seed in any::<u64>(), method in methods()
    ) {
        let values: Vec<f64> = rows.iter().map(|&(value, _)| f64::from(value)).collect();
        let sum = |rows: &[usize]| Ok(rows.iter().map(|&row| values[row]).sum::<f64>());
        let groups: Vec<usize> = rows.iter().map(|&(_, group)| group).collect();
        let renamed: Vec<String> = groups.iter().map(|group| format!("question {}", (group * 5 + 2) % 7)).collect();
        let settings = bootstrap(seed, method);
        prop_assert_eq!(settings.clustered(&groups, sum), settings.clustered(&renamed, sum));
    }

    #[test]
    fn ranked_pairs_know_only_order(
        rows in prop::collection::vec((-6_i32..6, -6_i32..6), 2..30), seed in any::<u64>()
    ) {
        let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).unzip();
        let Ok(ours) = RankedPair::new(&x, &y) else { return Ok(()) };
        let stretched: Vec<f64> = x.iter().map(|x| (x / 2.0).exp()).collect();
        let negated: Vec<f64> = y.iter().map(|y| -y).collect();
        let [stretched, swapped, negated] =
            [(&stretched, &y), (&y, &x), (&x, &negated)].map(|(x, y)| RankedPair::new(x, y).unwrap());
        let drawn = bootstrap(seed, BootstrapMethod::Percentile).rows(x.len(), 0);
        let rho = ours.spearman(&drawn);
        prop_assert_eq!(&stretched.spearman(&drawn), &rho);
        prop_assert_eq!(&swapped.spearman(&drawn), &rho);
        prop_assert_eq!(negated.spearman(&drawn), rho.map(|rho| -rho));
    }
}
