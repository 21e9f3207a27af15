//! Aggregated labels against crowd-kit, and with smoothing against NumPy (`scripts/metrics/aggregation_fixtures.py`); simulations with
//! known truth; what is refused.

use judge_metrics::Error;
use judge_metrics::aggregation::{AggregatedLabels, AnnotatorModel, DawidSkene, MajorityVote};
use proptest::prelude::*;
use serde_json::Value;

use crate::draw::Draw;
use crate::fixtures::{count, fixture, list, near};

const MODELS: [(AnnotatorModel, &str); 2] =
    [(AnnotatorModel::ConfusionMatrix, "confusion"), (AnnotatorModel::OneCoin, "one_coin")];

type Ratings = Vec<Vec<Option<usize>>>;

/// All numbers of nested lists, in order.
fn flat(value: &Value) -> Vec<f64> {
    value.as_array().map_or_else(|| vec![value.as_f64().unwrap()], |rows| rows.iter().flat_map(flat).collect())
}

fn confusion(found: &AggregatedLabels) -> Vec<f64> {
    found.annotators.iter().flat_map(|annotator| annotator.confusion.concat()).collect()
}

/// Probabilities, by their absolute distance.
#[track_caller]
fn within(ours: &[f64], expected: &Value, tolerance: f64, what: &str) {
    let expected = flat(expected);
    assert_eq!(ours.len(), expected.len(), "{what}");
    let furthest = ours.iter().zip(&expected).map(|(a, b)| (a - b).abs()).max_by(f64::total_cmp).unwrap();
    assert!(furthest <= tolerance, "{what}: {furthest:e}");
}

fn cases() -> Vec<(Value, Vec<usize>, Ratings)> {
    let mut fixture = fixture("aggregation");
    let cases = fixture["aggregated"].as_array_mut().unwrap();
    let row = |row: &Value| list(row).iter().map(|label| label.as_u64().map(|label| label as usize)).collect();
    let of = |case: &mut Value| {
        let labels = (0..count(&case["labels"])).collect();
        let ratings = list(&case["ratings"]).iter().map(row).collect();
        (case.take(), labels, ratings)
    };
    cases.iter_mut().map(of).collect()
}

#[test]
fn one_step_equals_crowd_kit() {
    for (case, labels, ratings) in cases() {
        for (model, name) in MODELS {
            // Any step is small enough: the first one ends it.
            let fit = DawidSkene { model, tolerance: 1.0, ..DawidSkene::default() }.fit(&labels, &ratings).unwrap();
            assert_eq!(fit.iterations, 1);
            within(&confusion(&fit), &case[name]["start"], 1e-12, name);
            within(&fit.posteriors.concat(), &case[name]["one_step"], 1e-12, name);
        }
    }
}

#[test]
fn converged_models_equal_crowd_kit() {
    for (case, labels, ratings) in cases() {
        for (model, name) in MODELS {
            let fit = DawidSkene { model, tolerance: 1e-12, ..DawidSkene::default() }.fit(&labels, &ratings).unwrap();
            for (reference, tolerance) in [("published", 1e-7), ("without_floor", 1e-9)] {
                let expected = &case[name][reference];
                within(&fit.posteriors.concat(), &expected["posteriors"], tolerance, name);
                within(&fit.prevalences, &expected["prevalences"], tolerance, name);
                within(&confusion(&fit), &expected["confusion"], tolerance, name);
            }
            near(fit.log_likelihood, &case[name]["without_floor"]["log_likelihood"]);
            // The default stops a little earlier.
            let early = DawidSkene { model, ..DawidSkene::default() }.fit(&labels, &ratings).unwrap();
            assert!(early.iterations <= fit.iterations && early.most_probable == fit.most_probable);
            within(&early.posteriors.concat(), &case[name]["without_floor"]["posteriors"], 1e-5, name);
        }
    }
}

#[test]
fn smoothed_models_equal_numpy() {
    for (case, labels, ratings) in cases() {
        for (model, name) in MODELS {
            let expected = &case[name]["smoothed"];
            let smoothing = expected["smoothing"].as_f64().unwrap();
            let settings = DawidSkene { model, smoothing, tolerance: 1e-12, ..DawidSkene::default() };
            let fit = settings.fit(&labels, &ratings).unwrap();
            within(&fit.posteriors.concat(), &expected["posteriors"], 1e-9, name);
            within(&fit.prevalences, &expected["prevalences"], 1e-9, name);
            within(&confusion(&fit), &expected["confusion"], 1e-9, name);
            near(fit.log_likelihood, &expected["log_likelihood"]);
        }
    }
}

/// Truths and labels of annotators with these accuracies, whose errors fall on all other labels alike; each gives a label with probability
/// `given`, the first always.
fn simulated(seed: u64, subjects: usize, labels: usize, accuracies: &[f64], given: f64) -> (Vec<usize>, Ratings) {
    let mut draw = Draw::new(seed);
    let truth: Vec<usize> = (0..subjects).map(|_| draw.below(labels)).collect();
    let ratings = truth.iter().map(|&right| {
        let label = |(annotator, accuracy): (usize, &f64)| {
            let wrong = (right + 1 + draw.below(labels - 1)) % labels;
            let label = if draw.uniform() < *accuracy { right } else { wrong };
            (draw.uniform() < given || annotator == 0).then_some(label)
        };
        accuracies.iter().enumerate().map(label).collect()
    });
    let ratings = ratings.collect();
    (truth, ratings)
}

fn right(truth: &[usize], given: impl Iterator<Item = Option<usize>>) -> usize {
    truth.iter().zip(given).filter(|(truth, given)| Some(**truth) == *given).count()
}

#[test]
fn accuracies_are_recovered_and_the_majority_is_beaten() {
    let accuracies = [0.95, 0.9, 0.6, 0.5, 0.45, 0.4];
    for seed in 0..5 {
        let (truth, ratings) = simulated(seed, 1_000, 3, &accuracies, 0.9);
        let labels = [0, 1, 2];
        let majority = right(&truth, MajorityVote::new(&labels, &ratings).unwrap().winners.into_iter());
        for (model, _) in MODELS {
            let found = DawidSkene { model, ..DawidSkene::default() }.fit(&labels, &ratings).unwrap();
            let ours = right(&truth, found.most_probable.iter().map(|&label| Some(label)));
            assert!(ours >= majority + 50, "{ours} of 1000 right, by majority {majority}");
            for (annotator, accuracy) in found.annotators.iter().zip(accuracies) {
                // Four standard errors of a share of 900 labels, or more.
                assert!((annotator.accuracy - accuracy).abs() < 0.066, "{} for {accuracy}", annotator.accuracy);
                let shown = right(&truth, ratings.iter().map(|row| row[0])) as f64 / 1_000.0;
                assert!((found.annotators[0].accuracy - shown).abs() < 0.03);
            }
            assert!(found.prevalences.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.06));
        }
    }
}

/// Everybody tends to call the second label by the first's name: only confusion matrices see that such a label says little.
#[test]
fn confusion_matrices_are_recovered() {
    let mut draw = Draw::new(7);
    let truth: Vec<usize> = (0..2_000).map(|_| usize::from(draw.uniform() < 0.4)).collect();
    let hits = [[0.95, 0.6], [0.9, 0.7], [0.85, 0.65], [0.97, 0.55]];
    let mut rate = |right: usize| hits.map(|hit| Some(if draw.uniform() < hit[right] { right } else { 1 - right }));
    let ratings: Vec<[Option<usize>; 4]> = truth.iter().map(|&right| rate(right)).collect();
    let found = DawidSkene::default().fit(&[0, 1], &ratings).unwrap();
    for (annotator, hit) in found.annotators.iter().zip(hits) {
        for right in [0, 1] {
            let ours = annotator.confusion[right][right];
            assert!((ours - hit[right]).abs() < 0.07, "{ours} for {}", hit[right]);
        }
    }
    assert!((found.prevalences[1] - 0.4).abs() < 0.06, "{:?}", found.prevalences);
    let majority = right(&truth, MajorityVote::new(&[0, 1], &ratings).unwrap().winners.into_iter());
    assert!(right(&truth, found.most_probable.iter().map(|&label| Some(label))) > majority + 100);
}

/// Grades of raters who miss the right one of five by a normal error with this deviation, roughly.
fn graded(seed: u64, subjects: usize, deviation: f64) -> Ratings {
    let mut draw = Draw::new(seed);
    let mut row = || {
        let right = draw.below(5) as f64;
        let mut error = || (0..12).map(|_| draw.uniform()).sum::<f64>() - 6.0;
        (0..3).map(|_| Some((right + deviation * error()).round().clamp(0.0, 4.0) as usize)).collect()
    };
    (0..subjects).map(|_| row()).collect()
}

/// Expectation maximisation as Dawid and Skene have it, without a thought for time: the log-likelihood where no posterior moves by more
/// than 10⁻⁸.
fn plain(labels: usize, ratings: &Ratings) -> f64 {
    let share = |row: &Vec<Option<usize>>, label| {
        row.iter().filter(|&&given| given == Some(label)).count() as f64 / row.len() as f64
    };
    let mut posteriors: Vec<Vec<f64>> =
        ratings.iter().map(|row| (0..labels).map(|label| share(row, label)).collect()).collect();
    loop {
        let mut prevalences = vec![0.0; labels];
        let mut counts = vec![vec![vec![0.0; labels]; labels]; ratings[0].len()];
        for (row, posterior) in ratings.iter().zip(&posteriors) {
            for (truth, weight) in posterior.iter().enumerate() {
                prevalences[truth] += weight / ratings.len() as f64;
                row.iter().zip(&mut counts).for_each(|(given, counts)| counts[truth][given.unwrap()] += weight);
            }
        }
        let (mut moved, mut likelihood) = (0.0_f64, 0.0);
        for (row, posterior) in ratings.iter().zip(&mut posteriors) {
            let of = |truth: usize| {
                let chance = |(given, counts): (&Option<usize>, &Vec<Vec<f64>>)| {
                    counts[truth][given.unwrap()] / counts[truth].iter().sum::<f64>()
                };
                prevalences[truth] * row.iter().zip(&counts).map(chance).product::<f64>()
            };
            let joint: Vec<f64> = (0..labels).map(of).collect();
            let total: f64 = joint.iter().sum();
            likelihood += total.ln();
            for (before, after) in posterior.iter_mut().zip(&joint) {
                moved = moved.max((*before - after / total).abs());
                *before = after / total;
            }
        }
        if moved <= 1e-8 {
            return likelihood;
        }
    }
}

/// Plain steps need some 1,800, 25,000 and 3,000 iterations here.
#[test]
fn extrapolated_steps_reach_the_maximum_of_plain_ones_in_far_fewer() {
    for (seed, subjects, deviation, most) in [(0, 2_000, 0.7, 1_000), (1, 2_000, 0.9, 4_000), (0, 20_000, 0.7, 500)] {
        let ratings = graded(seed, subjects, deviation);
        let found = DawidSkene::default().fit(&[0, 1, 2, 3, 4], &ratings).unwrap();
        assert!(found.iterations <= most, "{} iterations", found.iterations);
        if seed == 0 && subjects == 2_000 {
            let expected = plain(5, &ratings);
            assert!((found.log_likelihood - expected).abs() < 1e-6, "{} and {expected}", found.log_likelihood);
        }
    }
}

#[test]
fn equal_rows_have_one_posterior_and_count_as_often_as_they_occur() {
    let ratings = graded(5, 300, 0.7);
    let repeated: Ratings = ratings.iter().flat_map(|row| [row.clone(), row.clone()]).collect();
    let fit = |ratings: &Ratings| {
        DawidSkene { tolerance: 1e-4, ..DawidSkene::default() }.fit(&[0, 1, 2, 3, 4], ratings).unwrap()
    };
    let (once, twice) = (fit(&ratings), fit(&repeated));
    assert_eq!(once.iterations, twice.iterations);
    assert!((2.0 * once.log_likelihood - twice.log_likelihood).abs() < 1e-6);
    for (row, posterior) in once.posteriors.iter().enumerate() {
        assert_eq!(twice.posteriors[2 * row], twice.posteriors[2 * row + 1]);
        for (a, b) in posterior.iter().zip(&twice.posteriors[2 * row]) {
            assert!((a - b).abs() < 1e-9, "{a} and {b}");
        }
    }
    assert_eq!(once.annotators[1].n * 2, twice.annotators[1].n);
}

#[test]
fn ties_go_to_the_first_label_and_unused_labels_have_no_share() {
    // Two always agree, a third contradicts: nobody says "c".
    let ratings = [["a", "a", "b"], ["b", "b", "a"], ["a", "a", "b"]].map(|row| row.map(Some));
    let found = DawidSkene::default().fit(&["a", "b", "c"], &ratings).unwrap();
    assert_eq!((found.most_probable.as_slice(), found.prevalences[2]), ([0, 1, 0].as_slice(), 0.0));
    assert_eq!(found.annotators[0].confusion[2], [1.0 / 3.0; 3]);
    // Everything is as likely as its opposite.
    let even = [["a", "b", "a", "b"], ["b", "a", "b", "a"]].map(|row| row.map(Some));
    for labels in [["a", "b"], ["b", "a"]] {
        let model = DawidSkene { model: AnnotatorModel::OneCoin, ..DawidSkene::default() };
        let found = model.fit(&labels, &even).unwrap();
        assert_eq!((found.most_probable, found.annotators[0].accuracy), (vec![0, 0], 0.5));
    }
}

#[test]
fn what_cannot_be_aggregated_is_refused() {
    let fit = |ratings: &[Vec<Option<&str>>]| DawidSkene::default().fit(&["a", "b"], ratings);
    let (a, b) = (Some("a"), Some("b"));
    assert!(fit(&[vec![a, b], vec![a, a]]).unwrap_err().is_undefined());
    let silent = fit(&[vec![a, b, None], vec![a, a, None]]).unwrap_err();
    assert!(silent.to_string().contains("gave no label"), "{silent}");
    let unrated = fit(&[vec![a, b, a], vec![None; 3]]).unwrap_err();
    assert_eq!(unrated, Error::InRow { row: 1, error: Box::new(Error::TooFewItems { required: 1, found: 0 }) });
    assert!(matches!(fit(&[vec![a, b, a], vec![a, Some("c"), b]]), Err(Error::InRow { row: 1, .. })));
    assert!(matches!(fit(&[vec![a, b, a], vec![a, b]]), Err(Error::LengthMismatch { .. })));
    assert_eq!(fit(&[]), Err(Error::TooFewItems { required: 2, found: 0 }));
    let labels = DawidSkene::default().fit(&["a", "a"], &[[a, a, a]]);
    assert!(matches!(labels, Err(Error::DuplicateLabel { index: 1, .. })));

    let (_, ratings) = simulated(3, 50, 3, &[0.8, 0.7, 0.6], 1.0);
    let of = |settings: DawidSkene| settings.fit(&[0, 1, 2], &ratings).map(|found| found.iterations);
    let plain = DawidSkene::default();
    assert_eq!(
        of(DawidSkene { max_iterations: 3, ..plain }).unwrap_err().to_string(),
        "Dawid and Skene's model did not converge in 3 iterations"
    );
    for (argument, settings) in [
        ("smoothing", DawidSkene { smoothing: -1.0, ..plain }),
        ("smoothing", DawidSkene { smoothing: f64::NAN, ..plain }),
        ("tolerance", DawidSkene { tolerance: 1.5, ..plain }),
        ("max_iterations", DawidSkene { max_iterations: 0, ..plain }),
    ] {
        assert!(matches!(of(settings), Err(Error::OutOfRange { argument: found, .. }) if found == argument));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Subjects and annotators in another order, and labels by other names in another order, give the same posteriors, each of which sums
    /// to 1.
    #[test]
    fn order_and_names_do_not_change_posteriors(
        seed in any::<u64>(),
        order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
        names in Just(vec!["a", "b", "c"]).prop_shuffle(),
        smoothing in prop::sample::select(vec![0.0, 0.3]),
        one_coin in any::<bool>(),
    ) {
        let (_, ratings) = simulated(seed, 60, 3, &[0.9, 0.8, 0.7, 0.6], 0.8);
        let renamed: Vec<Vec<Option<&str>>> =
            ratings.iter().rev().map(|row| order.iter().map(|&annotator| row[annotator].map(|k| names[k])).collect()).collect();
        let model = if one_coin { AnnotatorModel::OneCoin } else { AnnotatorModel::ConfusionMatrix };
        // After a few steps: far from them rounding may tip what is evenly balanced.
        for tolerance in [1.0, 1e-3] {
            let settings = DawidSkene { model, smoothing, tolerance, ..DawidSkene::default() };
            let (plain, other) = (settings.fit(&[0, 1, 2], &ratings).unwrap(), settings.fit(&["a", "b", "c"], &renamed).unwrap());
            let place = |label: usize| ["a", "b", "c"].iter().position(|name| *name == names[label]).unwrap();
            for (a, b) in plain.posteriors.iter().zip(other.posteriors.iter().rev()) {
                prop_assert!((a.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                for label in 0..3 {
                    prop_assert!((a[label] - b[place(label)]).abs() < 1e-9);
                }
            }
            prop_assert!((plain.log_likelihood - other.log_likelihood).abs() < 1e-7);
            prop_assert!((plain.prevalences.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for (column, &annotator) in order.iter().enumerate() {
                let (a, b) = (&plain.annotators[annotator], &other.annotators[column]);
                prop_assert!(a.n == b.n && (a.accuracy - b.accuracy).abs() < 1e-9 && (0.0..=1.0).contains(&a.accuracy));
                for row in &a.confusion {
                    prop_assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
    }

    /// More iterations never lower the likelihood.
    #[test]
    fn likelihood_rises(seed in any::<u64>()) {
        let (_, ratings) = simulated(seed, 40, 3, &[0.9, 0.7, 0.6, 0.5], 1.0);
        for (model, _) in MODELS {
            let of = |tolerance| DawidSkene { model, tolerance, ..DawidSkene::default() }.fit(&[0, 1, 2], &ratings).unwrap().log_likelihood;
            prop_assert!(of(1.0) <= of(1e-2) + 1e-9 && of(1e-2) <= of(1e-6) + 1e-9);
        }
    }
}
