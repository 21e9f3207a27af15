//! That intervals in closed form hold what they should: 400 samples of 100 items from populations whose parameter is known.

use judge_metrics::agreement::{Average, ConfusionMatrix, Measurement, RatingTable, ZeroDivision, krippendorff_alpha};
use judge_metrics::prediction::root_mean_squared_error;
use judge_metrics::{Error, Estimate};

use crate::draw::Draw;

const RUNS: u64 = 400;
const N: usize = 100;

impl Draw {
    /// `label` in a share of `right` of all cases, else either of the two others.
    fn repeated(&mut self, label: usize, right: f64) -> usize {
        let draw = self.uniform();
        if draw < right { label } else { (label + 1 + usize::from(draw < right.midpoint(1.0))) % 3 }
    }
}

/// The share of intervals that hold the truth lies within 4 points of 95 %, which is 3.7 standard errors.
#[track_caller]
fn covers(truth: f64, statistic: impl Fn(&mut Draw) -> Result<Estimate, Error>) {
    let covered = (0..RUNS)
        .filter(|&run| {
            let found = statistic(&mut Draw::new(run)).unwrap();
            let interval = found.interval(0.95).unwrap();
            interval.low <= truth && truth <= interval.high
        })
        .count();
    let share = covered as f64 / RUNS as f64;
    assert!((share - 0.95).abs() <= 0.04, "{share} hold {truth}");
}

/// Three labels as likely, and a second rater who gives the same one in 70 % of cases: .7 agree, ⅓ would by chance.
#[test]
fn krippendorffs_alpha_of_labels() {
    covers(0.55, |draw| {
        let ratings: Vec<[Option<f64>; 2]> = (0..N)
            .map(|_| {
                let label = draw.below(3);
                [label, draw.repeated(label, 0.7)].map(|label| Some(label as f64))
            })
            .collect();
        krippendorff_alpha(&ratings, Measurement::Nominal)
    });
}

/// Five grades of normal subjects by three raters with an error of .7 each, of which a fifth are missing. The truth is that of two million
/// such subjects.
#[test]
fn krippendorffs_alpha_of_grades_with_gaps() {
    covers(0.619, |draw| {
        let ratings: Vec<[Option<f64>; 3]> = (0..N)
            .map(|_| {
                let subject = draw.normal();
                std::array::from_fn(|_| {
                    let rating = subject + 0.7 * draw.normal();
                    let grade = [-1.2, -0.4, 0.4, 1.2].iter().filter(|&&cut| rating > cut).count();
                    (draw.uniform() > 0.2).then_some(grade as f64)
                })
            })
            .collect();
        krippendorff_alpha(&ratings, Measurement::Ordinal)
    });
}

/// Three raters who are each right in 80 % of cases: two agree in .8² + 2 · .1² of them, and in ⅓ by chance.
#[test]
fn fleiss_kappa() {
    covers(0.49, |draw| {
        let ratings: Vec<[Option<usize>; 3]> = (0..N)
            .map(|_| {
                let truth = draw.below(3);
                std::array::from_fn(|_| Some(draw.repeated(truth, 0.8)))
            })
            .collect();
        RatingTable::new(&[0, 1, 2], &ratings)?.fleiss_kappa()
    });
}

/// Three labels as likely, of which 70 % are found: so are recall, precision and F1 of each, and Matthews' correlation is that of alpha
/// above.
#[test]
fn scores_of_labels() {
    type Of = fn(&ConfusionMatrix<usize>) -> Result<Estimate, Error>;
    let statistics: [(f64, Of); 4] = [
        (0.55, ConfusionMatrix::matthews),
        (0.7, ConfusionMatrix::balanced_accuracy),
        (0.7, |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Undefined)?.f1)),
        (0.7, |matrix| Ok(matrix.average(Average::Weighted, ZeroDivision::Undefined)?.precision)),
    ];
    for (truth, statistic) in statistics {
        covers(truth, |draw| {
            let truth: Vec<usize> = (0..N).map(|_| draw.below(3)).collect();
            let predicted: Vec<usize> = truth.iter().map(|&label| draw.repeated(label, 0.7)).collect();
            statistic(&ConfusionMatrix::new(vec![0, 1, 2], &truth, &predicted)?)
        });
    }
}

/// Of standard normal differences it is 1.
#[test]
fn root_mean_squared_errors() {
    covers(1.0, |draw| {
        let differences: Vec<f64> = (0..N).map(|_| draw.normal()).collect();
        root_mean_squared_error(&[0.0; N], &differences)
    });
}
