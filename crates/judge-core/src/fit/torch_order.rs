/// The orders in which `DataLoader(shuffle=True)` visits its items after `torch.manual_seed(seed)`, epoch after epoch.
///
/// Per epoch PyTorch's CPU generator, a Mersenne Twister (MT19937, Matsumoto and Nishimura 1998), gives two 63-bit numbers: the loader's
/// base seed, which only matters to worker processes, and the sampler's seed, whose low 32 bits start the generator of the permutation.
pub(super) struct TorchOrder {
    generator: MersenneTwister,
}

impl TorchOrder {
    pub(super) fn new(seed: u64) -> Self {
        Self { generator: MersenneTwister::new(seed as u32) } // PyTorch, too, keeps the low 32 bits
    }

    /// A permutation of `0..n`.
    pub(super) fn next_epoch(&mut self, n: usize) -> Vec<usize> {
        let _base_seed = self.generator.next_u64();
        let mut generator = MersenneTwister::new(self.generator.next_u64() as u32);
        let mut order: Vec<usize> = (0..n).collect();
        for i in 0..n.saturating_sub(1) {
            order.swap(i, i + generator.next_u32() as usize % (n - i));
        }
        order
    }
}

const N: usize = 624;
const M: usize = 397;

struct MersenneTwister {
    state: [u32; N],
    next: usize,
}

impl MersenneTwister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; N];
        for i in 1..N {
            let before = state[i - 1];
            state[i] = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    fn next_u32(&mut self) -> u32 {
        if self.next == N {
            for i in 0..N {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
                let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// High word first.
    fn next_u64(&mut self) -> u64 {
        let high = u64::from(self.next_u32());
        high << 32 | u64::from(self.next_u32())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_mt19937() {
        // The C++ standard gives the 10000th output of mt19937 with the default seed.
        let mut generator = MersenneTwister::new(5489);
        let last = (0..10_000).map(|_| generator.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn short_lists_have_an_order() {
        let mut order = TorchOrder::new(7);
        assert_eq!(order.next_epoch(0), Vec::<usize>::new());
        assert_eq!(order.next_epoch(1), [0]);
    }
}
