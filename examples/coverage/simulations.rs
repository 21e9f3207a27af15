//! What is simulated: intervals on populations whose parameter is known.

use std::f64::consts::PI;

use judge_metrics::agreement::{
    AgreementWeights, ConfusionMatrix, IntraclassCorrelation, IntraclassCorrelations, Measurement, RatedUnits,
};
use judge_metrics::calibration::{CalibrationMethod, Calibrator, OrdinalConformal, SplitConformal};
use judge_metrics::correlation::{DependentCorrelations, KendallTest, kendall_tau_b, pearson, somers_d, spearman};
use judge_metrics::means::{PredictionPoweredMean, clustered_mean, corrected_proportion};
use judge_metrics::prediction::{auroc, mean_absolute_error};
use judge_metrics::preference::Preference;
use judge_metrics::ranking::{BradleyTerry, Comparison};
use judge_metrics::resampling::{Bootstrap, BootstrapMethod, RankedPair};
use judge_metrics::{Error, Interval, Proportion};

use crate::draw::Draw;
use crate::prediction_powered::prediction_powered;

pub const LEVEL: f64 = 0.95;

/// Says of one sample whether its interval holds the truth.
type Holds = dyn Fn(&mut Draw) -> Result<bool, Error> + Sync;

/// One interval on one kind of data.
pub struct Simulation {
    pub name: &'static str,
    pub n: usize,
    /// What the interval promises.
    pub nominal: &'static str,
    /// Whether the interval of one sample holds the truth.
    pub holds: Box<Holds>,
}

pub fn simulation(
    name: &'static str,
    n: usize,
    holds: impl Fn(&mut Draw, usize) -> Result<bool, Error> + Sync + 'static,
) -> Simulation {
    Simulation { name, n, nominal: "95 %", holds: Box::new(move |draw| holds(draw, n)) }
}

/// The same for intervals that promise no less, and may hold more often.
fn at_least(
    name: &'static str,
    n: usize,
    holds: impl Fn(&mut Draw, usize) -> Result<bool, Error> + Sync + 'static,
) -> Simulation {
    Simulation { nominal: "≥ 95 %", ..simulation(name, n, holds) }
}

pub fn holds(interval: Interval, truth: f64) -> bool {
    interval.low <= truth && truth <= interval.high
}

pub fn simulations() -> Vec<Simulation> {
    let mut all = Vec::new();
    for n in [10, 20, 50, 200] {
        all.extend(correlations(n));
    }
    for n in [20, 50, 200, 500] {
        all.extend(bootstraps(n));
    }
    for n in [20, 50, 200] {
        all.extend(proportions_and_means(n));
    }
    for n in [20, 100, 1_000] {
        all.extend(prediction_powered(n));
    }
    for n in [10, 20, 50, 200] {
        all.extend(raters(n));
    }
    for n in [20, 100, 500] {
        all.extend(conformal(n));
    }
    all
}

/// Spearman's and Kendall's correlation of a normal population whose Pearson correlation is ρ.
fn rank_truths(rho: f64) -> (f64, f64) {
    (6.0 / PI * (rho / 2.0).asin(), 2.0 / PI * rho.asin())
}

fn correlations(n: usize) -> Vec<Simulation> {
    const RHO: f64 = 0.6;
    let (rank, tau) = rank_truths(RHO);
    vec![
        simulation("Pearson, Fisher", n, |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(pearson(&x, &y)?.interval(LEVEL)?, RHO))
        }),
        simulation("Spearman, Bonett-Wright", n, move |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(spearman(&x, &y)?.interval(LEVEL)?, rank))
        }),
        simulation("Kendall, Fieller", n, move |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(kendall_tau_b(&x, &y, KendallTest::Asymptotic)?.interval(LEVEL)?, tau))
        }),
        simulation("Somers' D, Goodman-Kruskal", n, move |draw, n| {
            let (x, y) = draw.correlated(n, RHO);
            Ok(holds(somers_d(&x, &y)?.interval(LEVEL)?, tau))
        }),
        simulation("difference of dependent correlations, Zou", n, |draw, n| {
            // Two judges of .7 and .5 with people, who share nothing but them.
            let people: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
            let mut judge = |rho: f64| -> Vec<f64> {
                people.iter().map(|x| rho * x + (1.0 - rho * rho).sqrt() * draw.normal()).collect()
            };
            let (first, second) = (judge(0.7), judge(0.5));
            let both = DependentCorrelations::of_columns(&people, &first, &second)?;
            Ok(holds(both.zou_interval(LEVEL)?, 0.2))
        }),
    ]
}

fn bootstraps(n: usize) -> Vec<Simulation> {
    const RHO: f64 = 0.6;
    let (rank, _) = rank_truths(RHO);
    let settings = |method| Bootstrap { resamples: 1_000, level: LEVEL, seed: 0, method };
    let of_rank = move |method: BootstrapMethod| {
        move |draw: &mut Draw, n: usize| {
            let (x, y) = draw.correlated(n, RHO);
            let pair = RankedPair::new(&x, &y)?;
            Ok(holds(settings(method).interval(n, |rows| pair.spearman(rows))?.interval, rank))
        }
    };
    // A skewed population: the mean of a log-normal one.
    let of_mean = move |method: BootstrapMethod| {
        move |draw: &mut Draw, n: usize| {
            let x: Vec<f64> = (0..n).map(|_| (draw.normal() / 2.0).exp()).collect();
            let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| x[row]).sum::<f64>() / rows.len() as f64);
            Ok(holds(settings(method).interval(n, mean)?.interval, 0.125_f64.exp()))
        }
    };
    vec![
        simulation("Spearman, percentile bootstrap", n, of_rank(BootstrapMethod::Percentile)),
        simulation("Spearman, BCa bootstrap", n, of_rank(BootstrapMethod::BiasCorrectedAccelerated)),
        simulation("skewed mean, percentile bootstrap", n, of_mean(BootstrapMethod::Percentile)),
        simulation("skewed mean, BCa bootstrap", n, of_mean(BootstrapMethod::BiasCorrectedAccelerated)),
        simulation("Krippendorff's alpha of .6 (interval), bootstrap of units", n, move |draw, n| {
            // Of two columns of one mean and variance it is their correlation.
            let (x, y) = draw.correlated(n, RHO);
            let units = RatedUnits::new(&x.iter().zip(&y).map(|(&x, &y)| [Some(x), Some(y)]).collect::<Vec<_>>())?;
            let alpha = |rows: &[usize]| units.alpha(rows, Measurement::Interval);
            Ok(holds(settings(BootstrapMethod::Percentile).interval(n, alpha)?.interval, RHO))
        }),
        simulation("mean of n/4 questions of 4 answers, clustered bootstrap", n, move |draw, n| {
            let questions: Vec<usize> = (0..n).map(|row| row / 4).collect();
            let of_question: Vec<f64> = (0..n.div_ceil(4)).map(|_| draw.normal()).collect();
            let x: Vec<f64> = questions.iter().map(|&question| of_question[question] + draw.normal()).collect();
            let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| x[row]).sum::<f64>() / rows.len() as f64);
            Ok(holds(settings(BootstrapMethod::Percentile).clustered(&questions, mean)?.interval, 0.0))
        }),
        simulation("mean of n/4 questions of 4 answers, clustered standard error", n, |draw, n| {
            let questions: Vec<usize> = (0..n).map(|row| row / 4).collect();
            let of_question: Vec<f64> = (0..n.div_ceil(4)).map(|_| draw.normal()).collect();
            let x: Vec<f64> = questions.iter().map(|&question| of_question[question] + draw.normal()).collect();
            Ok(holds(clustered_mean(&x, &questions)?.interval(LEVEL)?, 0.0))
        }),
    ]
}

fn proportions_and_means(n: usize) -> Vec<Simulation> {
    let proportion = |draw: &mut Draw, n: usize| Proportion { count: (0..n).filter(|_| draw.chance(0.8)).count(), n };
    vec![
        simulation("accuracy of .8, Wilson", n, move |draw, n| Ok(holds(proportion(draw, n).wilson(LEVEL)?, 0.8))),
        at_least("accuracy of .8, Clopper-Pearson", n, move |draw, n| {
            Ok(holds(proportion(draw, n).clopper_pearson(LEVEL)?, 0.8))
        }),
        simulation("mean absolute error, Student t", n, |draw, n| {
            let (x, y) = draw.correlated(n, 0.5);
            // Differences are normal with variance 1: E|d| = sqrt(2 / pi).
            Ok(holds(mean_absolute_error(&y, &x)?.interval(LEVEL)?, (2.0 / PI).sqrt()))
        }),
        simulation("AUROC of .76, DeLong on the logit scale", n, |draw, n| {
            // Two normal populations one standard deviation apart: Phi(1 / sqrt 2).
            let outcomes: Vec<bool> = (0..n).map(|row| row % 2 == 0).collect();
            let scores: Vec<f64> = outcomes.iter().map(|&yes| f64::from(u8::from(yes)) + draw.normal()).collect();
            Ok(holds(auroc(&outcomes, &scores)?.interval(LEVEL)?, 0.760_249_938_906_523_4))
        }),
        simulation("mean from 1,000 judged and n labelled, prediction-powered", n, |draw, n| {
            let sample = |draw: &mut Draw, n: usize| draw.correlated(n, 0.8);
            let (labels, predictions) = sample(draw, n);
            let (_, unlabelled) = sample(draw, 1_000);
            let powered = PredictionPoweredMean::default().estimate(&labels, &predictions, &unlabelled)?;
            Ok(holds(powered.mean.interval(LEVEL)?, 0.0))
        }),
        simulation("share of .3 by a judge of .9 and .8, Lang-Reiczigel", n, |draw, n| {
            let mut verdict = |yes: bool| draw.chance(if yes { 0.9 } else { 0.2 });
            let labels: Vec<bool> = (0..n).map(|row| row % 2 == 0).collect();
            let verdicts: Vec<bool> = labels.iter().map(|&label| verdict(label)).collect();
            let truth: Vec<bool> = (0..1_000).map(|_| draw.chance(0.3)).collect();
            let unlabelled: Vec<bool> = truth.iter().map(|&yes| draw.chance(if yes { 0.9 } else { 0.2 })).collect();
            Ok(holds(corrected_proportion(&labels, &verdicts, &unlabelled)?.share.interval(LEVEL)?, 0.3))
        }),
    ]
}

fn raters(n: usize) -> Vec<Simulation> {
    type Form = fn(&IntraclassCorrelations) -> Result<IntraclassCorrelation, Error>;
    // Subjects of variance 4 rated by three raters with variance 1 of their own each time; the raters' levels have `spread`.
    let icc = |form: Form, spread: f64, truth: f64, mean: bool| {
        move |draw: &mut Draw, n: usize| {
            let levels: [f64; 3] = std::array::from_fn(|_| spread * draw.normal());
            let ratings: Vec<[f64; 3]> = (0..n)
                .map(|_| {
                    let subject = 2.0 * draw.normal();
                    levels.map(|level| subject + level + draw.normal())
                })
                .collect();
            let found = form(&IntraclassCorrelations::new(&ratings)?)?;
            let found = if mean { found.of_mean()? } else { found };
            Ok(holds(found.interval(LEVEL)?, truth))
        }
    };
    vec![
        simulation("ICC(1), 3 raters", n, icc(IntraclassCorrelations::one_way, 0.0, 0.8, false)),
        simulation("ICC(A,1), 3 raters", n, icc(IntraclassCorrelations::agreement, 0.5, 4.0 / 5.25, false)),
        simulation("ICC(C,1), 3 raters", n, icc(IntraclassCorrelations::consistency, 0.5, 0.8, false)),
        simulation("ICC(C,k), 3 raters", n, icc(IntraclassCorrelations::consistency, 0.5, 12.0 / 13.0, true)),
        simulation("Cohen's kappa of .55, large sample", n, |draw, n| {
            // Three labels as likely; the other rater says the same in 70 of 100, else either of the others.
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for _ in 0..n {
                let label = draw.category(&[1.0 / 3.0; 3]);
                let other = if draw.chance(0.7) { label } else { (label + 1 + usize::from(draw.chance(0.5))) % 3 };
                first.push(label);
                second.push(other);
            }
            let kappa =
                ConfusionMatrix::new(vec![0, 1, 2], &first, &second)?.cohen_kappa(&AgreementWeights::Identity)?;
            Ok(holds(kappa.interval(LEVEL)?, 0.55))
        }),
        simulation("difference of Bradley-Terry strengths, n games a pair", n, |draw, n| {
            const STRENGTHS: [f64; 4] = [0.6, 0.2, -0.2, -0.6];
            const NAMES: [&str; 4] = ["a", "b", "c", "d"];
            let mut games = Vec::new();
            for (i, j) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                for _ in 0..n {
                    let won = draw.chance(1.0 / (1.0 + (STRENGTHS[j] - STRENGTHS[i]).exp()));
                    let preference = if won { Preference::First } else { Preference::Second };
                    games.push(Comparison { items: [NAMES[i], NAMES[j]], preference });
                }
            }
            let fitted = BradleyTerry::default().fit(&games)?;
            Ok(holds(fitted.difference("a", "d")?.interval(LEVEL)?, 1.2))
        }),
    ]
}

/// Coverage of a new item's score, over calibration sets and items alike.
fn conformal(n: usize) -> Vec<Simulation> {
    const SCALE: usize = 5;
    let distribution = |quality: f64| -> Vec<f64> {
        let weights: Vec<f64> = (0..SCALE).map(|grade| (-(grade as f64 - quality).powi(2)).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    };
    vec![
        at_least("a new score, split conformal", n, |draw, n| {
            let (judge, human) = draw.correlated(n + 1, 0.7);
            let fitted = SplitConformal { level: LEVEL }.fit(&human[..n], &judge[..n])?;
            Ok(holds(fitted.interval(judge[n])?, human[n]))
        }),
        simulation("a new score, calibrated (isotonic)", n, |draw, n| {
            let (judge, human) = draw.correlated(n + 1, 0.7);
            let fitted = Calibrator { level: LEVEL, ..Calibrator::default() }.fit(&judge[..n], &human[..n])?;
            Ok(holds(fitted.calibrate(judge[n])?.interval, human[n]))
        }),
        simulation("a new grade, calibrated (ordinal)", n, |draw, n| {
            let (judge, human) = draw.correlated(n + 1, 0.7);
            let grades: Vec<f64> = human.iter().map(|human| (3.0 + human).round().clamp(1.0, 5.0)).collect();
            let settings = Calibrator { method: CalibrationMethod::Ordinal, level: LEVEL, ..Calibrator::default() };
            Ok(holds(settings.fit(&judge[..n], &grades[..n])?.calibrate(judge[n])?.interval, grades[n]))
        }),
        at_least("a new grade, ordinal conformal", n, move |draw, n| {
            let (mut rows, mut grades) = (Vec::new(), Vec::new());
            for _ in 0..=n {
                let quality = 4.0 * draw.uniform();
                // The judge is surer of itself than it should be.
                let seen = distribution(quality + 0.7 * draw.normal());
                grades.push(draw.category(&seen));
                rows.push(distribution(quality));
            }
            let fitted = OrdinalConformal { level: LEVEL }.fit(&grades[..n], &rows[..n])?;
            Ok(fitted.set(&rows[n])?.contains(grades[n]))
        }),
    ]
}
