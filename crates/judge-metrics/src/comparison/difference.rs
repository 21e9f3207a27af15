//! Which of two judges agrees better with people: always the first less the second, on the same rows.
//!
//! Williams', Steiger's and Meng's tests are closed forms for Pearson's correlation of independent rows, and undefined where rows come in
//! clusters. DeLong's is one for AUROC of independent rows, and Student's t one for Brier scores, of clusters too. Other differences are
//! tested by exchanging the two judges within rows, or within whole clusters, which holds for both kinds of rows. Ranks are exchanged where
//! only the order counts (Spearman, AUROC), because raw scores of two judges on different scales are not exchangeable.

use super::Reported;
use super::collector::{Collector, Items, of_both};
use super::probabilities::{why_no_outcomes, why_no_probabilities};
use super::rank_test::{ROUNDING, rounding_of};
use super::statistic::PValue;
use crate::Error;
use crate::agreement::{Measurement, RatedUnits};
use crate::correlation::{DependentCorrelations, DifferenceTest, average_ranks, pearson};
use crate::estimate::UNBOUNDED;
use crate::groups::take;
use crate::means::{largest, sample_mean};
use crate::prediction::{auroc, auroc_difference};
use crate::resampling::RankedPair;

/// In the order of the table.
pub(super) const DIFFERENCES: [&str; 11] = [
    "difference_pearson",
    "difference_pearson_williams",
    "difference_pearson_steiger",
    "difference_pearson_meng",
    "difference_spearman",
    "difference_mae",
    "difference_auroc",
    "difference_brier",
    ALPHAS[0].0,
    ALPHAS[1].0,
    ALPHAS[2].0,
];

const ALPHAS: [(&str, Measurement); 3] = [
    ("difference_krippendorff_alpha_nominal", Measurement::Nominal),
    ("difference_krippendorff_alpha_ordinal", Measurement::Ordinal),
    ("difference_krippendorff_alpha_interval", Measurement::Interval),
];

/// Adds the first judge less the second: of Pearson's correlation with the classical tests, of Spearman's, of the mean absolute error, and
/// of what measures probabilities.
pub(super) fn compare(found: &mut Collector<'_>, people: &[f64], first: &[f64], second: &[f64]) {
    let n = people.len();
    type Test = fn(&DependentCorrelations) -> Result<DifferenceTest, Error>;
    let tests: [(&str, &'static str, Test); 3] = [
        ("difference_pearson_williams", "Zou; Williams", DependentCorrelations::williams),
        ("difference_pearson_steiger", "Zou; Steiger", DependentCorrelations::steiger),
        ("difference_pearson_meng", "Zou; Meng", DependentCorrelations::meng),
    ];
    let r = |judge: &[f64], rows: &[usize]| Ok::<_, Error>(pearson(&take(judge, rows), &take(people, rows))?.estimate);
    let difference = |rows: &[usize]| Ok(less(r(first, rows)?, r(second, rows)?, ROUNDING));
    found.resample("difference_pearson", None, difference, n);
    for (name, method, test) in tests {
        if found.has_clusters() {
            found.undefined(name, "rows come in clusters, and this test takes them as independent");
            continue;
        }
        let known = DependentCorrelations::of_columns(people, first, second).and_then(|both| {
            let interval = Some(both.zou_interval(found.level())?);
            let p = Some(test(&both)?.p_value);
            Ok(Reported { interval, p, ..Reported::alone(both.difference(), method.to_owned()) })
        });
        found.add(name, known);
    }
    match (RankedPair::new(first, people), RankedPair::new(second, people)) {
        (Ok(one), Ok(other)) => {
            let chance = found.starts("difference_spearman").then(|| by_ranks(found, people, first, second)).flatten();
            let difference = |rows: &[usize]| Ok(less(one.spearman(rows)?, other.spearman(rows)?, ROUNDING));
            found.resample("difference_spearman", chance, difference, n);
        }
        (Err(error), _) | (_, Err(error)) => found.add("difference_spearman", Err(error)),
    }
    let errors = |judge: &[f64]| -> Vec<f64> {
        judge.iter().zip(people).map(|(judge, people)| (judge - people).abs()).collect()
    };
    let of_first = errors(first);
    // Errors that rounding alone parts are equal.
    let rounding = 4.0 * f64::EPSILON * [people, first, second].into_iter().map(largest).fold(0.0, f64::max);
    let like = |(&one, other): (&f64, f64)| if (one - other).abs() <= rounding { one } else { other };
    let of_second: Vec<f64> = of_first.iter().zip(errors(second)).map(like).collect();
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let starts = found.starts("difference_mae");
    // Differences first: a sum of them is rounded less than a sum of errors.
    let gain = |x: &[f64], y: &[f64]| Ok(x.iter().zip(y).map(|(x, y)| x - y).sum::<f64>() / x.len() as f64);
    let chance = starts.then(|| found.exchange(&of_first, &of_second, rounding, gain)).flatten();
    let difference = |rows: &[usize]| Ok(mean(&take(&of_first, rows)) - mean(&take(&of_second, rows)));
    let gains: Vec<f64> = of_first.iter().zip(&of_second).map(|(first, second)| first - second).collect();
    let gains = Items::differences(&gains, UNBOUNDED, chance).made_of(&[people, first, second]);
    if !found.mean_of_clusters("difference_mae", &gains) {
        found.resample("difference_mae", chance, difference, n);
    }
    of_probabilities(found, people, first, second);
}

/// Of the area under the curve, by DeLong's test or by ranks that change places in clusters, and of the Brier score, by Student's.
fn of_probabilities(found: &mut Collector<'_>, people: &[f64], first: &[f64], second: &[f64]) {
    const NAMES: [&str; 2] = ["difference_auroc", "difference_brier"];
    let [of_order, of_brier] = NAMES;
    if let Some(reason) = why_no_outcomes(people) {
        return found.all_undefined(&NAMES, reason);
    }
    let outcomes: Vec<bool> = people.iter().map(|&people| people == 1.0).collect();
    match [first, second].map(average_ranks) {
        [Ok(one), Ok(other)] if found.has_clusters() => {
            let (ranks, outcomes) = ([one, other].concat(), outcomes.repeat(2));
            let area = of_both(&outcomes, &ranks, |outcomes, ranks| Ok(auroc(outcomes, ranks)?.estimate));
            exchanged(found, of_order, &ranks, ROUNDING, area);
        }
        _ if found.starts(of_order) => {
            let known = auroc_difference(&outcomes, first, second).map(|area| Reported::new(&area, found.level()));
            found.add(of_order, known.map(|known| known.by("DeLong")));
        }
        _ => {}
    }
    if let Some(reason) = why_no_probabilities(first).or_else(|| why_no_probabilities(second)) {
        return found.undefined(of_brier, &reason);
    }
    let square = |judge: f64, people: f64| (judge - people).powi(2);
    let gains = people.iter().zip(first.iter().zip(second));
    let gains: Vec<f64> = gains.map(|(&people, (&one, &other))| square(one, people) - square(other, people)).collect();
    let range = [-1.0, 1.0];
    let items = Items::differences(&gains, range, None);
    found.mean(of_brier, &items, || Ok(sample_mean(&gains)?.within(range)));
}

/// Of Krippendorff's alphas between judge and people, nominal, ordinal and of intervals, but for those that have a reason. `ratings` has
/// what the first judge and people say of each row, then what the second judge and people say.
pub(super) fn of_alphas(found: &mut Collector<'_>, ratings: &[[Option<f64>; 2]], undefined: [Option<&str>; 3]) {
    let units = RatedUnits::new(ratings);
    let rounding = rounding_of(&ratings.iter().flatten().flatten().copied().collect::<Vec<_>>());
    for ((name, measurement), undefined) in ALPHAS.into_iter().zip(undefined) {
        match (&units, undefined) {
            (_, Some(reason)) => found.undefined(name, reason),
            (Ok(units), None) => {
                exchanged(found, name, ratings, rounding, |rows| units.alpha(rows, measurement));
            }
            (Err(error), None) => found.add(name, Err(error.clone())),
        }
    }
}

/// A difference of two judges, of what the first and then what the second says of each row: row i of the first is i, of the second n + i.
/// Resamples draw rows of both, and the test lets the judges change places. What is within `rounding` is equal.
pub(super) fn exchanged<T: PartialEq>(
    found: &mut Collector<'_>,
    name: &str,
    said: &[T],
    rounding: f64,
    of_judge: impl Fn(&[usize]) -> Result<f64, Error> + Sync,
) {
    if !found.starts(name) {
        return;
    }
    let n = said.len() / 2;
    let gain = |one: &[usize], other: &[usize]| Ok(less(of_judge(one)?, of_judge(other)?, rounding));
    let chance = found.exchange_rows(said, rounding, gain);
    let of_second = |rows: &[usize]| of_judge(&rows.iter().map(|row| n + row).collect::<Vec<_>>());
    found.resample(name, chance, |rows| Ok(less(of_judge(rows)?, of_second(rows)?, rounding)), n);
}

/// The difference of two coefficients on a scale that ends at 1; 0 where rounding alone parts them.
fn less(one: f64, other: f64, rounding: f64) -> f64 {
    if (one - other).abs() <= rounding { 0.0 } else { one - other }
}

/// Each judge's ranks change places, since the judges' scales may differ.
fn by_ranks(found: &Collector<'_>, people: &[f64], first: &[f64], second: &[f64]) -> Option<PValue> {
    // From the mean rank: sums of their products are whole multiples of a quarter, and so exact.
    let n = people.len() as f64;
    let ranks = |values: &[f64]| -> Option<Vec<f64>> {
        Some(average_ranks(values).ok()?.into_iter().map(|rank| rank - (n + 1.0) / 2.0).collect())
    };
    let (people, first, second) = (ranks(people)?, ranks(first)?, ranks(second)?);
    let of_people: f64 = people.iter().map(|rank| rank * rank).sum();
    let r = |judge: &[f64]| {
        let (mut sum, mut squares, mut products) = (0.0, 0.0, 0.0);
        for (&judge, people) in judge.iter().zip(&people) {
            sum += judge;
            squares += judge * judge;
            products += judge * people;
        }
        let spread = squares - sum * sum / n;
        if spread <= ROUNDING * squares {
            let reason = "all rows have the same rank";
            return Err(Error::Undefined { statistic: "Spearman's correlation", reason });
        }
        Ok(products / (spread * of_people).sqrt())
    };
    found.exchange(&first, &second, ROUNDING, |x, y| Ok(less(r(x)?, r(y)?, ROUNDING)))
}
