//! The generator of words behind PyTorch's random numbers, and NumPy's and CPython's older ones, which published orders, splits and samples
//! were drawn with. Not for anything new: other seeds in this project go to ChaCha. What is drawn *from* the words differs by program, see
//! `torch_order` here, and `numpy_random` and `python_random` in judge-probe, for which this is public.
//!
//! The words are no secret: whoever sees 624 of them knows all that follow. Period 2¹⁹⁹³⁷ − 1.

/// Words of the state: n in the paper. All are renewed together, and then given out one by one.
const WORDS: usize = 624;
/// How far ahead of a word stands the one it is mixed with.
/// The paper's m.
const AHEAD: usize = 397;

/// MT19937 (Matsumoto and Nishimura, 1998): the words that PyTorch, NumPy's legacy generator and CPython's `random` draw from.
pub struct MersenneTwister {
    /// 2,496 bytes; as given out, words are tempered copies of these.
    state: [u32; WORDS],
    /// The word to give out next; 624 when the state must be renewed first.
    next: usize,
}

impl MersenneTwister {
    /// The paper's `init_genrand`.
    /// xᵢ = 1812433253 · (xᵢ₋₁ ⊕ (xᵢ₋₁ ≫ 30)) + i mod 2³² from x₀ = seed. PyTorch and NumPy seed so from one whole number.
    pub fn from_seed(seed: u32) -> Self {
        let mut state = [seed; WORDS];
        for i in 1..WORDS {
            let last = state[i - 1];
            // 624 words: the conversion is exact.
            state[i] = 1_812_433_253_u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: WORDS }
    }

    /// The paper's `init_by_array`, for a key of one word or more.
    ///
    /// The state of a fixed seed is stirred twice: once with the words of the key, repeated as often as needed, and once by
    /// itself. CPython seeds so from a whole number of any size. The first word is set last, so that no key gives a state of
    /// zeros.
    pub fn from_key(key: &[u32]) -> Self {
        let mut state = Self::from_seed(19_650_218).state;
        let mut place = 1;
        // A word mixed with the one before it.
        let mixed = |state: &[u32; WORDS], place: usize, factor: u32| {
            let before = state[place - 1];
            state[place] ^ (before ^ (before >> 30)).wrapping_mul(factor)
        };
        // After the last word comes word 1, before which stands a copy of the last.
        let next_place = |state: &mut [u32; WORDS], place: usize| {
            if place + 1 < WORDS {
                return place + 1;
            }
            state[0] = state[WORDS - 1];
            1
        };
        for (index, word) in key.iter().enumerate().cycle().take(WORDS.max(key.len())) {
            state[place] = mixed(&state, place, 1_664_525).wrapping_add(*word).wrapping_add(index as u32);
            place = next_place(&mut state, place);
        }
        for _ in 1..WORDS {
            state[place] = mixed(&state, place, 1_566_083_941).wrapping_sub(place as u32);
            place = next_place(&mut state, place);
        }
        state[0] = 1 << 31;
        Self { state, next: WORDS }
    }

    /// 32 random bits.
    /// Tempered: shifts and masks spread the bits of a word of the state, by the paper's constants.
    pub fn next_u32(&mut self) -> u32 {
        // The state is renewed when it is used up, so a generator that is never asked does no work for it.
        if self.next == WORDS {
            self.renew();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// The next 624 words of the recurrence, in place: the upper bit of one word and the lower 31 of the next, shifted and
    /// twisted, are combined with the word 397 further on. Places wrap around, where words are those already renewed.
    fn renew(&mut self) {
        for i in 0..WORDS {
            let joined = (self.state[i] & (1 << 31)) | (self.state[(i + 1) % WORDS] & !(1 << 31));
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + AHEAD) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_mt19937() {
        // The C++ standard gives the 10000th output of mt19937 with the default seed.
        let mut generator = MersenneTwister::from_seed(5489);
        let last = (0..10_000).map(|_| generator.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
