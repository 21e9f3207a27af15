//! The draws of NumPy's `RandomState` that scikit-learn's splitters and initial weights are made of, to the bit.
//!
//! It owns the way from 32-bit words to integers, orders and choices; the words are judge-core's `mersenne_twister`'s. NumPy's newer
//! `Generator` draws otherwise and is not here. One generator serves all the draws of a splitter, so their order is part of
//! what must equal scikit-learn's. The tests compare with NumPy 2.4.6.

use judge_core::mersenne_twister::MersenneTwister;

/// NumPy's `RandomState`, as far as scikit-learn draws from it: the same seed gives the same draws, which NumPy promises to keep.
pub(crate) struct NumpyRandom {
    /// Position and state move with every draw; nothing else is kept, so a draw never depends on the kind of the one before.
    words: MersenneTwister,
}

impl NumpyRandom {
    /// `RandomState(seed)` of a single whole number in 32 bits, as scikit-learn makes it of a `random_state`.
    pub(crate) fn new(seed: u32) -> Self {
        Self { words: MersenneTwister::from_seed(seed) }
    }

    /// A number from 0 to `greatest`, each as likely: bits are drawn until they are no greater.
    ///
    /// NumPy's legacy bounded integers (`random_interval`): a mask of the bits that `greatest` has, one word up to 32 bits and
    /// two beyond, the first one on top. On average fewer than two attempts are needed. No word is drawn for 0.
    fn up_to(&mut self, greatest: u64) -> u64 {
        // All bits up to the highest one of `greatest`.
        let Some(mask) = u64::MAX.checked_shr(greatest.leading_zeros()) else { return 0 };
        loop {
            // One word where the mask fits in 32 bits, as NumPy does: two would leave every later draw another.
            let mut bits = u64::from(self.words.next_u32());
            if mask > u64::from(u32::MAX) {
                bits = bits << 32 | u64::from(self.words.next_u32());
            }
            if bits & mask <= greatest {
                return bits & mask;
            }
        }
    }

    /// `RandomState.uniform(low, high)`: 53 random bits between the two.
    /// The first word gives the upper 27 bits and the second the lower 26, so two words go into each number. `high` itself is
    /// not drawn but for rounding.
    #[cfg(any(test, feature = "mlp"))]
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        let (upper, lower) = (self.words.next_u32() >> 5, self.words.next_u32() >> 6);
        let share = (f64::from(upper) * 2f64.powi(26) + f64::from(lower)) / 2f64.powi(53);
        low + (high - low) * share
    }

    /// `RandomState.shuffle`.
    /// Fisher and Yates, from the last place down; n − 1 draws. Fewer than two values draw nothing.
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            // No greater than `last`, so it fits.
            let other = self.up_to(last as u64) as usize;
            values.swap(last, other);
        }
    }

    /// `RandomState.permutation` of 0 to n − 1.
    /// A shuffle of 0, 1, …: it draws what a shuffle of n values draws.
    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut permutation: Vec<usize> = (0..n).collect();
        self.shuffle(&mut permutation);
        permutation
    }

    /// `RandomState.choice(values, size, replace=False)`, of at most as many as there are.
    /// The beginning of a permutation of all: it draws as much for a small `size` as for a large one.
    pub(crate) fn choice(&mut self, values: &[usize], size: usize) -> Vec<usize> {
        self.permutation(values.len()).into_iter().take(size).map(|place| values[place]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.random.RandomState(seed)` of NumPy 2.4.6.
    #[test]
    fn draws_are_numpys() {
        assert_eq!(NumpyRandom::new(731).permutation(12), [4, 1, 11, 7, 0, 6, 3, 8, 2, 5, 10, 9]);
        assert_eq!(NumpyRandom::new(u32::MAX).permutation(12), [11, 8, 5, 9, 1, 10, 6, 0, 4, 7, 2, 3]);
        let mut random = NumpyRandom::new(0);
        assert_eq!((random.permutation(0), random.permutation(1)), (vec![], vec![0]));
        // More than one state's worth of words.
        let checksum = |random: &mut NumpyRandom| {
            random.permutation(2000).iter().enumerate().map(|(i, value)| i * value).sum::<usize>()
        };
        assert_eq!(checksum(&mut random), 2001039964);
        assert_eq!(checksum(&mut random), 2002364853);
        assert_eq!(random.choice(&[10, 20, 30, 40, 50], 3), [10, 20, 30]);
        // `randint(0, greatest, endpoint)` masks and rejects alike.
        let drawn: Vec<u64> =
            [0, 1, 5, u64::from(u32::MAX), (1 << 40) + 5].map(|greatest| random.up_to(greatest)).to_vec();
        assert_eq!(drawn, [0, 0, 1, 3787417105, 542751414538]);
        let mut random = NumpyRandom::new(731);
        let uniform = [(); 3].map(|()| random.uniform(-0.5, 2.0));
        assert_eq!(uniform, [0.5457477526778431, 1.8709326712200562, 0.04865313393695658]);
        assert_eq!(random.permutation(4), [1, 2, 0, 3]);
    }
}
