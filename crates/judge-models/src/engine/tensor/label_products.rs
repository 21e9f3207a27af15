//! Label logits on the device: products of states with a few rows of the head, so that a number of
//! each layer and label is fetched instead of whole states.
//!
//! The packed path multiplies the same numbers on the host in `f64` (`reading/labels.rs`). Here they
//! are f32, by a kernel of `judge-gpu` on GPUs, and elsewhere composed. The order of a sum is fixed
//! in both, whatever else is in the batch; composed it is:
//!
//! ```text
//! x_d = head[s, d] * state[d]                    each rounded to f32
//! while there is more than one x:                pairs that are half of them apart
//!     x_i = x_i + x_(i + half), half = ceil(n / 2)    an odd one in the middle stays as it is
//! ```
//!
//! Of `n` numbers at most `ceil(log2 n) + 1` roundings reach the sum one behind the other, so its
//! error is at most about `(ceil(log2 n) + 1) · 2⁻²⁴ · Σ |head[s, d] · state[d]|` (pairwise summation:
//! Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). A compiler may join the
//! first sum with a product, which leaves out a rounding.

use burn::tensor::Tensor;

/// Products that are in memory at a time: 64 MiB in f32.
const PRODUCTS: usize = 1 << 24;

/// One logit of each state `[batch, 1, d_model]` for each row of `head` `[labels, d_model]`, both in
/// f32 on the same device: `[batch, 1, labels]`.
pub(super) fn label_products(states: &Tensor<3>, head: &Tensor<2>) -> Tensor<3> {
    let [batch, _, d_model] = states.dims();
    let [labels, _] = head.dims();
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if judge_gpu::runs_on(&head.device()) {
        let states = states.clone().reshape([batch, d_model]);
        return judge_gpu::dots(states, head.clone()).reshape([batch, 1, labels]);
    }
    let at_once = (PRODUCTS / (batch * d_model).max(1)).clamp(1, labels.max(1));
    let some = (0..labels).step_by(at_once).map(|start| {
        let count = at_once.min(labels - start);
        let head = head.clone().narrow(0, start, count).reshape([1, count, d_model]).expand([batch, count, d_model]);
        sum_in_pairs(states.clone().expand([batch, count, d_model]) * head)
    });
    // [batch, count, 1] of each -> [batch, labels, 1] -> [batch, 1, labels]
    Tensor::cat(some.collect(), 1).swap_dims(1, 2)
}

/// The sums along the last axis, in the order that this file states: `[.., .., n]` to `[.., .., 1]`.
fn sum_in_pairs(mut x: Tensor<3>) -> Tensor<3> {
    loop {
        let [a, b, n] = x.dims();
        if n < 2 {
            return x;
        }
        let half = n.div_ceil(2);
        let first = x.clone().narrow(2, 0, n - half);
        let sums = first + x.clone().narrow(2, half, n - half);
        x = match n - half < half {
            true => Tensor::cat(vec![sums, x.slice([0..a, 0..b, half - 1..half])], 2),
            false => sums,
        };
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::engine::packed::cases::numbers;

    #[test]
    fn they_are_within_the_bound_of_sums_in_f64() {
        let device = Device::flex();
        for (batch, labels, d_model) in [(1, 1, 1), (3, 5, 2), (2, 4, 37), (3, 10, 1000), (2, 3, 4096)] {
            let (states, head) = (numbers(1, batch * d_model), numbers(2, labels * d_model));
            let tensor = |values: &[f32], rows: usize| {
                Tensor::<1>::from_data(TensorData::from(values), &device).reshape([rows, 1, d_model])
            };
            let found = label_products(&tensor(&states, batch), &tensor(&head, labels).reshape([labels, d_model]));
            assert_eq!(found.dims(), [batch, 1, labels]);
            let found: Vec<f32> = found.into_data().try_to_vec().unwrap();
            let pairs = states.chunks(d_model).flat_map(|state| head.chunks(d_model).map(move |row| (state, row)));
            for (found, (state, row)) in found.into_iter().zip(pairs) {
                let products = || state.iter().zip(row).map(|(&a, &b)| f64::from(a) * f64::from(b));
                let bound = (d_model.next_power_of_two().ilog2() + 1) as f64 * f64::from(f32::EPSILON) / 2.0
                    * products().map(f64::abs).sum::<f64>();
                let error = (f64::from(found) - products().sum::<f64>()).abs();
                assert!(error <= 1.01 * bound, "{d_model}: {error:e}, at most {bound:e}");
            }
        }
    }

    #[test]
    fn a_logit_has_the_same_bits_alone_and_in_a_batch() {
        let device = Device::flex();
        let d_model = 129;
        let values = numbers(7, 40 * d_model);
        let rows = |start: usize, count: usize| {
            let values = &values[start * d_model..(start + count) * d_model];
            Tensor::<1>::from_data(TensorData::from(values), &device).reshape([count, 1, d_model])
        };
        let head = |start, count| rows(start, count).reshape([count, d_model]);
        let host = |x: Tensor<3>| x.into_data().try_to_vec::<f32>().unwrap();
        let all = host(label_products(&rows(0, 30), &head(30, 10)));
        for (row, label) in [(0, 0), (17, 3), (29, 9)] {
            assert_eq!(host(label_products(&rows(row, 1), &head(30 + label, 1))), [all[row * 10 + label]]);
        }
    }

    #[test]
    fn the_order_is_the_stated_one() {
        // ((a + d) + c) + (b + e): pairs are 3 apart, then 2, then 1. In f32 1e8 + 1 is 1e8.
        let sum = |x: [f32; 5]| {
            let x = Tensor::<1>::from_floats(x, &Device::flex()).reshape([1, 1, 5]);
            sum_in_pairs(x).into_data().try_to_vec::<f32>().unwrap()[0]
        };
        assert_eq!(sum([1e8, 1.0, 4.0, -1e8, 2.0]), 7.0);
        assert_eq!(sum([1e8, -1e8, 4.0, 1.0, 2.0]), 0.0);
    }
}
