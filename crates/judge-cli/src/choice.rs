//! Which rows are chosen: the best by one number each.

use std::cmp::Ordering;

use crate::terminal::console::tell;

/// ⌊n · share⌋ rows, but at least one where there are any and the share is above 0. A product that falls short of a whole number by
/// rounding alone counts as that number: 0.29 of 100 are 29.
#[must_use]
pub fn rows_of_share(n: usize, share: f64) -> usize {
    let exact = n as f64 * share;
    let whole = (exact * (1.0 + 2.0 * f64::EPSILON)).floor() as usize;
    if exact > 0.0 { whole.max(1) } else { whole }
}

/// Says so where a share of so few rows is less than one of them.
pub fn tell_few(n: usize, share: f64) {
    let exact = n as f64 * share;
    if exact > 0.0 && exact < 1.0 {
        tell(format_args!("note: a share of {share} of {n} rows is less than one row; the best one is taken"));
    }
}

/// The rows that were chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Of each row, whether it is chosen.
    pub chosen: Vec<bool>,
    /// The smallest number among them; `None` for none.
    pub least: Option<f64>,
    /// Rows that have this number too and are not chosen.
    pub tied: usize,
}

impl Choice {
    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.chosen.iter().filter(|chosen| **chosen).count()
    }

    /// Their places, ascending.
    pub fn rows(&self) -> impl Iterator<Item = usize> {
        self.chosen.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(row, _)| row)
    }

    /// These rows, of those with these numbers.
    #[must_use]
    pub fn of(values: &[Option<f64>], rows: &[usize]) -> Self {
        let mut chosen = vec![false; values.len()];
        rows.iter().for_each(|&row| chosen[row] = true);
        let least = rows.iter().filter_map(|&row| values[row]).min_by(f64::total_cmp);
        let tied =
            values.iter().zip(&chosen).filter(|(value, chosen)| !**chosen && least.is_some() && **value == least);
        let tied = tied.count();
        Self { chosen, least, tied }
    }
}

/// The `wanted` rows with the largest numbers, or as many as have one. Of equal numbers, zeros of either sign among them, the earlier row
/// goes first; rows without a number are never chosen.
#[must_use]
pub fn best(values: &[Option<f64>], wanted: usize) -> Choice {
    let mut order: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_some()).collect();
    order.sort_by(|&a, &b| match (values[a], values[b]) {
        (Some(a), Some(b)) => (b + 0.0).total_cmp(&(a + 0.0)),
        _ => Ordering::Equal, // rows without a number are left out above
    });
    order.truncate(wanted);
    Choice::of(values, &order)
}

/// All rows whose number is at least this.
#[must_use]
pub fn reaching(values: &[Option<f64>], least: f64) -> Choice {
    let rows: Vec<usize> = (0..values.len()).filter(|&row| values[row].is_some_and(|value| value >= least)).collect();
    Choice::of(values, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(choice: &Choice) -> Vec<usize> {
        choice.rows().collect()
    }

    #[test]
    fn the_best_share_is_stable_and_leaves_out_what_has_no_number() {
        let values = [Some(2.0), None, Some(3.0), Some(2.0), Some(2.0), Some(1.0)];
        let half = best(&values, 3);
        assert_eq!((rows(&half), half.least, half.tied), (vec![0, 2, 3], Some(2.0), 1));
        assert_eq!(rows(&best(&values, 6)), [0, 2, 3, 4, 5]);
        assert_eq!(best(&values, 0), Choice { chosen: vec![false; 6], least: None, tied: 0 });
        assert_eq!(rows(&best(&[Some(-0.0), Some(0.0)], 1)), [0]);
        let from = reaching(&values, 2.0);
        assert_eq!((rows(&from), from.tied), (vec![0, 2, 3, 4], 0));
        let shares = [(100, 0.29), (10, 0.3), (3, 0.3), (3, 0.0), (0, 0.3)];
        assert_eq!(shares.map(|(n, share)| rows_of_share(n, share)), [29, 3, 1, 0, 0]);
    }
}
