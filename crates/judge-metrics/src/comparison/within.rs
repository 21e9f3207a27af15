//! Scores within clusters, such as the answers to one question: differences between questions count for nothing.
//!
//! A correlation of all rows rewards a judge that merely knows which questions are hard. Both statistics here ask whether it orders the
//! answers to the same question as people do. Clusters weigh alike, whatever their size, and those too small or too even to define the
//! statistic are counted in the method's text.

use super::Reported;
use super::collector::Collector;
use crate::correlation::{grouped_correlation, pairwise_accuracy, spearman};
use crate::groups::rows_by_group;
use crate::{Error, Estimate};

/// Pairs are held in memory, 24 bytes each: of a few clusters of many rows there would be gigabytes.
const MOST_PAIRS: usize = 20_000_000;

/// What clusters define.
pub(super) const WITHIN: [&str; 2] = ["spearman_within_clusters", "pairwise_accuracy"];

/// The mean over clusters of the rank correlation within each, and the pairwise accuracy with ties calibrated. Clusters are the draws of
/// both intervals.
pub(super) fn compare(found: &mut Collector<'_>, predicted: &[f64], human: &[f64]) {
    // Without clusters there is nothing within them, and no name is reported.
    let Some(clusters) = found.clusters().map(<[&str]>::to_vec) else { return };
    let level = found.level();
    let reported = |estimate: Result<Estimate, Error>, more: String| {
        let mut known = Reported::new(&estimate?, level);
        known.method += &format!(" over clusters{more}");
        // That of no correlation is asked of the other statistics; here it would be one of the mean.
        known.p = None;
        Ok(known)
    };
    let [of_ranks, of_pairs] = WITHIN;
    if found.starts(of_ranks) {
        let within = grouped_correlation(human, predicted, &clusters, spearman);
        let undefined = within.as_ref().map_or(0, |within| within.undefined);
        let more = if undefined == 0 { String::new() } else { format!("; undefined in {undefined} more") };
        found.add(of_ranks, reported(within.map(|within| within.mean), more));
    }
    let n_pairs = |rows: &Vec<usize>| rows.len() * (rows.len() - 1) / 2;
    if rows_by_group(&clusters).values().map(n_pairs).sum::<usize>() > MOST_PAIRS {
        found.undefined(of_pairs, "clusters are too large: there are more than 20,000,000 pairs within them");
    } else if found.starts(of_pairs) {
        let pairs = pairwise_accuracy(human, predicted, &clusters);
        let more = pairs.as_ref().map_or_else(
            |_| String::new(),
            |pairs| {
                format!(
                    "; {} pairs, scores up to {} apart are ties",
                    pairs.n_pairs,
                    crate::number::six_digits(pairs.threshold)
                )
            },
        );
        found.add(of_pairs, reported(pairs.map(|pairs| pairs.accuracy), more));
    }
}
