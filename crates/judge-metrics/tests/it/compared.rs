//! Comparisons of a judge's ratings with people's.

use judge_metrics::comparison::{ComparedItem, Comparison, ComparisonSettings, Comparisons, Rating};
use judge_metrics::resampling::Bootstrap;

/// Rows that one person graded.
pub(crate) fn rows(judge: &[f64], people: &[f64]) -> Vec<ComparedItem> {
    let row = |(&judge, &people): (&f64, &f64)| ComparedItem::new(Rating::Number(judge), [Rating::Number(people)]);
    judge.iter().zip(people).map(row).collect()
}

/// The statistics of all rows, with intervals of so many resamples.
pub(crate) fn compared(items: Vec<ComparedItem>, resamples: usize, labels: Option<&[&str]>) -> Comparisons {
    let all: Vec<usize> = (0..items.len()).collect();
    let bootstrap = Bootstrap { resamples, ..Bootstrap::default() };
    let labels = labels.map(|labels| labels.iter().map(|&label| label.to_owned()).collect());
    let settings = ComparisonSettings { bootstrap, labels, ..ComparisonSettings::default() };
    Comparison::new(items, settings).unwrap().statistics(&all)
}
