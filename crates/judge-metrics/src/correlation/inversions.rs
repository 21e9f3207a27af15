//! Pairs that two orders see differently, counted or weighed while sorting by merging: O(n log n), where comparing all pairs takes n².

/// What is sorted.
pub(super) trait Weighed: Copy {
    /// Finite.
    fn value(&self) -> f64;

    /// A pair weighs as much as both.
    fn weight(&self) -> f64;
}

/// Merge sort by value, stable and bottom up, that sums the weights of the pairs standing in the wrong order (Knight, 1966; with weights,
/// Vigna, 2015).
pub(super) fn sort_weighing_inversions<T: Weighed>(rows: &mut Vec<T>) -> f64 {
    let n = rows.len();
    let mut merged = Vec::with_capacity(n);
    let mut inversions = 0.0;
    let mut width = 1;
    while width < n {
        for run in rows.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            let mut left_weight: f64 = left.iter().map(T::weight).sum();
            while let (Some((l, left_rest)), Some((r, right_rest))) = (left.split_first(), right.split_first()) {
                if l.value() <= r.value() {
                    merged.push(*l);
                    left_weight -= l.weight();
                    left = left_rest;
                } else {
                    merged.push(*r);
                    inversions += left_weight + r.weight() * left.len() as f64;
                    right = right_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(rows, &mut merged);
        merged.clear();
        width *= 2;
    }
    inversions
}
