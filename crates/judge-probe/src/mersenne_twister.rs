//! The generator of words behind NumPy's and CPython's older random numbers, which published splits and samples were drawn with. Not for anything new: other seeds in this project
//! go to ChaCha. What is drawn *from* the words differs by program, see `numpy_random` and `python_random`.

const WORDS: usize = 624;
/// How far ahead of a word stands the one it is mixed with.
const AHEAD: usize = 397;

/// MT19937 (Matsumoto and Nishimura, 1998): the words that NumPy's legacy generator and CPython's `random` both draw from.
pub(crate) struct MersenneTwister {
    state: [u32; WORDS],
    next: usize,
}

impl MersenneTwister {
    /// The paper's `init_genrand`.
    pub(crate) fn from_seed(seed: u32) -> Self {
        let mut state = [seed; WORDS];
        for i in 1..WORDS {
            let last = state[i - 1];
            // 624 words: the conversion is exact.
            state[i] = 1_812_433_253_u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: WORDS }
    }

    /// The paper's `init_by_array`, for a key of one word or more.
    pub(crate) fn from_key(key: &[u32]) -> Self {
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
    pub(crate) fn next_u32(&mut self) -> u32 {
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

    fn renew(&mut self) {
        for i in 0..WORDS {
            let joined = (self.state[i] & (1 << 31)) | (self.state[(i + 1) % WORDS] & !(1 << 31));
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + AHEAD) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.next = 0;
    }
}
