//! How fast Burn's products are on a GPU: a yardstick for forward passes.

use std::time::Instant;

use burn::tensor::{DType, Tensor, TensorData};
use half::bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::Error;

/// Rows and columns of the square matrices that a GPU multiplies. Three of them in bf16 take 384
/// MiB.
const SIZE: usize = 8192;

/// Products that are queued and timed together, so that the time of waiting for the device hardly
/// counts.
const TOGETHER: usize = 8;

/// Operations per second that products reach on a GPU: in f32 where it has nothing else here, else in bf16.
///
/// # Errors
/// [`Error::Device`] if the device fails.
pub(crate) fn product_rate(gpu: &burn::tensor::Device, has_f32_alone: bool) -> Result<f64, Error> {
    rate(gpu, if has_f32_alone { DType::F32 } else { DType::BF16 }, SIZE)
}

/// Operations per second of Burn's products of two matrices `[size, size]` in a dtype, on any device:
/// the best of four tries of [`TOGETHER`] products each.
///
/// Each product multiplies what the one before gave, and nothing overflows: with 8192 terms of
/// these magnitudes in a sum, the root mean square grows by a factor of about 1.08 each time.
///
/// # Errors
/// [`Error::Device`] if the device fails.
fn rate(device: &burn::tensor::Device, dtype: DType, size: usize) -> Result<f64, Error> {
    let fault = |source| Error::Device { source: Box::new(source) };
    // The values decide how much power a GPU draws, and so its clock: they must not be zeros.
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut random = || {
        // ±[2⁻⁷, 2⁻⁶): sign and seven bits of the fraction are drawn.
        let values: Vec<bf16> =
            (0..size * size).map(|_| bf16::from_bits(rng.next_u32() as u16 & 0x807f | 0x3c00)).collect();
        Tensor::<2>::from_data(TensorData::new(values, [size, size]), (device, dtype))
    };
    let (mut x, weight) = (random(), random());
    let mut fastest = f64::INFINITY;
    // The first try chooses a kernel.
    for _ in 0..4 {
        device.sync().map_err(fault)?;
        let start = Instant::now();
        for _ in 0..TOGETHER {
            // Each takes in the one before, so that none can be left out; as in a pass, the matrix is met by its rows.
            x = x.matmul(weight.clone().transpose());
        }
        device.sync().map_err(fault)?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    Ok((2 * TOGETHER * size.pow(3)) as f64 / fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burn_s_rate_is_measured_on_any_device() {
        let rate = rate(&burn::tensor::Device::flex(), DType::BF16, 64).unwrap();
        assert!(rate.is_finite() && rate > 0.0, "{rate}");
    }
}
