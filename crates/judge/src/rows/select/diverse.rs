//! Which rows are chosen: the best that are unlike each other.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use anyhow::Result;
use judge_cli::choice::Choice;
use judge_data::StatesFile;
use judge_metrics::correlation::average_ranks;

/// States made comparable: each dimension with mean 0 and deviation 1 over all rows, each row with length 1. Without
/// that, the few dimensions in which the states of language models are large would decide alone.
pub struct Directions<'a> {
    states: &'a StatesFile,
    mean: Vec<f64>,
    inverse: Vec<f64>,
}

impl<'a> Directions<'a> {
    /// Of a file of one state per row. Reads it twice.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(states: &'a StatesFile) -> Result<Self> {
        let d_model = states.d_model();
        let (mut mean, mut inverse, mut n) = (vec![0.0; d_model], vec![0.0; d_model], 0.0);
        for state in states.iter() {
            let Some(state) = state? else { continue };
            n += 1.0;
            mean.iter_mut().zip(&state).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        mean.iter_mut().for_each(|sum| *sum /= f64::max(n, 1.0));
        for state in states.iter() {
            let Some(state) = state? else { continue };
            let squares = inverse.iter_mut().zip(&mean).zip(&state);
            squares.for_each(|((sum, mean), &x)| *sum += (f64::from(x) - mean).powi(2));
        }
        // A dimension that is the same in all rows says nothing.
        inverse.iter_mut().for_each(|sum| *sum = if *sum > 0.0 { (n / *sum).sqrt() } else { 0.0 });
        Ok(Self { states, mean, inverse })
    }

    /// The direction of a row; `None` if it has no state. Of a row in the very middle, zeros.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(&self, row: usize) -> Result<Option<Vec<f32>>> {
        let Some(state) = self.states.row(row)? else { return Ok(None) };
        let scaled = state.iter().zip(&self.mean).zip(&self.inverse);
        let scaled: Vec<f64> = scaled.map(|((&x, mean), inverse)| (f64::from(x) - mean) * inverse).collect();
        let length = scaled.iter().map(|x| x * x).sum::<f64>().sqrt();
        let by = if length > 0.0 { 1.0 / length } else { 0.0 };
        Ok(Some(scaled.iter().map(|x| (x * by) as f32).collect()))
    }
}

/// A row that was passed over beside a chosen one that it is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// The row.
    pub row: usize,
    /// The chosen row that is most like it.
    pub chosen: usize,
    /// The cosine between their directions.
    pub similarity: f64,
}

/// Rows that are good and unlike each other: one after the other, the row with the largest `(1 − weight) · rank + weight · distance`, where
/// `rank` is the share of rows with a smaller number (half of the equal ones included) and `distance` 1 less the cosine to the chosen row
/// that is most like it, at most 1 and for the first 1. Of equal ones the earlier row. `direction` gives the direction of a row, of length
/// 1 or 0; rows without a number or a direction are never chosen. `step` is told of each row that is chosen and may end the work.
///
/// A row's merit only falls as others are chosen, so a row is compared again only when its last known merit is the largest: the choice is
/// the one that comparing all would make. Memory is that of the directions of chosen rows, and some 40 bytes for each row. Returns the
/// choice and every row that is not chosen though its similarity to a chosen one is at least `near`, as far as they were compared.
///
/// # Errors
/// Of `direction`; if a number is not finite. `None` if `step` ended the work.
pub fn diverse(
    values: &[Option<f64>],
    wanted: usize,
    weight: f64,
    near: f64,
    mut direction: impl FnMut(usize) -> Result<Option<Vec<f32>>>,
    mut step: impl FnMut() -> ControlFlow<()>,
) -> Result<Option<(Choice, Vec<Near>)>> {
    let ranks = ranks(values)?;
    let merit = |row: usize, similarity: f64| (1.0 - weight) * ranks[row] + weight * (1.0 - similarity.max(0.0));
    let mut open: BinaryHeap<Open> = (0..values.len())
        .filter(|&row| values[row].is_some())
        .map(|row| Open { merit: merit(row, 0.0), row, compared: 0, nearest: None })
        .collect();
    let mut chosen: Vec<(usize, Vec<f32>)> = Vec::new();
    while chosen.len() < wanted
        && let Some(mut first) = open.pop()
    {
        let Some(state) = direction(first.row)? else { continue };
        if first.compared == chosen.len() {
            chosen.push((first.row, state));
            if step().is_break() {
                return Ok(None);
            }
            continue;
        }
        for (other, theirs) in &chosen[first.compared..] {
            let similarity = state.iter().zip(theirs).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            if first.nearest.is_none_or(|nearest| similarity > nearest.similarity) {
                first.nearest = Some(Near { row: first.row, chosen: *other, similarity });
            }
        }
        first.compared = chosen.len();
        first.merit = merit(first.row, first.nearest.map_or(0.0, |nearest| nearest.similarity));
        open.push(first);
    }
    let passed = open.into_iter().filter_map(|open| open.nearest).filter(|nearest| nearest.similarity >= near);
    let mut passed: Vec<Near> = passed.collect();
    passed.sort_by_key(|near| near.row);
    let rows: Vec<usize> = chosen.iter().map(|(row, _)| *row).collect();
    Ok(Some((Choice::of(values, &rows), passed)))
}

/// Of each row with a number, the share of such rows with a smaller one, half of the equal ones, itself included, added; in (0, 1).
fn ranks(values: &[Option<f64>]) -> Result<Vec<f64>> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let n = known.len() as f64;
    let mut ranks = average_ranks(&known)?.into_iter();
    let share = |value: &Option<f64>| value.and_then(|_| ranks.next()).map_or(0.0, |rank| (rank - 0.5) / n);
    Ok(values.iter().map(share).collect())
}

/// A row that is not chosen yet, with what is known of its merit, which is at most that.
struct Open {
    merit: f64,
    row: usize,
    /// How many of the chosen rows it was compared with.
    compared: usize,
    nearest: Option<Near>,
}

/// The largest merit first, then the earliest row.
impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.merit.total_cmp(&other.merit).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

#[cfg(test)]
mod tests {
    use judge_cli::choice::{best, rows_of_share};
    use proptest::prelude::*;

    use super::*;

    fn rows(choice: &Choice) -> Vec<usize> {
        choice.rows().collect()
    }

    fn direction(x: f32, y: f32) -> Vec<f32> {
        let length = (x * x + y * y).sqrt();
        vec![x / length, y / length]
    }

    #[test]
    fn a_copy_of_a_better_row_is_passed_over() {
        let values = [Some(9.0), Some(8.0), Some(7.0), Some(1.0), None];
        let states =
            [direction(1.0, 0.0), direction(1.0, 0.01), direction(0.0, 1.0), direction(-1.0, 0.0), direction(0.0, 1.0)];
        let choose = |weight| {
            let of = |row: usize| Ok(Some(states[row].clone()));
            diverse(&values, 2, weight, 0.95, of, || ControlFlow::Continue(())).unwrap().unwrap()
        };
        let (choice, near) = choose(0.5);
        assert_eq!(rows(&choice), [0, 2]);
        assert_eq!((near.len(), near[0].row, near[0].chosen), (1, 1, 0));
        assert!(near[0].similarity > 0.9999);
        // Without weight on distance it is the best share.
        assert_eq!(choose(0.0).0, best(&values, 2));
        let stopped = diverse(&values, 2, 0.5, 0.95, |row| Ok(Some(states[row].clone())), || ControlFlow::Break(()));
        assert!(stopped.unwrap().is_none());
    }

    proptest! {
        /// The rows are those that comparing every row with every chosen one finds.
        #[test]
        fn the_choice_is_that_of_comparing_all(
            rows in prop::collection::vec((prop::option::weighted(0.9, 0_i32..6), -1.0_f32..1.0, -1.0_f32..1.0), 1..25),
            share in 0.0_f64..1.0,
            weight in 0.0_f64..1.0,
        ) {
            let values: Vec<Option<f64>> = rows.iter().map(|row| row.0.map(f64::from)).collect();
            let states: Vec<Vec<f32>> = rows.iter().map(|row| direction(row.1 + 1e-3, row.2)).collect();
            let of = |row: usize| Ok(Some(states[row].clone()));
            let wanted = rows_of_share(rows.len(), share);
            let found = diverse(&values, wanted, weight, 2.0, of, || ControlFlow::Continue(()));
            let (choice, _) = found.unwrap().unwrap();

            let ranks = ranks(&values).unwrap();
            let mut chosen: Vec<usize> = Vec::new();
            while chosen.len() < wanted {
                let merit = |row: usize| {
                    let cosine = |other: &usize| -> f64 {
                        states[row].iter().zip(&states[*other]).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
                    };
                    (1.0 - weight) * ranks[row] + weight * (1.0 - chosen.iter().map(cosine).fold(0.0, f64::max))
                };
                let open = (0..rows.len()).filter(|row| values[*row].is_some() && !chosen.contains(row));
                let Some(first) = open.max_by(|&a, &b| merit(a).total_cmp(&merit(b)).then(b.cmp(&a))) else { break };
                chosen.push(first);
            }
            chosen.sort_unstable();
            prop_assert_eq!(choice.rows().collect::<Vec<_>>(), chosen);
        }
    }
}
