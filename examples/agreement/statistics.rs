//! All statistics that a set of rows defines.

use std::collections::BTreeSet;

use anyhow::Result;
use judge_metrics::agreement::{
    AgreementWeights, Average, ConfusionMatrix, IntraclassCorrelation, IntraclassCorrelations, Measurement,
    RatingTable, ZeroDivision, krippendorff_alpha,
};
use judge_metrics::bias::scale_use::ScaleUse;
use judge_metrics::calibration::{Binning, ReliabilityCurve};
use judge_metrics::correlation::{
    Correlation, KendallTest, TauWeights, fisher_interval, kendall_tau_b, kendall_tau_c, pearson, somers_d, spearman,
    weighted_tau,
};
use judge_metrics::prediction::{
    SampleMean, auroc, average_precision, bias, brier_score, log_loss, mean_absolute_error, root_mean_squared_error,
};
use judge_metrics::resampling::{Bootstrap, RankedPair};
use judge_metrics::{Error, Interval};
use serde::Serialize;

use crate::compare::compare;
use crate::pairs::{Pair, Pairs};

/// A statistic, or why there is none.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Found { estimate: f64, low: Option<f64>, high: Option<f64>, p: Option<f64>, method: String },
    Undefined { undefined: String },
}

pub struct Settings<'a> {
    pub bootstrap: Bootstrap,
    pub labels: Option<&'a [String]>,
}

/// Whole numbers are labels up to this many different ones.
const MAX_LABELS: usize = 20;

/// The statistics of one set of rows, in the order of the table.
pub struct Found<'a> {
    bootstrap: Bootstrap,
    /// Which cluster each row belongs to, where clusters were named.
    clusters: Option<Vec<&'a str>>,
    pub outcomes: Vec<(String, Outcome)>,
}

/// What is known of a statistic besides its name.
pub struct Known {
    pub estimate: f64,
    pub interval: Option<Interval>,
    pub p: Option<f64>,
    pub method: &'static str,
}

impl Found<'_> {
    pub fn add(&mut self, name: &str, known: Result<Known, Error>) {
        let outcome = match known {
            Ok(Known { estimate, interval, p, method }) => Outcome::Found {
                estimate,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                p,
                method: method.to_owned(),
            },
            Err(error) => Outcome::Undefined { undefined: error.to_string() },
        };
        self.outcomes.push((name.to_owned(), outcome));
    }

    pub fn level(&self) -> f64 {
        self.bootstrap.level
    }

    /// By the bootstrap, of rows or of clusters.
    pub fn resample(
        &mut self,
        name: &str,
        p: Option<f64>,
        statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
        n: usize,
    ) {
        let drawn = match &self.clusters {
            Some(clusters) => self.bootstrap.clustered(clusters, statistic),
            None => self.bootstrap.interval(n, statistic),
        };
        // P-values take rows as independent, which clusters are not.
        let (method, p) = if self.clusters.is_some() { ("bootstrap of clusters", None) } else { ("bootstrap", p) };
        let known = drawn.map(|drawn| Known { estimate: drawn.estimate, interval: Some(drawn.interval), p, method });
        self.add(name, known);
    }

    /// By a closed form, which holds for rows that are independent; by the bootstrap where they come in clusters.
    pub fn closed(
        &mut self,
        name: &str,
        known: Result<Known, Error>,
        statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
        n: usize,
    ) {
        match (&self.clusters, known) {
            (Some(_), Ok(known)) => self.resample(name, known.p, statistic, n),
            (_, known) => self.add(name, known),
        }
    }
}

fn take<T: Copy>(column: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| column[row]).collect()
}

pub fn statistics(pairs: &Pairs, rows: &[usize], settings: &Settings<'_>) -> Result<Vec<(String, Outcome)>> {
    let rows: Vec<&Pair> = rows.iter().map(|&row| &pairs.rows[row]).collect();
    let clusters: Option<Vec<&str>> = rows.iter().map(|row| row.cluster.as_deref()).collect();
    let mut found = Found { bootstrap: settings.bootstrap, clusters, outcomes: Vec::new() };
    if pairs.numeric {
        // All are numbers: none is lost.
        let predicted: Vec<f64> = rows.iter().filter_map(|row| row.predicted.number()).collect();
        let human: Vec<f64> = rows
            .iter()
            .map(|row| row.human.iter().filter_map(|score| score.number()).sum::<f64>() / row.human.len() as f64)
            .collect();
        correlations(&mut found, &predicted, &human);
        errors(&mut found, &predicted, &human);
        reliability(&mut found, &predicted, &human);
        probabilities(&mut found, &predicted, &human);
        let second: Option<Vec<f64>> = rows.iter().map(|row| row.second.as_ref()?.number()).collect();
        if let Some(second) = second {
            compare(&mut found, &human, &predicted, &second);
        }
    }
    labels(&mut found, &rows, settings);
    raters(&mut found, &rows, pairs.numeric);
    Ok(found.outcomes)
}

fn correlations(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    let n = predicted.len();
    let known = pearson(predicted, human).and_then(|r| {
        let interval = fisher_interval(r.estimate, n, found.level())?;
        Ok(Known { estimate: r.estimate, interval: Some(interval), p: Some(r.p_value), method: "Fisher" })
    });
    found.closed("pearson", known, |rows| Ok(pearson(&take(predicted, rows), &take(human, rows))?.estimate), n);
    match (spearman(predicted, human), RankedPair::new(predicted, human)) {
        (Ok(rho), Ok(pair)) => found.resample("spearman", Some(rho.p_value), |rows| pair.spearman(rows), n),
        (Err(error), _) | (_, Err(error)) => found.add("spearman", Err(error)),
    }
    type Rank = fn(&[f64], &[f64]) -> Result<Correlation, Error>;
    let ranks: [(&str, Rank); 3] = [
        ("kendall_tau_b", |x, y| kendall_tau_b(x, y, KendallTest::Auto)),
        ("kendall_tau_c", |x, y| kendall_tau_c(x, y, KendallTest::Auto)),
        // Of people's scores given the judge's.
        ("somers_d", somers_d),
    ];
    for (name, statistic) in ranks {
        let p = statistic(predicted, human).ok().map(|found| found.p_value);
        found.resample(name, p, |rows| Ok(statistic(&take(predicted, rows), &take(human, rows))?.estimate), n);
    }
    let weighted = |rows: &[usize]| weighted_tau(&take(predicted, rows), &take(human, rows), TauWeights::Mean);
    found.resample("weighted_tau", None, weighted, n);
}

fn errors(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    type Mean = fn(&[f64], &[f64]) -> Result<SampleMean, Error>;
    let means: [(&str, Mean); 2] = [("mae", mean_absolute_error), ("bias", bias)];
    for (name, statistic) in means {
        let known = statistic(predicted, human).map(|mean| mean_of(mean, found.level()));
        found.closed(
            name,
            known,
            |rows| Ok(statistic(&take(predicted, rows), &take(human, rows))?.estimate),
            predicted.len(),
        );
    }
    let rmse = |rows: &[usize]| root_mean_squared_error(&take(predicted, rows), &take(human, rows));
    found.resample("rmse", None, rmse, predicted.len());
}

fn mean_of(mean: SampleMean, level: f64) -> Known {
    Known { estimate: mean.estimate, interval: mean.interval(level).ok(), p: None, method: "Student t" }
}

/// The judge as one rater and people as another.
fn reliability(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    let kinds = [("ordinal", Measurement::Ordinal), ("interval", Measurement::Interval)];
    for (name, measurement) in kinds {
        let alpha = |rows: &[usize]| {
            let column = |column: &[f64]| rows.iter().map(|&row| Some(column[row])).collect::<Vec<_>>();
            krippendorff_alpha(&[column(predicted), column(human)], measurement)
        };
        found.resample(&format!("krippendorff_alpha_{name}"), None, alpha, predicted.len());
    }
    let both: Vec<[f64; 2]> = predicted.iter().zip(human).map(|(&p, &h)| [p, h]).collect();
    intraclass(found, "", &both);
}

type Form = fn(&IntraclassCorrelations) -> Result<IntraclassCorrelation, Error>;

fn intraclass<R: AsRef<[f64]> + Clone + Sync>(found: &mut Found<'_>, prefix: &str, ratings: &[R]) {
    let forms: [(&str, Form); 3] = [
        ("icc_1", IntraclassCorrelations::one_way),
        ("icc_a1", IntraclassCorrelations::agreement),
        ("icc_c1", IntraclassCorrelations::consistency),
    ];
    for (name, form) in forms {
        let known = IntraclassCorrelations::new(ratings).and_then(|squares| form(&squares)).map(|icc| Known {
            estimate: icc.estimate,
            interval: icc.interval(found.level()).ok(),
            p: icc.f_test().ok().map(|test| test.p_value),
            method: "F",
        });
        let of_rows = |rows: &[usize]| {
            let ratings: Vec<R> = rows.iter().map(|&row| ratings[row].clone()).collect();
            Ok(form(&IntraclassCorrelations::new(&ratings)?)?.estimate)
        };
        found.closed(&format!("{prefix}{name}"), known, of_rows, ratings.len());
    }
}

/// Predictions in [0, 1] of what is 0 or 1.
fn probabilities(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    let binary = human.iter().all(|&human| human == 0.0 || human == 1.0);
    let shares = predicted.iter().all(|p| (0.0..=1.0).contains(p)) && predicted.iter().any(|&p| p != 0.0 && p != 1.0);
    if !binary || !shares {
        return;
    }
    let outcomes: Vec<bool> = human.iter().map(|&human| human == 1.0).collect();
    let n = outcomes.len();
    let on = |rows: &[usize]| (take(&outcomes, rows), take(predicted, rows));
    let level = found.level();
    let known = brier_score(&outcomes, predicted).map(|mean| mean_of(mean, level));
    found.closed(
        "brier",
        known,
        |rows| {
            let (y, p) = on(rows);
            Ok(brier_score(&y, &p)?.estimate)
        },
        n,
    );
    const CLIP: f64 = 1e-15;
    let known = log_loss(&outcomes, predicted, CLIP).map(|mean| mean_of(mean, level));
    found.closed(
        "log_loss",
        known,
        |rows| {
            let (y, p) = on(rows);
            Ok(log_loss(&y, &p, CLIP)?.estimate)
        },
        n,
    );
    let known = auroc(&outcomes, predicted).map(|auroc| Known {
        estimate: auroc.estimate,
        interval: auroc.interval(level).ok(),
        p: None,
        method: "DeLong, logit",
    });
    found.closed(
        "auroc",
        known,
        |rows| {
            let (y, p) = on(rows);
            Ok(auroc(&y, &p)?.estimate)
        },
        n,
    );
    found.resample(
        "average_precision",
        None,
        |rows| {
            let (y, p) = on(rows);
            average_precision(&y, &p)
        },
        n,
    );
    let binnings = [("ece", Binning::EqualWidth { bins: 10 }), ("ece_adaptive", Binning::EqualMass { bins: 10 })];
    for (name, binning) in binnings {
        let ece = |rows: &[usize]| {
            let (y, p) = on(rows);
            Ok(ReliabilityCurve::new(&y, &p, binning)?.expected_calibration_error())
        };
        found.resample(name, None, ece, n);
    }
}

/// Where scores are labels: texts, whole numbers, or what `--labels` names. Of several raters the majority is right, and rows without
/// one are left out.
fn labels(found: &mut Found<'_>, rows: &[&Pair], settings: &Settings<'_>) {
    let mut kept = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let votes: Vec<String> = row.human.iter().map(|score| score.label()).collect();
        let count = |label: &String| votes.iter().filter(|vote| *vote == label).count();
        if let Some(majority) = votes.iter().find(|label| 2 * count(label) > votes.len()) {
            kept.push((index, majority.clone(), row.predicted.label()));
        }
    }
    let names: Vec<String> = match settings.labels {
        Some(labels) => labels.to_vec(),
        None => {
            let whole = |label: &String| label.parse::<f64>().map_or(true, |number| number.fract() == 0.0);
            let occurring: BTreeSet<String> =
                kept.iter().flat_map(|(_, human, predicted)| [human.clone(), predicted.clone()]).collect();
            if !occurring.iter().all(whole) || occurring.len() > MAX_LABELS {
                return;
            }
            let mut names: Vec<String> = occurring.into_iter().collect();
            let number = |label: &String| label.parse::<f64>().unwrap_or(f64::NAN);
            names.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
            names
        }
    };
    let truth: Vec<String> = kept.iter().map(|(_, human, _)| human.clone()).collect();
    let predicted: Vec<String> = kept.iter().map(|(.., predicted)| predicted.clone()).collect();
    let matrix = match ConfusionMatrix::new(names.clone(), &truth, &predicted) {
        Ok(matrix) => matrix,
        Err(error) => return found.add("accuracy", Err(error)),
    };
    let clusters = found.clusters.take();
    found.clusters = clusters.as_ref().map(|clusters| kept.iter().map(|&(index, ..)| clusters[index]).collect());
    let n = kept.len();
    let of_rows = |rows: &[usize]| {
        let pick = |column: &[String]| rows.iter().map(|&row| column[row].clone()).collect::<Vec<_>>();
        ConfusionMatrix::new(names.clone(), &pick(&truth), &pick(&predicted))
    };
    let level = found.level();
    let known = matrix.accuracy().estimate().and_then(|estimate| {
        Ok(Known { estimate, interval: Some(matrix.accuracy().wilson(level)?), p: None, method: "Wilson" })
    });
    found.closed("accuracy", known, |rows| of_rows(rows)?.accuracy().estimate(), n);
    type Of = fn(&ConfusionMatrix<String>) -> Result<f64, Error>;
    // A class that is never predicted has precision 0 here, as in scikit-learn.
    let averages: [(&str, Of); 5] = [
        ("precision_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.precision.unwrap_or(0.0))),
        ("recall_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.recall.unwrap_or(0.0))),
        ("f1_macro", |matrix| Ok(matrix.average(Average::Macro, ZeroDivision::Zero)?.f1.unwrap_or(0.0))),
        ("balanced_accuracy", ConfusionMatrix::balanced_accuracy),
        ("matthews", ConfusionMatrix::matthews),
    ];
    for (name, statistic) in averages {
        found.resample(name, None, |rows| statistic(&of_rows(rows)?), n);
    }
    // By value where labels are numbers, so that a grade that does not occur changes nothing.
    let values: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
    let mut kappas = vec![("cohen_kappa", AgreementWeights::Identity)];
    if let Some(values) = values {
        kappas.push(("cohen_kappa_linear", AgreementWeights::LinearOf(values.clone())));
        kappas.push(("cohen_kappa_quadratic", AgreementWeights::QuadraticOf(values)));
    }
    for (name, weights) in &kappas {
        let known = matrix.cohen_kappa(weights).and_then(|kappa| {
            let p = kappa.p_value().ok();
            Ok(Known { estimate: kappa.estimate, interval: Some(kappa.interval(level)?), p, method: "large sample" })
        });
        found.closed(name, known, |rows| Ok(of_rows(rows)?.cohen_kappa(weights)?.estimate), n);
    }
    let gwet = |rows: &[usize]| {
        let pick = |column: &[String]| rows.iter().map(|&row| Some(column[row].clone())).collect::<Vec<_>>();
        RatingTable::new(&names, &[pick(&truth), pick(&predicted)])?.gwet(&AgreementWeights::Identity)
    };
    let all: Vec<usize> = (0..n).collect();
    let known = gwet(&all).and_then(|ac1| {
        let p = ac1.p_value().ok();
        Ok(Known { estimate: ac1.estimate, interval: Some(ac1.interval(level)?), p, method: "Student t" })
    });
    found.closed("gwet_ac1", known, |rows| Ok(gwet(rows)?.estimate), n);
    let uses = ScaleUse::new(&names, &predicted);
    let share = |share: judge_metrics::preference::Proportion| {
        Ok(Known { estimate: share.estimate()?, interval: Some(share.wilson(level)?), p: None, method: "Wilson" })
    };
    found.add("predicted_mode_share", uses.clone().and_then(|uses| share(uses.mode_share())));
    found.add("predicted_ceiling", uses.clone().and_then(|uses| share(uses.ceiling())));
    found.add(
        "predicted_entropy_bits",
        uses.map(|uses| Known { estimate: uses.entropy_bits(), interval: None, p: None, method: "" }),
    );
    found.clusters = clusters;
}

/// People among themselves: the ceiling of any judge.
fn raters(found: &mut Found<'_>, rows: &[&Pair], numeric: bool) {
    let k = rows.iter().map(|row| row.human.len()).max().unwrap_or(0);
    if k < 2 {
        return;
    }
    let n = rows.len();
    if numeric {
        let kinds =
            [("nominal", Measurement::Nominal), ("ordinal", Measurement::Ordinal), ("interval", Measurement::Interval)];
        for (name, measurement) in kinds {
            let alpha = |drawn: &[usize]| {
                let rater = |rater: usize| -> Vec<Option<f64>> {
                    drawn.iter().map(|&row| rows[row].human.get(rater)?.number()).collect()
                };
                krippendorff_alpha(&(0..k).map(rater).collect::<Vec<_>>(), measurement)
            };
            found.resample(&format!("human_krippendorff_alpha_{name}"), None, alpha, n);
        }
        let complete: Option<Vec<Vec<f64>>> = rows
            .iter()
            .map(|row| (row.human.len() == k).then(|| row.human.iter().filter_map(|score| score.number()).collect()))
            .collect();
        if let Some(ratings) = complete {
            intraclass(found, "human_", &ratings);
        }
    } else {
        let names: BTreeSet<String> = rows.iter().flat_map(|row| &row.human).map(|score| score.label()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let fleiss = |drawn: &[usize]| {
            let rater = |rater: usize| -> Vec<Option<String>> {
                drawn.iter().map(|&row| rows[row].human.get(rater).map(|score| score.label())).collect()
            };
            Ok(RatingTable::new(&names, &(0..k).map(rater).collect::<Vec<_>>())?.fleiss_kappa()?.estimate)
        };
        found.resample("human_fleiss_kappa", None, fleiss, n);
    }
}
