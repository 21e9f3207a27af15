//! The draws of CPython's `random.sample`, to the bit. Two methods share one function there, and which of them draws depends on the sizes;
//! both are followed.
//!
//! It owns the way from 32-bit words to samples without replacement; the words are judge-core's `mersenne_twister`'s. It is here because
//! published probing sets were drawn by it, see `balanced_sample`. The tests compare with CPython 3.11.7.

use std::collections::HashSet;

use judge_core::mersenne_twister::MersenneTwister;

/// CPython's `random.Random` seeded with a whole number, as far as sampling draws from it.
///
/// A `PythonRandom` is one sequence: samples drawn one after another continue it, as calls of `random.sample` do after one
/// `random.seed`.
pub(crate) struct PythonRandom {
    /// Words are drawn whole: bits left over from one are not used for the next number.
    words: MersenneTwister,
}

impl PythonRandom {
    /// `random.seed(seed)`. The key is the seed's 32-bit words, the lowest first and without leading zeros, but one word for 0.
    /// CPython always takes a key, so the state differs from NumPy's for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        let key: &[u32] = if high == 0 { &[low] } else { &[low, high] };
        Self { words: MersenneTwister::from_key(key) }
    }

    /// `getrandbits`, of 1 to 64 bits.
    /// The upper bits of a word; beyond 32 the first word is the lower half and the second gives the rest.
    fn bits(&mut self, n_bits: u32) -> u64 {
        let first = u64::from(self.words.next_u32());
        if n_bits <= 32 {
            return first >> (32 - n_bits);
        }
        (u64::from(self.words.next_u32()) >> (64 - n_bits)) << 32 | first
    }

    /// A number below n ≥ 1. Bits are drawn until they are: as many as n has, which for a power of 2 is one more than needed.
    /// `_randbelow`. On average at most two attempts.
    fn below(&mut self, n: usize) -> usize {
        // `n.bit_length()`.
        let n_bits = usize::BITS - n.leading_zeros();
        loop {
            let drawn = self.bits(n_bits);
            if drawn < n as u64 {
                return drawn as usize;
            }
        }
    }

    /// `random.sample(range(n), size)` for size ≤ n: distinct numbers in the order drawn.
    ///
    /// The list has room for all n, and the last of it takes the place of the one drawn; the set draws again what it has drawn
    /// before. Memory is O(n) for the list and O(size) for the set, which is why the rule matters for a large n.
    pub(crate) fn sample(&mut self, n: usize, size: usize) -> Vec<usize> {
        // CPython's estimate of which takes less room, a list of all or a set of those drawn; the two draw differently.
        // 21 is the size of a small set minus that of an empty list; a larger set has 4^⌈log₄(3 · size)⌉ slots.
        let mut set_room = 21;
        if size > 5 {
            let mut slots: usize = 1;
            while slots < size.saturating_mul(3) {
                slots = slots.saturating_mul(4);
            }
            set_room = slots.saturating_add(set_room);
        }
        if n <= set_room {
            // Room for a list of all is no more than for the set.
            let mut pool: Vec<usize> = (0..n).collect();
            return (0..size).map(|_| pool.swap_remove(self.below(pool.len()))).collect();
        }
        // The order is that of the draws; the set only says what is known already.
        let (mut drawn, mut known) = (Vec::with_capacity(size), HashSet::new());
        while drawn.len() < size {
            let number = self.below(n);
            if known.insert(number) {
                drawn.push(number);
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.seed(seed); random.sample(range(n), size)` of CPython 3.11.7.
    #[test]
    fn samples_are_cpythons() {
        let mut random = PythonRandom::new(731);
        // From a list of all, once and again.
        assert_eq!(random.sample(20, 20), [2, 17, 3, 0, 12, 7, 1, 10, 8, 6, 9, 4, 11, 19, 16, 18, 5, 13, 14, 15]);
        assert_eq!(random.sample(84, 9), [43, 57, 53, 33, 64, 72, 15, 39, 80]);
        // From a set of those drawn: 86 is one too many for a list at 9.
        assert_eq!(random.sample(86, 9), [40, 58, 33, 6, 8, 45, 46, 12, 27]);
        assert_eq!(random.sample(22, 5), [7, 16, 9, 1, 10]);
        assert_eq!(random.sample(1 << 40, 3), [695214141882, 596601750417, 1006292925133]);
        assert!(random.sample(5, 0).is_empty());
        assert_eq!(PythonRandom::new(0).sample(10, 4), [6, 9, 0, 2]);
        assert_eq!(PythonRandom::new((7 << 32) + 5).sample(10, 4), [5, 2, 6, 0]);
    }
}
