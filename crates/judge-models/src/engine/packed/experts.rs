//! Which experts the rows of a pass go to, and which rows an expert gets.
//!
//! Owns routing: the choice from a router's logits, the weights, and the weighted sum at the end.
//! It does not own the products: `PackedOps::mix` (`block_ops.rs`) makes a [`Routes`], runs each
//! expert on the rows of its places, puts what it gives at the same places, and calls
//! [`Routes::sum`]. [`Routing`] says how a family routes.
//!
//! A place is a row and one of its experts, numbered `row * top_k + rank`, where rank 0 has the
//! highest logit. With two rows, three experts and `top_k` 2:
//!
//! ```text
//! logits    row 0: 2 5 3          row 1: 4 1 0
//! place     0      1              2      3
//! expert    1      2              0      1
//! places    of expert 0: [2]      of expert 1: [0, 3]      of expert 2: [1]
//! ```
//!
//! An expert's rows are multiplied together, which gives each row the bits that it has alone. What
//! a row gets of its experts waits until all are done, and is summed from the highest logit down.
//! So another row's choice changes neither the parts of a sum nor its order.

use judge_arch::{Routing, Scores};
use judge_kernels::exp::exp;
use judge_kernels::vector::{add_scaled, worth_a_task};
use rayon::prelude::*;

use super::delta::logistic;

/// The experts of some rows, `top_k` for each row.
pub(super) struct Routes {
    /// Experts of a row.
    top_k: usize,
    /// Weight of each place, `[rows * top_k]`.
    weights: Vec<f32>,
    /// `[n_experts]`: the places of each expert, ascending. Each place is in exactly one list.
    places: Vec<Vec<usize>>,
}

impl Routes {
    /// The choice that `routing` makes from `logits`, `[rows, n_experts]`, with `choice_bias`
    /// `[n_experts]` added for the choice alone. A row with a NaN among its logits gets NaN weights, so
    /// that its state becomes NaN and the reading is refused.
    pub(super) fn of(logits: &[f32], n_experts: usize, routing: Routing, choice_bias: Option<&[f32]>) -> Self {
        let mut weights = Vec::with_capacity(logits.len() / n_experts * routing.top_k);
        let mut places = vec![Vec::new(); n_experts];
        let mut chosen = Vec::with_capacity(routing.top_k);
        let mut scores = Vec::with_capacity(n_experts);
        for logits in logits.chunks_exact(n_experts) {
            scores.clear();
            match routing.scores {
                // The softmax grows with the logit.
                Scores::Softmax => scores.extend_from_slice(logits),
                Scores::Sigmoid { .. } => scores.extend(logits.iter().map(|&logit| logistic(logit))),
            }
            scores.iter_mut().zip(choice_bias.into_iter().flatten()).for_each(|(score, bias)| *score += bias);
            choose(&scores, routing.top_k, &mut chosen);
            for (rank, &expert) in chosen.iter().enumerate() {
                places[expert].push(weights.len() + rank);
            }
            match routing.scores {
                Scores::Softmax => weigh(logits, routing, &chosen, &mut weights),
                Scores::Sigmoid { factor, least } => {
                    weigh_sigmoids(logits, routing, [factor, least], &chosen, &mut weights)
                }
            }
        }
        Self { top_k: routing.top_k, weights, places }
    }

    /// Multiplies the weights of each expert by its factor in `factors`, `[n_experts]` (Gemma 4).
    pub(super) fn scale(&mut self, factors: &[f32]) {
        for (places, factor) in self.places.iter().zip(factors) {
            places.iter().for_each(|&place| self.weights[place] *= factor);
        }
    }

    /// The weighted sum of what each row gets of its experts: `parts` by place,
    /// `[rows * top_k, width]`, to `sums`, `[rows, width]`. Sums are f32, from the highest logit
    /// down.
    pub(super) fn sum(&self, parts: &[f32], width: usize, sums: &mut [f32]) {
        let wide = self.top_k * width;
        let rows = sums.par_chunks_exact_mut(width).zip(parts.par_chunks_exact(wide));
        let rows = rows.zip(self.weights.par_chunks_exact(self.top_k)).with_min_len(worth_a_task(wide));
        rows.for_each(|((sum, parts), weights)| {
            sum.fill(0.0);
            for (part, &weight) in parts.chunks_exact(width).zip(weights) {
                add_scaled(sum, part, weight);
            }
        });
    }

    /// The places of each expert, `[n_experts]`, ascending.
    pub(super) fn places(&self) -> &[Vec<usize>] {
        &self.places
    }
}

/// Sets `chosen` to the `top_k` experts with the highest scores, from the highest down. Of equal
/// scores the lower index comes first. A NaN is lower than everything else.
fn choose(logits: &[f32], top_k: usize, chosen: &mut Vec<usize>) {
    chosen.clear();
    for _ in 0..top_k {
        let left = logits.iter().enumerate().filter(|(expert, _)| !chosen.contains(expert));
        let best = left.reduce(|best, next| if *next.1 > *best.1 || best.1.is_nan() { next } else { best });
        chosen.extend(best.map(|(expert, _)| expert));
    }
}

/// Appends the weights of the chosen experts of one row, in their order: `exp(l_e - l_max)` over
/// the sum of that for the chosen experts or for all of them, as [`Routing::among_chosen`] says.
/// `chosen` must begin with the highest logit. All weights are NaN if any logit of the row is,
/// chosen or not.
fn weigh(logits: &[f32], routing: Routing, chosen: &[usize], weights: &mut Vec<f32>) {
    let Some(&first) = chosen.first() else { return };
    let share = |&expert: &usize| exp(logits[expert] - logits[first]);
    let all: f32 = (0..logits.len()).map(|expert| share(&expert)).sum();
    let total = match routing.among_chosen {
        true if all.is_nan() => f32::NAN,
        true => chosen.iter().map(share).sum(),
        false => all,
    };
    weights.extend(chosen.iter().map(|expert| share(expert) / total));
}

/// [`weigh`] for [`Scores::Sigmoid`], whose formula is there.
fn weigh_sigmoids(
    logits: &[f32],
    routing: Routing,
    [factor, least]: [f32; 2],
    chosen: &[usize],
    weights: &mut Vec<f32>,
) {
    let is_nan = logits.iter().any(|logit| logit.is_nan());
    let score = |&expert: &usize| if is_nan { f32::NAN } else { logistic(logits[expert]) };
    let total = if routing.among_chosen { chosen.iter().map(score).sum::<f32>() + least } else { 1.0 };
    weights.extend(chosen.iter().map(|expert| score(expert) / total * factor));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The routes of `logits`, `[rows, n_experts]`.
    fn routes(logits: &[f32], n_experts: usize, top_k: usize, among_chosen: bool) -> Routes {
        Routes::of(logits, n_experts, Routing { top_k, scores: Scores::Softmax, among_chosen }, None)
    }

    #[test]
    fn of_equal_logits_the_first_is_taken() {
        let found = routes(&[1.0, 3.0, 3.0, 3.0, 2.0, 2.0], 6, 4, false);
        assert_eq!(found.places(), [vec![], vec![0], vec![1], vec![2], vec![3], vec![]]);
        let zeros = routes(&[0.0, -0.0, 0.0], 3, 2, true);
        assert_eq!(zeros.places(), [vec![0], vec![1], vec![]]);
        assert_eq!(zeros.weights, [0.5, 0.5]);
    }

    #[test]
    fn a_nan_stays_visible_and_infinities_do_not_panic() {
        for among_chosen in [false, true] {
            for logits in [[f32::NAN, 1.0, 2.0, 3.0], [f32::NAN; 4], [f32::INFINITY, 1.0, f32::INFINITY, f32::NAN]] {
                let found = routes(&logits, 4, 2, among_chosen);
                assert_eq!(found.places().iter().map(Vec::len).sum::<usize>(), 2);
                assert!(found.weights.iter().all(|weight| weight.is_nan()), "{logits:?}");
            }
            let low = routes(&[f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY, 1.0], 4, 3, among_chosen);
            assert_eq!(low.weights, [0.5, 0.5, 0.0]);
        }
    }

    #[test]
    fn a_bias_changes_the_choice_and_no_weight() {
        let routing =
            |among_chosen| Routing { top_k: 2, scores: Scores::Sigmoid { factor: 2.0, least: 1e-6 }, among_chosen };
        let logits = [0.0, 3_f32.ln(), -(3_f32.ln())]; // sigmoids 1/2, 3/4, 1/4
        let found = Routes::of(&logits, 3, routing(false), Some(&[0.0, -1.0, 1.0]));
        assert_eq!(found.places(), [vec![1], vec![], vec![0]]);
        assert!((found.weights[0] - 0.5).abs() < 1e-6 && (found.weights[1] - 1.0).abs() < 1e-6);
        let found = Routes::of(&logits, 3, routing(true), None);
        assert_eq!(found.places(), [vec![1], vec![0], vec![]]);
        assert!((found.weights[0] - 1.2).abs() < 1e-5 && (found.weights[1] - 0.8).abs() < 1e-5);
        let found = Routes::of(&[0.0, f32::NAN, 1.0], 3, routing(false), Some(&[0.0; 3]));
        assert!(found.weights.iter().all(|weight| weight.is_nan()));
    }

    proptest! {
        #[test]
        fn weights_are_those_of_a_softmax_and_a_row_s_own(
            rows in 1_usize..6,
            top_k in 1_usize..5,
            numbers in prop::collection::vec(-20.0_f32..20.0, 5 * 7),
            among_chosen in any::<bool>(),
        ) {
            let logits = &numbers[..rows * 7];
            let found = routes(logits, 7, top_k, among_chosen);
            prop_assert_eq!(found.weights.len(), rows * top_k);
            for (row, logits) in logits.chunks_exact(7).enumerate() {
                let alone = routes(logits, 7, top_k, among_chosen);
                let place = row * top_k..(row + 1) * top_k;
                prop_assert_eq!(&alone.weights, &found.weights[place.clone()]);
                let mut sorted = logits.to_vec();
                sorted.sort_by(|a, b| b.total_cmp(a));
                let total: f64 = sorted[..if among_chosen { top_k } else { 7 }].iter().map(|&x| f64::from(x).exp()).sum();
                for (rank, place) in place.enumerate() {
                    let expert = found.places().iter().position(|places| places.contains(&place)).unwrap();
                    prop_assert_eq!(logits[expert], sorted[rank]);
                    let expected = f64::from(sorted[rank]).exp() / total;
                    prop_assert!((f64::from(found.weights[place]) - expected).abs() < 1e-6);
                }
            }
        }
    }
}
