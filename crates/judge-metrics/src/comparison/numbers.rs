//! Scores as numbers: correlations with people's mean, errors in their unit, judge and people as two raters.
//!
//! Each statistic takes the uncertainty that suits the rows: a closed form where one is known and rows are independent, the bootstrap of rows where none is,
//! and the bootstrap of clusters wherever rows come in clusters. What else numbers define is called from here: within clusters (`within.rs`), as probabilities
//! (`probabilities.rs`), of two judges (`difference.rs`).

use super::collector::{Collector, OfSummary, PValue, take};
use super::difference::{self, DIFFERENCES};
use super::probabilities::{self, PROBABILITIES};
use super::within::{self, WITHIN};
use super::{ComparedItem, Labels, Rating, Reported};
use crate::agreement::{IntraclassCorrelations, Measurement, RatedUnits, krippendorff_alpha};
use crate::correlation::{
    KendallTest, PairCounts, SortedPairs, TauWeights, kendall_tau_b, kendall_tau_c, pearson, somers_d, spearman,
    weighted_tau,
};
use crate::prediction::{bias, mean_absolute_error, root_mean_squared_error};
use crate::resampling::RankedPair;
use crate::{Error, Estimate};

/// What only numbers define, in the order of the table.
pub(super) const OF_NUMBERS: [&str; 15] = [
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

/// All of it; of several raters the mean is compared.
pub(super) fn compare(found: &mut Collector<'_>, items: &[&ComparedItem], labels: Result<&Labels, &String>) {
    // All are numbers: none is lost.
    let predicted: Vec<f64> = items.iter().filter_map(|item| item.predicted.number()).collect();
    let human: Vec<f64> = items.iter().filter_map(|item| item.mean_human()).collect();
    correlations(found, &predicted, &human);
    errors(found, &predicted, &human);
    reliability(found, &predicted, &human, labels);
    within::compare(found, &predicted, &human);
    probabilities::compare(found, &predicted, &human);
    let second: Option<Vec<f64>> = items.iter().map(|item| item.second.as_ref()?.number()).collect();
    if let Some(second) = second {
        difference::compare(found, &human, &predicted, &second);
    }
}

/// The same for texts: nothing of it is defined.
pub(super) fn undefined(found: &mut Collector<'_>, items: &[&ComparedItem]) {
    let second = items.iter().any(|item| item.second.is_some());
    let clusters = found.has_clusters();
    let of_clusters = WITHIN.iter().filter(|_| clusters);
    let of_second = DIFFERENCES.iter().filter(|_| second);
    for name in OF_NUMBERS.iter().chain(of_clusters).chain(&PROBABILITIES).chain(of_second) {
        found.undefined(name, "scores are texts, not numbers");
    }
}

/// Pearson has a closed form. Rank correlations take the bootstrap, which holds with ties and near ±1 where their closed forms do not, and the p-values that
/// SciPy prints. Weighted tau has no population value that samples of different sizes share, and so no interval.
fn correlations(found: &mut Collector<'_>, predicted: &[f64], human: &[f64]) {
    let n = predicted.len();
    found.closed("pearson", |rows| pearson(&take(predicted, rows), &take(human, rows)), n);
    match (spearman(predicted, human), RankedPair::new(predicted, human)) {
        (Ok(rho), Ok(pair)) => found.resample(
            "spearman",
            rho.p_value().ok().map(|p| PValue::of_rows(p, "Student t")),
            |rows| pair.spearman(rows),
            n,
        ),
        (Err(error), _) | (_, Err(error)) => found.add("spearman", Err(error)),
    }
    type Rank = fn(&[f64], &[f64]) -> Result<Estimate, Error>;
    type OfPairs = fn(&PairCounts) -> f64;
    let ranks: [(&str, &'static str, Rank, OfPairs); 3] = [
        (
            "kendall_tau_b",
            "exact if small without ties, else normal",
            |x, y| kendall_tau_b(x, y, KendallTest::Auto),
            PairCounts::tau_b,
        ),
        (
            "kendall_tau_c",
            "exact if small without ties, else normal",
            |x, y| kendall_tau_c(x, y, KendallTest::Auto),
            PairCounts::tau_c,
        ),
        // Of people's scores given the judge's.
        ("somers_d", "normal", somers_d, PairCounts::somers_d_given_x),
    ];
    match SortedPairs::new(predicted, human) {
        Ok(sorted) => {
            let tested = ranks.map(|(name, source, statistic, of_pairs)| {
                let found =
                    found.wants(name).then(|| statistic(predicted, human).and_then(|found| found.p_value()).ok());
                let of_pairs = move |pairs: &PairCounts| pairs.check_varies().map(|()| of_pairs(pairs));
                let statistic: OfSummary<'_, PairCounts, f64> = (name, Box::new(of_pairs));
                (statistic, found.flatten().map(|p| PValue::of_rows(p, source)))
            });
            found.resample_together(|rows| sorted.counts(rows), tested.into(), n);
        }
        Err(error) => ranks.iter().for_each(|(name, ..)| found.add(name, Err(error.clone()))),
    }
    found.add(
        "weighted_tau",
        weighted_tau(predicted, human, TauWeights::Mean).map(|tau| Reported {
            estimate: tau.estimate,
            interval: None,
            p: None,
            method: "no interval: it has no value that samples of different sizes share".to_owned(),
        }),
    );
}

/// In the unit of the scores: mean absolute error, bias (judge less people) and root mean squared error.
fn errors(found: &mut Collector<'_>, predicted: &[f64], human: &[f64]) {
    type Mean = fn(&[f64], &[f64]) -> Result<Estimate, Error>;
    let means: [(&str, Mean); 2] = [("mae", mean_absolute_error), ("bias", bias)];
    for (name, statistic) in means {
        found.closed(name, |rows| statistic(&take(human, rows), &take(predicted, rows)), predicted.len());
    }
    let rmse = |rows: &[usize]| root_mean_squared_error(&take(human, rows), &take(predicted, rows));
    found.closed("rmse", rmse, predicted.len());
}

/// The judge as one rater and people as another.
fn reliability(found: &mut Collector<'_>, predicted: &[f64], human: &[f64], labels: Result<&Labels, &String>) {
    let nominal = labels.map_err(String::clone).and_then(|labels| {
        // Of several raters the mean, which may lie between two labels.
        let places = predicted.iter().chain(human).map(|&value| labels.place(&Rating::Number(value)));
        places.collect::<Result<Vec<_>, _>>().map(|_| ())
    });
    let both: Vec<[f64; 2]> = predicted.iter().zip(human).map(|(&p, &h)| [p, h]).collect();
    let ratings: Vec<[Option<f64>; 2]> = both.iter().map(|row| row.map(Some)).collect();
    alphas(found, "", &ratings, nominal.as_ref().err().map(String::as_str));
    intraclass(found, "", &both);
}

/// Krippendorff's alphas. The nominal one compares labels, and `not_labels` says why scores are none: hardly two continuous scores are the same label.
pub(super) fn alphas<R: AsRef<[Option<f64>]> + Sync>(
    found: &mut Collector<'_>,
    prefix: &str,
    ratings: &[R],
    not_labels: Option<&str>,
) {
    let units = RatedUnits::new(ratings);
    let kinds =
        [("nominal", Measurement::Nominal), ("ordinal", Measurement::Ordinal), ("interval", Measurement::Interval)];
    for (kind, measurement) in kinds {
        let name = format!("{prefix}krippendorff_alpha_{kind}");
        match (&units, not_labels) {
            (_, Some(reason)) if kind == "nominal" => found.undefined(&name, reason),
            // Copies of a row are no two units.
            (Ok(units), _) if found.has_clusters() => {
                found.resample(&name, None, |rows| units.alpha(rows, measurement), units.len());
            }
            (Ok(units), _) => found.closed(&name, |_| krippendorff_alpha(ratings, measurement), units.len()),
            (Err(error), _) => found.add(&name, Err(error.clone())),
        }
    }
}

type Form = fn(&IntraclassCorrelations) -> Result<Estimate, Error>;

pub(super) fn intraclass<R: AsRef<[f64]> + Clone + Sync>(found: &mut Collector<'_>, prefix: &str, ratings: &[R]) {
    let forms: [(&str, Form); 3] = [
        ("icc_1", IntraclassCorrelations::one_way),
        ("icc_a1", IntraclassCorrelations::agreement),
        ("icc_c1", IntraclassCorrelations::consistency),
    ];
    for (name, form) in forms {
        let of_rows = |rows: &[usize]| {
            let ratings: Vec<R> = rows.iter().map(|&row| ratings[row].clone()).collect();
            form(&IntraclassCorrelations::new(&ratings)?)
        };
        found.closed(&format!("{prefix}{name}"), of_rows, ratings.len());
    }
}
