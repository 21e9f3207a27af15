//! Rows by what they belong to: a question, a person, a scenario.

use std::collections::BTreeMap;

/// Indices of the rows of each group, ascending; groups in their own order.
pub(crate) fn rows_by_group<G: Ord>(groups: &[G]) -> BTreeMap<&G, Vec<usize>> {
    let mut rows: BTreeMap<&G, Vec<usize>> = BTreeMap::new();
    for (row, group) in groups.iter().enumerate() {
        rows.entry(group).or_default().push(row);
    }
    rows
}

/// The same, groups in the order of their first rows.
pub(crate) fn clusters<G: Ord>(groups: &[G]) -> Vec<Vec<usize>> {
    let mut clusters: Vec<Vec<usize>> = rows_by_group(groups).into_values().collect();
    clusters.sort_unstable_by_key(|rows| rows[0]);
    clusters
}

/// What a column has in these rows.
pub(crate) fn take<T: Copy>(column: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| column[row]).collect()
}
