//! Prediction-powered means of clusters, strata and differences: what they must agree with, and how often their intervals hold the truth.

use judge_metrics::means::{PredictionPoweredMean, Stratum, StratumWeights, Tuning, clustered_mean, paired_difference};
use judge_metrics::{Error, Estimate};

use crate::draw::Draw;

impl Draw {
    /// Labels of standard normal items, and a judge that correlates with them by .8 and is off by .3.
    fn items(&mut self, n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut item = || {
            let x = self.normal();
            (x, 0.3 + 0.8 * x + 0.6 * self.normal())
        };
        (0..n).map(|_| item()).unzip()
    }
}

fn same(ours: &Estimate, theirs: &Estimate, tolerance: f64) {
    let ends = |of: &Estimate| of.interval(0.95).map(|interval| [interval.low, interval.high]).unwrap();
    let [ours, theirs] =
        [ours, theirs].map(|of| [vec![of.estimate, of.standard_error().unwrap()], ends(of).to_vec()].concat());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < tolerance, "{ours}, not {theirs}");
    }
}

#[test]
fn a_cluster_for_each_item_is_no_cluster() {
    let mut draw = Draw::new(1);
    let ((labels, predictions), (_, unlabelled)) = (draw.items(30), draw.items(90));
    let groups: Vec<usize> = (0..120).collect();
    for lambda in [0.0, 0.4, 1.0] {
        let settings = PredictionPoweredMean { tuning: Tuning::Fixed(lambda) };
        let plain = settings.estimate(&labels, &predictions, &unlabelled).unwrap();
        let (of, others) = groups.split_at(30);
        let clustered = settings.clustered(&labels, &predictions, of, &unlabelled, others).unwrap();
        same(&clustered.mean, &plain.mean, 1e-12);
        same(&clustered.classical, &plain.classical, 1e-12);
    }
    // No other λ has a smaller standard error.
    let error = |tuning| -> (f64, f64) {
        let (of, others) = groups.split_at(30);
        let powered =
            PredictionPoweredMean { tuning }.clustered(&labels, &predictions, of, &unlabelled, others).unwrap();
        (powered.lambda, powered.mean.standard_error().unwrap())
    };
    let (lambda, least) = error(Tuning::Optimal);
    assert!([-0.02, 0.02].iter().all(|step| error(Tuning::Fixed(lambda + step)).1 > least));
}

#[test]
fn without_the_judge_clusters_are_those_of_the_labels() {
    let mut draw = Draw::new(2);
    let ((labels, predictions), (_, unlabelled)) = (draw.items(40), draw.items(80));
    let groups: Vec<usize> = (0..40).map(|row| row / 4).collect();
    // Clusters that have items of both kinds.
    let others: Vec<usize> = (0..80).map(|row| row / 4).collect();
    let settings = PredictionPoweredMean { tuning: Tuning::Fixed(0.0) };
    let powered = settings.clustered(&labels, &predictions, &groups, &unlabelled, &others).unwrap();
    same(&powered.mean, &clustered_mean(&labels, &groups).unwrap(), 1e-12);
    same(&powered.classical, &clustered_mean(&labels, &groups).unwrap(), 1e-12);
}

#[test]
fn one_stratum_is_the_plain_mean() {
    let mut draw = Draw::new(3);
    let ((labels, predictions), (_, unlabelled)) = (draw.items(30), draw.items(90));
    let stratum = Stratum { labels: &labels, predictions: &predictions, unlabelled: &unlabelled };
    for tuning in [Tuning::Optimal, Tuning::OptimalCommon, Tuning::Fixed(0.7)] {
        let settings = PredictionPoweredMean { tuning };
        let plain = settings.estimate(&labels, &predictions, &unlabelled).unwrap();
        for weights in [StratumWeights::Known(&[1.0]), StratumWeights::Estimated] {
            let stratified = settings.stratified(&[stratum], weights).unwrap();
            same(&stratified.mean, &plain.mean, 1e-12);
            same(&stratified.classical, &plain.classical, 1e-12);
            assert!((stratified.lambdas[0] - plain.lambda).abs() < 1e-12);
        }
    }
}

#[test]
fn a_difference_is_the_mean_of_differences() {
    let mut draw = Draw::new(4);
    let ([first, second], [third, fourth]) = ([draw.items(20), draw.items(20)], [draw.items(50), draw.items(50)]);
    let judge: [&[f64]; 2] = [&first.1, &second.1];
    let settings = PredictionPoweredMean::default();
    let powered = settings.difference([&first.0, &second.0], judge, [&third.1, &fourth.1]).unwrap();
    same(&powered.classical, &paired_difference(&first.0, &second.0).unwrap(), 1e-12);
    assert!(powered.mean.standard_error().unwrap() < powered.classical.standard_error().unwrap());
    let uneven = settings.difference([&first.0, &second.0[1..]], judge, [&third.1, &fourth.1]);
    assert!(matches!(uneven, Err(Error::LengthMismatch { argument: "labels", found: 19, expected: 20, .. })));
}

#[test]
fn bad_clusters_and_strata_are_refused() {
    let settings = PredictionPoweredMean::default();
    let (labels, judge, unlabelled) = ([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [2.0, 3.0, 1.0, 2.5]);
    let clustered = |groups: &[u8], others: &[u8]| settings.clustered(&labels, &judge, groups, &unlabelled, others);
    let lengths =
        |argument| move |error: &Error| matches!(error, Error::LengthMismatch { argument: a, .. } if *a == argument);
    assert!(lengths("groups")(&clustered(&[1, 2], &[1, 2, 3, 4]).unwrap_err()));
    assert!(lengths("unlabelled_groups")(&clustered(&[1, 2, 3], &[1, 2, 3]).unwrap_err()));
    assert_eq!(clustered(&[1, 1, 1], &[1, 2, 3, 4]), Err(Error::TooFewClusters { required: 2, found: 1 }));
    assert_eq!(clustered(&[1, 2, 2], &[1, 1, 1, 1]), Err(Error::TooFewClusters { required: 2, found: 1 }));

    let good = Stratum { labels: &labels, predictions: &judge, unlabelled: &unlabelled };
    let short = Stratum { labels: &labels[..1], predictions: &judge[..1], ..good };
    let stratified =
        |strata: &[Stratum<'_>], weights: &[f64]| settings.stratified(strata, StratumWeights::Known(weights));
    assert_eq!(stratified(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    let few = Error::InRow { row: 1, error: Box::new(Error::TooFewItems { required: 2, found: 1 }) };
    assert_eq!(stratified(&[good, short], &[0.5, 0.5]), Err(few));
    assert!(lengths("weights")(&stratified(&[good, good], &[1.0]).unwrap_err()));
    assert!(matches!(stratified(&[good, good], &[0.5, 0.6]), Err(Error::NotADistribution { argument: "weights", .. })));
    assert!(matches!(stratified(&[good, good], &[1.5, -0.5]), Err(Error::OutOfRange { argument: "weights", .. })));
    let constant = Stratum { predictions: &[2.0; 3], unlabelled: &[2.0; 4], ..good };
    assert!(matches!(stratified(&[good, constant], &[0.5, 0.5]), Err(Error::InRow { row: 1, .. })));
    let common = PredictionPoweredMean { tuning: Tuning::OptimalCommon };
    assert!(common.stratified(&[good, constant], StratumWeights::Estimated).is_ok());
    let nowhere = common.stratified(&[constant, constant], StratumWeights::Estimated);
    assert!(matches!(nowhere, Err(Error::InRow { row: 0, .. })));
}

/// The share of so many samples whose 95 % interval holds the truth.
fn coverage(samples: u64, truth: f64, sample: impl Fn(&mut Draw) -> Estimate) -> f64 {
    let held = (0..samples).filter(|&seed| {
        let interval = sample(&mut Draw::new(100 + seed)).interval(0.95).unwrap();
        interval.low <= truth && truth <= interval.high
    });
    held.count() as f64 / samples as f64
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let settings = PredictionPoweredMean::default();
    for (n, n_unlabelled, samples) in [(20, 1_000, 500), (100, 1_000, 2_000), (1_000, 4_000, 500)] {
        let plain = coverage(samples, 0.0, |draw| {
            let ((labels, predictions), (_, unlabelled)) = (draw.items(n), draw.items(n_unlabelled));
            settings.estimate(&labels, &predictions, &unlabelled).unwrap().mean
        });
        // Questions of four labelled answers and four that are not, and others of six unlabelled ones.
        let clustered = coverage(samples, 0.0, |draw| {
            let questions = n / 4 + n_unlabelled / 6;
            let of_question: Vec<f64> = (0..questions).map(|_| draw.normal()).collect();
            let answers = |draw: &mut Draw, groups: &[usize]| -> (Vec<f64>, Vec<f64>) {
                let of_items = groups.iter().map(|&group| of_question[group]);
                of_items
                    .zip(draw.items(groups.len()).0)
                    .map(|(q, x)| (q + x, 0.8 * (q + x) + 0.6 * draw.normal()))
                    .unzip()
            };
            let groups: Vec<usize> = (0..n).map(|row| row / 4).collect();
            let shared = (n_unlabelled / 3).min(n);
            let first = (0..shared).map(|row| row / 4);
            let others: Vec<usize> =
                first.chain((shared..n_unlabelled).map(|row| n / 4 + (row - shared) / 6)).collect();
            let ((labels, predictions), (_, unlabelled)) = (answers(draw, &groups), answers(draw, &others));
            settings.clustered(&labels, &predictions, &groups, &unlabelled, &others).unwrap().mean
        });
        // Three strata of means -1, 0 and 2, the rarest of which has half of the labels; mean -.5 + .4.
        let stratified = |tuning, known: bool| {
            coverage(samples, -0.1, move |draw| {
                let means = [-1.0, 0.0, 2.0];
                let mut sizes = [0_usize; 3];
                for _ in 0..n_unlabelled {
                    let u = draw.uniform();
                    sizes[usize::from(u > 0.5) + usize::from(u > 0.8)] += 1;
                }
                let columns: Vec<[Vec<f64>; 3]> = (0..3)
                    .map(|k| {
                        let n_labels = [n / 4, n / 4, n / 2][k];
                        let (labels, predictions) = draw.items(n_labels);
                        // The labelled items come out of those that were drawn.
                        let (_, unlabelled) = draw.items(sizes[k].saturating_sub(n_labels).max(2));
                        [labels, predictions, unlabelled].map(|x| x.iter().map(|x| x + means[k]).collect())
                    })
                    .collect();
                let strata: Vec<Stratum<'_>> = columns
                    .iter()
                    .map(|[labels, predictions, unlabelled]| Stratum { labels, predictions, unlabelled })
                    .collect();
                let weights = if known { StratumWeights::Known(&[0.5, 0.3, 0.2]) } else { StratumWeights::Estimated };
                PredictionPoweredMean { tuning }.stratified(&strata, weights).unwrap().mean
            })
        };
        let difference = coverage(samples, 0.25, |draw| {
            let pairs = |draw: &mut Draw, n| {
                let ((a, of_a), (b, of_b)) = (draw.items(n), draw.items(n));
                let shifted = |x: Vec<f64>| x.iter().map(|x| x + 0.25).collect::<Vec<f64>>();
                [a, shifted(b), of_a, shifted(of_b)]
            };
            let ([a, b, of_a, of_b], [_, _, c, d]) = (pairs(draw, n), pairs(draw, n_unlabelled));
            settings.difference([&a, &b], [&of_a, &of_b], [&c, &d]).unwrap().mean
        });
        let all = [
            ("plain", plain),
            ("clustered", clustered),
            ("strata, known weights", stratified(Tuning::Optimal, true)),
            ("strata, one lambda", stratified(Tuning::OptimalCommon, true)),
            ("difference", difference),
        ];
        let estimated = stratified(Tuning::Optimal, false);
        for (name, coverage) in all.into_iter().chain([("strata, estimated weights", estimated)]) {
            assert!(n < 100 || (0.93..=0.97).contains(&coverage), "{n} {name} {coverage}");
        }
    }
}
