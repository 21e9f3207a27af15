//! Scores as numbers: correlations with people's mean, errors in their unit, judge and people as two raters.
//!
//! Each statistic takes the uncertainty that suits the rows: a closed form where one is known and rows are independent, the bootstrap of
//! rows where none is, and the bootstrap of clusters wherever rows come in clusters. What else numbers define is called from here: within
//! clusters (`within.rs`), as probabilities (`probabilities.rs`), of two judges (`difference.rs`).

use super::collector::{Collector, Items, OfSummary, of_both};
use super::difference::{self, DIFFERENCES};
use super::probabilities::{self, PROBABILITIES};
use super::within::{self, WITHIN};
use super::{ComparedItem, Labels, Rating, Reported};
use crate::agreement::{
    IntraclassCorrelations, IntraclassForm, Measurement, MixedRatings, RatedSubjects, RatedUnits, krippendorff_alpha,
    two_raters_vary,
};
use crate::correlation::{PairCounts, SortedPairs, TauWeights, is_perfect, pearson, weighted_tau};
use crate::estimate::{NOT_NEGATIVE, UNBOUNDED};
use crate::prediction::{bias, mean_absolute_error, root_mean_squared_error};
use crate::resampling::RankedPair;
use crate::{Error, Estimate, Interval};

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
    errors(found, &predicted, &human, labels);
    reliability(found, &predicted, &human, labels);
    within::compare(found, &predicted, &human);
    probabilities::compare(found, &predicted, &human);
    let second: Option<Vec<f64>> = items.iter().map(|item| item.second.as_ref()?.number()).collect();
    if let Some(second) = second {
        difference::compare(found, &human, &predicted, &second);
        let of_second =
            |labels: &Labels| second.iter().find_map(|&value| labels.place_of_second(&Rating::Number(value)).err());
        let nominal =
            why_no_labels(labels, &[&predicted[..], &human].concat()).or_else(|| labels.ok().and_then(of_second));
        let ratings = [&predicted[..], &second].concat().into_iter().zip(human.repeat(2));
        let ratings: Vec<_> = ratings.map(|(judge, people)| [Some(judge), Some(people)]).collect();
        difference::of_alphas(found, &ratings, [nominal.as_deref(), None, None]);
    }
}

/// Why numbers are not all labels, if they are not: the mean of several raters may lie between two.
fn why_no_labels(labels: Result<&Labels, &String>, values: &[f64]) -> Option<String> {
    let places = |labels: &Labels| values.iter().find_map(|&value| labels.place(&Rating::Number(value)).err());
    labels.map_or_else(|reason| Some(reason.clone()), places)
}

/// The same for texts, of which only Krippendorff's alphas are defined: the nominal one, and the ordinal one of labels in an order. Several
/// raters count as the label that more than half of them gave.
pub(super) fn of_texts(found: &mut Collector<'_>, items: &[&ComparedItem], labels: Result<&Labels, &String>) {
    let second = items.iter().any(|item| item.second.is_some());
    let clusters = found.has_clusters();
    let of_clusters = WITHIN.iter().filter(|_| clusters);
    let of_second = DIFFERENCES.iter().filter(|_| second);
    for name in OF_NUMBERS.iter().chain(of_clusters).chain(&PROBABILITIES).chain(of_second) {
        match *name {
            "krippendorff_alpha_nominal" => {
                let both = |item: &&ComparedItem| [Some(item.predicted.clone()), item.majority().cloned()];
                alphas_of_texts(found, "", &items.iter().map(both).collect::<Vec<_>>(), labels);
            }
            "difference_krippendorff_alpha_nominal" => {
                let of = |judge: fn(&ComparedItem) -> Option<Rating>| {
                    items.iter().map(move |item| [judge(item), item.majority().cloned()])
                };
                let both: Vec<_> =
                    of(|item| Some(item.predicted.clone())).chain(of(|item| item.second.clone())).collect();
                let mut seconds = items.iter().filter_map(|item| item.second.as_ref());
                let of_second = labels
                    .map_or(Ok(()), |labels| seconds.try_for_each(|second| labels.place_of_second(second).map(drop)));
                match of_second.and_then(|()| placed(&both, labels)) {
                    Ok((ratings, undefined)) => {
                        let ratings: Vec<_> = ratings.iter().map(|row| [row[0], row[1]]).collect();
                        difference::of_alphas(found, &ratings, undefined);
                    }
                    Err(reason) => {
                        found.all_undefined(&DIFFERENCES[8..10], &reason);
                        found.undefined(DIFFERENCES[10], TEXTS);
                    }
                }
            }
            // With the nominal ones.
            name if name.contains("krippendorff") => {}
            name => found.undefined(name, TEXTS),
        }
    }
}

const TEXTS: &str = "scores are texts, not numbers";

/// What texts are worth as labels, and why the nominal, ordinal and interval alphas are undefined of them, where they are.
type PlacedTexts = (Vec<Vec<Option<f64>>>, [Option<&'static str>; 3]);

fn placed<R: AsRef<[Option<Rating>]>>(ratings: &[R], labels: Result<&Labels, &String>) -> Result<PlacedTexts, String> {
    let labels = labels.map_err(String::clone)?;
    let worth = |rating: &Rating| {
        let place = labels.place(rating)?;
        Ok::<_, String>(labels.values().map_or(place as f64, |values| values[place]))
    };
    let of_row = |row: &R| row.as_ref().iter().map(|rating| rating.as_ref().map(worth).transpose()).collect();
    let why = labels.values().is_none().then_some("the labels have no order: name them in theirs");
    Ok((ratings.iter().map(of_row).collect::<Result<_, _>>()?, [None, why, Some(TEXTS)]))
}

/// Krippendorff's alphas of texts.
pub(super) fn alphas_of_texts<R: AsRef<[Option<Rating>]>>(
    found: &mut Collector<'_>,
    prefix: &str,
    ratings: &[R],
    labels: Result<&Labels, &String>,
) {
    match placed(ratings, labels) {
        Ok((ratings, undefined)) => alphas(found, prefix, &ratings, undefined),
        Err(reason) => {
            for (kind, reason) in [("nominal", &*reason), ("ordinal", &*reason), ("interval", TEXTS)] {
                found.undefined(&format!("{prefix}krippendorff_alpha_{kind}"), reason);
            }
        }
    }
}

/// Pearson has a closed form. Rank correlations take the bootstrap, which holds with ties and near ±1 where their closed forms do not, and
/// the p-values of `rank_test.rs`. A perfect Pearson correlation takes that of Spearman's, since normal theory has none but 0. Weighted tau
/// has no population value that samples of different sizes share, and so no interval.
fn correlations(found: &mut Collector<'_>, predicted: &[f64], human: &[f64]) {
    let n = predicted.len();
    let r = pearson(predicted, human);
    let perfect = r.as_ref().is_ok_and(|r| is_perfect(r.estimate));
    let test_of_ranks = |found: &Collector<'_>| found.rank_test(|test| test.spearman(predicted, human));
    let of_perfect = if perfect { test_of_ranks(found) } else { None };
    if let (Ok(r), true, false) = (&r, perfect, found.has_clusters()) {
        found.add("pearson", Ok(Reported::new(r, found.level()).tested(of_perfect)));
    } else {
        found.closed("pearson", of_both(predicted, human, pearson), n);
    }
    let of_ranks = if found.starts("spearman") && !perfect { test_of_ranks(found) } else { of_perfect };
    match RankedPair::new(predicted, human) {
        Ok(pair) => found.resample("spearman", of_ranks, |rows| pair.spearman(rows), n),
        Err(error) => found.add("spearman", Err(error)),
    }
    type OfPairs = fn(&PairCounts) -> f64;
    let ranks: [(&str, OfPairs); 3] = [
        ("kendall_tau_b", PairCounts::tau_b),
        ("kendall_tau_c", PairCounts::tau_c),
        // Of the judge's scores given people's: of two rows that people tell apart. With people's 0 and 1 it is 2 AUROC − 1.
        ("somers_d", PairCounts::somers_d_given_y),
    ];
    // All three are C − D over what no arrangement changes, so that one test serves them.
    let tested = ranks.iter().any(|(name, _)| found.starts(name));
    let p = if tested { found.rank_test(|test| test.concordance(predicted, human)) } else { None };
    match SortedPairs::new(predicted, human) {
        Ok(sorted) => {
            let statistics = ranks.map(|(name, of_pairs)| {
                let of_pairs = move |pairs: &PairCounts| pairs.check_varies().map(|()| of_pairs(pairs));
                let statistic: OfSummary<'_, PairCounts, f64> = (name, Box::new(of_pairs));
                (statistic, p)
            });
            found.resample_together(|rows| sorted.counts(rows), statistics.into(), n);
        }
        Err(error) => ranks.iter().for_each(|(name, _)| found.add(name, Err(error.clone()))),
    }
    if found.starts("weighted_tau") {
        let why = "no interval: it has no value that samples of different sizes share";
        let tau = weighted_tau(predicted, human, TauWeights::Mean);
        found.add("weighted_tau", tau.map(|tau| Reported::alone(tau.estimate, why.to_owned())));
    }
}

/// In the unit of the scores: mean absolute error, bias (judge less people) and root mean squared error.
fn errors(found: &mut Collector<'_>, predicted: &[f64], human: &[f64], labels: Result<&Labels, &String>) {
    let errors: Vec<f64> = predicted.iter().zip(human).map(|(predicted, human)| predicted - human).collect();
    let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    let columns = [predicted, human];
    if labels.is_ok_and(Labels::are_decisions) && sizes.iter().all(|&size| size == 0.0 || size == 1.0) {
        found.share("mae", &sizes.iter().map(|&size| size == 1.0).collect::<Vec<_>>());
    } else {
        let sizes = Items::within(&sizes, NOT_NEGATIVE).made_of(&columns);
        found.mean("mae", &sizes, || mean_absolute_error(human, predicted));
    }
    let errors = Items::differences(&errors, UNBOUNDED, None).made_of(&columns);
    found.mean("bias", &errors, || bias(human, predicted));
    found.closed("rmse", of_both(human, predicted, root_mean_squared_error), predicted.len());
}

/// The judge as one rater and people as another.
fn reliability(found: &mut Collector<'_>, predicted: &[f64], human: &[f64], labels: Result<&Labels, &String>) {
    let nominal = why_no_labels(labels, &[predicted, human].concat());
    let both: Vec<[f64; 2]> = predicted.iter().zip(human).map(|(&p, &h)| [p, h]).collect();
    let ratings: Vec<[Option<f64>; 2]> = both.iter().map(|row| row.map(Some)).collect();
    alphas(found, "", &ratings, [nominal.as_deref(), None, None]);
    intraclass(found, "", &both);
}

/// Krippendorff's alphas: nominal, ordinal and of intervals, but for those that have a reason. The nominal one compares labels, and hardly
/// two continuous scores are the same label.
pub(super) fn alphas<R: AsRef<[Option<f64>]> + Sync>(
    found: &mut Collector<'_>,
    prefix: &str,
    ratings: &[R],
    undefined: [Option<&str>; 3],
) {
    let units = RatedUnits::new(ratings);
    let level = found.level();
    let kinds =
        [("nominal", Measurement::Nominal), ("ordinal", Measurement::Ordinal), ("interval", Measurement::Interval)];
    for ((kind, measurement), undefined) in kinds.into_iter().zip(undefined) {
        let name = format!("{prefix}krippendorff_alpha_{kind}");
        match (&units, undefined) {
            (_, Some(reason)) => found.undefined(&name, reason),
            // Copies of a row are no two units. What has no interval for independent rows has none for clusters.
            (Ok(units), None) if found.has_clusters() && two_raters_vary(ratings) => {
                found.resample(&name, None, |rows| units.alpha(rows, measurement), units.len());
            }
            (Ok(_), None) if found.starts(&name) => {
                found.add(&name, krippendorff_alpha(ratings, measurement).map(|alpha| Reported::new(&alpha, level)));
                found.retest(&name, |test| test.alpha(ratings, measurement));
            }
            (Ok(_), None) => {}
            (Err(error), None) => found.add(&name, Err(error.clone())),
        }
    }
}

/// The interval of agreement by profile likelihood: Satterthwaite's, in closed form, is far too narrow with many subjects.
fn profile_of_agreement<R: AsRef<[f64]>>(ratings: &[R], level: f64) -> Option<(Interval, &'static str)> {
    let given: Vec<Vec<Option<f64>>> =
        ratings.iter().map(|row| row.as_ref().iter().copied().map(Some).collect()).collect();
    let model = MixedRatings::new(&given).ok()?;
    let fitted = model.intraclass(IntraclassForm::Agreement, level).ok()?;
    Some((fitted.interval, "profile likelihood"))
}

type Form = fn(&IntraclassCorrelations) -> Result<Estimate, Error>;

pub(super) fn intraclass<R: AsRef<[f64]>>(found: &mut Collector<'_>, prefix: &str, ratings: &[R]) {
    let forms: [(&str, Form); 3] = [
        ("icc_1", IntraclassCorrelations::one_way),
        ("icc_a1", IntraclassCorrelations::agreement),
        ("icc_c1", IntraclassCorrelations::consistency),
    ];
    let names = forms.map(|(name, _)| format!("{prefix}{name}"));
    match RatedSubjects::new(ratings) {
        Ok(subjects) => {
            let statistics = names.iter().zip(forms).map(|(name, (_, form))| {
                let of_squares = move |squares: &Result<IntraclassCorrelations, Error>| {
                    form(squares.as_ref().map_err(Error::clone)?)
                };
                let statistic: OfSummary<'_, Result<IntraclassCorrelations, Error>, Estimate> =
                    (name, Box::new(of_squares));
                statistic
            });
            found.closed_together(|rows| subjects.squares(rows), statistics.collect(), ratings.len());
            let level = found.level();
            found.interval_of(&names[1], || profile_of_agreement(ratings, level));
        }
        Err(error) => names.iter().for_each(|name| found.add(name, Err(error.clone()))),
    }
}
