//! What holds of agreement whatever the labels and ratings are.

use judge_metrics::agreement::{
    AgreementWeights, Average, ConfusionMatrix, IntraclassCorrelations, Measurement, RatingTable, ZeroDivision,
    krippendorff_alpha,
};
use proptest::prelude::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(1.0)
}

#[test]
fn a_standard_error_of_zero_is_found_as_such() {
    // By quadratic weights these agree as by chance, and no count of the kind can tell how far that holds.
    let (truth, predicted) = ([3, 0, 2, 3, 2], [1, 1, 0, 1, 2]);
    for (truth, predicted) in [(truth, predicted), (predicted, truth)] {
        let matrix = ConfusionMatrix::new(vec![0, 1, 2, 3], &truth, &predicted).unwrap();
        let kappa = matrix.cohen_kappa(&AgreementWeights::Quadratic).unwrap();
        assert!(kappa.estimate.abs() < 1e-15 && kappa.standard_error().unwrap() < 1e-15, "{kappa:?}");
    }
}

/// Chance decides everything where a side has one label, whatever the counts round to.
#[test]
fn kappa_has_no_test_where_a_side_has_one_label() {
    for n in 2..60_usize {
        for ones in 1..n {
            let truth: Vec<usize> = (0..n).map(|row| usize::from(row < ones)).collect();
            let predicted = vec![1; n];
            for (truth, predicted) in [(&truth, &predicted), (&predicted, &truth)] {
                let matrix = ConfusionMatrix::new(vec![0, 1], truth, predicted).unwrap();
                for weights in [AgreementWeights::Identity, AgreementWeights::Linear, AgreementWeights::Quadratic] {
                    let kappa = matrix.cohen_kappa(&weights).unwrap();
                    assert!(kappa.p_value().unwrap_err().is_undefined(), "{ones} of {n}");
                }
            }
        }
    }
}

/// `pingouin.intraclass_corr` 0.7.0 gives 8.67 for ICC(A,k) of these.
#[test]
fn a_mean_of_raters_without_variance_has_no_agreement() {
    let ratings = [[4.0, 4.0, 1.0], [1.0, 3.0, 4.0], [3.0, 4.0, 2.0], [3.0, 1.0, 3.0]];
    let icc = IntraclassCorrelations::new(&ratings).unwrap();
    let single = icc.agreement().unwrap();
    assert!(single.estimate < 0.0);
    assert!(icc.mean_agreement().unwrap_err().is_undefined());
    assert!(icc.mean_consistency().unwrap().estimate < 1.0);
}

/// Squares of these would be infinite, or nothing.
#[test]
fn very_large_and_very_small_ratings_agree_as_others_do() {
    let plain = [[1.0, 2.0, 2.0], [3.0, 3.0, 4.0], [5.0, 4.0, 5.0], [2.0, 2.0, 1.0]];
    let known = IntraclassCorrelations::new(&plain).unwrap().agreement().unwrap();
    let scaled_by = |scale: f64| plain.map(|row| row.map(|x| Some(x * scale)));
    for exponent in [-1_000, -600, 0, 600, 1_000] {
        let scale = 2_f64.powi(exponent);
        let scaled = plain.map(|row| row.map(|x| x * scale));
        let icc = IntraclassCorrelations::new(&scaled).unwrap().agreement().unwrap();
        assert_eq!(icc.estimate, known.estimate, "2^{exponent}");
        assert_eq!(icc.interval(0.95), known.interval(0.95), "2^{exponent}");
        for measurement in [Measurement::Nominal, Measurement::Ordinal, Measurement::Interval, Measurement::Ratio] {
            let alpha = krippendorff_alpha(&scaled_by(scale), measurement).unwrap();
            assert_eq!(alpha, krippendorff_alpha(&scaled_by(1.0), measurement).unwrap(), "2^{exponent}");
        }
    }
    let Err(error) = krippendorff_alpha(&scaled_by(-(2_f64.powi(600))), Measurement::Ratio) else { panic!("negative") };
    assert!(error.to_string().contains(&format!("{:e}", -5.0 * 2_f64.powi(600))), "{error}");
}

/// Means of three such ratings are not exact, their differences are.
#[test]
fn intervals_far_from_zero_agree_as_others_do() {
    let plain = [[1.0, 2.0, 2.0], [3.0, 3.0, 4.0], [5.0, 4.0, 5.0], [2.0, 2.0, 1.0]];
    let alpha = |from: f64| {
        let ratings = plain.map(|row| row.map(|x| Some(from + x)));
        krippendorff_alpha(&ratings, Measurement::Interval).unwrap().estimate
    };
    assert!((alpha(1e9) - alpha(0.0)).abs() < 1e-12);
}

proptest! {
    /// No mean agrees better than fully, and no interval has left the numbers.
    #[test]
    fn agreement_of_means_is_at_most_one(
        ratings in prop::collection::vec(prop::collection::vec(1_i32..5, 3), 2..6)
    ) {
        let ratings: Vec<Vec<f64>> = ratings.into_iter().map(|row| row.into_iter().map(f64::from).collect()).collect();
        let Ok(icc) = IntraclassCorrelations::new(&ratings) else { return Ok(()) };
        for mean in [icc.mean_one_way(), icc.mean_agreement(), icc.mean_consistency()].into_iter().flatten() {
            prop_assert!(mean.estimate <= 1.0 + 1e-12, "{mean:?}");
            if let Ok(interval) = mean.interval(0.95) {
                prop_assert!(interval.low <= interval.high && interval.high <= 1.0 + 1e-9, "{interval:?}");
            }
        }
    }

    #[test]
    fn sides_names_and_order_do_not_matter(
        pairs in prop::collection::vec((0_usize..4, 0_usize..4), 2..60),
        names in Just(vec![0, 1, 2, 3]).prop_shuffle(),
        cut in 0_usize..60,
    ) {
        let (truth, predicted): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
        let new = |truth: &[usize], predicted: &[usize]| ConfusionMatrix::new(vec![0, 1, 2, 3], truth, predicted).unwrap();
        let matrix = new(&truth, &predicted);
        prop_assert_eq!(matrix.n(), pairs.len() as u64);

        // The sides exchanged: precision becomes recall, kappa and Matthews stay.
        let swapped = new(&predicted, &truth);
        for (ours, theirs) in matrix.by_class().iter().zip(swapped.by_class()) {
            prop_assert_eq!(ours.precision, theirs.recall);
            prop_assert_eq!(ours.f1, theirs.f1);
        }
        for weights in [AgreementWeights::Identity, AgreementWeights::Quadratic, AgreementWeights::Ordinal] {
            if let (Ok(a), Ok(b)) = (matrix.cohen_kappa(&weights), swapped.cohen_kappa(&weights)) {
                prop_assert!(near(a.estimate, b.estimate) && near(a.standard_error().unwrap(), b.standard_error().unwrap()));
                prop_assert!(a.estimate >= -1.0 && a.estimate <= 1.0);
                prop_assert_eq!(a.estimate == 1.0, truth == predicted);
            }
        }
        if let (Ok(a), Ok(b)) = (matrix.matthews(), swapped.matthews()) {
            prop_assert!(near(a.estimate, b.estimate) && a.estimate.abs() <= 1.0);
            prop_assert!(near(a.standard_error().unwrap(), b.standard_error().unwrap()));
        }

        // Other names for the labels.
        let rename = |labels: &[usize]| labels.iter().map(|&label| names[label]).collect::<Vec<_>>();
        let renamed = new(&rename(&truth), &rename(&predicted));
        prop_assert_eq!(matrix.accuracy(), renamed.accuracy());
        if let (Ok(a), Ok(b)) =
            (matrix.cohen_kappa(&AgreementWeights::Identity), renamed.cohen_kappa(&AgreementWeights::Identity))
        {
            prop_assert!(near(a.estimate, b.estimate));
        }
        let (a, b) = (matrix.average(Average::Macro, ZeroDivision::Zero), renamed.average(Average::Macro, ZeroDivision::Zero));
        prop_assert!(near(a.unwrap().f1.estimate, b.unwrap().f1.estimate));

        // Another order of the items.
        let turn = |labels: &[usize]| {
            let mut labels = labels.to_vec();
            labels.rotate_left(cut % pairs.len());
            labels
        };
        prop_assert_eq!(new(&turn(&truth), &turn(&predicted)), matrix);
    }

    #[test]
    fn raters_and_units_may_change_places(
        units in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.8, 1_u8..6), 4), 2..25),
        order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        let plain: Vec<Vec<Option<f64>>> =
            units.iter().map(|unit| unit.iter().map(|rating| rating.map(f64::from)).collect()).collect();
        let mixed: Vec<Vec<Option<f64>>> =
            plain.iter().rev().map(|unit| order.iter().map(|&rater| unit[rater]).collect()).collect();
        for measurement in [Measurement::Nominal, Measurement::Ordinal, Measurement::Interval, Measurement::Ratio] {
            match (krippendorff_alpha(&plain, measurement), krippendorff_alpha(&mixed, measurement)) {
                (Ok(a), Ok(b)) => {
                    prop_assert!(near(a.estimate, b.estimate) && a.estimate <= 1.0);
                    match (a.standard_error(), b.standard_error()) {
                        (Ok(a), Ok(b)) => prop_assert!(near(a, b)),
                        (a, b) => prop_assert_eq!(a, b),
                    }
                }
                (a, b) => prop_assert_eq!(a, b),
            }
        }
        // Ordinal differences see order alone, interval differences survive a change of units.
        let map = |f: &dyn Fn(f64) -> f64| -> Vec<Vec<Option<f64>>> {
            plain.iter().map(|row| row.iter().map(|value| value.map(f)).collect()).collect()
        };
        if let Ok(alpha) = krippendorff_alpha(&plain, Measurement::Ordinal) {
            let mapped = krippendorff_alpha(&map(&f64::exp), Measurement::Ordinal).unwrap();
            prop_assert!(near(alpha.estimate, mapped.estimate) && alpha.standard_error() == mapped.standard_error());
        }
        if let Ok(alpha) = krippendorff_alpha(&plain, Measurement::Interval) {
            let mapped = krippendorff_alpha(&map(&|x| 1e3 - 7.0 * x), Measurement::Interval).unwrap();
            prop_assert!(near(alpha.estimate, mapped.estimate));
            if let (Ok(a), Ok(b)) = (alpha.standard_error(), mapped.standard_error()) {
                prop_assert!(near(a, b));
            }
        }
        let labels = |rows: &[Vec<Option<f64>>]| -> Vec<Vec<Option<u8>>> {
            rows.iter().map(|row| row.iter().map(|value| value.map(|value| value as u8)).collect()).collect()
        };
        let tables = [&plain, &mixed].map(|rows| RatingTable::new(&[1, 2, 3, 4, 5], &labels(rows)));
        if let [Ok(a), Ok(b)] = tables
            && let (Ok(a), Ok(b)) = (a.gwet(&AgreementWeights::Linear), b.gwet(&AgreementWeights::Linear))
        {
            prop_assert!(near(a.estimate, b.estimate) && near(a.standard_error().unwrap(), b.standard_error().unwrap()) && a.estimate <= 1.0);
        }
    }

    #[test]
    fn intraclass_correlations_know_shift_and_scale(
        rows in prop::collection::vec(prop::array::uniform3(-9_i32..9), 3..20), shift in -100.0_f64..100.0, scale in 0.5_f64..20.0
    ) {
        let ratings: Vec<[f64; 3]> = rows.iter().map(|row| row.map(f64::from)).collect();
        let moved: Vec<[f64; 3]> = ratings.iter().map(|row| row.map(|x| shift + scale * x)).collect();
        let biased: Vec<[f64; 3]> = ratings.iter().map(|&[a, b, c]| [a, b + 50.0, c]).collect();
        let of = |ratings: &[[f64; 3]]| IntraclassCorrelations::new(ratings);
        if let (Ok(a), Ok(b), Ok(c)) = (of(&ratings), of(&moved), of(&biased)) {
            for (a, b) in [(a.one_way(), b.one_way()), (a.agreement(), b.agreement()), (a.consistency(), b.consistency())] {
                if let (Ok(a), Ok(b)) = (a, b) {
                    prop_assert!((a.estimate - b.estimate).abs() < 1e-6 && a.estimate <= 1.0);
                    if let (Ok(a), Ok(b)) = (a.interval(0.9), b.interval(0.9)) {
                        prop_assert!((a.low - b.low).abs() < 1e-6 && a.low <= a.high);
                    }
                }
            }
            // A rater who is always 50 higher is as consistent.
            if let (Ok(a), Ok(c)) = (a.consistency(), c.consistency()) {
                prop_assert!((a.estimate - c.estimate).abs() < 1e-6);
            }
        }
    }
}
