//! One statistic for each group of rows.

use std::collections::BTreeMap;

use crate::Error;

/// A statistic of each group by itself: `groups[i]` is the group of row i, and `statistic` is handed the rows of one
/// group in ascending order.
///
/// It takes the closure that [`Bootstrap::interval`](crate::resampling::Bootstrap::interval) takes. A group that does
/// not define the statistic has its own error and leaves the others alone.
///
/// ```
/// use judge_metrics::preference::{Preference::*, TwoOrder, Unparsed, by_group, two_order_agreement};
///
/// let scenario = ["code", "email", "code"];
/// let verdicts = [[First, First], [First, Second], [Tie, Second]].map(|[a, b]| TwoOrder::new(Some(a), Some(b)));
/// let gold = [First, First, Second];
/// let agreement = by_group(&scenario, |rows| {
///     let verdicts: Vec<_> = rows.iter().map(|&row| verdicts[row]).collect();
///     let gold: Vec<_> = rows.iter().map(|&row| gold[row]).collect();
///     two_order_agreement(&gold, &verdicts, Unparsed::Refused)?.both.estimate()
/// });
/// assert_eq!(agreement[&"code"], Ok(0.5));
/// assert_eq!(agreement[&"email"], Ok(0.0));
/// ```
pub fn by_group<G, T, S>(groups: &[G], mut statistic: S) -> BTreeMap<&G, Result<T, Error>>
where
    G: Ord,
    S: FnMut(&[usize]) -> Result<T, Error>,
{
    let mut rows: BTreeMap<&G, Vec<usize>> = BTreeMap::new();
    for (row, group) in groups.iter().enumerate() {
        rows.entry(group).or_default().push(row);
    }
    rows.into_iter().map(|(group, rows)| (group, statistic(&rows))).collect()
}
