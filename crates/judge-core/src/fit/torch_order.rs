use crate::mersenne_twister::MersenneTwister;

/// The orders in which `DataLoader(shuffle=True)` visits its items after `torch.manual_seed(seed)`, epoch after epoch.
///
/// Per epoch PyTorch's CPU generator, a Mersenne Twister (MT19937, Matsumoto and Nishimura 1998), gives two 63-bit numbers: the loader's
/// base seed, which only matters to worker processes, and the sampler's seed, whose low 32 bits start the generator of the permutation.
pub(super) struct TorchOrder {
    generator: MersenneTwister,
}

impl TorchOrder {
    pub(super) fn new(seed: u64) -> Self {
        Self { generator: MersenneTwister::from_seed(seed as u32) } // PyTorch, too, keeps the low 32 bits
    }

    /// A permutation of `0..n`.
    pub(super) fn next_epoch(&mut self, n: usize) -> Vec<usize> {
        let _base_seed = next_u64(&mut self.generator);
        let mut generator = MersenneTwister::from_seed(next_u64(&mut self.generator) as u32);
        let mut order: Vec<usize> = (0..n).collect();
        for i in 0..n.saturating_sub(1) {
            order.swap(i, i + generator.next_u32() as usize % (n - i));
        }
        order
    }
}

/// High word first.
fn next_u64(words: &mut MersenneTwister) -> u64 {
    let high = u64::from(words.next_u32());
    high << 32 | u64::from(words.next_u32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lists_have_an_order() {
        let mut order = TorchOrder::new(7);
        assert_eq!(order.next_epoch(0), Vec::<usize>::new());
        assert_eq!(order.next_epoch(1), [0]);
    }
}
