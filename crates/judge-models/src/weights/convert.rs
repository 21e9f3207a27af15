//! Numbers as files hold them, widened or rounded by all threads; what is not finite is found on the way.

use half::bf16;
use rayon::prelude::*;

/// Elements converted by one task.
const CHUNK: usize = 1 << 16;

/// Little-endian numbers of `N` bytes each, rounded to bf16; the first that is not finite is an error, with its index.
pub(super) fn round<const N: usize>(
    bytes: &[u8],
    round: impl Fn([u8; N]) -> bf16 + Sync,
) -> Result<Vec<bf16>, (usize, f32)> {
    convert_to(bytes, bf16::ZERO, round, |value| value.to_f32())
}

/// Little-endian numbers of `N` bytes each as `f32`; the first that is not finite is an error, with its index.
pub(super) fn convert<const N: usize>(
    bytes: &[u8],
    widen: impl Fn([u8; N]) -> f32 + Sync,
) -> Result<Vec<f32>, (usize, f32)> {
    convert_to(bytes, 0.0, widen, |value| value)
}

fn convert_to<const N: usize, T: Copy + Send + Sync>(
    bytes: &[u8],
    zero: T,
    from: impl Fn([u8; N]) -> T + Sync,
    value: impl Fn(T) -> f32 + Sync,
) -> Result<Vec<T>, (usize, f32)> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let mut values = vec![zero; numbers.len()];
    let bad = values
        .par_chunks_mut(CHUNK)
        .zip(numbers.par_chunks(CHUNK))
        .enumerate()
        .filter_map(|(chunk, (values, numbers))| {
            let mut finite = true;
            for (converted, &number) in values.iter_mut().zip(numbers) {
                *converted = from(number);
                finite &= value(*converted).is_finite();
            }
            if finite { None } else { values.iter().position(|&v| !value(v).is_finite()).map(|i| chunk * CHUNK + i) }
        })
        .min();
    match bad {
        Some(index) => Err((index, value(values[index]))),
        None => Ok(values),
    }
}
