//! Seeded draws that depend on their number alone, and work shared out to threads by number.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::Error;

/// What draws are for: the same seed must not couple a bootstrap with a permutation test of the same data.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Bootstrap = 0,
    Permutation = 1,
    Folds = 2,
    Posterior = 3,
    Sample = 4,
}

/// ChaCha8 whose key is the seed (64 bits, little-endian), then the purpose (one byte), then zeros, and whose stream is `number`.
pub(crate) fn stream(seed: u64, purpose: Purpose, number: usize) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8] = purpose as u8;
    let mut stream = ChaCha8Rng::from_seed(key);
    stream.set_stream(number as u64);
    stream
}

/// A number below n: the high half of the 128-bit product of n with the next 64-bit word. It favours some numbers over others by less
/// than n / 2^64.
pub(crate) fn below(stream: &mut ChaCha8Rng, n: usize) -> usize {
    ((u128::from(stream.next_u64()) * n as u128) >> 64) as usize
}

/// What `work` makes of `0..count`, cut into successive ranges, a few for each thread of the caller's rayon pool, in order. Of several
/// errors that of the first range is returned.
pub(super) fn parallel<T: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> Result<Vec<T>, Error> + Sync,
) -> Result<Vec<T>, Error> {
    // A thread that is held up elsewhere leaves ranges to the others.
    const RANGES_PER_THREAD: usize = 4;
    in_ranges((rayon::current_num_threads() * RANGES_PER_THREAD).min(count), count, &work)
}

/// The work is called through a pointer, once for each range: rayon's machinery is compiled for each result and not for each closure.
fn in_ranges<T: Send>(
    ranges: usize,
    count: usize,
    work: &(dyn Fn(Range<usize>) -> Result<Vec<T>, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let bound = |part: usize| (part as u128 * count as u128 / ranges as u128) as usize;
    let parts: Vec<Result<Vec<T>, Error>> =
        (0..ranges).into_par_iter().map(|part| work(bound(part)..bound(part + 1))).collect();
    let mut results = Vec::with_capacity(count);
    for part in parts {
        results.extend(part?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_in_any_number_of_ranges() {
        let squares = |range: Range<usize>| Ok(range.map(|i| i * i).collect());
        let expected: Vec<usize> = (0..100).map(|i| i * i).collect();
        for ranges in [1, 2, 3, 7, 100] {
            assert_eq!(in_ranges(ranges, 100, &squares).as_ref(), Ok(&expected));
            let failing = |range: Range<usize>| match range.clone().find(|i| i % 40 == 39) {
                Some(found) => Err(Error::TooFewItems { required: 0, found }),
                None => Ok(vec![0; range.len()]),
            };
            assert_eq!(in_ranges(ranges, 100, &failing), Err(Error::TooFewItems { required: 0, found: 39 }));
        }
        assert_eq!(parallel(0, squares), Ok(Vec::new()));
    }

    #[test]
    fn purposes_and_numbers_have_streams_of_their_own() {
        let words = |purpose, number| {
            let mut stream = stream(5, purpose, number);
            [stream.next_u64(), stream.next_u64()]
        };
        assert_eq!(words(Purpose::Bootstrap, 3), words(Purpose::Bootstrap, 3));
        assert_ne!(words(Purpose::Bootstrap, 3), words(Purpose::Bootstrap, 4));
        assert_ne!(words(Purpose::Bootstrap, 3), words(Purpose::Permutation, 3));
    }
}
