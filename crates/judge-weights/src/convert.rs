//! Numbers as files hold them, widened to f32 or rounded to bf16 on all threads.
//!
//! `safetensors.rs` calls [`round`] and [`convert`] with the bytes of some rows and a function for
//! one number, by the stored dtype. Each number is converted for itself, so neither chunks nor
//! threads change a bit. Values that are NaN or infinite are found on the way, and the first of
//! them is reported whatever the number of threads.

use half::bf16;
use rayon::prelude::*;

/// Elements converted by one task: enough that starting the task does not count.
const CHUNK: usize = 1 << 16;

/// Little-endian numbers of `N` bytes each, rounded to bf16 by `round`. Bytes left over at the end
/// are not read.
///
/// # Errors
/// Index and value of the first number that is not finite after rounding. A finite f32 that rounds
/// to infinity is one.
pub(crate) fn round<const N: usize>(
    bytes: &[u8],
    round: impl Fn([u8; N]) -> bf16 + Sync,
) -> Result<Vec<bf16>, (usize, f32)> {
    convert_to(bytes, bf16::ZERO, round, |value| value.to_f32())
}

/// Little-endian numbers of `N` bytes each, as f32 by `widen`. Bytes left over at the end are not
/// read.
///
/// # Errors
/// Index and value of the first number that is not finite.
pub(crate) fn convert<const N: usize>(
    bytes: &[u8],
    widen: impl Fn([u8; N]) -> f32 + Sync,
) -> Result<Vec<f32>, (usize, f32)> {
    convert_to(bytes, 0.0, widen, |value| value)
}

/// The loop behind [`round`] and [`convert`]: `from` makes a `T` of the bytes of one number, and
/// `value` widens it for the check and for the error. `zero` fills the result until it is
/// overwritten.
///
/// Each task only keeps a flag while it converts and searches its chunk again if the flag fell. The
/// smallest index of all tasks is the error.
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
