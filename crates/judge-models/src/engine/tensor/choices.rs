//! Which rows each expert takes, from the weights that the router gives. Pure arithmetic on the host.

/// The choices of all rows.
pub(super) struct Choices {
    /// For each expert, the rows that chose it, ascending.
    pub(super) rows: Vec<Vec<i32>>,
    /// For the first choice of each row, the second and so on: where what its expert made lies, if what all experts made of their rows
    /// lies one below the other in their order; and where its weight is in `[rows * n_experts]`. A row without such a choice has the place
    /// behind all others, and any weight.
    pub(super) of_rows: Vec<(Vec<i32>, Vec<i32>)>,
}

impl Choices {
    /// From weights `[rows * n_experts]`: an expert is chosen where its weight is not 0.
    pub(super) fn of(weights: &[f32], n_experts: usize) -> Self {
        let count = weights.len() / n_experts.max(1);
        let mut rows = vec![Vec::new(); n_experts];
        for (row, weights) in weights.chunks_exact(n_experts.max(1)).enumerate() {
            for (expert, _) in weights.iter().enumerate().filter(|&(_, &weight)| weight != 0.0) {
                rows[expert].push(row as i32);
            }
        }
        let nowhere = rows.iter().map(Vec::len).sum::<usize>() as i32;
        let mut of_rows: Vec<(Vec<i32>, Vec<i32>)> = Vec::new();
        let mut choices = vec![0; count];
        let places =
            rows.iter().enumerate().flat_map(|(expert, rows)| rows.iter().map(move |&row| (row as usize, expert)));
        for (place, (row, expert)) in places.enumerate() {
            if choices[row] == of_rows.len() {
                of_rows.push((vec![nowhere; count], (0..count).map(|row| (row * n_experts) as i32).collect()));
            }
            let (at, weight) = &mut of_rows[choices[row]];
            (at[row], weight[row]) = (place as i32, (row * n_experts + expert) as i32);
            choices[row] += 1;
        }
        Self { rows, of_rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_has_its_row_once_and_a_weight_of_nan_is_one() {
        let weights = [0.0, 0.5, 0.5, /**/ 1.0, 0.0, 0.0, /**/ f32::NAN, f32::NAN, f32::NAN];
        let Choices { rows, of_rows } = Choices::of(&weights, 3);
        assert_eq!(rows, [vec![1, 2], vec![0, 2], vec![0, 2]]);
        // One below the other: rows 1, 2 of expert 0, rows 0, 2 of expert 1, rows 0, 2 of expert 2; behind them nothing.
        assert_eq!(of_rows[0], (vec![2, 0, 1], vec![1, 3, 6]));
        assert_eq!(of_rows[1], (vec![4, 6, 3], vec![2, 3, 7]));
        assert_eq!(of_rows[2], (vec![6, 6, 5], vec![0, 3, 8]));
        assert_eq!(of_rows.len(), 3);
        assert!(Choices::of(&[0.0, 0.0], 2).of_rows.is_empty());
    }
}
