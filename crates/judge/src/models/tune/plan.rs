//! Which examples make which step. It follows from sizes, settings and a seed alone, so a resumed run has the same.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How steps are made of examples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    /// How often each row is seen.
    pub(crate) epochs: u32,
    /// Examples of a step, at most.
    pub(crate) size: usize,
    /// Tokens of a step, at most, where there is a bound; a longer example is a step of its own.
    pub(crate) tokens: Option<usize>,
    /// Draws the order of each epoch, and which of two examples it has.
    pub(crate) seed: u64,
}

impl Batches {
    /// The places of the examples of each step, from the tokens of each example: in each epoch all of them once, in an order that is drawn
    /// by the seed and the epoch. With `pairs`, the ids of all examples, two neighbours are the two orders of a pair, and an epoch has one.
    pub(crate) fn steps(&self, sizes: &[usize], pairs: Option<&[String]>) -> Vec<Vec<usize>> {
        let mut steps = Vec::new();
        for epoch in 0..self.epochs {
            let mut batch: (Vec<usize>, usize) = (Vec::new(), 0);
            let rows = if pairs.is_some() { sizes.len() / 2 } else { sizes.len() };
            for row in order(rows, self.seed, epoch) {
                let of_pair = |ids: &[String]| 2 * row + usize::from(is_swapped(&ids[2 * row], self.seed, epoch));
                let place = pairs.map_or(row, of_pair);
                let is_full =
                    batch.0.len() == self.size || self.tokens.is_some_and(|most| batch.1 + sizes[place] > most);
                if is_full && !batch.0.is_empty() {
                    steps.push(std::mem::take(&mut batch).0);
                }
                batch.0.push(place);
                batch.1 += sizes[place];
            }
            if !batch.0.is_empty() {
                steps.push(batch.0);
            }
        }
        steps
    }
}

/// Whether an epoch has a pair in the other order: it follows from the pair's id, whatever other rows there are. Rows with `chosen` and
/// `rejected` are placed by a number that is drawn in the same way, so that of the same words here would undo it.
fn is_swapped(id: &str, seed: u64, epoch: u32) -> bool {
    !blake3::hash(format!("order of a pair\n{seed}\n{epoch}\n{id}").as_bytes()).as_bytes()[0].is_multiple_of(2)
}

/// The places below `n` in an order that is drawn (Fisher and Yates).
fn order(n: usize, seed: u64, epoch: u32) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(u64::from(epoch));
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        // The bias of a remainder is below 2^-32 for any number of rows that a file can have.
        let other = (random.next_u64() % (last as u64 + 1)) as usize;
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(sizes: &[usize], epochs: u32, size: usize, tokens: Option<usize>, seed: u64) -> Vec<Vec<usize>> {
        Batches { epochs, size, tokens, seed }.steps(sizes, None)
    }

    #[test]
    fn every_epoch_has_every_example_once_within_the_bounds() {
        let sizes: Vec<usize> = (0..37).map(|place| 10 + 7 * place % 40).collect();
        let found = steps(&sizes, 3, 4, Some(100), 5);
        let mut seen = vec![0; sizes.len()];
        for batch in &found {
            assert!(!batch.is_empty() && batch.len() <= 4);
            assert!(batch.len() == 1 || batch.iter().map(|&place| sizes[place]).sum::<usize>() <= 100);
            batch.iter().for_each(|&place| seen[place] += 1);
        }
        assert!(seen.iter().all(|&times| times == 3));
        assert_eq!(found, steps(&sizes, 3, 4, Some(100), 5));
        assert_ne!(found, steps(&sizes, 3, 4, Some(100), 6));
        let epochs = steps(&sizes, 2, 37, None, 0);
        assert!(epochs.len() == 2 && epochs[0] != epochs[1]);
        assert_eq!(steps(&[500, 1, 1], 1, 8, Some(100), 0).iter().filter(|batch| batch.len() == 1).count(), 1);
    }

    /// An order is a pair's own: it does not depend on other pairs, but on the seed and the epoch, and both come about equally often.
    #[test]
    fn each_epoch_draws_one_order_of_each_pair() {
        let ids: Vec<String> = (0..400).map(|place| (place / 2).to_string()).collect();
        let batches = Batches { epochs: 4, size: 7, tokens: None, seed: 3 };
        let of = |batches: Batches, ids: &[String]| {
            let places = batches.steps(&vec![1; ids.len()], Some(ids)).concat();
            let mut orders = vec![Vec::new(); ids.len() / 2];
            places.iter().for_each(|place| orders[place / 2].push(place % 2 == 1));
            orders
        };
        let all = of(batches, &ids);
        assert!(all.iter().all(|orders| orders.len() == 4));
        assert_eq!(of(batches, &ids[100..]), all[50..]);
        assert_ne!(of(Batches { seed: 4, ..batches }, &ids), all);
        for epoch in 0..4 {
            let swapped = all.iter().filter(|orders| orders[epoch]).count();
            assert!((70..130).contains(&swapped), "{swapped} of 200");
            assert!(epoch == 0 || all.iter().any(|orders| orders[epoch] != orders[0]));
        }
    }
}
