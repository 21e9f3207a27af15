//! As many rows of each score, drawn as CPython draws. What the draws are used for is up to the caller.

use crate::Error;
use crate::numpy::python_random::PythonRandom;

/// Draws equally many rows of each score, so that a probe does not learn how frequent the scores are.
///
/// The draws are those of CPython: after `random.seed(seed)`, scores in the order of their first rows,
/// `random.sample(rows_of_score, per_score)` for each. The same seed therefore draws the probing sets that INSPECTOR published
/// (seed 731, anew for each aspect) from the same records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BalancedSample {
    /// Rows of each score; `None` for as many as the rarest has.
    pub per_score: Option<usize>,
    /// Chooses them.
    pub seed: u64,
}

impl BalancedSample {
    /// Positions of the rows drawn, in the order drawn: one score after another. Without rows there is nothing to draw.
    ///
    /// # Errors
    ///
    /// [`Error::SmallClass`] for a score with fewer rows than asked for.
    ///
    /// ```
    /// use judge_probe::BalancedSample;
    ///
    /// let scores = [5, 5, 1, 3, 5, 1, 3, 5];
    /// let mut rows = BalancedSample { seed: 731, ..BalancedSample::default() }.draw(&scores)?;
    /// rows.sort_unstable();
    /// assert_eq!(rows, [0, 2, 3, 4, 5, 6]);
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn draw(&self, scores: &[i64]) -> Result<Vec<usize>, Error> {
        let mut buckets: Vec<(i64, Vec<usize>)> = Vec::new();
        for (row, &score) in scores.iter().enumerate() {
            // A scale has few scores: a search beats a map that would have to remember the order.
            match buckets.iter_mut().find(|(known, _)| *known == score) {
                Some((_, rows)) => rows.push(row),
                None => buckets.push((score, vec![row])),
            }
        }
        let rarest = buckets.iter().map(|(_, rows)| rows.len()).min().unwrap_or(0);
        let per_score = self.per_score.unwrap_or(rarest);
        if let Some((class, rows)) = buckets.iter().find(|(_, rows)| rows.len() < per_score) {
            return Err(Error::SmallClass { class: *class, n_rows: rows.len(), required: per_score });
        }
        let mut random = PythonRandom::new(self.seed);
        let draw = |(_, rows): (i64, Vec<usize>)| -> Vec<usize> {
            random.sample(rows.len(), per_score).into_iter().map(|place| rows[place]).collect()
        };
        Ok(buckets.into_iter().flat_map(draw).collect())
    }
}
