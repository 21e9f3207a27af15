//! Which of two judges agrees better with people: always the first less the second, on the same rows.
//!
//! Williams', Steiger's and Meng's tests are closed forms for Pearson's correlation of independent rows, and undefined where rows come in
//! clusters. Spearman's difference and that of the absolute errors are tested by exchanging the two judges within rows, or within whole
//! clusters, which holds for both kinds of rows. Ranks are exchanged for Spearman, because raw scores of two judges on different scales are
//! not exchangeable.

use super::Reported;
use super::collector::{Collector, take};
use super::statistic::PValue;
use crate::Error;
use crate::correlation::{DependentCorrelations, DifferenceTest, average_ranks, pearson};
use crate::estimate::UNBOUNDED;
use crate::prediction::mean_absolute_error;
use crate::resampling::RankedPair;

/// In the order of the table.
pub(super) const DIFFERENCES: [&str; 6] = [
    "difference_pearson",
    "difference_pearson_williams",
    "difference_pearson_steiger",
    "difference_pearson_meng",
    "difference_spearman",
    "difference_mae",
];

/// Adds the first judge less the second: of Pearson's correlation with the classical tests, of Spearman's, and of the mean absolute
/// error.
pub(super) fn compare(found: &mut Collector<'_>, people: &[f64], first: &[f64], second: &[f64]) {
    let n = people.len();
    type Test = fn(&DependentCorrelations) -> Result<DifferenceTest, Error>;
    let tests: [(&str, &'static str, Test); 3] = [
        ("difference_pearson_williams", "Zou; Williams", DependentCorrelations::williams),
        ("difference_pearson_steiger", "Zou; Steiger", DependentCorrelations::steiger),
        ("difference_pearson_meng", "Zou; Meng", DependentCorrelations::meng),
    ];
    let r = |judge: &[f64], rows: &[usize]| Ok::<_, Error>(pearson(&take(judge, rows), &take(people, rows))?.estimate);
    found.resample("difference_pearson", None, |rows| Ok(r(first, rows)? - r(second, rows)?), n);
    for (name, method, test) in tests {
        if found.has_clusters() {
            found.undefined(name, "rows come in clusters, and this test takes them as independent");
            continue;
        }
        let known = DependentCorrelations::of_columns(people, first, second).and_then(|both| {
            let interval = Some(both.zou_interval(found.level())?);
            Ok(Reported {
                estimate: both.difference(),
                interval,
                p: Some(test(&both)?.p_value),
                method: method.to_owned(),
            })
        });
        found.add(name, known);
    }
    match (RankedPair::new(first, people), RankedPair::new(second, people)) {
        (Ok(one), Ok(other)) => {
            let chance = found.starts("difference_spearman").then(|| by_ranks(found, people, first, second)).flatten();
            found.resample("difference_spearman", chance, |rows| Ok(one.spearman(rows)? - other.spearman(rows)?), n);
        }
        (Err(error), _) | (_, Err(error)) => found.add("difference_spearman", Err(error)),
    }
    let errors = |judge: &[f64]| -> Vec<f64> {
        judge.iter().zip(people).map(|(judge, people)| (judge - people).abs()).collect()
    };
    let (of_first, of_second) = (errors(first), errors(second));
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    if !found.starts("difference_mae") {
        return;
    }
    let chance = found.exchange(&of_first, &of_second, |x, y| Ok(mean(x) - mean(y)));
    let difference = |rows: &[usize]| {
        let people = take(people, rows);
        let error = |judge: &[f64]| Ok::<_, Error>(mean_absolute_error(&people, &take(judge, rows))?.estimate);
        Ok(error(first)? - error(second)?)
    };
    let gains: Vec<f64> = of_first.iter().zip(&of_second).map(|(first, second)| first - second).collect();
    if !found.mean_of_clusters("difference_mae", chance, &gains, UNBOUNDED) {
        found.resample("difference_mae", chance, difference, n);
    }
}

/// Each judge's ranks change places, since the judges' scales may differ.
fn by_ranks(found: &Collector<'_>, people: &[f64], first: &[f64], second: &[f64]) -> Option<PValue> {
    let [people, first, second] = [people, first, second].map(average_ranks);
    let (people, first, second) = (people.ok()?, first.ok()?, second.ok()?);
    let gain = |x: &[f64], y: &[f64]| Ok(pearson(&people, x)?.estimate - pearson(&people, y)?.estimate);
    found.exchange(&first, &second, gain)
}
