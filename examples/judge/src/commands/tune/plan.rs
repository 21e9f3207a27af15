//! Which examples make which step. It follows from sizes, settings and a seed alone, so a resumed run has the same.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The places of the examples of each step: in each epoch all of them once, in an order that is drawn by the seed and the epoch, in batches
/// of at most `size` examples, and of at most `tokens` tokens where there is a bound; a longer example is a batch of its own.
pub(crate) fn steps(sizes: &[usize], epochs: u32, size: usize, tokens: Option<usize>, seed: u64) -> Vec<Vec<usize>> {
    let mut steps = Vec::new();
    for epoch in 0..epochs {
        let mut batch: (Vec<usize>, usize) = (Vec::new(), 0);
        for place in order(sizes.len(), seed, epoch) {
            let is_full = batch.0.len() == size || tokens.is_some_and(|most| batch.1 + sizes[place] > most);
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
}
