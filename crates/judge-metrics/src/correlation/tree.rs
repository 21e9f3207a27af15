//! Running sums of counts that grow one by one.

/// Counts of the numbers 1 to `size`, and their running sums in O(log size) (Fenwick, 1994).
pub(super) struct BinaryIndexedTree(Vec<i64>);

impl BinaryIndexedTree {
    pub(super) fn new(size: usize) -> Self {
        Self(vec![0; size + 1])
    }

    /// Adds a number, which is not 0, `times` over.
    pub(super) fn add(&mut self, mut number: usize, times: i64) {
        while let Some(node) = self.0.get_mut(number) {
            *node += times;
            number += number & number.wrapping_neg();
        }
    }

    /// How many numbers up to `number` were added.
    pub(super) fn count_to(&self, mut number: usize) -> i64 {
        let mut sum = 0;
        while number > 0 {
            sum += self.0[number];
            number &= number - 1;
        }
        sum
    }
}
