//! Numbers as files hold them, widened to f32 or rounded to bf16.
//!
//! `safetensors.rs` calls [`convert`] with the bytes of some rows and a function for one number, by the stored dtype. Each number is
//! converted for itself, so neither chunks nor threads change a bit. Values that are NaN or infinite are found on the way, and the first
//! of them is reported whatever the number of threads.
//!
//! `table.rs` and `gguf/blocks.rs` call [`widen`] for a few rows, on one thread and without a check.

use half::{bf16, f16};
use rayon::prelude::*;
use safetensors::Dtype as Stored;

/// Elements converted by one task: enough that starting the task does not count.
const CHUNK: usize = 1 << 16;

/// Little-endian numbers of `N` bytes each, as f32 or bf16 by `from`, on all threads. Bytes left over at the end are not read.
///
/// Each task only keeps a flag while it converts and searches its chunk again if the flag fell. The
/// smallest index of all tasks is the error.
///
/// # Errors
/// Index and value of the first number that is not finite after conversion. A finite f32 that rounds to infinity is one.
pub(crate) fn convert<const N: usize, T: Copy + Default + Into<f32> + Send + Sync>(
    bytes: &[u8],
    from: impl Fn([u8; N]) -> T + Sync,
) -> Result<Vec<T>, (usize, f32)> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let mut values = vec![T::default(); numbers.len()];
    let is_finite = |value: T| Into::<f32>::into(value).is_finite();
    let bad = values
        .par_chunks_mut(CHUNK)
        .zip(numbers.par_chunks(CHUNK))
        .enumerate()
        .filter_map(|(chunk, (values, numbers))| {
            let mut finite = true;
            for (converted, &number) in values.iter_mut().zip(numbers) {
                *converted = from(number);
                finite &= is_finite(*converted);
            }
            if finite { None } else { values.iter().position(|&v| !is_finite(v)).map(|i| chunk * CHUNK + i) }
        })
        .min();
    match bad {
        Some(index) => Err((index, values[index].into())),
        None => Ok(values),
    }
}

/// Widens little-endian numbers to f32 one by one, as many as `values` has room for. What is not F64, F32 or F16 is read as BF16.
pub(crate) fn widen(stored: Stored, bytes: &[u8], values: &mut [f32]) {
    match stored {
        Stored::F64 => each(bytes, values, |b| f64::from_le_bytes(b) as f32),
        Stored::F32 => each(bytes, values, f32::from_le_bytes),
        Stored::F16 => each(bytes, values, |b| f16::from_le_bytes(b).to_f32()),
        _ => each(bytes, values, |b| bf16::from_le_bytes(b).to_f32()),
    }
}

fn each<const N: usize>(bytes: &[u8], values: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
    values.iter_mut().zip(bytes.as_chunks().0).for_each(|(value, &bytes)| *value = widen(bytes));
}
