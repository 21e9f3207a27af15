//! All statistics that a set of rows defines.

use anyhow::Result;
use judge_metrics::agreement::{IntraclassCorrelation, IntraclassCorrelations, Measurement, krippendorff_alpha};
use judge_metrics::calibration::{Binning, ReliabilityCurve};
use judge_metrics::correlation::{
    Correlation, KendallTest, TauWeights, fisher_interval, kendall_tau_b, kendall_tau_c, pearson, somers_d, spearman,
    weighted_tau,
};
use judge_metrics::prediction::{
    SampleMean, auroc, average_precision, bias, brier_score, log_loss, mean_absolute_error, root_mean_squared_error,
};
use judge_metrics::resampling::{Bootstrap, PermutationTest, RankedPair};
use judge_metrics::{Error, Interval};
use serde::Serialize;

use crate::compare::{DIFFERENCES, compare};
use crate::labels::{Labels, labels, raters};
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
    /// The labels of the whole file, or why scores are none.
    pub labels: Result<&'a Labels, &'a String>,
}

/// The source of a p-value that clusters do not spoil.
pub const PERMUTATION: &str = "permutation";

/// What only numbers define, in the order of the table.
const OF_NUMBERS: [&str; 15] = [
    "pearson",
    "spearman",
    "kendall_tau_b",
    "kendall_tau_c",
    "somers_d",
    "weighted_tau",
    "mae",
    "bias",
    "rmse",
    "krippendorff_alpha_nominal",
    "krippendorff_alpha_ordinal",
    "krippendorff_alpha_interval",
    "icc_1",
    "icc_a1",
    "icc_c1",
];

/// What only scores of yes or no define.
const PROBABILITIES: [&str; 6] = ["auroc", "average_precision", "brier", "log_loss", "ece", "ece_adaptive"];

/// The statistics of one set of rows, in the order of the table.
pub struct Found<'a> {
    bootstrap: Bootstrap,
    /// Which cluster each row belongs to, where clusters were named.
    pub clusters: Option<Vec<&'a str>>,
    pub outcomes: Vec<(String, Outcome)>,
}

/// What is known of a statistic besides its name.
pub struct Known {
    pub estimate: f64,
    pub interval: Option<Interval>,
    pub p: Option<f64>,
    pub method: String,
}

impl Found<'_> {
    pub fn add(&mut self, name: &str, known: Result<Known, Error>) {
        let outcome = match known {
            Ok(Known { estimate, interval, p, method }) => Outcome::Found {
                estimate,
                low: interval.map(|interval| interval.low),
                high: interval.map(|interval| interval.high),
                p,
                method,
            },
            Err(error) => Outcome::Undefined { undefined: error.to_string() },
        };
        self.outcomes.push((name.to_owned(), outcome));
    }

    pub fn level(&self) -> f64 {
        self.bootstrap.level
    }

    pub fn undefined(&mut self, name: &str, reason: String) {
        self.outcomes.push((name.to_owned(), Outcome::Undefined { undefined: reason }));
    }

    pub fn has_clusters(&self) -> bool {
        self.clusters.is_some()
    }

    /// The chance of a difference of two columns as large, if they change places within rows or within clusters.
    pub fn exchange(
        &self,
        x: &[f64],
        y: &[f64],
        statistic: impl Fn(&[f64], &[f64]) -> Result<f64, Error> + Sync,
    ) -> Result<f64, Error> {
        let test = PermutationTest { seed: self.bootstrap.seed, ..PermutationTest::default() };
        let result = match &self.clusters {
            Some(clusters) => test.clustered(x, y, clusters, statistic),
            None => test.paired(x, y, statistic),
        };
        Ok(result?.p_value)
    }

    /// By the bootstrap, of rows or of clusters. A p-value comes with its source; one that takes rows as independent is left out
    /// where they come in clusters.
    pub fn resample(
        &mut self,
        name: &str,
        p: Option<(f64, &'static str)>,
        statistic: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
        n: usize,
    ) {
        let (drawn, what) = match &self.clusters {
            Some(clusters) => (self.bootstrap.clustered(clusters, statistic), "bootstrap of clusters"),
            None => (self.bootstrap.interval(n, statistic), "bootstrap"),
        };
        let p = p.filter(|&(_, source)| !self.has_clusters() || source == PERMUTATION);
        let method = match p {
            Some((_, source)) => format!("{what}; p: {source}"),
            None => what.to_owned(),
        };
        let known = drawn.map(|drawn| Known {
            estimate: drawn.estimate,
            interval: Some(drawn.interval),
            p: p.map(|(p, _)| p),
            method: match drawn.undefined {
                0 => method,
                undefined => format!("{method}; undefined in {undefined} of {}", drawn.resamples),
            },
        });
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
            (Some(_), Ok(_)) => self.resample(name, None, statistic, n),
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
    } else {
        let second = rows.iter().any(|row| row.second.is_some());
        for name in OF_NUMBERS.iter().chain(&PROBABILITIES).chain(DIFFERENCES.iter().filter(|_| second)) {
            found.undefined(name, "scores are texts, not numbers".to_owned());
        }
    }
    labels(&mut found, &rows, settings.labels);
    raters(&mut found, &rows, pairs.numeric);
    Ok(found.outcomes)
}

fn correlations(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    let n = predicted.len();
    let known = pearson(predicted, human).and_then(|r| {
        let interval = fisher_interval(r.estimate, n, found.level())?;
        Ok(Known { estimate: r.estimate, interval: Some(interval), p: Some(r.p_value), method: "Fisher".to_owned() })
    });
    found.closed("pearson", known, |rows| Ok(pearson(&take(predicted, rows), &take(human, rows))?.estimate), n);
    match (spearman(predicted, human), RankedPair::new(predicted, human)) {
        (Ok(rho), Ok(pair)) => {
            found.resample("spearman", Some((rho.p_value, "Student t")), |rows| pair.spearman(rows), n)
        }
        (Err(error), _) | (_, Err(error)) => found.add("spearman", Err(error)),
    }
    type Rank = fn(&[f64], &[f64]) -> Result<Correlation, Error>;
    let ranks: [(&str, &'static str, Rank); 3] = [
        ("kendall_tau_b", "exact if small without ties, else normal", |x, y| kendall_tau_b(x, y, KendallTest::Auto)),
        ("kendall_tau_c", "exact if small without ties, else normal", |x, y| kendall_tau_c(x, y, KendallTest::Auto)),
        // Of people's scores given the judge's.
        ("somers_d", "normal", somers_d),
    ];
    for (name, source, statistic) in ranks {
        let p = statistic(predicted, human).ok().map(|found| (found.p_value, source));
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
    Known { estimate: mean.estimate, interval: mean.interval(level).ok(), p: None, method: "Student t".to_owned() }
}

/// The judge as one rater and people as another.
fn reliability(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    let kinds =
        [("nominal", Measurement::Nominal), ("ordinal", Measurement::Ordinal), ("interval", Measurement::Interval)];
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

pub fn intraclass<R: AsRef<[f64]> + Clone + Sync>(found: &mut Found<'_>, prefix: &str, ratings: &[R]) {
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
            method: "F".to_owned(),
        });
        let of_rows = |rows: &[usize]| {
            let ratings: Vec<R> = rows.iter().map(|&row| ratings[row].clone()).collect();
            Ok(form(&IntraclassCorrelations::new(&ratings)?)?.estimate)
        };
        found.closed(&format!("{prefix}{name}"), known, of_rows, ratings.len());
    }
}

/// Scores of what people say is 0 or 1: how well they order, and as probabilities if they lie in [0, 1].
fn probabilities(found: &mut Found<'_>, predicted: &[f64], human: &[f64]) {
    if !human.iter().all(|&human| human == 0.0 || human == 1.0) {
        let reason = "human scores are not all 0 or 1";
        return PROBABILITIES.iter().for_each(|name| found.undefined(name, reason.to_owned()));
    }
    let outcomes: Vec<bool> = human.iter().map(|&human| human == 1.0).collect();
    let (n, level) = (outcomes.len(), found.level());
    let on = |rows: &[usize]| (take(&outcomes, rows), take(predicted, rows));
    let [of_order, of_precision, of_brier, of_log_loss, of_ece, of_ece_adaptive] = PROBABILITIES;
    let known = auroc(&outcomes, predicted).map(|auroc| Known {
        estimate: auroc.estimate,
        interval: auroc.interval(level).ok(),
        p: None,
        method: "DeLong, logit".to_owned(),
    });
    let statistic = |rows: &[usize]| {
        let (y, p) = on(rows);
        Ok(auroc(&y, &p)?.estimate)
    };
    found.closed(of_order, known, statistic, n);
    let statistic = |rows: &[usize]| {
        let (y, p) = on(rows);
        average_precision(&y, &p)
    };
    found.resample(of_precision, None, statistic, n);

    let reason = match predicted.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(outside) => Some(format!("{outside} is no probability")),
        None if predicted.iter().all(|&p| p == 0.0 || p == 1.0) => {
            Some("predictions are all 0 or 1: decisions, not probabilities".to_owned())
        }
        None => None,
    };
    if let Some(reason) = reason {
        return PROBABILITIES[2..].iter().for_each(|name| found.undefined(name, reason.clone()));
    }
    let brier = |rows: &[usize]| {
        let (y, p) = on(rows);
        brier_score(&y, &p)
    };
    let known = brier(&(0..n).collect::<Vec<_>>()).map(|mean| mean_of(mean, level));
    found.closed(of_brier, known, |rows| Ok(brier(rows)?.estimate), n);
    const CLIP: f64 = 1e-15;
    let loss = |rows: &[usize]| {
        let (y, p) = on(rows);
        log_loss(&y, &p, CLIP)
    };
    let known = loss(&(0..n).collect::<Vec<_>>()).map(|mean| mean_of(mean, level));
    found.closed(of_log_loss, known, |rows| Ok(loss(rows)?.estimate), n);
    let binnings = [(of_ece, Binning::EqualWidth { bins: 10 }), (of_ece_adaptive, Binning::EqualMass { bins: 10 })];
    for (name, binning) in binnings {
        let ece = |rows: &[usize]| {
            let (y, p) = on(rows);
            Ok(ReliabilityCurve::new(&y, &p, binning)?.expected_calibration_error())
        };
        found.resample(name, None, ece, n);
    }
}
