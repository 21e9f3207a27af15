//! What must hold of errors, scores, divergences and areas for any data.

use judge_metrics::prediction::{
    auroc, auroc_difference, average_precision, bias, brier_score, jensen_shannon_divergence, kl_divergence, log_loss,
    mean_absolute_error, root_mean_squared_error, total_variation,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::calibration_properties::columns;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-10 * a.abs().max(b.abs()) + 1e-13
}

/// Distributions of equal width, zeros among their entries.
fn distributions(rows: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    let weight = || prop_oneof![1 => Just(0.0), 3 => 0.0..1.0f64];
    (2..8usize).prop_flat_map(move |k| prop::collection::vec(prop::collection::vec(weight(), k), rows)).prop_map(
        |table| {
            let normalize = |mut row: Vec<f64>| {
                row[0] += 1e-3;
                let total: f64 = row.iter().sum();
                row.into_iter().map(|p| p / total).collect()
            };
            table.into_iter().map(normalize).collect()
        },
    )
}

/// Outcomes of both kinds with two judges' scores, tied or not.
fn scored() -> impl Strategy<Value = (Vec<bool>, Vec<f64>, Vec<f64>)> {
    let score = || prop_oneof![(-3..4i32).prop_map(f64::from), -1e3..1e3f64];
    prop::collection::vec((any::<bool>(), score(), score()), 4..50).prop_map(|rows| {
        let (mut outcomes, scores): (Vec<_>, Vec<_>) = rows.into_iter().map(|(o, a, b)| (o, (a, b))).unzip();
        (outcomes[0], outcomes[1], outcomes[2], outcomes[3]) = (true, false, true, false);
        let (a, b) = scores.into_iter().unzip();
        (outcomes, a, b)
    })
}

proptest! {
    // The same cases on every machine and in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(6), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn errors_are_ordered_and_bias_is_signed((x, y) in columns()) {
        let (mae, rmse) = (mean_absolute_error(&y, &x).unwrap(), root_mean_squared_error(&y, &x).unwrap());
        let signed = bias(&y, &x).unwrap();
        prop_assert!(signed.estimate.abs() <= mae.estimate + 1e-12 && mae.estimate <= rmse.estimate + 1e-12);
        let swapped = bias(&x, &y).unwrap();
        prop_assert_eq!((swapped.estimate, swapped.standard_error()), (-signed.estimate, signed.standard_error()));
        prop_assert_eq!(mean_absolute_error(&x, &y).unwrap(), mae);
        prop_assert_eq!(root_mean_squared_error(&x, &y).unwrap(), rmse);
        // RMSE² = bias² + variance
        if let Ok(error) = signed.standard_error() {
            let n = x.len() as f64;
            prop_assert!(close(rmse.estimate.powi(2), signed.estimate.powi(2) + error * error * (n - 1.0)));
        }
    }

    #[test]
    fn intervals_nest_and_hold_the_estimate((x, y) in columns()) {
        let signed = bias(&y, &x).unwrap();
        if signed.standard_error().is_ok_and(|error| error > 0.0) {
            let (narrow, wide) = (signed.interval(0.8).unwrap(), signed.interval(0.99).unwrap());
            prop_assert!(wide.low <= narrow.low && narrow.low <= signed.estimate);
            prop_assert!(signed.estimate <= narrow.high && narrow.high <= wide.high);
        }
    }

    #[test]
    fn divergences_are_in_range_and_bound_each_other(rows in distributions(2)) {
        let (p, q) = (&rows[0], &rows[1]);
        let (tv, js) = (total_variation(p, q).unwrap(), jensen_shannon_divergence(p, q).unwrap());
        prop_assert!((0.0..=1.0).contains(&tv) && (0.0..=std::f64::consts::LN_2).contains(&js));
        prop_assert!(js <= std::f64::consts::LN_2 * tv + 1e-15);
        prop_assert_eq!(total_variation(q, p).unwrap(), tv);
        prop_assert!(close(jensen_shannon_divergence(q, p).unwrap(), js));
        for same in [kl_divergence(p, p), jensen_shannon_divergence(p, p), total_variation(p, p)] {
            prop_assert_eq!(same.unwrap(), 0.0);
        }
        match kl_divergence(p, q) {
            Ok(kl) => prop_assert!(kl >= 2.0 * tv * tv * (1.0 - 1e-12), "Pinsker: {} and {}", kl, tv),
            Err(error) => prop_assert!(error.is_undefined() && p.iter().zip(q).any(|(&p, &q)| q == 0.0 && p > 0.0)),
        }
    }

    #[test]
    fn scores_of_an_event_are_in_range_and_bound_each_other(rows in prop::collection::vec((any::<bool>(), 0.0..=1.0f64), 1..40)) {
        let (outcomes, p): (Vec<bool>, Vec<f64>) = rows.into_iter().unzip();
        let brier = brier_score(&outcomes, &p).unwrap().estimate;
        prop_assert!((0.0..=1.0).contains(&brier));
        let loss = log_loss(&outcomes, &p, 1e-6).unwrap().estimate;
        prop_assert!(loss >= brier - 1e-6, "−ln(1 − u) ≥ u ≥ u²");
        let (failures, rest): (Vec<bool>, Vec<f64>) = outcomes.iter().zip(&p).map(|(came, p)| (!came, 1.0 - p)).unzip();
        prop_assert!(close(brier_score(&failures, &rest).unwrap().estimate, brier));
    }

    #[test]
    fn areas_count_pairs_and_complement((outcomes, scores, _) in scored()) {
        let ours = auroc(&outcomes, &scores).unwrap();
        let mut pairs = Vec::new();
        for (i, _) in outcomes.iter().enumerate().filter(|item| *item.1) {
            for (j, _) in outcomes.iter().enumerate().filter(|item| !*item.1) {
                pairs.push(if scores[i] > scores[j] { 1.0 } else if scores[i] == scores[j] { 0.5 } else { 0.0 });
            }
        }
        prop_assert_eq!(ours.estimate, pairs.iter().sum::<f64>() / pairs.len() as f64);

        let negated: Vec<f64> = scores.iter().map(|score| -score).collect();
        let flipped: Vec<bool> = outcomes.iter().map(|outcome| !outcome).collect();
        for mirrored in [auroc(&outcomes, &negated).unwrap(), auroc(&flipped, &scores).unwrap()] {
            prop_assert!(close(mirrored.estimate, 1.0 - ours.estimate));
            prop_assert!(close(mirrored.standard_error().unwrap(), ours.standard_error().unwrap()));
            match (mirrored.interval(0.9), ours.interval(0.9)) {
                (Ok(mirrored), Ok(ours)) => {
                    prop_assert!(close(mirrored.low, 1.0 - ours.high) && close(mirrored.high, 1.0 - ours.low));
                    prop_assert!(0.0 <= ours.low && ours.low <= ours.high && ours.high <= 1.0);
                }
                (mirrored, ours) => prop_assert!(mirrored.unwrap_err().is_undefined() && ours.unwrap_err().is_undefined()),
            }
        }
        prop_assert_eq!(auroc(&flipped, &negated).unwrap().estimate, ours.estimate);

        // Strictly increasing, and injective in floating point on these columns.
        let bent: Vec<f64> = scores.iter().map(|score| score.cbrt() + 0.5 * score).collect();
        prop_assert_eq!(auroc(&outcomes, &bent).unwrap(), ours);
        let precision = average_precision(&outcomes, &scores).unwrap();
        prop_assert!(precision.estimate > 0.0 && precision.estimate <= 1.0);
        prop_assert_eq!(average_precision(&outcomes, &bent).unwrap(), precision);
    }

    #[test]
    fn swapping_judges_negates_the_difference((outcomes, a, b) in scored()) {
        match (auroc_difference(&outcomes, &a, &b), auroc_difference(&outcomes, &b, &a)) {
            (Ok(ab), Ok(ba)) => {
                prop_assert_eq!((ab.estimate, ab.standard_error(), ab.p_value()), (-ba.estimate, ba.standard_error(), ba.p_value()));
                let apart = auroc(&outcomes, &a).unwrap().estimate - auroc(&outcomes, &b).unwrap().estimate;
                prop_assert!(close(ab.estimate, apart) && (0.0..=1.0).contains(&ab.p_value().unwrap()));
            }
            (ab, ba) => prop_assert!(ab.unwrap_err().is_undefined() && ba.unwrap_err().is_undefined()),
        }
    }

    #[test]
    fn the_order_of_items_does_not_matter(
        ((outcomes, a, _), order) in scored().prop_flat_map(|rows| {
            let order: Vec<usize> = (0..rows.0.len()).collect();
            (Just(rows), Just(order).prop_shuffle())
        })
    ) {
        let shuffled: Vec<bool> = order.iter().map(|&i| outcomes[i]).collect();
        let scores: Vec<f64> = order.iter().map(|&i| a[i]).collect();
        prop_assert_eq!(auroc(&shuffled, &scores).unwrap(), auroc(&outcomes, &a).unwrap());
        prop_assert_eq!(average_precision(&shuffled, &scores).unwrap(), average_precision(&outcomes, &a).unwrap());
    }
}
