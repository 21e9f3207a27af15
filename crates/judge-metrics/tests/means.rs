//! Prediction-powered means of clusters and strata, and shares corrected for a judge's errors.

use judge_metrics::Error;
use judge_metrics::means::{PredictionPoweredMean, Stratum, Tuning, clustered_mean, corrected_proportion};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

struct Draw(ChaCha8Rng);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Irwin and Hall's: mean 0, variance 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a}, not {b}");
}

/// n rows of four to a question: people, judge, question.
fn questions(draw: &mut Draw, n: usize, from: usize) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    let (mut human, mut judge, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    let mut shared = (0.0, 0.0);
    for row in 0..n {
        if row % 4 == 0 {
            let common = draw.normal();
            shared = (common, common + 0.5 * draw.normal());
        }
        let own = draw.normal();
        human.push(3.0 + shared.0 + own);
        judge.push(2.0 + shared.1 + own + 0.5 * draw.normal());
        groups.push(from + row / 4);
    }
    (human, judge, groups)
}

#[test]
fn without_a_judge_clusters_are_those_of_the_plain_mean() {
    let mut draw = Draw::new(1);
    let (human, judge, groups) = questions(&mut draw, 48, 0);
    let (_, unlabelled, others) = questions(&mut draw, 200, 100);
    let alone = PredictionPoweredMean { tuning: Tuning::Fixed(0.0) };
    let ours = alone.clustered(&human, &judge, &groups, &unlabelled, &others).unwrap();
    let plain = clustered_mean(&human, &groups).unwrap();
    for (ours, plain) in [(ours.mean, plain), (ours.classical, plain)] {
        near(ours.estimate, plain.estimate);
        near(ours.standard_error().unwrap(), plain.standard_error().unwrap());
        near(ours.interval(0.9).unwrap().low, plain.interval(0.9).unwrap().low);
    }
    // The tuned λ makes the variance smallest.
    let tuned = PredictionPoweredMean::default().clustered(&human, &judge, &groups, &unlabelled, &others).unwrap();
    let error = |lambda: f64| {
        let fixed = PredictionPoweredMean { tuning: Tuning::Fixed(lambda) };
        fixed.clustered(&human, &judge, &groups, &unlabelled, &others).unwrap().mean.standard_error().unwrap()
    };
    near(tuned.mean.standard_error().unwrap(), error(tuned.lambda));
    assert!(0.0 < tuned.lambda && tuned.lambda < 1.0, "{tuned:?}");
    assert!(error(tuned.lambda) < error(tuned.lambda - 0.05) && error(tuned.lambda) < error(tuned.lambda + 0.05));
    assert!(tuned.effective_sample_size.unwrap() > 48.0);
    let one = PredictionPoweredMean::default().clustered(&human, &judge, &[7; 48], &unlabelled, &others);
    assert_eq!(one, Err(Error::TooFewItems { required: 2, found: 1 }));
    let short = PredictionPoweredMean::default().clustered(&human, &judge, &groups, &unlabelled, &others[1..]);
    assert!(matches!(short, Err(Error::LengthMismatch { argument: "unlabelled_groups", .. })));
}

#[test]
fn strata_add_up() {
    let mut draw = Draw::new(2);
    let (human, judge, _) = questions(&mut draw, 60, 0);
    let (_, unlabelled, _) = questions(&mut draw, 300, 0);
    let model = PredictionPoweredMean::default();
    let whole = Stratum { share: 1.0, labels: &human, predictions: &judge, unlabelled: &unlabelled };
    let (one, plain) = (model.stratified(&[whole]).unwrap(), model.estimate(&human, &judge, &unlabelled).unwrap());
    near(one.mean.estimate, plain.mean.estimate);
    near(one.mean.standard_error().unwrap(), plain.mean.standard_error().unwrap());
    near(one.lambda, plain.lambda);
    let parts = [
        Stratum { share: 0.25, labels: &human[..20], predictions: &judge[..20], unlabelled: &unlabelled[..100] },
        Stratum { share: 0.75, labels: &human[20..], predictions: &judge[20..], unlabelled: &unlabelled[100..] },
    ];
    let [a, b] = parts.map(|part| model.estimate(part.labels, part.predictions, part.unlabelled).unwrap().mean);
    let both = model.stratified(&parts).unwrap();
    near(both.mean.estimate, 0.25 * a.estimate + 0.75 * b.estimate);
    let error = (0.25 * a.standard_error().unwrap()).hypot(0.75 * b.standard_error().unwrap());
    near(both.mean.standard_error().unwrap(), error);
    assert_eq!(both.mean.n, 60);
    assert_eq!(model.stratified(&[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(model.stratified(&parts[..1]), Err(Error::NotADistribution { argument: "shares", sum: 0.25 }));
    let zero = model.stratified(&[Stratum { share: 0.0, ..whole }]);
    assert!(matches!(zero, Err(Error::InRow { row: 0, .. })));
    let empty = model.stratified(&[parts[0], Stratum { labels: &[], predictions: &[], ..parts[1] }]);
    assert!(matches!(empty, Err(Error::InRow { row: 1, .. })));
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

/// Of 4,000 samples 95 % are covered to within a point and a half (four standard errors are 1.4 points): true share .3, sensitivity .9, specificity .8, and of clusters of four
/// 25 labelled questions beside 250 others.
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
    let of_clusters = (0..RUNS)
        .filter(|&run| {
            let mut draw = Draw::new(run);
            let (human, judge, groups) = questions(&mut draw, 100, 0);
            let (_, unlabelled, others) = questions(&mut draw, 1_000, 1_000);
            let model = PredictionPoweredMean::default();
            let found = model.clustered(&human, &judge, &groups, &unlabelled, &others).unwrap();
            let interval = found.mean.interval(0.95).unwrap();
            interval.low <= 3.0 && 3.0 <= interval.high
        })
        .count();
    for (name, covered) in [("share, 100", of_share(100)), ("share, 1000", of_share(1_000)), ("clusters", of_clusters)]
    {
        let share = covered as f64 / RUNS as f64;
        assert!((share - 0.95).abs() < 0.02, "{name}: {share}");
    }
}
