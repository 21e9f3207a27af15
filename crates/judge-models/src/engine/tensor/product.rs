//! Matrix products in f32 on devices that may round what products take.
//!
//! A GPU's matrix units take f32 with ten bits after the point (TF32), and cubecl, which chooses the
//! kernel, has no switch for it. What is to be f32 is therefore multiplied in parts that no rounding
//! to ten bits changes:
//!
//! ```text
//! x = h + m + l      h = bf16(x), m = bf16(x - h), l = x - h - m: each of at most 8 significant bits,
//!                    and the sum is exact
//! a · b ≈ hₐhᵦ + (hₐmᵦ + mₐhᵦ) + (hₐlᵦ + mₐmᵦ + lₐhᵦ)
//! ```
//!
//! What is left out is below `2⁻²⁵` of `|a| · |b|`. Six products for one are the price of `--dtype f32` on
//! GPUs; `--dtype tf32` is a single one. Splitting into three bf16 numbers: Henry, Tang and Heinecke,
//! Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations (2019).

use burn::tensor::{DType, Tensor};

use super::precision::widen;

/// `a · b` along the last two axes, both in f32, in parts as above: on a device that rounds to TF32
/// as precise as a product in f32 but for the order of sums.
pub(super) fn product_in_parts<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    let ([ha, ma, la], [hb, mb, lb]) = (parts(a), parts(b));
    let small = ha.clone().matmul(lb) + ma.clone().matmul(mb.clone()) + la.matmul(hb.clone());
    let middle = ha.clone().matmul(mb) + ma.matmul(hb.clone());
    small + middle + ha.matmul(hb)
}

/// Three numbers of eight significant bits whose sum is each finite number of `x`, the largest first,
/// in f32. Keeps the shape. Numbers that are not finite give NaN.
fn parts<const D: usize>(x: Tensor<D>) -> [Tensor<D>; 3] {
    let high = widen(x.clone().cast(DType::BF16));
    let rest = x - high.clone();
    let middle = widen(rest.clone().cast(DType::BF16));
    [high, middle.clone(), rest - middle]
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;

    fn numbers(count: usize) -> Vec<f32> {
        let one = |i: usize| {
            let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xD1B5_4A32_D192_ED03);
            ((bits >> 40) as f32 / (1 << 23) as f32 - 1.0) * 10_f32.powi((bits % 7) as i32 - 3)
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn no_part_is_changed_by_ten_bits_after_the_point_and_nothing_is_lost() {
        let x = numbers(1000);
        let tensor = Tensor::<1>::from_data(TensorData::from(x.as_slice()), &Device::flex());
        let [h, m, l] = parts(tensor).map(|part| part.into_data().try_to_vec::<f32>().unwrap());
        for (x, ((h, m), l)) in x.into_iter().zip(h.into_iter().zip(m).zip(l)) {
            // f32 has 23 bits after the point.
            assert!([h, m, l].iter().all(|part| part.to_bits() % (1 << 13) == 0), "{x}: {h}, {m}, {l}");
            assert_eq!(f64::from(h) + f64::from(m) + f64::from(l), f64::from(x));
        }
    }

    /// Products of parts that a device has rounded to TF32 are those of f32.
    #[test]
    fn a_product_is_as_precise_as_in_f32() {
        let (rows, inner, columns) = (5, 300, 7);
        let values = numbers(rows * inner + inner * columns);
        let (a, b) = values.split_at(rows * inner);
        let tensor = |values: &[f32], shape: [usize; 2]| {
            Tensor::<2>::from_data(TensorData::new(values.to_vec(), shape), &Device::flex())
        };
        let found = product_in_parts(tensor(a, [rows, inner]), tensor(b, [inner, columns]));
        let found: Vec<f32> = found.into_data().try_to_vec().unwrap();
        for (place, found) in found.into_iter().enumerate() {
            let (row, column) = (place / columns, place % columns);
            let terms = || (0..inner).map(|i| f64::from(a[row * inner + i]) * f64::from(b[i * columns + column]));
            let (exact, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
            assert!((f64::from(found) - exact).abs() < 1e-6 * size, "{found}, {exact}");
        }
    }
}
